/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prompts, of the command line or of a file, and the tokens that end a text.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "checkpoints/config_json.h"
#include "commands/generate/generate.h"
#include "model/tokenizer/defects.h"

#define LARGEST_FILE ((size_t)1 << 30)

static enum xfp_status add_prompt(struct xfp_generate *g, const char *text, size_t size, struct xfp_error *err)
{
	struct xfp_written *grown = realloc(g->written, (g->count + 1) * sizeof *grown);
	struct xfp_written *w;

	if (!grown)
		return xfp_no_memory(err);
	g->written = grown;
	w = &grown[g->count++];
	*w = (struct xfp_written){ .prompt_size = size };
	if (!(w->prompt = malloc(size + 1)))
		return xfp_no_memory(err);
	memcpy(w->prompt, text, size);
	w->prompt[size] = 0;
	return XFP_OK;
}

/* A line of JSON: a string, or an object whose member "prompt" is one. */
static enum xfp_status add_json(struct xfp_generate *g, const char *line, size_t size, size_t number,
				struct xfp_error *err)
{
	json_t *root = json_loadb(line, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	json_t *prompt = json_is_object(root) ? json_object_get(root, "prompt") : root;
	enum xfp_status status;

	if (json_is_string(prompt))
		status = add_prompt(g, json_string_value(prompt), json_string_length(prompt), err);
	else
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: line %zu is neither a JSON string nor an object with a string \"prompt\"",
				  xfp_input_name(g->batch), number);
	json_decref(root);
	return status;
}

static bool is_blank(const char *text, size_t size)
{
	return strspn(text, " \t\r\v\f") >= size;
}

/* JSON Lines, by the file's name; standard input and pipes have none, so that the first value decides. */
static bool has_json(const char *path, const char *text, size_t size)
{
	size_t length = strlen(path);
	struct stat st;
	json_t *first;
	bool json;

	if (strcmp(path, "-") && (stat(path, &st) || S_ISREG(st.st_mode)))
		return length > 6 && !strcmp(path + length - 6, ".jsonl");
	first = json_loadb(text, size, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);
	json = json_is_string(json_object_get(first, "prompt"));
	json_decref(first);
	return json;
}

static enum xfp_status read_batch(struct xfp_generate *g, struct xfp_error *err)
{
	char *text, *line, *next, defects[XFP_TEXT_DEFECTS];
	size_t size, number = 0;
	enum xfp_status status;
	bool json;

	if ((status = xfp_slurp_input(g->batch, LARGEST_FILE, &text, &size, err)))
		return status;
	if (xfp_text_defects_text(text, size, defects))
		fprintf(stderr, "xfp generate: %s: %s\n", xfp_printable(xfp_input_name(g->batch)).text, defects);
	json = has_json(g->batch, text, size);
	for (line = text; !status && line < text + size; line = next) {
		char *end = memchr(line, '\n', size - (size_t)(line - text));
		size_t length;

		next = end ? end + 1 : text + size;
		end = end ? end : next;
		number++;
		if (end > line && end[-1] == '\r')
			end--;
		length = (size_t)(end - line);
		*end = 0; /* of the last line, where there is a NUL already */
		if (!is_blank(line, length))
			status = json ? add_json(g, line, length, number, err) : add_prompt(g, line, length, err);
	}
	free(text);
	if (!status && !g->count)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: has no prompts; write one a line", xfp_input_name(g->batch));
	return status;
}

enum xfp_status xfp_prompts_read(struct xfp_generate *g, struct xfp_error *err)
{
	return g->batch ? read_batch(g, err) : add_prompt(g, g->prompt, strlen(g->prompt), err);
}

/* ---- tokens that end a text --------------------------------------------------------------------- */

static enum xfp_status add_end(struct xfp_generate *g, json_t *value, const char *where, struct xfp_error *err)
{
	json_int_t id = json_integer_value(value);
	uint32_t *grown;

	if (!json_is_integer(value) || id < 0 || id > UINT32_MAX)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: eos_token_id is neither a token nor a list of tokens", where);
	if (!(grown = realloc(g->ends.id, (g->ends.count + 1) * sizeof *grown)))
		return xfp_no_memory(err);
	grown[g->ends.count++] = (uint32_t)id;
	g->ends.id = grown;
	return XFP_OK;
}

static enum xfp_status read_ends(struct xfp_generate *g, const char *text, const char *name, struct xfp_error *err)
{
	char *where = xfp_formatted("%s: %s", xfp_weights_path(g->weights), name);
	json_t *root = NULL, *ids;
	enum xfp_status status = where ? xfp_config_json(text, where, &root, err) : xfp_no_memory(err);

	ids = json_object_get(root, "eos_token_id");
	if (!ids || json_is_null(ids))
		ids = json_object_get(json_object_get(root, "text_config"), "eos_token_id");
	if (!status && json_is_array(ids)) {
		for (size_t i = 0; !status && i < json_array_size(ids); i++)
			status = add_end(g, json_array_get(ids, i), where, err);
	} else if (!status && ids && !json_is_null(ids)) {
		status = add_end(g, ids, where, err);
	}
	json_decref(root);
	free(where);
	return status;
}

enum xfp_status xfp_ends_read(struct xfp_generate *g, struct xfp_error *err)
{
	static const char name[] = "generation_config.json";
	char *text;
	size_t size;
	enum xfp_status status = xfp_weights_file(g->weights, name, &text, &size, err);

	if (!status && text)
		status = read_ends(g, text, name, err);
	if (!status && !g->ends.count && xfp_weights_config(g->weights))
		status = read_ends(g, xfp_weights_config(g->weights), "config.json", err);
	free(text);
	return status;
}
