/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exl2.c - EXL2: w = (code - 2^(bits - 1)) * (index + 1)^2 * most / 256.
 *
 *   codes       I32 [words, padded rows]: in each column, one bit stream per group, from the lowest bit
 *   scales      I32 [groups, padded rows / 8], a 4-bit index per row, from the lowest
 *   global      F16 [groups], the maximum scale of each group
 *   groups      I16 [groups, 2], unsigned: bits per code, 2, 3, 4, 5, 6 or 8, and the first word
 *   order       I32 [cols], the stored position of each column
 *   parameters  padded rows of codes and scales
 *
 * ExLlama's kernels compute in f16, and the weights were fitted to their results: `max` / 256, the scale and the
 * weight are each rounded to f16, the first often to a subnormal. In between, every product is exact in f32.
 */
#include "checkpoints/packed/exl2.h"

#include <stdlib.h>

#include "checkpoints/packed/grouped.h"
#include "checkpoints/packed/stream.h"

#define WORD_BITS 32u
#define INDICES 8u /* per word */

static uint64_t group_count(const struct xfp_recipe_part *part)
{
	return xfp_recipe_component(part, XFP_COMPONENT_GLOBAL)->bytes / 2;
}

static uint64_t word_count(const struct xfp_recipe_part *part)
{
	return xfp_recipe_component(part, XFP_COMPONENT_CODES)->bytes / 4 / part->parameters[XFP_EXL2_PADDED_ROWS];
}

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	const struct xfp_component *global = xfp_recipe_component(part, XFP_COMPONENT_GLOBAL);
	const struct xfp_component *groups = xfp_recipe_component(part, XFP_COMPONENT_GROUPS);
	const struct xfp_component *order = xfp_recipe_component(part, XFP_COMPONENT_ORDER);
	uint64_t padded = part->parameters[XFP_EXL2_PADDED_ROWS];

	return codes && scales && global && groups && order && dtype == XFP_F16 && codes->dtype == XFP_I32 &&
	       scales->dtype == XFP_I32 && global->dtype == XFP_F16 && groups->dtype == XFP_I16 &&
	       order->dtype == XFP_I32 && part->rows && part->cols && part->cols <= XFP_EXL2_MAX_COLS &&
	       padded % XFP_EXL2_MULTIPLE == 0 && padded >= part->rows && padded - part->rows < XFP_EXL2_MULTIPLE &&
	       global->bytes && xfp_grouped_has(codes, codes->bytes / 4 / padded, padded) &&
	       xfp_grouped_has(scales, group_count(part), padded / INDICES) &&
	       xfp_grouped_has(global, group_count(part), 1) && xfp_grouped_has(groups, group_count(part), 2) &&
	       xfp_grouped_has(order, part->cols, 1);
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = XFP_GROUPED_ROWS;
	*cols = 1;
}

/* Columns may be stored in any order, so all of them are fetched. */
static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	const struct xfp_component *component = xfp_recipe_component(part, role);
	struct xfp_rectangle lines = { of->row, of->rows, 0, group_count(part) };
	uint64_t padded = part->parameters[XFP_EXL2_PADDED_ROWS];

	switch (role) {
	case XFP_COMPONENT_CODES:
		lines.cols = word_count(part);
		return xfp_window_of_groups(&lines, 1, padded * 4, 4, 1);
	case XFP_COMPONENT_SCALES:
		return xfp_window_of_groups(&lines, 1, padded / INDICES * 4, 4, INDICES);
	case XFP_COMPONENT_GLOBAL:
	case XFP_COMPONENT_GROUPS:
	case XFP_COMPONENT_ORDER:
		return (struct xfp_window){ 0, component->bytes, component->bytes, 1, false };
	default:
		return (struct xfp_window){ 0 };
	}
}

/* ---- groups and order ---------------------------------------------------------------------------- */

struct bit_group {
	unsigned bits;
	uint64_t word, words, cols;
};

static struct bit_group group_at(const struct xfp_recipe_part *part, const unsigned char *groups, uint64_t number)
{
	const unsigned char *at = groups + number * 4;
	struct bit_group g = { .bits = xfp_load16(at), .word = xfp_load16(at + 2) };
	uint64_t end = number + 1 < group_count(part) ? xfp_load16(at + 6) : word_count(part);

	g.words = end > g.word ? end - g.word : 0;
	g.cols = g.bits ? g.words * WORD_BITS / g.bits : 0;
	return g;
}

/* Check that groups are adjacent from the first word to the last, and from the first column to the last. */
static bool are_groups(const struct xfp_recipe_part *part, const unsigned char *groups)
{
	uint64_t word = 0, cols = 0;

	for (uint64_t i = 0; i < group_count(part); i++) {
		struct bit_group g = group_at(part, groups, i);

		if (g.bits < 2 || g.bits > 8 || g.bits == 7 || g.word != word || !g.words ||
		    g.words * WORD_BITS % g.bits)
			return false;
		word += g.words;
		cols += g.cols;
	}
	return word == word_count(part) && cols == part->cols;
}

static enum xfp_status check(const struct xfp_recipe_part *part, enum xfp_component_role role,
			     const struct xfp_fetched *from, const char **wrong, struct xfp_error *err)
{
	bool *seen;

	if (role == XFP_COMPONENT_GROUPS && !are_groups(part, from->bytes[role]))
		*wrong = "its q_groups are not groups that make up its inputs; download it again";
	if (role != XFP_COMPONENT_ORDER)
		return XFP_OK;
	if (!(seen = calloc(part->cols, sizeof *seen)))
		return xfp_no_memory(err);
	for (uint64_t i = 0; !*wrong && i < part->cols; i++) {
		uint32_t place = xfp_load32(from->bytes[role] + i * 4);

		if (place >= part->cols || seen[place])
			*wrong = "its q_invperm is not a permutation of its inputs; download it again";
		else
			seen[place] = true;
	}
	free(seen);
	return XFP_OK;
}

/* ---- weights -------------------------------------------------------------------------------------- */

static float rounded(float value)
{
	return xfp_half_to_float(xfp_float_to_half(value));
}

/* Return the scale of a row, counted from the first one fetched. */
static float scale_of(const struct xfp_fetched *from, uint64_t group, uint64_t row)
{
	const unsigned char *line = from->bytes[XFP_COMPONENT_SCALES] + group * from->pitch[XFP_COMPONENT_SCALES];
	uint32_t index = xfp_load32(line + row / INDICES * 4) >> row % INDICES * 4 & 15;
	float max = xfp_half_to_float(xfp_load16(from->bytes[XFP_COMPONENT_GLOBAL] + group * 2));

	return rounded((float)((index + 1) * (index + 1)) * rounded(max / 256));
}

/* Decode all columns of a row, in stored order. */
static void decode_row(const struct xfp_recipe_part *part, const struct xfp_fetched *from, uint64_t row, uint16_t *out)
{
	uint64_t pitch = from->pitch[XFP_COMPONENT_CODES], count;
	uint8_t code[XFP_GROUPED_RUN];

	for (uint64_t i = 0; i < group_count(part); i++) {
		struct bit_group g = group_at(part, from->bytes[XFP_COMPONENT_GROUPS], i);
		const unsigned char *stream = from->bytes[XFP_COMPONENT_CODES] + g.word * pitch + row * 4;
		float scale = scale_of(from, i, row), zero = (float)(1u << (g.bits - 1));

		for (uint64_t done = 0; done < g.cols; done += count, out += count) {
			count = g.cols - done < XFP_GROUPED_RUN ? g.cols - done : XFP_GROUPED_RUN;
			xfp_stream_codes(stream, pitch, g.bits, done, count, code);
			xfp_grouped_run(XFP_F16, g.bits, zero, scale, code, count, (unsigned char *)out);
		}
	}
}

static void decode_block(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
			 const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch)
{
	const unsigned char *order = from->bytes[XFP_COMPONENT_ORDER] + of->col * 4;
	uint16_t stored[XFP_EXL2_MAX_COLS];

	(void)dtype;
	for (uint64_t r = 0; r < of->rows; r++) {
		decode_row(part, from, of->row + r - from->of.row, stored);
		for (uint64_t c = 0; c < of->cols; c++)
			xfp_store16(out + r * pitch + c * sizeof *stored, stored[xfp_load32(order + c * 4)]);
	}
}

const struct xfp_codec_methods xfp_codec_exl2 = {
	.fits = fits,
	.grain = grain,
	.window = window,
	.decode_block = decode_block,
	.check = check,
};
