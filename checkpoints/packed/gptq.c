/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gptq.c - GPTQ: w = (code - zero) * scale.
 *
 *   codes       I32 [cols * bits / 32, rows]: each column is a bit stream, from the lowest bit; 3-bit codes may cross
 *               words
 *   zeros       I32 [groups, rows * bits / 32]: each row is a bit stream
 *   scales      F16, BF16 or F32 [groups, rows]
 *   groups      optional I32 [cols], the group of each column, each as often as if in order; if missing, in order
 *   parameters  bits, 2, 3, 4 or 8; columns per group; whether zeros are stored minus one, as in GPTQ's first version
 *
 * Zeros stored minus one wrap around: all bits set means 0, because no zero exceeds all codes.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "checkpoints/packed/grouped.h"
#include "checkpoints/packed/stream.h"

#define MAX_GROUPS 1024u /* maximum groups whose levels a row keeps */

static uint64_t scale_size(const struct xfp_recipe_part *part)
{
	return xfp_dtype_bits(xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype) / 8;
}

static uint64_t group_count(const struct xfp_recipe_part *part)
{
	return xfp_divide_up(part->cols, part->parameters[XFP_GPTQ_GROUP]);
}

/* Compute the words of a stream of codes; returns false unless it ends with a word. */
static bool words(uint64_t codes, uint64_t bits, uint64_t *count)
{
	if (!xfp_mul(codes, bits, count) || *count % 32)
		return false;
	*count /= 32;
	return true;
}

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *zeros = xfp_recipe_component(part, XFP_COMPONENT_ZEROS);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	const struct xfp_component *groups = xfp_recipe_component(part, XFP_COMPONENT_GROUPS);
	uint64_t bits = part->parameters[XFP_GPTQ_BITS], down, along;

	if (!codes || !zeros || !scales || codes->dtype != XFP_I32 || zeros->dtype != XFP_I32 ||
	    !xfp_grouped_is_scale(scales->dtype) || dtype != xfp_grouped_dtype(scales->dtype) ||
	    (bits != 2 && bits != 3 && bits != 4 && bits != 8) || part->parameters[XFP_GPTQ_ZEROS_LESS_ONE] > 1 ||
	    !part->rows || !part->cols || !part->parameters[XFP_GPTQ_GROUP] || !words(part->cols, bits, &down) ||
	    !words(part->rows, bits, &along))
		return false;
	return xfp_grouped_has(codes, down, part->rows) && xfp_grouped_has(zeros, group_count(part), along) &&
	       xfp_grouped_has(scales, group_count(part), part->rows) &&
	       (!groups || (groups->dtype == XFP_I32 && xfp_grouped_has(groups, part->cols, 1)));
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = XFP_GROUPED_ROWS;
	*cols = XFP_STREAM;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	bool ordered = !xfp_recipe_component(part, XFP_COMPONENT_GROUPS);
	uint64_t bits = part->parameters[XFP_GPTQ_BITS], group = part->parameters[XFP_GPTQ_GROUP], size;
	struct xfp_rectangle lines = *of;

	if (!ordered) {
		lines.col = 0;
		lines.cols = part->cols;
	}
	switch (role) {
	case XFP_COMPONENT_CODES: /* lines are words */
		lines.col = of->col * bits / 32;
		lines.cols = (of->col + of->cols) * bits / 32 - lines.col;
		return xfp_window_of_groups(&lines, 1, part->rows * 4, 4, 1);
	case XFP_COMPONENT_ZEROS: /* elements of lines are words, too */
		lines.row = of->row * bits / 32;
		lines.rows = (of->row + of->rows) * bits / 32 - lines.row;
		return xfp_window_of_groups(&lines, group, part->rows * bits / 32 * 4, 4, 1);
	case XFP_COMPONENT_SCALES:
		size = scale_size(part);
		return xfp_window_of_groups(&lines, group, part->rows * size, size, 1);
	case XFP_COMPONENT_GROUPS:
		if (ordered)
			return (struct xfp_window){ 0 };
		return (struct xfp_window){ 0, part->cols * 4, part->cols * 4, 1, false };
	default:
		return (struct xfp_window){ 0 };
	}
}

/* Check that groups exist, each as often as if in order, so that they are a permutation. */
static enum xfp_status check(const struct xfp_recipe_part *part, enum xfp_component_role role,
			     const struct xfp_fetched *from, const char **wrong, struct xfp_error *err)
{
	uint64_t groups = group_count(part), size = part->parameters[XFP_GPTQ_GROUP], *left;

	if (role != XFP_COMPONENT_GROUPS)
		return XFP_OK;
	if (!(left = malloc(groups * sizeof *left)))
		return xfp_no_memory(err);
	for (uint64_t g = 0; g < groups; g++)
		left[g] = g + 1 < groups ? size : part->cols - g * size;
	for (uint64_t i = 0; !*wrong && i < part->cols; i++) {
		uint32_t g = xfp_load32(from->bytes[role] + i * 4);

		if (g >= groups)
			*wrong = "its g_idx contains a group without a scale; download it again";
		else if (!left[g]--)
			*wrong = "its g_idx has more inputs in a group than group_size; download it again";
	}
	free(left);
	return XFP_OK;
}

/* ---- a block ------------------------------------------------------------------------------------- */

/* Properties that the rows of a part share. */
struct block {
	const struct xfp_recipe_part *part;
	const struct xfp_fetched *from;
	enum xfp_dtype dtype, scales;
	unsigned bits;
	uint64_t scale_size;
	uint64_t first; /* group of the first line of zeros and scales */
};

/* Return zero and scale of a group and a row, counted from the first one fetched. */
static void zero_and_scale(const struct block *b, uint64_t group, uint64_t row, float *zero, float *scale)
{
	uint64_t line = group - b->first;
	uint8_t code;

	code = xfp_stream_code(b->from->bytes[XFP_COMPONENT_ZEROS] + line * b->from->pitch[XFP_COMPONENT_ZEROS], 4,
			       b->bits, row);
	if (b->part->parameters[XFP_GPTQ_ZEROS_LESS_ONE])
		code = (uint8_t)((code + 1u) & ((1u << b->bits) - 1));
	*zero = code;
	*scale = xfp_scale_to_float(b->scales, b->from->bytes[XFP_COMPONENT_SCALES] +
						       line * b->from->pitch[XFP_COMPONENT_SCALES] +
						       row * b->scale_size);
}

static const unsigned char *column(const struct block *b, uint64_t row)
{
	return b->from->bytes[XFP_COMPONENT_CODES] + row * 4;
}

/* Groups in order: decode a run of one group for all rows, then the next. */
static void decode_ordered(const struct block *b, const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch)
{
	uint64_t group = b->part->parameters[XFP_GPTQ_GROUP], line = b->from->pitch[XFP_COMPONENT_CODES], count;
	uint8_t code[XFP_GROUPED_RUN];

	for (uint64_t col = of->col; col < of->col + of->cols; col += count) {
		count = xfp_grouped_length(col, of->col + of->cols, group);
		for (uint64_t r = 0; r < of->rows; r++) {
			uint64_t row = of->row + r - b->from->of.row;
			float zero, scale;

			zero_and_scale(b, col / group, row, &zero, &scale);
			xfp_stream_codes(column(b, row), line, b->bits, col - b->from->of.col, count, code);
			xfp_grouped_run(b->dtype, b->bits, zero, scale, code, count,
					out + r * pitch + (col - of->col) * sizeof(uint16_t));
		}
	}
}

/* Look-up data of a row's groups. */
struct row_groups {
	bool levels, factors; /* which of these are filled in: the groups fit */
	uint16_t level[MAX_GROUPS][XFP_GROUPED_LEVELS];
	float zero[MAX_GROUPS], scale[MAX_GROUPS];
};

static void fill(const struct block *b, uint64_t row, struct row_groups *r)
{
	uint64_t groups = group_count(b->part);

	r->factors = groups <= MAX_GROUPS;
	r->levels = r->factors && b->bits <= 4;
	for (uint64_t g = 0; r->factors && g < groups; g++) {
		zero_and_scale(b, g, row, &r->zero[g], &r->scale[g]);
		if (r->levels)
			xfp_grouped_levels(b->dtype, r->zero[g], r->scale[g], r->level[g]);
	}
}

static void decode_codes(const struct block *b, const struct row_groups *r, uint64_t row, const unsigned char *groups,
			 const uint8_t *code, uint64_t count, unsigned char *out)
{
	float w[XFP_GROUPED_RUN], zero, scale;

	if (r->levels) {
		for (uint64_t i = 0; i < count; i++)
			xfp_store16(out + i * sizeof(uint16_t), r->level[xfp_load32(groups + i * 4)][code[i]]);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint32_t g = xfp_load32(groups + i * 4);

		if (r->factors) {
			zero = r->zero[g];
			scale = r->scale[g];
		} else {
			zero_and_scale(b, g, row, &zero, &scale);
		}
		w[i] = ((float)code[i] - zero) * scale;
	}
	xfp_store_decoded(b->dtype, w, count, out);
}

/* Groups in any order: decode row by row. */
static void decode_unordered(const struct block *b, const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch)
{
	const unsigned char *groups = b->from->bytes[XFP_COMPONENT_GROUPS];
	uint64_t line = b->from->pitch[XFP_COMPONENT_CODES], count;
	uint8_t code[XFP_GROUPED_RUN];
	struct row_groups row_groups;

	for (uint64_t r = 0; r < of->rows; r++) {
		uint64_t row = of->row + r - b->from->of.row;

		fill(b, row, &row_groups);
		for (uint64_t done = 0; done < of->cols; done += count) {
			uint64_t col = of->col + done;

			count = of->cols - done < XFP_GROUPED_RUN ? of->cols - done : XFP_GROUPED_RUN;
			xfp_stream_codes(column(b, row), line, b->bits, col - b->from->of.col, count, code);
			decode_codes(b, &row_groups, row, groups + col * 4, code, count,
				     out + r * pitch + done * sizeof(uint16_t));
		}
	}
}

static void decode_block(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
			 const struct xfp_rectangle *of, unsigned char *out, uint64_t pitch)
{
	bool ordered = !xfp_recipe_component(part, XFP_COMPONENT_GROUPS);
	struct block b = { .part = part,
			   .from = from,
			   .dtype = dtype,
			   .scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype,
			   .bits = (unsigned)part->parameters[XFP_GPTQ_BITS],
			   .scale_size = scale_size(part),
			   .first = ordered ? from->of.col / part->parameters[XFP_GPTQ_GROUP] : 0 };

	(ordered ? decode_ordered : decode_unordered)(&b, of, out, pitch);
}

const struct xfp_codec_methods xfp_codec_gptq = { fits, grain, window, NULL, decode_block, check };
