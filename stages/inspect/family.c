/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/path.h"
#include "base/text/suffix.h"
#include "base/text/text.h"

#define BLANKS " \t\r"
#define LARGEST_FILE (1u << 20)
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* ---- reading ---------------------------------------------------------------------------------- */

struct definition {
	char *name, *text;
};

struct family_parser {
	struct xfp_family *family;
	bool header_only;
	struct definition *definitions;
	uint32_t definition_count;
};

/* Return the first word of *text, NUL-terminated, and advance *text past it and the blanks after it. */
static char *next_word(char **text)
{
	char *word = *text;
	size_t length = strcspn(word, BLANKS);

	*text = word + length;
	if (**text) {
		*(*text)++ = 0;
		*text += strspn(*text, BLANKS);
	}
	return word;
}

static const struct definition *find_definition(const struct family_parser *parser, const char *name, size_t length)
{
	for (uint32_t i = 0; i < parser->definition_count; i++)
		if (strlen(parser->definitions[i].name) == length && !memcmp(parser->definitions[i].name, name, length))
			return &parser->definitions[i];
	return NULL;
}

/* Replace every <NAME> that is defined; others are left for the rule. Definitions are already expanded, so one pass is
 * enough. */
static char *expand(const struct family_parser *parser, const char *text)
{
	struct xfp_text out;
	FILE *stream = xfp_text_begin(&out);

	if (!stream)
		return NULL;
	while (*text) {
		size_t length = *text == '<' ? strspn(text + 1, NAME_CHARACTERS) : 0;
		const struct definition *d = NULL;

		if (length && text[1 + length] == '>')
			d = find_definition(parser, text + 1, length);
		if (d) {
			fputs(d->text, stream);
			text += length + 2;
		} else {
			fputc(*text++, stream);
		}
	}
	return xfp_text_end(&out) ? out.bytes : NULL;
}

static enum xfp_status add_definition(struct family_parser *parser, char *rest, struct xfp_error *err)
{
	char *name = next_word(&rest);
	struct definition *more, *to;

	if (!*name || name[strspn(name, NAME_CHARACTERS)] || !*rest)
		return xfp_fail(err, XFP_BAD_INPUT, "invalid definition; write: define NAME TEXT");
	if (find_definition(parser, name, strlen(name)) || !strcmp(name, "layer") || !strcmp(name, "extra-layer") ||
	    !strcmp(name, "expert"))
		return xfp_fail(err, XFP_BAD_INPUT, "\"%s\" is already defined", name);
	more = realloc(parser->definitions, (parser->definition_count + 1) * sizeof *more);
	if (!more)
		return xfp_no_memory(err);
	parser->definitions = more;
	to = &more[parser->definition_count];
	to->text = expand(parser, rest);
	to->name = strdup(name);
	parser->definition_count++;
	return to->name && to->text ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status add_words(char ***list, uint32_t *count, char *rest, struct xfp_error *err)
{
	while (*rest) {
		char **more = realloc(*list, (*count + 1) * sizeof *more);

		if (!more)
			return xfp_no_memory(err);
		*list = more;
		if (!(more[*count] = strdup(next_word(&rest))))
			return xfp_no_memory(err);
		++*count;
	}
	return XFP_OK;
}

static enum xfp_status add_rule(struct family_parser *parser, unsigned line, enum xfp_rule_action action, bool optional,
				const char *rest, struct xfp_error *err)
{
	struct xfp_family *family = parser->family;
	enum xfp_status status;
	struct xfp_rule *more;
	char *text;

	if (parser->header_only)
		return XFP_OK;
	more = realloc(family->rules, (family->rule_count + 1) * sizeof *more);
	if (!more)
		return xfp_no_memory(err);
	family->rules = more;
	if (!(text = expand(parser, rest)))
		return xfp_no_memory(err);
	more[family->rule_count] = (struct xfp_rule){ .line = line, .optional = optional, .action = action };
	status = xfp_rule_parse(&more[family->rule_count++], text, err);
	free(text);
	return status;
}

static enum xfp_status parse_line(struct family_parser *parser, unsigned number, char *line, struct xfp_error *err)
{
	static const char *const actions[] = { "quantize", "keep", "drop" };
	struct xfp_family *family = parser->family;
	bool optional = false;
	char *word;

	line += strspn(line, BLANKS);
	if (!*line || *line == '#')
		return XFP_OK;
	word = next_word(&line);
	if (!strcmp(word, "about")) {
		free(family->about);
		return (family->about = strdup(line)) ? XFP_OK : xfp_no_memory(err);
	}
	if (!strcmp(word, "model_type"))
		return add_words(&family->model_types, &family->model_type_count, line, err);
	if (!strcmp(word, "architecture"))
		return add_words(&family->architectures, &family->architecture_count, line, err);
	if (!strcmp(word, "tied")) {
		char *value = next_word(&line);

		family->tied = !strcmp(value, "yes");
		if (!family->tied && strcmp(value, "no"))
			return xfp_fail(err, XFP_BAD_INPUT, "invalid value of tied; write yes or no");
		return XFP_OK;
	}
	if (!strcmp(word, "define"))
		return add_definition(parser, line, err);
	if (!strcmp(word, "optional")) {
		optional = true;
		word = next_word(&line);
	}
	for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++)
		if (!strcmp(word, actions[i]))
			return add_rule(parser, number, (enum xfp_rule_action)i, optional, line, err);
	return xfp_fail(err, XFP_BAD_INPUT, "unknown statement \"%s\"; see xfp-family(5)", word);
}

/* The alternative layouts of all rules are chosen together, so each rule must have the same number of them. */
static enum xfp_status check_layouts(const struct xfp_family *family, const char *path, struct xfp_error *err)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < family->rule_count; i++) {
		const struct xfp_rule *rule = &family->rules[i];

		if (rule->layout_count < 2)
			continue;
		if (count && rule->layout_count != count)
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s:%u: rules with alternative layouts must all have the same number of them",
					path, rule->line);
		count = rule->layout_count;
	}
	return XFP_OK;
}

static char *name_of(const char *path)
{
	const char *base = xfp_base_name(path);
	size_t stem = xfp_stem(base, XFP_FAMILY_SUFFIX);

	return strndup(base, stem ? stem : strlen(base));
}

enum xfp_status xfp_family_parse(const char *text, const char *path, bool header_only, struct xfp_family **out,
				 struct xfp_error *err)
{
	struct family_parser parser = { .family = calloc(1, sizeof *parser.family), .header_only = header_only };
	enum xfp_status status = XFP_OK;
	char *copy = strdup(text), *rest = copy, *line;

	*out = NULL;
	if (!parser.family || !copy || !(parser.family->name = name_of(path))) {
		status = xfp_no_memory(err);
		goto done;
	}
	for (unsigned number = 1; (line = strsep(&rest, "\n")); number++) {
		if ((status = parse_line(&parser, number, line, err))) {
			xfp_context(err, status, "%s:%u", path, number);
			goto done;
		}
	}
	if ((status = check_layouts(parser.family, path, err)))
		goto done;
	*out = parser.family;
	parser.family = NULL;
done:
	for (uint32_t i = 0; i < parser.definition_count; i++) {
		free(parser.definitions[i].name);
		free(parser.definitions[i].text);
	}
	free(parser.definitions);
	free(copy);
	xfp_family_free(parser.family);
	return status;
}

enum xfp_status xfp_family_load(const char *path, bool header_only, struct xfp_family **out, struct xfp_error *err)
{
	enum xfp_status status;
	char *text = NULL;
	size_t size;

	*out = NULL;
	if ((status = xfp_slurp(path, LARGEST_FILE, &text, &size, err)))
		return status;
	if (strlen(text) != size)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: is not a text file", path);
	else
		status = xfp_family_parse(text, path, header_only, out, err);
	free(text);
	return status;
}

static void free_words(char **list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(list[i]);
	free(list);
}

void xfp_family_free(struct xfp_family *family)
{
	if (!family)
		return;
	for (uint32_t i = 0; i < family->rule_count; i++)
		xfp_rule_clear(&family->rules[i]);
	free(family->rules);
	free_words(family->model_types, family->model_type_count);
	free_words(family->architectures, family->architecture_count);
	free(family->name);
	free(family->about);
	free(family);
}

enum xfp_status xfp_family_match(const struct xfp_family *family, const char *name, uint64_t layers,
				 const struct xfp_rule **rule, struct xfp_rule_match *match, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	bool matches = false;

	*rule = NULL;
	for (uint32_t i = 0; !status && !*rule && i < family->rule_count; i++)
		if (!(status = xfp_rule_matches(&family->rules[i], name, layers, &matches, match, err)) && matches)
			*rule = &family->rules[i];
	return status;
}
