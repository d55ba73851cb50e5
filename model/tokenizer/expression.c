/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses regular expressions in the Ruby syntax of Oniguruma. A construct that Oniguruma interprets differently, or
 * that no known tokenizer uses, is refused by name.
 */
#include "model/tokenizer/expression.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/tokenizer/unicode/unicode.h"

#define MAX_DEPTH 100
#define MAX_INSTRUCTIONS 20000
#define MAX_CLASSES 5000 /* about a second */

static uint32_t sum(uint32_t a, uint32_t b)
{
	return a == XFP_UNBOUNDED || b == XFP_UNBOUNDED || a > XFP_UNBOUNDED - b ? XFP_UNBOUNDED : a + b;
}

struct xfp_instruction *xfp_expression_insert(struct xfp_expression_parser *p, size_t place, size_t count)
{
	struct xfp_program *program = p->program;

	if (p->problem || !count)
		return NULL;
	if (program->count + count > MAX_INSTRUCTIONS)
		p->problem = "more parts than an expression may have";
	else if (!xfp_grow(&program->code, sizeof *program->code, program->count, count, &program->capacity))
		p->problem = "";
	if (p->problem)
		return NULL;
	memmove(program->code + place + count, program->code + place, (program->count - place) * sizeof *program->code);
	memset(program->code + place, 0, count * sizeof *program->code);
	program->count += count;
	return program->code + place;
}

struct xfp_instruction *xfp_expression_append(struct xfp_expression_parser *p, enum xfp_operation operation)
{
	struct xfp_instruction *i = xfp_expression_insert(p, p->program->count, 1);

	if (i)
		i->operation = (uint8_t)operation;
	return i;
}

/* Append an instruction that matches one character of a sorted set. Takes ownership of the set. */
static void append_set(struct xfp_expression_parser *p, struct xfp_characters *set)
{
	int number = p->problem ? -1 : xfp_program_add_set(p->program, set);
	struct xfp_instruction *i;

	if (p->problem)
		free(set->range);
	else if (number < 0)
		p->problem = number == -1 ? "" : "more sets of characters than an expression may have";
	else if ((i = xfp_expression_append(p, XFP_SET)))
		i->set = (uint16_t)number;
}

/* ---- characters and sets -------------------------------------------------------------------------------------- */

/* Parse the digits after \x or \u. */
static uint32_t hexadecimal(struct xfp_expression_parser *p, size_t max)
{
	bool braces = max == 2 && *p->at == '{';
	char digits[16] = "";
	size_t count;
	unsigned long value;

	p->at += braces;
	count = strspn(p->at, "0123456789abcdefABCDEF");
	if (braces ? !count || count > 8 || p->at[count] != '}' : count < max) {
		p->problem = "\\x or \\u without digits";
		return 0;
	}
	if (!braces)
		count = max;
	memcpy(digits, p->at, count);
	p->at += count + braces;
	value = strtoul(digits, NULL, 16);
	if (value > XFP_LAST_CHARACTER || (value >= 0xd800 && value < 0xe000) || (!braces && max == 2 && value > 0x7f))
		p->problem = "\\x or \\u of something other than a character";
	return (uint32_t)value;
}

static void count_class(struct xfp_expression_parser *p)
{
	if (!p->problem && ++*p->classes > MAX_CLASSES)
		p->problem = "more classes of characters than a tokenizer may have";
}

/* Add the characters that have a property, or, inverted, those that lack it. */
static void add_property(struct xfp_expression_parser *p, struct xfp_characters *set, bool in_set, const char *name,
			 size_t size, bool inverted)
{
	struct xfp_characters more = { 0 };
	/* Outside of a set, Oniguruma's \w also matches digits and fractions of Latin-1, such as U+00B2. */
	bool word = in_set && ((size == 4 && !strncasecmp(name, "word", 4)) || (size == 2 && !strncmp(name, "\\w", 2)));
	bool known, added;

	count_class(p);
	if (p->problem)
		return;
	added = xfp_characters_add_property(&more, word ? "[word]" : name, word ? 6 : size, &known);
	xfp_characters_sort(&more);
	if (added && inverted)
		added = xfp_characters_invert(&more);
	if (!added || !xfp_characters_add_all(set, &more))
		p->problem = "";
	else if (!known)
		p->problem = "a \\p of an unknown property";
	free(more.range);
}

/* Parse {...} or {^...} after \p or \P. */
static void braced_property(struct xfp_expression_parser *p, struct xfp_characters *set, bool in_set, bool inverted)
{
	const char *end = *p->at == '{' ? strchr(p->at, '}') : NULL;
	bool caret = end && p->at[1] == '^';

	if (!end) {
		p->problem = "\\p without braces";
		return;
	}
	p->at += 1 + caret;
	if (strcspn(p->at, "\\[}") < (size_t)(end - p->at))
		p->problem = "a \\p of an unknown property";
	else
		add_property(p, set, in_set, p->at, (size_t)(end - p->at), inverted != caret);
	p->at = end + 1;
}

/* Parse what follows a backslash. A class is added to the set. Returns true for a character. */
static bool escape(struct xfp_expression_parser *p, struct xfp_characters *set, bool in_set, uint32_t *character)
{
	static const char named[] = "rnftaev", control[] = "\r\n\f\t\a\x1b\v";
	char c = *p->at, lower[] = { '\\', (char)(c | 0x20), '\0' };
	const char *found;

	p->at += c != '\0';
	if (c == 'p' || c == 'P') {
		braced_property(p, set, in_set, c == 'P');
		return false;
	}
	if (c && strchr("sSdDwW", c)) {
		add_property(p, set, in_set, lower, 2, c != lower[1]);
		return false;
	}
	if (c == 'x' || c == 'u')
		*character = hexadecimal(p, c == 'x' ? 2 : 4);
	else if (c && (found = strchr(named, c)))
		*character = (unsigned char)control[found - named];
	else if (c && !(c & 0x80) && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c))
		*character = (unsigned char)c;
	else
		p->problem = "an escape other than for characters and classes";
	return true;
}

/* Parse one member of a set. A class is added to the set. Returns true for a character. */
static bool member(struct xfp_expression_parser *p, struct xfp_characters *set, uint32_t *character)
{
	*character = 0;
	if (*p->at == '\\') {
		p->at++;
		return escape(p, set, true, character);
	}
	if (!*p->at)
		p->problem = "a set of characters without an end";
	else if (*p->at == '[' || !strncmp(p->at, "&&", 2))
		p->problem = "a range of characters that begins or ends with a class";
	else
		p->at += xfp_utf8_decode(p->at, character);
	return true;
}

static void add_range(struct xfp_expression_parser *p, struct xfp_characters *set, uint32_t first, uint32_t last)
{
	if (!p->problem && !xfp_characters_add(set, first, last))
		p->problem = "";
}

/* Apply case folding, which precedes inversion. */
static void fold(struct xfp_expression_parser *p, struct xfp_characters *set, bool inverted)
{
	xfp_characters_sort(set);
	if (p->caseless)
		count_class(p);
	if (p->problem || !p->caseless)
		return;
	if (!inverted && xfp_characters_fold_to_several(set))
		p->problem = "(?i: with a character that equals several, as U+00DF equals ss";
	else if (!xfp_characters_fold(set))
		p->problem = "";
}

/* Replace a sorted set by its intersection with another, which is freed: the complement of the union of complements. */
static void intersect(struct xfp_expression_parser *p, struct xfp_characters *set, struct xfp_characters *with)
{
	bool made = !p->problem && xfp_characters_invert(set) && xfp_characters_invert(with) &&
		    xfp_characters_add_all(set, with);

	xfp_characters_sort(set);
	if (!p->problem && !(made && xfp_characters_invert(set)))
		p->problem = "";
	free(with->range);
}

static void read_set(struct xfp_expression_parser *p, struct xfp_characters *set);

/* Add a set within a set. */
static void nested_set(struct xfp_expression_parser *p, struct xfp_characters *set)
{
	struct xfp_characters nested = { 0 };

	if (p->caseless)
		p->problem = "a set of characters within another in (?i:";
	else if (++p->depth > MAX_DEPTH)
		p->problem = "sets of characters nested too deeply";
	if (p->problem)
		return;
	read_set(p, &nested);
	if (!p->problem && !xfp_characters_add_all(set, &nested))
		p->problem = "";
	free(nested.range);
	p->depth--;
}

/* Add a character, a class or a range. */
static void member_or_range(struct xfp_expression_parser *p, struct xfp_characters *set)
{
	uint32_t first, last;
	bool character = member(p, set, &first);

	if (p->problem)
		return;
	if (*p->at != '-' || p->at[1] == ']') {
		if (character)
			add_range(p, set, first, first);
		return;
	}
	p->at++;
	if (!character || !member(p, set, &last))
		p->problem = "a range of characters that begins or ends with a class";
	else if (!p->problem && last < first)
		p->problem = "a range of characters that ends before it begins";
	else
		add_range(p, set, first, last);
}

/* Parse members side by side, up to ] or &&. The result is sorted. */
static void read_operand(struct xfp_expression_parser *p, struct xfp_characters *set)
{
	if (*p->at == ']' || !strncmp(p->at, "&&", 2))
		p->problem = "an empty set of characters";
	while (!p->problem && *p->at != ']' && strncmp(p->at, "&&", 2)) {
		if (*p->at == '[')
			nested_set(p, set);
		else
			member_or_range(p, set);
	}
	xfp_characters_sort(set);
}

static void read_set(struct xfp_expression_parser *p, struct xfp_characters *set)
{
	bool inverted = *++p->at == '^';

	p->at += inverted;
	read_operand(p, set);
	while (!p->problem && *p->at == '&') {
		struct xfp_characters operand = { 0 };

		p->at += 2;
		read_operand(p, &operand);
		if (p->caseless)
			p->problem = "an intersection of sets of characters in (?i:";
		intersect(p, set, &operand);
	}
	p->at += !p->problem;
	fold(p, set, inverted);
	if (!p->problem && inverted && !xfp_characters_invert(set))
		p->problem = "";
}

static void set_of_characters(struct xfp_expression_parser *p)
{
	struct xfp_characters set = { 0 };

	read_set(p, &set);
	append_set(p, &set);
	p->previous = 0;
}

static void append_character(struct xfp_expression_parser *p, uint32_t character)
{
	struct xfp_characters set = { 0 };
	uint32_t folded = p->caseless ? xfp_character_folded(character) : 0;

	if (p->previous && folded && xfp_folded_begin_one(p->previous, folded))
		p->problem = "(?i: with characters that one character equals, as U+00DF equals ss";
	p->previous = folded;
	add_range(p, &set, character, character);
	fold(p, &set, false);
	append_set(p, &set);
}

/* Append a . or a class. Case folding does not apply to them outside of a set. */
static void append_class(struct xfp_expression_parser *p, struct xfp_characters *set)
{
	xfp_characters_sort(set);
	append_set(p, set);
	p->previous = 0;
}

/* ---- groups and alternatives -------------------------------------------------------------------------------- */

static struct xfp_match_extent alternatives(struct xfp_expression_parser *p);

/* Parse a group. `repeatable`: false for a look-around. */
static struct xfp_match_extent group(struct xfp_expression_parser *p, bool *repeatable)
{
	static const struct {
		const char *begin;
		enum xfp_operation operation; /* XFP_MATCHED: only the body */
	} known[] = { { "(?:", XFP_MATCHED },
		      { "(?i:", XFP_MATCHED },
		      { "(?-i:", XFP_MATCHED },
		      { "(?=", XFP_LOOKAHEAD },
		      { "(?!", XFP_NEGATIVE_LOOKAHEAD },
		      { "(?<=", XFP_LOOKBEHIND },
		      { "(?<!", XFP_NEGATIVE_LOOKBEHIND },
		      { "(?>", XFP_ATOMIC },
		      { "(", XFP_MATCHED } };
	bool caseless = p->caseless, in_lookbehind = p->in_lookbehind;
	size_t found = 0, start = p->program->count, kinds = sizeof known / sizeof *known;
	struct xfp_match_extent extent = { 0 };
	struct xfp_instruction *i;
	enum xfp_operation operation;

	while (strncmp(p->at, known[found].begin, strlen(known[found].begin)))
		found++;
	operation = known[found].operation;
	*repeatable = operation == XFP_MATCHED || operation == XFP_ATOMIC;
	if (found == kinds - 1 && p->at[1] == '?')
		p->problem = "a group of another kind than (?: (?i: (?= (?! (?<= (?<! (?>";
	else if (p->depth == MAX_DEPTH)
		p->problem = "groups nested too deeply";
	else if (p->in_lookbehind && !*repeatable)
		p->problem = "a look-around within a look-behind";
	if (p->problem)
		return extent;
	p->at += strlen(known[found].begin);
	p->depth++;
	if (!strcmp(known[found].begin, "(?i:") || !strcmp(known[found].begin, "(?-i:"))
		p->caseless = known[found].begin[2] == 'i';
	p->in_lookbehind = p->in_lookbehind || operation == XFP_LOOKBEHIND || operation == XFP_NEGATIVE_LOOKBEHIND;
	if (operation != XFP_MATCHED)
		xfp_expression_append(p, operation);
	extent = alternatives(p);
	if (!p->problem && *p->at != ')')
		p->problem = "a ( without a )";
	if (operation != XFP_MATCHED && xfp_expression_append(p, XFP_MATCHED)) {
		i = &p->program->code[start];
		i->to = (int32_t)(p->program->count - start);
		i->low = extent.low;
		i->high = extent.high;
	}
	p->at += !p->problem;
	p->depth--;
	p->caseless = caseless;
	p->in_lookbehind = in_lookbehind;
	return *repeatable ? extent : (struct xfp_match_extent){ 0 };
}

/* Parse one character, set, group or anchor, with its repetition. */
static struct xfp_match_extent atom(struct xfp_expression_parser *p)
{
	struct xfp_match_extent one = { 1, 1 }, extent = one;
	struct xfp_characters set = { 0 };
	size_t start = p->program->count;
	bool repeatable = true;
	uint32_t character = 0;
	char c = *p->at;

	if (strchr("*+?{", c)) {
		p->problem = "a repetition of nothing";
	} else if (c == '(') {
		extent = group(p, &repeatable);
	} else if (c == '[') {
		set_of_characters(p);
	} else if (c == '^' || c == '$' || (c == '\\' && (p->at[1] == 'A' || p->at[1] == 'z'))) {
		xfp_expression_append(p, c == '^'          ? XFP_LINE_START
					 : c == '$'        ? XFP_LINE_END
					 : p->at[1] == 'A' ? XFP_TEXT_START
							   : XFP_TEXT_END);
		p->at += c == '\\' ? 2 : 1;
		p->previous = 0;
		extent = (struct xfp_match_extent){ 0 };
		repeatable = false;
	} else if (c == '.') {
		p->at++;
		add_range(p, &set, 0, '\n' - 1);
		add_range(p, &set, '\n' + 1, XFP_LAST_CHARACTER);
		append_class(p, &set);
	} else if (c != '\\') {
		p->at += xfp_utf8_decode(p->at, &character);
		append_character(p, character);
	} else {
		p->at++;
		if (escape(p, &set, false, &character))
			append_character(p, character);
		else
			append_class(p, &set);
	}
	if (!p->problem && *p->at && strchr("*+?{", *p->at)) {
		if (!repeatable)
			p->problem = "a repetition of nothing";
		else
			xfp_expression_repetition(p, start, &extent);
		if (!p->problem && *p->at && strchr("*+?{", *p->at))
			p->problem = "a repetition of nothing";
	}
	return extent;
}

static struct xfp_match_extent sequence(struct xfp_expression_parser *p)
{
	struct xfp_match_extent all = { 0 };

	while (!p->problem && *p->at && *p->at != '|' && *p->at != ')') {
		struct xfp_match_extent one = atom(p);

		all.low = sum(all.low, one.low);
		all.high = sum(all.high, one.high);
	}
	return all;
}

/* Parse alternatives. Each but the last becomes: SPLIT to the next one, its instructions, JUMP to the end. */
static struct xfp_match_extent alternatives(struct xfp_expression_parser *p)
{
	size_t start = p->program->count;
	uint32_t jump = UINT32_MAX;
	struct xfp_match_extent all = sequence(p);

	while (!p->problem && *p->at == '|') {
		struct xfp_instruction *i = xfp_expression_insert(p, start, 1);
		struct xfp_match_extent one;

		if (i && xfp_expression_append(p, XFP_JUMP)) {
			p->program->code[start].operation = XFP_SPLIT;
			p->program->code[start].to = (int32_t)(p->program->count - start);
			/* Until the end is known, the jumps form a linked list. */
			p->program->code[p->program->count - 1].low = jump;
			jump = (uint32_t)p->program->count - 1;
		}
		start = p->program->count;
		p->previous = 0;
		p->at++;
		one = sequence(p);
		all.low = one.low < all.low ? one.low : all.low;
		all.high = one.high > all.high ? one.high : all.high;
	}
	for (uint32_t before; !p->problem && jump != UINT32_MAX; jump = before) {
		struct xfp_instruction *i = &p->program->code[jump];

		before = i->low;
		i->to = (int32_t)(p->program->count - jump);
		i->low = 0;
	}
	return all;
}

const char *xfp_program_read(struct xfp_program *program, const char *expression, unsigned *classes)
{
	struct xfp_expression_parser p = { .at = expression, .program = program, .classes = classes };

	alternatives(&p);
	if (!p.problem && *p.at == ')')
		p.problem = "a ) without a (";
	xfp_expression_append(&p, XFP_MATCHED);
	return p.problem;
}
