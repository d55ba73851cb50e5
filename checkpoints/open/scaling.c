/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/open/scaling.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/packed/fp8.h"
#include "checkpoints/packed/int.h"
#include "checkpoints/packed/number.h"
#include "checkpoints/packed/nvfp4.h"

bool xfp_scaling_fits(const struct xfp_scale_blocks *scaling, const struct xfp_source_tensor *scale, uint64_t rows,
		      uint64_t cols, uint64_t block[2])
{
	uint64_t up = xfp_divide_up(rows, scaling->rows ? scaling->rows : rows);
	uint64_t across = xfp_divide_up(cols, scaling->cols ? scaling->cols : cols);
	const uint64_t *s = scale->shape;

	block[0] = up == 1 ? rows : scaling->rows;
	block[1] = across == 1 ? cols : scaling->cols;
	switch (scale->rank) {
	case 0:
		return up == 1 && across == 1;
	case 1:
		return s[0] == up && across == 1;
	case 2:
		return s[0] == up && s[1] == across;
	case 4: /* in the broadcast form [blocks, 1, blocks, 1] */
		return s[0] == up && s[1] == 1 && s[2] == across && s[3] == 1;
	default:
		return false;
	}
}

enum xfp_dtype xfp_scaling_dtype(const struct xfp_source_tensor *scale)
{
	return scale->dtype == XFP_F16 ? XFP_F16 : XFP_BF16;
}

static enum xfp_status check_scale_dtype(const struct xfp_fold *fold, const struct xfp_source_tensor *scale)
{
	if (xfp_dtype_is_scale(scale->dtype) || scale->dtype == XFP_U8)
		return XFP_OK;
	return xfp_fold_bad(fold, scale, "is %s; scales are F32, BF16, F16, F8_E8M0 or U8: download it again",
			    xfp_dtype_name(scale->dtype));
}

/* Return the component of scales; U8 are read as exponents. */
static struct xfp_component scales_of(const struct xfp_source_tensor *scale)
{
	struct xfp_component component = xfp_fold_component(scale, XFP_COMPONENT_SCALES);

	if (scale->dtype == XFP_U8)
		component.dtype = XFP_F8_E8M0;
	return component;
}

enum xfp_status xfp_fold_bytes(struct xfp_fold *fold, uint32_t number, uint32_t scales, uint32_t zeros,
			       const uint64_t block[2])
{
	struct xfp_source_tensor *codes = &fold->checkpoint->tensors[number];
	const struct xfp_source_tensor *scale = &fold->checkpoint->tensors[scales];
	struct xfp_component components[4] = { xfp_fold_component(codes, XFP_COMPONENT_CODES), scales_of(scale) };
	struct xfp_recipe_part part = {
		.components = components, .component_count = 2, .rows = codes->shape[0], .cols = codes->shape[1]
	};
	enum xfp_status status;

	if ((status = check_scale_dtype(fold, scale)))
		return status;
	if (codes->dtype == XFP_I8) {
		part.codec = XFP_CODEC_INT;
		part.parameters[XFP_INT_BITS] = 8;
		part.parameters[XFP_INT_PACKING] = XFP_INT_BYTES;
		part.parameters[XFP_INT_BLOCK_ROWS] = block[0];
		part.parameters[XFP_INT_BLOCK_COLS] = block[1];
	} else {
		part.codec = XFP_CODEC_FP8;
		part.parameters[XFP_FP8_MATRIX_ROWS] = part.rows;
		part.parameters[XFP_FP8_BLOCK_ROWS] = block[0];
		part.parameters[XFP_FP8_BLOCK_COLS] = block[1];
	}
	if (zeros != UINT32_MAX) {
		components[part.component_count++] =
			xfp_fold_component(&fold->checkpoint->tensors[zeros], XFP_COMPONENT_ZEROS);
		fold->consumed[zeros] = true;
	}
	fold->consumed[scales] = true;
	codes->dtype = xfp_scaling_dtype(scale);
	if (!xfp_mul(codes->bytes, 2, &codes->bytes))
		return xfp_fold_bad(fold, codes, "is too large");
	return xfp_fold_make_tensor(fold, number, &part);
}

/* ---- 4-bit floats -------------------------------------------------------------------------------- */

/* Check a global scale: one for all or one per matrix; not 0 if it divides. */
static enum xfp_status check_global(struct xfp_fold *fold, const struct xfp_source_tensor *global, uint64_t matrices,
				    bool divides)
{
	enum xfp_status status;
	unsigned char *values;

	if (global->dtype != XFP_F32 || (global->bytes != 4 && global->bytes != matrices * 4))
		return xfp_fold_bad(fold, global,
				    "is %s %s; a scale of scales is one F32, for each matrix or for all: download it "
				    "again",
				    xfp_dtype_name(global->dtype), xfp_fold_shape(global->rank, global->shape).text);
	if (!divides)
		return XFP_OK;
	if (!(values = malloc(global->bytes)))
		return xfp_no_memory_for(fold->err, fold->checkpoint->folder);
	status = xfp_fold_read(fold, global, values);
	for (uint64_t at = 0; !status && at < global->bytes; at += 4)
		if (!(xfp_load32(values + at) & 0x7fffffff))
			status = xfp_fold_bad(fold, global,
					      "is 0, and scales are divided by it; download the checkpoint again");
	free(values);
	return status;
}

/* Return whether scales match groups of `group`. */
static bool are_groups(const struct xfp_source_tensor *codes, const struct xfp_source_tensor *scale, uint64_t group)
{
	uint32_t last = codes->rank - 1;

	return scale->rank == codes->rank && !memcmp(scale->shape, codes->shape, last * sizeof *codes->shape) &&
	       codes->shape[last] % (group / 2) == 0 && scale->shape[last] == codes->shape[last] / (group / 2);
}

enum xfp_status xfp_fold_fp4(struct xfp_fold *fold, uint32_t number, size_t cut, uint32_t scales, uint32_t global,
			     bool divides)
{
	struct xfp_source_tensor *tensors = fold->checkpoint->tensors, *codes = &tensors[number];
	const struct xfp_source_tensor *scale = &tensors[scales];
	bool nv = global != UINT32_MAX;
	struct xfp_component components[4];
	struct xfp_recipe_part part = { .codec = nv ? XFP_CODEC_NVFP4 : XFP_CODEC_MXFP4,
					.components = components,
					.component_count = 2 };
	uint64_t matrices, group = nv ? XFP_NVFP4_GROUP : 32;
	enum xfp_status status;

	if ((codes->rank != 2 && codes->rank != 3) || !codes->bytes)
		return xfp_fold_bad(fold, codes, "has scales, but is neither a matrix nor a stack of such: %s",
				    xfp_fold_shape(codes->rank, codes->shape).text);
	if (nv ? scale->dtype != XFP_F8_E4M3 : scale->dtype != XFP_U8 && scale->dtype != XFP_F8_E8M0)
		return xfp_fold_bad(fold, scale, "is %s; scales of 4-bit floats are %s: download both again",
				    xfp_dtype_name(scale->dtype), nv ? "F8_E4M3 with a global scale" : "U8 or F8_E8M0");
	if (!are_groups(codes, scale, group))
		return xfp_fold_bad(fold, scale,
				    "has the shape %s, but the weights that it scales have %s bytes and a scale for "
				    "each %u: download both again",
				    xfp_fold_shape(scale->rank, scale->shape).text,
				    xfp_fold_shape(codes->rank, codes->shape).text, (unsigned)group);
	matrices = codes->rank == 3 ? codes->shape[0] : 1;
	part.cols = codes->shape[codes->rank - 1] * 2;
	part.rows = codes->bytes / (part.cols / 2);
	components[0] = xfp_fold_component(codes, XFP_COMPONENT_CODES);
	components[1] = xfp_fold_component(scale, XFP_COMPONENT_SCALES);
	if (nv) {
		if ((status = check_global(fold, &tensors[global], matrices, divides)))
			return status;
		components[part.component_count++] = xfp_fold_component(&tensors[global], XFP_COMPONENT_GLOBAL);
		part.parameters[XFP_NVFP4_MATRIX_ROWS] = tensors[global].bytes == 4 ? part.rows : part.rows / matrices;
		part.parameters[XFP_NVFP4_DIVIDES] = divides;
		fold->consumed[global] = true;
	}
	if (!xfp_mul(codes->bytes, 4, &codes->bytes))
		return xfp_fold_bad(fold, codes, "is too large");
	fold->consumed[scales] = true;
	fold->cut[number] = (uint32_t)cut;
	codes->dtype = XFP_BF16;
	codes->shape[codes->rank - 1] = part.cols;
	return xfp_fold_make_tensor(fold, number, &part);
}
