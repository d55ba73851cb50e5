/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - safetensors files in a scratch folder, and the result of opening them.
 */
#ifndef XFP_TEST_MODEL_H
#define XFP_TEST_MODEL_H

#include "base/bytes.h"
#include "checkpoints/checkpoint.h"
#include "tests/unit/scratch.h"

/* A file of this header and `data` bytes 0, 1, 2 ... after it. */
static inline void write_raw(void **state, const char *name, const void *header, size_t length, size_t data)
{
	unsigned char *file = malloc(8 + length + data);

	assert_non_null(file);
	xfp_store64(file, length);
	memcpy(file + 8, header, length);
	for (size_t i = 0; i < data; i++)
		file[8 + length + i] = (unsigned char)i;
	scratch_write(state, name, file, 8 + length + data);
	free(file);
}

static inline void write_model(void **state, const char *name, const char *header, size_t data)
{
	write_raw(state, name, header, strlen(header), data);
}

static inline void write_text(void **state, const char *name, const char *text)
{
	scratch_write(state, name, text, strlen(text));
}

/* `name` of the scratch folder, "" for the folder itself. */
static inline enum xfp_status open_model(void **state, const char *name, struct xfp_checkpoint **out,
					 struct xfp_error *err)
{
	char *path = *name ? scratch_path(state, name) : strdup(*state);
	enum xfp_status status = xfp_checkpoint_open(path, out, err);

	free(path);
	return status;
}

static inline struct xfp_checkpoint *open_good(void **state, const char *name)
{
	struct xfp_checkpoint *checkpoint = NULL;
	struct xfp_error err = { 0 };

	if (open_model(state, name, &checkpoint, &err))
		fail_msg("%s", err.text);
	return checkpoint;
}

/* Expect XFP_BAD_INPUT, and a message that contains each of these texts; NULL is ignored. */
static inline void expect_bad(void **state, const char *name, const char *a, const char *b, const char *c)
{
	struct xfp_checkpoint *checkpoint = NULL;
	struct xfp_error err = { 0 };
	const char *parts[] = { a, b, c };
	enum xfp_status status = open_model(state, name, &checkpoint, &err);

	if (status != XFP_BAD_INPUT || err.status != XFP_BAD_INPUT)
		fail_msg("status %d instead of bad input, \"%s\"; expected \"%s\"", (int)status, err.text, a);
	assert_null(checkpoint);
	for (int i = 0; i < 3; i++) {
		if (parts[i] && !strstr(err.text, parts[i]))
			fail_msg("\"%s\" has no \"%s\"", err.text, parts[i]);
	}
	for (const char *p = err.text; *p; p++)
		assert_true((unsigned char)*p >= 0x20);
}

static inline bool has_note(const struct xfp_checkpoint *checkpoint, const char *a, const char *b)
{
	for (uint32_t i = 0; i < checkpoint->note_count; i++) {
		if (strstr(checkpoint->notes[i], a) && strstr(checkpoint->notes[i], b))
			return true;
	}
	return false;
}

#endif
