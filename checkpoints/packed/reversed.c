/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reversed.c - floats that a converter changed; the change is undone here.
 *
 *   codes       F32 [rows, cols]
 *   parameters  the kind of change
 *
 *   XFP_REVERSED_ONE     1 was added, as GGUF does in norms of Gemma and Qwen3-Next: x - 1 in f32. A multiple of 2^-23
 *                        is restored exactly: all BF16 above 2^-16, and F16 above 2^-13; others have an error of up to
 *                        2^-24 from the addition.
 *   XFP_REVERSED_DECAY   the negative exponential was stored, as GGUF does in decays of linear attention: ln(-x), in
 *                        double, rounded to f32: within 2^-23 of the original, because of the exponential's rounding.
 *                        If x is not negative, the result is NaN.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/elementary.h"

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	uint64_t bytes;

	return codes && codes->dtype == XFP_F32 && dtype == XFP_F32 && part->parameters[0] <= XFP_REVERSED_DECAY &&
	       xfp_mul(part->rows, part->cols, &bytes) && xfp_mul(bytes, sizeof(float), &bytes) &&
	       bytes == codes->bytes;
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = *cols = 1;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	if (role != XFP_COMPONENT_CODES)
		return (struct xfp_window){ 0 };
	return xfp_window_of_rows(of, part->cols * sizeof(float), sizeof(float), 1);
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	const unsigned char *at = from->bytes[XFP_COMPONENT_CODES] +
				  (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES] +
				  (col - from->of.col) * sizeof(float);
	unsigned char *to = out;

	(void)dtype;
	for (uint64_t i = 0; i < cols; i++) {
		float value;

		memcpy(&value, at + i * sizeof value, sizeof value);
		if (part->parameters[0] == XFP_REVERSED_ONE)
			value -= 1;
		else
			value = value < 0 && isfinite(value) ? (float)xfp_ln(-(double)value) : NAN;
		memcpy(to + i * sizeof value, &value, sizeof value);
	}
}

const struct xfp_codec_methods xfp_codec_reversed = { fits, grain, window, decode, NULL, NULL };
