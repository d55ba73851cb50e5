/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - print metadata as text.
 */
#include "checkpoints/gguf/describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "checkpoints/gguf/config.h"
#include "checkpoints/gguf/header.h"

/* Names of types in the format's terms. */
static const char *const kinds[][2] = {
	[XFP_GGUF_U8] = { "uint8", "uint8[]" },      [XFP_GGUF_I8] = { "int8", "int8[]" },
	[XFP_GGUF_U16] = { "uint16", "uint16[]" },   [XFP_GGUF_I16] = { "int16", "int16[]" },
	[XFP_GGUF_U32] = { "uint32", "uint32[]" },   [XFP_GGUF_I32] = { "int32", "int32[]" },
	[XFP_GGUF_F32] = { "float32", "float32[]" }, [XFP_GGUF_BOOL] = { "bool", "bool[]" },
	[XFP_GGUF_TEXT] = { "string", "string[]" },  [XFP_GGUF_ARRAY] = { "", "" },
	[XFP_GGUF_U64] = { "uint64", "uint64[]" },   [XFP_GGUF_I64] = { "int64", "int64[]" },
	[XFP_GGUF_F64] = { "float64", "float64[]" },
};

/* Names of general.file_type, the type of most weights. Missing numbers were removed from the format, or are newer. */
static const char *const file_types[] = {
	[0] = "F32",     [1] = "F16",     [2] = "Q4_0",     [3] = "Q4_1",    [7] = "Q8_0",     [8] = "Q5_0",
	[9] = "Q5_1",    [10] = "Q2_K",   [11] = "Q3_K_S",  [12] = "Q3_K_M", [13] = "Q3_K_L",  [14] = "Q4_K_S",
	[15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",  [18] = "Q6_K",   [19] = "IQ2_XXS", [20] = "IQ2_XS",
	[21] = "Q2_K_S", [22] = "IQ3_XS", [23] = "IQ3_XXS", [24] = "IQ1_S",  [25] = "IQ4_NL",  [26] = "IQ3_S",
	[27] = "IQ3_M",  [28] = "IQ2_S",  [29] = "IQ2_M",   [30] = "IQ4_XS", [31] = "IQ1_M",   [32] = "BF16",
	[36] = "TQ1_0",  [37] = "TQ2_0",  [38] = "MXFP4",   [39] = "NVFP4",  [40] = "Q1_0",    [41] = "Q2_0",
};

static const char *meaning_of(const struct xfp_gguf_value *value)
{
	static const char key[] = "general.file_type";
	uint64_t number;

	if (value->array || value->key.length != sizeof key - 1 || memcmp(value->key.bytes, key, sizeof key - 1) != 0 ||
	    !xfp_gguf_integer(value, 0, &number) || number >= sizeof file_types / sizeof *file_types)
		return NULL;
	return file_types[number];
}

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

		/* Sign-extend a negative number. */
		memcpy(&less, value->at + number * size, size);
		if (size < sizeof less)
			less |= (int64_t)(UINT64_MAX << 8 * size);
		fprintf(out, "%" PRId64, less);
	}
}

/* Print the texts of a list, or a single text, each followed by NUL. */
static void print_values(FILE *out, const struct xfp_gguf_value *value)
{
	struct xfp_gguf_text text;
	uint64_t at = 0;

	if (xfp_gguf_text(value, &text)) {
		print_text(out, &text);
		fputc('\0', out);
		return;
	}
	for (uint64_t i = 0; i < value->count; i++) {
		if (value->kind != XFP_GGUF_TEXT)
			print_number(out, value, i);
		else if (xfp_gguf_next_text(value, &at, &text))
			print_text(out, &text);
		fputc('\0', out);
	}
}

static enum xfp_status add_value(const struct xfp_gguf_value *value, uint32_t file, struct xfp_header *header,
				 struct xfp_error *err)
{
	struct xfp_header_entry entry = {
		.file = file,
		.key = strndup(value->key.bytes, value->key.length),
		.type = kinds[value->kind][value->array],
		.list = value->array,
		.count = value->array ? value->count : 1,
		.meaning = meaning_of(value),
	};
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (out)
		print_values(out, value);
	if (xfp_text_end(&text))
		entry.values = text.bytes;
	return xfp_header_add(header, &entry, err);
}

enum xfp_status xfp_gguf_header(const struct xfp_checkpoint *c, struct xfp_header *header, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t f = 0; !status && f < c->file_count; f++) {
		const struct xfp_place whole = xfp_place_of_file(c->files[f].path);
		struct xfp_gguf_file file;

		if ((status = xfp_gguf_read(&whole, &file, err)))
			return status;
		for (uint32_t i = 0; !status && i < file.metadata.count; i++)
			status = add_value(&file.metadata.values[i], f, header, err);
		xfp_gguf_free(&file);
	}
	return status;
}
