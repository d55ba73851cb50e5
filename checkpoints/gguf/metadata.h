/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata.h - keys and values of a GGUF file, as they lie in its header.
 *
 * All was checked when the header was read: lengths and counts lie inside of it, types are known, no key occurs twice,
 * texts are UTF-8. Nothing is copied: texts and values are where they are in `bytes`, not terminated, at any alignment.
 * Converters write integers of several widths for the same key, so that values are asked for by what they mean.
 */
#ifndef XFP_GGUF_METADATA_H
#define XFP_GGUF_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are the format's. */
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

/* Not terminated, and values may hold NUL. */
struct xfp_gguf_text {
	const char *bytes;
	uint64_t length;
};

struct xfp_gguf_value {
	struct xfp_gguf_text key;
	enum xfp_gguf_kind kind; /* of the elements, of an array: never ARRAY */
	bool array;
	uint64_t count; /* of the elements; 1 of what is no array */
	const unsigned char *at;
	uint64_t bytes;
	const unsigned char *pair; /* key, type and value as they lie there */
	uint64_t pair_bytes;
};

struct xfp_gguf_metadata {
	struct xfp_gguf_value *values; /* in the file's order */
	uint32_t *by_key;              /* numbers of values, sorted by key */
	uint32_t count;
};

/* NULL: there is no such key. */
const struct xfp_gguf_value *xfp_gguf_find(const struct xfp_gguf_metadata *metadata, const char *key);
/* The same of "PREFIX.NAME", as "llama.block_count". */
const struct xfp_gguf_value *xfp_gguf_find_in(const struct xfp_gguf_metadata *metadata, const char *prefix,
					      const char *name);

/* Element `number` of an array, or 0 of what is none: false where the value is NULL, has no such element, or one that
 * is of another kind or does not fit. Any integer that is not negative, also a bool; any number; a bool. */
bool xfp_gguf_integer(const struct xfp_gguf_value *value, uint64_t number, uint64_t *out);
bool xfp_gguf_real(const struct xfp_gguf_value *value, uint64_t number, double *out);
bool xfp_gguf_flag(const struct xfp_gguf_value *value, uint64_t number, bool *out);
/* A text that is no array. */
bool xfp_gguf_text(const struct xfp_gguf_value *value, struct xfp_gguf_text *out);
bool xfp_gguf_text_is(const struct xfp_gguf_value *value, const char *text);
/* The same with a 0 behind it, in a new string; NULL: there is none, it holds NUL, or memory ran out. */
char *xfp_gguf_text_copy(const struct xfp_gguf_value *value);

/* Texts of an array, one after the other: *at is 0 at first, then what the last call left. False after the last, or
 * where the value is no array of texts. */
bool xfp_gguf_next_text(const struct xfp_gguf_value *value, uint64_t *at, struct xfp_gguf_text *out);

/* Bytes of an element; 0 of texts and arrays, and of what is no kind. */
size_t xfp_gguf_kind_bytes(uint32_t kind);

#endif
