/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/expression.h"
#include "schemas/parameters.h"

#define BLANKS " \t\r"
#define MAX_GROUPS 32
#define MAX_PARTS 8
#define MAX_LAYOUTS 8
#define NUMBER_GROUP "([0-9]+)"

static const char word_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* The next word of *text in a new string, "" at the end, NULL if memory runs out; *text advances past it and the blanks
 * after it. */
static char *next_word(const char **text)
{
	const char *start = *text + strspn(*text, BLANKS);
	size_t length = strcspn(start, BLANKS);

	*text = start + length + strspn(start + length, BLANKS);
	return strndup(start, length);
}

static bool is_product(const char *text)
{
	for (;; text++) {
		size_t length = strspn(text, word_characters);

		if (!length)
			return false;
		text += length;
		if (!*text)
			return true;
		if (*text != '*')
			return false;
	}
}

/* "gate", "gate,up", "gate~up", "q:num_attention_heads*head_dim,k:...,v:..."; `text` is consumed. */
static enum xfp_status parse_parts(struct xfp_rule *rule, char *text, struct xfp_error *err)
{
	const char *separator = strchr(text, '~') ? "~" : ",";
	uint32_t sized = 0;

	rule->interleaved = *separator == '~';
	if (!(rule->parts = calloc(MAX_PARTS, sizeof *rule->parts)))
		return xfp_no_memory(err);
	for (char *part; (part = strsep(&text, separator));) {
		struct xfp_rule_part *to = &rule->parts[rule->part_count];
		char *rows = strchr(part, ':');

		if (rows)
			*rows++ = 0;
		if (rule->part_count == MAX_PARTS)
			return xfp_fail(err, XFP_BAD_INPUT, "more than %d roles", MAX_PARTS);
		if (!*part || part[strspn(part, word_characters)])
			return xfp_fail(err, XFP_BAD_INPUT, "invalid role \"%s\"; roles are words such as gate", part);
		for (uint32_t i = 0; i < rule->part_count; i++)
			if (!strcmp(rule->parts[i].role, part))
				return xfp_fail(err, XFP_BAD_INPUT, "role \"%s\" occurs twice", part);
		if (rows && !is_product(rows))
			return xfp_fail(err, XFP_BAD_INPUT, "\"%s\" is not a product of config.json fields", rows);
		rule->part_count++;
		sized += rows != NULL;
		to->role = strdup(part);
		to->rows = rows ? strdup(rows) : NULL;
		if (!to->role || (rows && !to->rows))
			return xfp_no_memory(err);
	}
	if (sized && (sized != rule->part_count || rule->interleaved))
		return xfp_fail(err, XFP_BAD_INPUT,
				"give a number of rows for every role or for none; interleaved roles "
				"have none");
	return XFP_OK;
}

static enum xfp_status parse_layout(struct xfp_rule_layout *layout, char *text, struct xfp_error *err)
{
	for (char *dim; (dim = strsep(&text, ","));) {
		char *equals = strchr(dim, '=');

		if (equals)
			*equals++ = 0;
		if (layout->rank == XFP_LAYOUT_RANK)
			return xfp_fail(err, XFP_BAD_INPUT, "a layout has two or three dimensions");
		if (!*dim || dim[1] || !strchr("ENK", *dim) || memchr(layout->dim, *dim, layout->rank))
			return xfp_fail(err, XFP_BAD_INPUT,
					"invalid or repeated dimension \"%s\"; dimensions are E "
					"(expert), N (row) and K (column)",
					dim);
		if (equals && !is_product(equals))
			return xfp_fail(err, XFP_BAD_INPUT, "\"%s\" is not a product of config.json fields", equals);
		layout->dim[layout->rank] = *dim;
		if (equals && !(layout->equals[layout->rank] = strdup(equals)))
			return xfp_no_memory(err);
		layout->rank++;
	}
	if (!memchr(layout->dim, 'N', layout->rank) || !memchr(layout->dim, 'K', layout->rank))
		return xfp_fail(err, XFP_BAD_INPUT, "a layout needs N and K, such as N,K");
	return XFP_OK;
}

/* "N,K" or alternatives "E,N,K=hidden_size|E,K=hidden_size,N"; `text` is consumed. */
static enum xfp_status parse_layouts(struct xfp_rule *rule, char *text, struct xfp_error *err)
{
	enum xfp_status status;

	if (!(rule->layouts = calloc(MAX_LAYOUTS, sizeof *rule->layouts)))
		return xfp_no_memory(err);
	for (char *layout; (layout = strsep(&text, "|"));) {
		if (rule->layout_count == MAX_LAYOUTS)
			return xfp_fail(err, XFP_BAD_INPUT, "more than %d layouts", MAX_LAYOUTS);
		if ((status = parse_layout(&rule->layouts[rule->layout_count++], layout, err)))
			return status;
		if (rule->layouts[0].rank != rule->layouts[rule->layout_count - 1].rank)
			return xfp_fail(err, XFP_BAD_INPUT, "the layouts differ in rank");
	}
	return XFP_OK;
}

/* Parser state of a pattern: the expression without marks, its groups, and its literal strings. */
struct rule_scan {
	struct xfp_rule *rule;
	char *regex; /* output */
	size_t regex_size;
	size_t run; /* start of the current literal string in rule->literals */
	unsigned groups, depth;
	bool alternatives; /* alternatives at the top level: then no string is certain */
	bool after_mark;   /* the next element directly follows a mark */
	bool more_digits;  /* something other than a single mark may match digits of a name */
};

static void emit(struct rule_scan *scan, const char *text, size_t size)
{
	memcpy(scan->regex + scan->regex_size, text, size);
	scan->regex_size += size;
}

static void end_run(struct rule_scan *scan)
{
	struct xfp_rule *rule = scan->rule;

	if (rule->literals_size > scan->run)
		rule->literals[rule->literals_size++] = 0;
	scan->run = rule->literals_size;
}

static void literal(struct rule_scan *scan, char c)
{
	scan->more_digits |= c >= '0' && c <= '9';
	if (!scan->depth)
		scan->rule->literals[scan->rule->literals_size++] = c;
}

/* The length of a mark "<layer>", "<extra-layer>" or "<expert>" at p; 0: none. */
static size_t mark(struct rule_scan *scan, const char *p, struct xfp_error *err)
{
	static const char *const marks[] = { "<layer>", "<extra-layer>", "<expert>" };
	struct xfp_rule *rule = scan->rule;

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		unsigned *group = i == 2 ? &rule->expert_group : &rule->layer_group;
		size_t length = strlen(marks[i]);

		if (strncmp(p, marks[i], length))
			continue;
		if (*group) {
			xfp_fail(err, XFP_BAD_INPUT, "%s occurs twice", marks[i]);
			return 0;
		}
		*group = ++scan->groups;
		rule->extra_layer |= i == 1;
		scan->more_digits |= scan->depth || scan->after_mark;
		emit(scan, NUMBER_GROUP, strlen(NUMBER_GROUP));
		return length;
	}
	xfp_fail(err, XFP_BAD_INPUT, "unknown mark or definition \"%.32s\"; write a literal < as [<]", p);
	return 0;
}

/* Length of the bracket expression at p; 0: it is not closed. */
static size_t bracket(const char *p)
{
	const char *q = p + 1;

	if (*q == '^')
		q++;
	if (*q == ']')
		q++;
	while (*q && *q != ']') {
		if (*q == '[' && q[1] && strchr(":.=", q[1])) {
			char close[3] = { q[1], ']', 0 };

			if (!(q = strstr(q + 2, close)))
				return 0;
			q++;
		}
		q++;
	}
	return *q ? (size_t)(q + 1 - p) : 0;
}

static bool ends_line(const char *text)
{
	size_t length = strlen(text), backslashes = 0;

	if (!length || text[length - 1] != '$')
		return false;
	while (backslashes + 1 < length && text[length - 2 - backslashes] == '\\')
		backslashes++;
	return backslashes % 2 == 0;
}

static enum xfp_status scan_pattern(struct rule_scan *scan, const char *text, struct xfp_error *err)
{
	struct xfp_rule *rule = scan->rule;

	for (const char *p = text; *p;) {
		size_t length = 1;

		switch (*p) {
		case '\\':
			if (!p[1] || !strchr("^.[]$()|*+?{}\\", p[1]))
				return xfp_fail(err, XFP_BAD_INPUT,
						"\\%.1s is not supported by POSIX extended expressions; write "
						"[0-9] for a digit",
						p + 1);
			literal(scan, p[1]);
			length = 2;
			break;
		case '[':
			end_run(scan);
			if (!(length = bracket(p)))
				return xfp_fail(err, XFP_BAD_INPUT, "[ without ]");
			scan->more_digits |= memchr(p, ':', length) || strcspn(p, "^-0123456789") < length;
			break;
		case '<':
			end_run(scan);
			if (!(length = mark(scan, p, err)))
				return XFP_BAD_INPUT;
			p += length;
			scan->after_mark = true;
			continue;
		case '(':
			end_run(scan);
			scan->groups++;
			scan->depth++;
			break;
		case ')':
			scan->depth -= scan->depth > 0;
			break;
		case '|':
			scan->alternatives |= !scan->depth;
			break;
		case '*':
		case '?':
		case '{': /* the character before may be missing */
			scan->more_digits |= scan->after_mark;
			if (!scan->depth && rule->literals_size > scan->run)
				rule->literals_size--;
			end_run(scan);
			if (*p == '{')
				length = strcspn(p, "}") + 1;
			if (length > strlen(p))
				return xfp_fail(err, XFP_BAD_INPUT, "{ without }");
			break;
		case '$':
			rule->ends = !p[1] && rule->literals_size > scan->run;
			rule->tail = scan->run;
			end_run(scan);
			break;
		case '+':
		case '.':
			scan->more_digits |= *p == '.' || scan->after_mark;
			end_run(scan);
			break;
		case '^':
			end_run(scan);
			break;
		default:
			literal(scan, *p);
		}
		emit(scan, p, length);
		p += length;
		scan->after_mark = false;
	}
	end_run(scan);
	rule->numbers_plain = *text == '^' && ends_line(text) && !scan->alternatives && !scan->more_digits;
	if (scan->alternatives) {
		rule->literals_size = 0;
		rule->ends = false;
	}
	if (scan->groups >= MAX_GROUPS)
		return xfp_fail(err, XFP_BAD_INPUT, "more than %d groups", MAX_GROUPS - 1);
	return XFP_OK;
}

static enum xfp_status parse_pattern(struct xfp_rule *rule, const char *text, struct xfp_error *err)
{
	enum xfp_status status;
	struct rule_scan scan = { .rule = rule };
	size_t length = strlen(text);

	while (length && strchr(BLANKS, text[length - 1]))
		length--;
	if (!length)
		return xfp_fail(err, XFP_BAD_INPUT, "the pattern is missing");
	rule->pattern = strndup(text, length);
	rule->literals = malloc(2 * length + 1);
	scan.regex = malloc(2 * length + 1); /* a mark grows by at most one character */
	if (!rule->pattern || !rule->literals || !scan.regex) {
		status = xfp_no_memory(err);
		goto done;
	}
	if ((status = scan_pattern(&scan, rule->pattern, err)))
		goto done;
	scan.regex[scan.regex_size] = 0;
	status = xfp_expression_compile(&rule->regex, scan.regex, rule->pattern, err);
	rule->compiled = !status;
done:
	free(scan.regex);
	return status;
}

enum xfp_status xfp_rule_parse(struct xfp_rule *rule, const char *text, struct xfp_error *err)
{
	enum xfp_status status;
	char *class = next_word(&text), *roles = NULL, *layout = NULL, none[XFP_NO_CLASS];

	if (!class) {
		status = xfp_no_memory(err);
		goto done;
	}
	if (!xfp_class_parse(class, &rule->class_)) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s, see xfp-family(5)", xfp_no_such_class(class, none));
		goto done;
	}
	if (rule->action == XFP_RULE_QUANTIZE) {
		roles = next_word(&text);
		layout = next_word(&text);
		if (!roles || !layout) {
			status = xfp_no_memory(err);
			goto done;
		}
		if (!*roles || !*layout) {
			status = xfp_fail(err, XFP_BAD_INPUT,
					  "invalid rule; write: quantize CLASS ROLES LAYOUT PATTERN");
			goto done;
		}
		if ((status = parse_parts(rule, roles, err)) || (status = parse_layouts(rule, layout, err)))
			goto done;
	}
	if ((status = parse_pattern(rule, text, err)))
		goto done;
	if (rule->expert_group && rule->layouts && memchr(rule->layouts->dim, 'E', rule->layouts->rank))
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "number experts by <expert> in the name or by E in the shape, "
				  "not by both");
done:
	free(class);
	free(roles);
	free(layout);
	return status;
}

void xfp_rule_clear(struct xfp_rule *rule)
{
	for (uint32_t i = 0; i < rule->part_count; i++) {
		free(rule->parts[i].role);
		free(rule->parts[i].rows);
	}
	for (uint32_t i = 0; i < rule->layout_count; i++)
		for (uint32_t d = 0; d < XFP_LAYOUT_RANK; d++)
			free(rule->layouts[i].equals[d]);
	free(rule->parts);
	free(rule->layouts);
	free(rule->pattern);
	free(rule->literals);
	if (rule->compiled)
		regfree(&rule->regex);
}

/* A cheap test that is false for nearly every name that the expression would reject. */
static bool has_literals(const struct xfp_rule *rule, const char *name)
{
	if (rule->ends) { /* the end first: most rules differ there, and it needs no search */
		size_t length = strlen(name), tail = rule->literals_size - rule->tail - 1;

		if (length < tail || memcmp(name + length - tail, rule->literals + rule->tail, tail))
			return false;
	}
	for (size_t at = 0; at < rule->literals_size; at += strlen(rule->literals + at) + 1) {
		name = strstr(name, rule->literals + at);
		if (!name)
			return false;
		name += strlen(rule->literals + at);
	}
	return true;
}

/* Numbers of nine digits or more are clamped to the largest. */
static uint32_t number(const char *text, size_t length)
{
	uint32_t value = 0;

	for (size_t i = 0; i < length; i++) {
		if (value > 99999999)
			return 999999999;
		value = value * 10 + (uint32_t)(text[i] - '0');
	}
	return value;
}

/* The position of a number in a name; empty (both equal) if the name has no number. */
struct rule_place {
	size_t at, end;
};

/* Find the positions of the marks' numbers from the expression's groups, in a name that matches. */
static enum xfp_status find_groups(const struct xfp_rule *rule, const char *name, struct rule_place *layer,
				   struct rule_place *expert, struct xfp_error *err)
{
	unsigned max = rule->layer_group > rule->expert_group ? rule->layer_group : rule->expert_group;
	const regmatch_t *l, *e;
	regmatch_t group[MAX_GROUPS];
	enum xfp_status status;
	bool matches = false;

	status = xfp_expression_match(&rule->regex, name, max + 1, group, &matches, err);
	if (status || !matches)
		return status;
	l = &group[rule->layer_group];
	e = &group[rule->expert_group];
	if (rule->layer_group && l->rm_so >= 0)
		*layer = (struct rule_place){ (size_t)l->rm_so, (size_t)l->rm_eo };
	if (rule->expert_group && e->rm_so >= 0)
		*expert = (struct rule_place){ (size_t)e->rm_so, (size_t)e->rm_eo };
	return XFP_OK;
}

/* find_groups for a name that matches a rule with plain numbers, in a tenth of the time: the name's runs of digits are
 * the marks' numbers, in order. */
static bool find_digits(const struct xfp_rule *rule, const char *name, struct rule_place *layer,
			struct rule_place *expert)
{
	static const char digits[] = "0123456789";
	struct rule_place *order[2];
	size_t count = 0, found = 0;

	if (rule->layer_group)
		order[count++] = layer;
	if (rule->expert_group)
		order[count++] = expert;
	if (count == 2 && rule->expert_group < rule->layer_group) {
		order[0] = expert;
		order[1] = layer;
	}
	for (size_t at = strcspn(name, digits); name[at]; at += strcspn(name + at, digits)) {
		size_t end = at + strspn(name + at, digits);

		if (found == count)
			return false;
		*order[found++] = (struct rule_place){ at, end };
		at = end;
	}
	return found == count;
}

enum xfp_status xfp_rule_matches(const struct xfp_rule *rule, const char *name, uint64_t layers, bool *matches,
				 struct xfp_rule_match *match, struct xfp_error *err)
{
	struct rule_place layer = { 0 }, expert = { 0 };
	enum xfp_status status;

	*matches = false;
	if (!has_literals(rule, name))
		return XFP_OK;
	if ((status = xfp_expression_match(&rule->regex, name, 0, NULL, matches, err)) || !*matches)
		return status;
	if ((rule->layer_group || rule->expert_group) &&
	    !(rule->numbers_plain && find_digits(rule, name, &layer, &expert)) &&
	    (status = find_groups(rule, name, &layer, &expert, err)))
		return status;
	*match = (struct xfp_rule_match){ .layer = -1, .expert_at = expert.at, .expert_end = expert.end };
	if (layer.end > layer.at)
		match->layer = number(name + layer.at, layer.end - layer.at);
	if (expert.end > expert.at)
		match->expert = number(name + expert.at, expert.end - expert.at);
	else if (rule->expert_group)
		*matches = false;
	if (rule->extra_layer && (match->layer < 0 || (uint64_t)match->layer < layers))
		*matches = false;
	return XFP_OK;
}
