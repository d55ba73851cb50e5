/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generate/prompts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suffix.h"
#include "model/tokenizer/defects.h"

#define LARGEST_FILE ((size_t)1 << 30)

static enum xfp_status add_prompt(struct xfp_generation *g, const char *text, size_t size, struct xfp_error *err)
{
	struct xfp_generated_text *grown = realloc(g->texts, (g->count + 1) * sizeof *grown);
	struct xfp_generated_text *w;

	if (!grown)
		return xfp_no_memory(err);
	g->texts = grown;
	w = &grown[g->count++];
	*w = (struct xfp_generated_text){ .prompt_size = size };
	if (!(w->prompt = malloc(size + 1)))
		return xfp_no_memory(err);
	memcpy(w->prompt, text, size);
	w->prompt[size] = 0;
	return XFP_OK;
}

/* A line of JSON: a string, or an object whose "prompt" is a string. */
static enum xfp_status add_json(struct xfp_generation *g, const char *line, size_t size, size_t number,
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
				  xfp_input_name(g->request.batch), number);
	json_decref(root);
	return status;
}

static bool is_blank(const char *text, size_t size)
{
	return strspn(text, " \t\r\v\f") >= size;
}

/* Whether it is JSON Lines: by the file's name or, for standard input and pipes, by the first value. */
static bool has_json(const char *path, const char *text, size_t size)
{
	struct stat st;
	json_t *first;
	bool json;

	if (strcmp(path, "-") && (stat(path, &st) || S_ISREG(st.st_mode)))
		return xfp_stem(path, ".jsonl") > 0;
	first = json_loadb(text, size, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL);
	json = json_is_string(json_object_get(first, "prompt"));
	json_decref(first);
	return json;
}

static enum xfp_status warn(const struct xfp_generation *g, const char *defects, struct xfp_error *err)
{
	char *message = xfp_formatted("%s: %s", xfp_printable(xfp_input_name(g->request.batch)).text, defects);

	if (!message)
		return xfp_no_memory(err);
	g->callbacks.warning(g->callbacks.context, message);
	free(message);
	return XFP_OK;
}

static enum xfp_status read_batch(struct xfp_generation *g, struct xfp_error *err)
{
	char *text, *line, *next, defects[XFP_TEXT_DEFECTS];
	size_t size, number = 0;
	enum xfp_status status;
	bool json;

	if ((status = xfp_slurp_input(g->request.batch, LARGEST_FILE, &text, &size, err)))
		return status;
	if (xfp_text_defects_text(text, size, defects))
		status = warn(g, defects, err);
	json = has_json(g->request.batch, text, size);
	for (line = text; !status && line < text + size; line = next) {
		char *end = memchr(line, '\n', size - (size_t)(line - text));
		size_t length;

		next = end ? end + 1 : text + size;
		end = end ? end : next;
		number++;
		if (end > line && end[-1] == '\r')
			end--;
		length = (size_t)(end - line);
		*end = 0; /* after the last line, where a NUL is already */
		if (!is_blank(line, length))
			status = json ? add_json(g, line, length, number, err) : add_prompt(g, line, length, err);
	}
	free(text);
	if (!status && !g->count)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: has no prompts; write one per line",
				  xfp_input_name(g->request.batch));
	return status;
}

enum xfp_status xfp_prompts_read(struct xfp_generation *g, struct xfp_error *err)
{
	return g->request.batch ? read_batch(g, err) : add_prompt(g, g->request.prompt, strlen(g->request.prompt), err);
}
