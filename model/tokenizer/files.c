/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/content.h"

#define CONFIG "tokenizer_config.json"

static char *shown_file(const struct xfp_tokenizer_files *files, const char *name)
{
	size_t size = strlen(files->shown) + strlen(name) + 3;
	char *shown = malloc(size);

	if (shown)
		snprintf(shown, size, "%s: %s", files->shown, name);
	return shown;
}

/* Read tokenizer_config.json; *config is NULL if the file does not exist. */
static enum xfp_status read_config(const struct xfp_tokenizer_files *files, json_t **config, struct xfp_error *err)
{
	struct xfp_part_reader r = { .err = err };
	char *bytes = NULL, *shown = NULL;
	size_t size = 0;

	*config = NULL;
	r.status = files->read(files->context, CONFIG, &bytes, &size, err);
	if (!r.status && bytes && !(r.file = shown = shown_file(files, CONFIG)))
		r.status = xfp_no_memory(err);
	if (!r.status && bytes)
		*config = xfp_json_content(&r, bytes, size, NULL);
	free(shown);
	free(bytes);
	return r.status;
}

static enum xfp_status open_file(const struct xfp_tokenizer_files *files, const char *name, xfp_content_reader *read,
				 const char *bytes, size_t size, struct xfp_tokenizer **tokenizer,
				 struct xfp_error *err)
{
	char *shown = shown_file(files, name);
	enum xfp_status status = XFP_OK;
	json_t *config = NULL;

	if (!shown)
		return xfp_no_memory(err);
	if (read != xfp_json_content)
		status = read_config(files, &config, err);
	if (!status)
		status = xfp_tokenizer_open_content(read, bytes, size, shown, config, tokenizer, err);
	json_decref(config);
	free(shown);
	return status;
}

enum xfp_status xfp_tokenizer_open_files(const struct xfp_tokenizer_files *files, struct xfp_tokenizer **tokenizer,
					 struct xfp_error *err)
{
	static const struct {
		const char *name;
		xfp_content_reader *read;
	} formats[] = { { "tokenizer.json", xfp_json_content },
			{ "tiktoken.model", xfp_tiktoken_content },
			{ "vocab.txt", xfp_bert_content } };
	enum xfp_status status = XFP_OK;
	char *bytes = NULL;

	*tokenizer = NULL;
	for (size_t i = 0; !status && !bytes && i < sizeof formats / sizeof *formats; i++) {
		size_t size;

		status = files->read(files->context, formats[i].name, &bytes, &size, err);
		if (!status && bytes)
			status = open_file(files, formats[i].name, formats[i].read, bytes, size, tokenizer, err);
	}
	free(bytes);
	return status;
}
