/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer_families.h - the tokenizers of tests/tokenizer_families.json.
 */
#ifndef XFP_TEST_TOKENIZER_FAMILIES_H
#define XFP_TEST_TOKENIZER_FAMILIES_H

#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/files.h"

static json_t *families;

static inline int read_families(void **state)
{
	char path[4096];

	(void)state;
	snprintf(path, sizeof path, "%s/tests/tokenizer_families.json", getenv("srcdir"));
	families = json_load_file(path, 0, NULL);
	return !families;
}

static inline int drop_families(void **state)
{
	(void)state;
	json_decref(families);
	return 0;
}

/* A file from an object of names and contents, either as a text or as JSON. */
static inline enum xfp_status read_file(void *files, const char *name, char **bytes, size_t *size,
					struct xfp_error *err)
{
	const json_t *content = json_object_get(files, name);

	(void)err;
	*bytes = json_is_string(content) ? strdup(json_string_value(content)) : json_dumps(content, 0);
	*size = *bytes ? strlen(*bytes) : 0;
	return XFP_OK;
}

static inline enum xfp_status open_files(json_t *all, struct xfp_tokenizer **t, struct xfp_error *err)
{
	const struct xfp_tokenizer_files files = { read_file, all, "m" };

	return xfp_tokenizer_open_files(&files, t, err);
}

static inline struct xfp_tokenizer *opened(json_t *files)
{
	struct xfp_error err = { 0 };
	struct xfp_tokenizer *t = NULL;

	if (open_files(files, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

#endif
