/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mxfp4.c - 4-bit floats, groups of 32 in a row with one power of two: w = value * 2^(scale - 127).
 *
 *   codes   U8 [rows, cols / 2]; the first of two neighbours is the lower half of the byte
 *   scales  U8 or F8_E8M0 [rows, cols / 32]; 255 means NaN, as do the weights that it scales
 *
 * Every product is exact in bf16, unless it overflows.
 */
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/e2m1.h"
#include "checkpoints/packed/number.h"

#define GROUP 32u
#define CHUNK 256u

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	uint64_t elements;

	return dtype == XFP_BF16 && codes && scales && codes->dtype == XFP_U8 &&
	       (scales->dtype == XFP_U8 || scales->dtype == XFP_F8_E8M0) && part->rows && part->cols &&
	       part->cols % GROUP == 0 && xfp_mul(part->rows, part->cols, &elements) && codes->bytes == elements / 2 &&
	       scales->bytes == elements / GROUP;
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = 1;
	*cols = GROUP;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	if (role == XFP_COMPONENT_CODES)
		return xfp_window_of_rows(of, part->cols / 2, 1, 2);
	if (role == XFP_COMPONENT_SCALES)
		return xfp_window_of_rows(of, part->cols / GROUP, 1, GROUP);
	return (struct xfp_window){ 0 };
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	const unsigned char *codes =
		from->bytes[XFP_COMPONENT_CODES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES];
	const unsigned char *scales =
		from->bytes[XFP_COMPONENT_SCALES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_SCALES];
	unsigned char *to = out;
	uint64_t first = from->of.col, end = col + cols, count;
	float values[CHUNK];

	(void)part;
	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		count = CHUNK - col % CHUNK;
		count = end - col < count ? end - col : count;
		for (uint64_t i = 0, same; i < count; i += same) {
			float scale = xfp_e8m0_to_float(scales[(col + i - first) / GROUP]);

			same = GROUP - (col + i) % GROUP;
			same = count - i < same ? count - i : same;
			if (same == GROUP) /* a compile-time constant */
				xfp_e2m1_scaled(codes, col + i - first, GROUP, scale, values + i);
			else
				xfp_e2m1_scaled(codes, col + i - first, same, scale, values + i);
		}
		xfp_store_decoded(dtype, values, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_mxfp4 = { fits, grain, window, decode, NULL, NULL };
