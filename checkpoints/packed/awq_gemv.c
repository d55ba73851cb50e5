/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awq_gemv.c - AWQ's forms "gemv" and "gemv_fast", by outputs.
 *
 * gemv:       w = (code - zero) * scale
 *   codes       I32 [rows, cols / 8]; four bits each, from the lowest
 *   zeros       I32 [rows, words], one code per group; padded to the number of words that AWQ's kernels use
 *   scales      F16, BF16 or F32 [rows, words * 8]
 *   parameters  columns per group
 *
 * gemv_fast:  w = code * scale + zero
 *   codes       I16 [rows / 4, cols]: 64 words for the same 64 columns of four rows, 16 per row. The codes of 32
 *               columns are in eight words: column 8b + 2a + c of them in word 2a + c, as the b-th from the lowest.
 *   zeros       F16, BF16 or F32 [words * 8, rows]
 *   scales      F16, BF16 or F32 [words * 8, rows]
 *   parameters  columns per group
 */
#include "checkpoints/packed/grouped.h"

#define PER_WORD 8u
#define ROWS 4u /* rows that are packed together */
#define BLOCK 64u

static uint64_t scale_size(const struct xfp_recipe_part *part)
{
	return xfp_dtype_bits(xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype) / 8;
}

/* Return the words of zeros and scales per row, including padding. */
static uint64_t zero_words(const struct xfp_recipe_part *part)
{
	return xfp_awq_gemv_words(part->cols, part->parameters[XFP_AWQ_GROUP]);
}

/* Check the conditions that both forms share. */
static bool fits_either(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	uint64_t group = part->parameters[XFP_AWQ_GROUP];

	return xfp_recipe_component(part, XFP_COMPONENT_CODES) && xfp_recipe_component(part, XFP_COMPONENT_ZEROS) &&
	       scales && xfp_grouped_is_scale(scales->dtype) && dtype == xfp_grouped_dtype(scales->dtype) &&
	       part->rows && part->cols && group && part->cols % group == 0 && zero_words(part);
}

/* ---- gemv --------------------------------------------------------------------------------------- */

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *zeros = xfp_recipe_component(part, XFP_COMPONENT_ZEROS);

	return fits_either(part, dtype) && codes->dtype == XFP_I32 && zeros->dtype == XFP_I32 &&
	       part->cols % PER_WORD == 0 && xfp_grouped_has(codes, part->rows, part->cols / PER_WORD) &&
	       xfp_grouped_has(zeros, part->rows, zero_words(part)) &&
	       xfp_grouped_has(xfp_recipe_component(part, XFP_COMPONENT_SCALES), part->rows,
			       zero_words(part) * PER_WORD);
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = 1;
	*cols = PER_WORD;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	struct xfp_rectangle all = { of->row, of->rows, 0, zero_words(part) * PER_WORD };
	uint64_t size;

	switch (role) {
	case XFP_COMPONENT_CODES:
		return xfp_window_of_rows(of, part->cols / PER_WORD * 4, 4, PER_WORD);
	case XFP_COMPONENT_ZEROS:
		return xfp_window_of_rows(&all, all.cols / PER_WORD * 4, 4, PER_WORD);
	case XFP_COMPONENT_SCALES:
		size = scale_size(part);
		return xfp_window_of_rows(&all, all.cols * size, size, 1);
	default:
		return (struct xfp_window){ 0 };
	}
}

static const unsigned char *line_of(const struct xfp_fetched *from, enum xfp_component_role role, uint64_t line)
{
	return from->bytes[role] + line * from->pitch[role];
}

/* Unpack codes [first, first + count) of a row. */
static void unpack(const unsigned char *codes, uint64_t first, uint64_t count, uint8_t *code)
{
	uint64_t i = 0;

	while (i < count)
		if ((first + i) % PER_WORD || count - i < PER_WORD) {
			code[i] = codes[(first + i) / 2] >> ((first + i) % 2 * 4) & 15;
			i++;
		} else {
			xfp_store64(code + i, xfp_nibbles_expand(xfp_load32(codes + (first + i) / 2)));
			i += PER_WORD;
		}
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	const unsigned char *codes = line_of(from, XFP_COMPONENT_CODES, row - from->of.row);
	const unsigned char *zeros = line_of(from, XFP_COMPONENT_ZEROS, row - from->of.row);
	const unsigned char *scale = line_of(from, XFP_COMPONENT_SCALES, row - from->of.row);
	uint64_t group = part->parameters[XFP_AWQ_GROUP], end = col + cols, size = scale_size(part), count;
	unsigned char *to = out;
	uint8_t code[XFP_GROUPED_RUN];

	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		uint64_t g = col / group;

		count = xfp_grouped_length(col, end, group);
		unpack(codes, col - from->of.col, count, code);
		xfp_grouped_run(dtype, 4, (float)(zeros[g / 2] >> (g % 2 * 4) & 15),
				xfp_scale_to_float(scales->dtype, scale + g * size), code, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_awq_gemv = { fits, grain, window, decode, NULL, NULL };

/* ---- gemv_fast ---------------------------------------------------------------------------------- */

static bool fast_fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *zeros = xfp_recipe_component(part, XFP_COMPONENT_ZEROS);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);

	return fits_either(part, dtype) && codes->dtype == XFP_I16 && zeros->dtype == scales->dtype &&
	       part->rows % ROWS == 0 && part->cols % BLOCK == 0 &&
	       xfp_grouped_has(codes, part->rows / ROWS, part->cols) &&
	       xfp_grouped_has(zeros, zero_words(part) * PER_WORD, part->rows) &&
	       xfp_grouped_has(scales, zero_words(part) * PER_WORD, part->rows);
}

static void fast_grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = ROWS;
	*cols = BLOCK;
}

static struct xfp_window fast_window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				     const struct xfp_rectangle *of)
{
	struct xfp_rectangle quads = { of->row / ROWS, (of->rows + ROWS - 1) / ROWS, of->col, of->cols };
	uint64_t size;

	if (role == XFP_COMPONENT_CODES)
		return xfp_window_of_rows(&quads, part->cols * 2, 2, 1);
	if (role != XFP_COMPONENT_ZEROS && role != XFP_COMPONENT_SCALES)
		return (struct xfp_window){ 0 };
	size = scale_size(part);
	return xfp_window_of_groups(of, part->parameters[XFP_AWQ_GROUP], part->rows * size, size, 1);
}

/* Unpack the 32 codes of eight words. */
static void fast_unpack_words(const unsigned char *words, uint8_t *code)
{
	uint16_t word[8];

	memcpy(word, words, sizeof word);
	for (unsigned b = 0; b < 4; b++)
#pragma omp simd
		for (unsigned i = 0; i < 8; i++)
			code[b * 8 + i] = (uint8_t)(word[i] >> b * 4 & 15);
}

/* Unpack codes [first, first + count) of a row. Its groups of 16 words, for 64 columns each, are four times that far
 * apart. */
static void fast_unpack(const unsigned char *words, uint64_t first, uint64_t count, uint8_t *code)
{
	uint8_t some[32];

	for (uint64_t i = 0, c = first, part; i < count; i += part, c += part) {
		const unsigned char *eight = words + c / BLOCK * BLOCK * 2 + c % BLOCK / 32 * 16;

		part = 32 - c % 32;
		part = count - i < part ? count - i : part;
		fast_unpack_words(eight, part == 32 ? code + i : some);
		if (part < 32)
			memcpy(code + i, some + c % 32, part);
	}
}

static void fast_decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
			uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	enum xfp_dtype type = xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype;
	const unsigned char *codes =
		line_of(from, XFP_COMPONENT_CODES, row / ROWS - from->of.row / ROWS) + row % ROWS * BLOCK / 4 * 2;
	uint64_t group = part->parameters[XFP_AWQ_GROUP], end = col + cols, size = scale_size(part), count;
	unsigned char *to = out;
	uint8_t code[XFP_GROUPED_RUN];
	uint16_t level[XFP_GROUPED_LEVELS];
	float w[XFP_GROUPED_LEVELS];

	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		uint64_t g = col / group - from->of.col / group, at = (row - from->of.row) * size;
		float scale = xfp_scale_to_float(type, line_of(from, XFP_COMPONENT_SCALES, g) + at);
		float zero = xfp_scale_to_float(type, line_of(from, XFP_COMPONENT_ZEROS, g) + at);

		count = xfp_grouped_length(col, end, group);
		for (int q = 0; q < XFP_GROUPED_LEVELS; q++)
			w[q] = (float)q * scale + zero;
		xfp_store_decoded(dtype, w, XFP_GROUPED_LEVELS, (unsigned char *)level);
		fast_unpack(codes, col - from->of.col, count, code);
		xfp_grouped_look_up(level, code, 1, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_awq_gemv_fast = {
	fast_fits, fast_grain, fast_window, fast_decode, NULL, NULL
};
