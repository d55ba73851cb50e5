/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awq.c - AWQ's form "gemm": w = (code - zero) * scale.
 *
 *   codes       I32 [cols, rows / 8]; four bits each; a word contains those of outputs 8c .. 8c + 7, from the lowest
 *               bits in the order 0 2 4 6 1 3 5 7
 *   zeros       I32 [cols / group, rows / 8], in the same order
 *   scales      F16, BF16 or F32 [cols / group, rows]
 *   parameters  columns per group
 */
#include "checkpoints/packed/grouped.h"

#define PER_WORD 8u

static uint64_t scale_size(const struct xfp_recipe_part *part)
{
	return xfp_dtype_bits(xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype) / 8;
}

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *zeros = xfp_recipe_component(part, XFP_COMPONENT_ZEROS);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	uint64_t group = part->parameters[XFP_AWQ_GROUP];

	return codes && zeros && scales && codes->dtype == XFP_I32 && zeros->dtype == XFP_I32 &&
	       xfp_grouped_is_scale(scales->dtype) && dtype == xfp_grouped_dtype(scales->dtype) && part->rows &&
	       part->cols && group && part->rows % PER_WORD == 0 && part->cols % group == 0 &&
	       xfp_grouped_has(codes, part->cols, part->rows / PER_WORD) &&
	       xfp_grouped_has(zeros, part->cols / group, part->rows / PER_WORD) &&
	       xfp_grouped_has(scales, part->cols / group, part->rows);
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = XFP_GROUPED_ROWS;
	*cols = 1;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	uint64_t group = part->parameters[XFP_AWQ_GROUP], size;

	switch (role) {
	case XFP_COMPONENT_CODES:
		return xfp_window_of_groups(of, 1, part->rows / PER_WORD * 4, 4, PER_WORD);
	case XFP_COMPONENT_ZEROS:
		return xfp_window_of_groups(of, group, part->rows / PER_WORD * 4, 4, PER_WORD);
	case XFP_COMPONENT_SCALES:
		size = scale_size(part);
		return xfp_window_of_groups(of, group, part->rows * size, size, 1);
	default:
		return (struct xfp_window){ 0 };
	}
}

/* A run of columns of one group, and the rows whose codes share words. */
struct awq_run {
	const unsigned char *codes, *zero, *scale; /* at the first column, in the first row that was fetched */
	uint64_t line, columns;
};

static void decode_run(const struct awq_run *run, const struct xfp_recipe_part *part, enum xfp_dtype dtype,
		       uint64_t first, uint64_t rows, unsigned char *out, uint64_t pitch)
{
	static const unsigned char places[PER_WORD] = { 0, 4, 1, 5, 2, 6, 3, 7 };
	enum xfp_dtype type = xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype;
	uint64_t size = scale_size(part), word = first / PER_WORD * 4;
	uint32_t zeros = xfp_load32(run->zero + word);
	uint8_t code[XFP_GROUPED_RUN * PER_WORD];
	uint16_t level[XFP_GROUPED_LEVELS];

	for (uint64_t i = 0; i < run->columns; i++)
		xfp_store64(code + i * PER_WORD, xfp_nibbles_expand(xfp_load32(run->codes + i * run->line + word)));
	for (uint64_t row = first; row < first + rows; row++, out += pitch) {
		unsigned place = places[row % PER_WORD];

		xfp_grouped_levels(dtype, (float)(zeros >> place * 4 & 15),
				   xfp_scale_to_float(type, run->scale + row * size), level);
		xfp_grouped_look_up(level, code + place, PER_WORD, run->columns, out);
	}
}

static void decode_block(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
			 const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch)
{
	uint64_t group = part->parameters[XFP_AWQ_GROUP], line = from->pitch[XFP_COMPONENT_CODES], count, rows;

	for (uint64_t col = of->col; col < of->col + of->cols; col += count) {
		uint64_t g = col / group - from->of.col / group;
		struct awq_run run = {
			.codes = from->bytes[XFP_COMPONENT_CODES] + (col - from->of.col) * line,
			.zero = from->bytes[XFP_COMPONENT_ZEROS] + g * from->pitch[XFP_COMPONENT_ZEROS],
			.scale = from->bytes[XFP_COMPONENT_SCALES] + g * from->pitch[XFP_COMPONENT_SCALES],
			.line = line,
			.columns = xfp_grouped_length(col, of->col + of->cols, group),
		};

		count = run.columns;
		for (uint64_t r = 0; r < of->rows; r += rows) {
			uint64_t row = of->row + r - from->of.row, left = PER_WORD - row % PER_WORD;

			rows = of->rows - r < left ? of->rows - r : left;
			decode_run(&run, part, dtype, row, rows, out + r * pitch + (col - of->col) * sizeof(uint16_t),
				   pitch);
		}
	}
}

const struct xfp_codec_methods xfp_codec_awq = { fits, grain, window, NULL, decode_block, NULL };
