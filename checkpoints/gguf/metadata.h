/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.h - access to the keys and values in the header of a GGUF file.
 *
 * The header has been checked: lengths and counts are within it, types are known, keys are unique, texts are UTF-8.
 * Nothing is copied: texts and values are in `bytes`, not terminated, at any alignment. Converters write integers of
 * different widths for the same key, so values are read by meaning, not by type.
 */
#ifndef XFP_GGUF_METADATA_H
#define XFP_GGUF_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values are the format's. */
enum xfp_gguf_kind {
	XFP_GGUF_U8,
	XFP_GGUF_I8,
	XFP_GGUF_U16,
	XFP_GGUF_I16,
	XFP_GGUF_U32,
	XFP_GGUF_I32,
	XFP_GGUF_F32,
	XFP_GGUF_BOOL,
	XFP_GGUF_TEXT,
	XFP_GGUF_ARRAY,
	XFP_GGUF_U64,
	XFP_GGUF_I64,
	XFP_GGUF_F64,
	XFP_GGUF_KINDS
};

/* A text that is not terminated; values may contain NUL. */
struct xfp_gguf_text {
	const char *bytes;
	uint64_t length;
};

struct xfp_gguf_value {
	struct xfp_gguf_text key;
	enum xfp_gguf_kind kind; /* for an array the type of its elements, never ARRAY */
	bool array;
	uint64_t count; /* number of elements; 1 if it is not an array */
	const unsigned char *at;
	uint64_t bytes;
	const unsigned char *pair; /* key, type and value in the file */
	uint64_t pair_bytes;
};

struct xfp_gguf_metadata {
	struct xfp_gguf_value *values; /* in file order */
	uint32_t *by_key;              /* numbers of values, sorted by key */
	uint32_t count;
};

/* Return the value of a key, or NULL. */
const struct xfp_gguf_value *xfp_gguf_find(const struct xfp_gguf_metadata *metadata, const char *key);
/* Return the value of "PREFIX.NAME", such as "llama.block_count", or NULL. */
const struct xfp_gguf_value *xfp_gguf_find_in(const struct xfp_gguf_metadata *metadata, const char *prefix,
					      const char *name);

/* Read element `number` of an array, or 0 of a single value. Returns false if the value is NULL, or the element is
 * missing, of another type, or out of range. They accept: any nonnegative integer or bool; any number; a bool. */
bool xfp_gguf_integer(const struct xfp_gguf_value *value, uint64_t number, uint64_t *out);
bool xfp_gguf_real(const struct xfp_gguf_value *value, uint64_t number, double *out);
bool xfp_gguf_flag(const struct xfp_gguf_value *value, uint64_t number, bool *out);
/* Read a text that is not an array. */
bool xfp_gguf_text(const struct xfp_gguf_value *value, struct xfp_gguf_text *out);
bool xfp_gguf_text_is(const struct xfp_gguf_value *value, const char *text);
/* Return a NUL-terminated copy of a text; NULL if it is missing or contains NUL, or memory ran out. */
char *xfp_gguf_text_copy(const struct xfp_gguf_value *value);

/* Iterate over the texts of an array: set *at to 0 before the first call. Returns false after the last one, or if the
 * value is not an array of texts. */
bool xfp_gguf_next_text(const struct xfp_gguf_value *value, uint64_t *at, struct xfp_gguf_text *out);

/* Return the bytes of an element; 0 for texts, arrays and unknown types. */
size_t xfp_gguf_kind_bytes(uint32_t kind);

#endif
