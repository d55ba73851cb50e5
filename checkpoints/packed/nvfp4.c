/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvfp4.c - 4-bit floats, groups of 16 in a row with one 8-bit float, and a global scale of these.
 *
 *   codes       U8 [rows, cols / 2]; the first of two neighbours is the lower half of the byte
 *   scales      F8_E4M3 [rows, cols / 16]
 *   global      F32, one per matrix of that many rows
 *   parameters  rows of a matrix; whether the global scale divides
 *
 * w = value * (scale / global) if it divides, as in compressed-tensors; otherwise w = value * (scale * global), as in
 * modelopt. Both in f32, the brackets first.
 */
#include "checkpoints/packed/nvfp4.h"

#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/e2m1.h"
#include "checkpoints/packed/number.h"

#define GROUP XFP_NVFP4_GROUP
#define CHUNK 256u

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	const struct xfp_component *global = xfp_recipe_component(part, XFP_COMPONENT_GLOBAL);
	uint64_t elements, matrix = part->parameters[XFP_NVFP4_MATRIX_ROWS];

	return dtype == XFP_BF16 && codes && scales && global && codes->dtype == XFP_U8 &&
	       scales->dtype == XFP_F8_E4M3 && global->dtype == XFP_F32 && part->rows && part->cols &&
	       part->cols % GROUP == 0 && matrix && part->rows % matrix == 0 &&
	       part->parameters[XFP_NVFP4_DIVIDES] <= 1 && xfp_mul(part->rows, part->cols, &elements) &&
	       codes->bytes == elements / 2 && scales->bytes == elements / GROUP &&
	       global->bytes == part->rows / matrix * sizeof(float);
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
	uint64_t matrix = part->parameters[XFP_NVFP4_MATRIX_ROWS], first;

	if (role == XFP_COMPONENT_CODES)
		return xfp_window_of_rows(of, part->cols / 2, 1, 2);
	if (role == XFP_COMPONENT_SCALES)
		return xfp_window_of_rows(of, part->cols / GROUP, 1, GROUP);
	if (role != XFP_COMPONENT_GLOBAL)
		return (struct xfp_window){ .run = 0 };
	first = of->row / matrix;
	return (struct xfp_window){ .offset = first * sizeof(float),
				    .run = sizeof(float),
				    .stride = sizeof(float),
				    .lines = (of->row + of->rows - 1) / matrix - first + 1 };
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	const unsigned char *codes =
		from->bytes[XFP_COMPONENT_CODES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES];
	const unsigned char *scales =
		from->bytes[XFP_COMPONENT_SCALES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_SCALES];
	uint64_t matrix = part->parameters[XFP_NVFP4_MATRIX_ROWS], number = row / matrix - from->of.row / matrix;
	float global = xfp_bits_to_float(xfp_load32(from->bytes[XFP_COMPONENT_GLOBAL] + number * sizeof(float)));
	bool divides = part->parameters[XFP_NVFP4_DIVIDES];
	unsigned char *to = out;
	uint64_t first = from->of.col, end = col + cols, count;
	float values[CHUNK];

	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		count = CHUNK - col % CHUNK;
		count = end - col < count ? end - col : count;
		for (uint64_t i = 0, same; i < count; i += same) {
			float scale = xfp_e4m3_to_float(scales[(col + i - first) / GROUP]);

			same = GROUP - (col + i) % GROUP;
			same = count - i < same ? count - i : same;
			scale = divides ? scale / global : scale * global;
			if (same == GROUP) /* a compile-time constant */
				xfp_e2m1_scaled(codes, col + i - first, GROUP, scale, values + i);
			else
				xfp_e2m1_scaled(codes, col + i - first, same, scale, values + i);
		}
		xfp_store_decoded(dtype, values, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_nvfp4 = {
	.fits = fits,
	.grain = grain,
	.window = window,
	.decode = decode,
};
