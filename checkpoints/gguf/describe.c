/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - metadata as text, for people and programs to read.
 */
#include "checkpoints/gguf/describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "checkpoints/gguf/config.h"
#include "checkpoints/gguf/header.h"

#define SHOWN 8 /* of an array */

/* In the words of the format. */
static const char *const kinds[][2] = {
	[XFP_GGUF_U8] = { "uint8", "uint8[]" },      [XFP_GGUF_I8] = { "int8", "int8[]" },
	[XFP_GGUF_U16] = { "uint16", "uint16[]" },   [XFP_GGUF_I16] = { "int16", "int16[]" },
	[XFP_GGUF_U32] = { "uint32", "uint32[]" },   [XFP_GGUF_I32] = { "int32", "int32[]" },
	[XFP_GGUF_F32] = { "float32", "float32[]" }, [XFP_GGUF_BOOL] = { "bool", "bool[]" },
	[XFP_GGUF_TEXT] = { "string", "string[]" },  [XFP_GGUF_ARRAY] = { "", "" },
	[XFP_GGUF_U64] = { "uint64", "uint64[]" },   [XFP_GGUF_I64] = { "int64", "int64[]" },
	[XFP_GGUF_F64] = { "float64", "float64[]" },
};

static void print_text(FILE *out, const struct xfp_gguf_text *text)
{
	for (uint64_t i = 0; i < text->length; i++)
		fputc(text->bytes[i] ? text->bytes[i] : ' ', out);
}

static void print_number(FILE *out, const struct xfp_gguf_value *value, uint64_t number)
{
	uint64_t whole;
	double real;
	bool flag;

	if (xfp_gguf_flag(value, number, &flag))
		fputs(flag ? "true" : "false", out);
	else if (xfp_gguf_integer(value, number, &whole))
		fprintf(out, "%" PRIu64, whole);
	else if (value->kind == XFP_GGUF_F32 || value->kind == XFP_GGUF_F64) {
		xfp_gguf_real(value, number, &real);
		xfp_gguf_print_real(out, real);
	} else {
		int64_t less = 0;
		size_t size = xfp_gguf_kind_bytes(value->kind);

		/* Negative: what its own bytes leave out is all ones. */
		memcpy(&less, value->at + number * size, size);
		if (size < sizeof less)
			less |= (int64_t)(UINT64_MAX << 8 * size);
		fprintf(out, "%" PRId64, less);
	}
}

static void print_value(FILE *out, const struct xfp_gguf_value *value)
{
	struct xfp_gguf_text text;
	uint64_t at = 0;

	if (xfp_gguf_text(value, &text)) {
		print_text(out, &text);
		return;
	}
	for (uint64_t i = 0; i < value->count && i < SHOWN; i++) {
		fputs(i ? ", " : "", out);
		if (value->kind != XFP_GGUF_TEXT)
			print_number(out, value, i);
		else if (xfp_gguf_next_text(value, &at, &text))
			print_text(out, &text);
	}
	if (value->array && value->count > SHOWN)
		fprintf(out, ", ... (%" PRIu64 ")", value->count);
}

static enum xfp_status add_value(const struct xfp_gguf_value *value, uint32_t file, struct xfp_header *header,
				 struct xfp_error *err)
{
	char *key = strndup(value->key.bytes, value->key.length);
	enum xfp_status status;
	struct xfp_text text;
	FILE *out = key ? xfp_text_begin(&text) : NULL;

	if (!out) {
		free(key);
		return xfp_no_memory(err);
	}
	print_value(out, value);
	status = xfp_text_end(&text)
			 ? xfp_header_add(header, file, key, kinds[value->kind][value->array], text.bytes, err)
			 : xfp_no_memory(err);
	free(text.bytes);
	free(key);
	return status;
}

enum xfp_status xfp_gguf_header(const struct xfp_checkpoint *c, struct xfp_header *header, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t f = 0; !status && f < c->file_count; f++) {
		struct xfp_gguf_file file;

		if ((status = xfp_gguf_read(c->files[f].path, &file, err)))
			return status;
		for (uint32_t i = 0; !status && i < file.metadata.count; i++)
			status = add_value(&file.metadata.values[i], f, header, err);
		xfp_gguf_free(&file);
	}
	return status;
}
