/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.c - unpacked elements, for tensors that are joined from several, or whose rows are reordered.
 *
 * parameters[0]: distance of rows in elements, if they are part of a matrix with more columns; 0: rows are adjacent.
 */
#include <string.h>

#include "base/bytes.h"
#include "checkpoints/packed/codec.h"

static uint64_t pitch_of(const struct xfp_recipe_part *part)
{
	return part->parameters[0] ? part->parameters[0] : part->cols;
}

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	uint64_t bytes, pitch = pitch_of(part);

	return codes && codes->dtype == dtype && xfp_dtype_bits(dtype) % 8 == 0 && part->rows && pitch >= part->cols &&
	       xfp_mul(part->rows - 1, pitch, &bytes) && xfp_add(bytes, part->cols, &bytes) &&
	       xfp_mul(bytes, xfp_dtype_bits(dtype) / 8, &bytes) && bytes == codes->bytes;
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = *cols = 1;
}

static uint64_t element(const struct xfp_recipe_part *part)
{
	return xfp_dtype_bits(xfp_recipe_component(part, XFP_COMPONENT_CODES)->dtype) / 8;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	uint64_t size = element(part);

	if (role != XFP_COMPONENT_CODES)
		return (struct xfp_window){ 0 };
	return xfp_window_of_rows(of, pitch_of(part) * size, size, 1);
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	uint64_t size = element(part);

	(void)dtype;
	memcpy(out,
	       from->bytes[XFP_COMPONENT_CODES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES] +
		       (col - from->of.col) * size,
	       cols * size);
}

const struct xfp_codec_methods xfp_codec_plain = { fits, grain, window, decode, NULL, NULL };
