/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_fp8.c - 8-bit floats and their scales, in the formats of DeepSeek, Qwen and fbgemm.
 *
 *   X.weight F8 [out, in]       X.weight_scale_inv or X.weight_scale
 *   X F8 [experts, out, in]     X_scale_inv or X_scale
 *
 * There is one scale per block of weight_block_size rows and columns, per row ([out, 1]), per column, or per matrix;
 * for a stack the same with a leading expert dimension, one per expert, or one for all.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/open/fold.h"
#include "checkpoints/packed/fp8.h"
#include "checkpoints/packed/number.h"

/* Read the block size of config.json; 0, 0 if missing. */
static enum xfp_status block_size(const struct xfp_fold *fold, uint64_t block[2])
{
	const json_t *size = json_object_get(fold->config, "weight_block_size");

	block[0] = block[1] = 0;
	if (!size || json_is_null(size))
		return XFP_OK;
	for (size_t i = 0; i < 2; i++) {
		const json_t *one = json_array_get(size, i);

		if (json_array_size(size) != 2 || !json_is_integer(one) || json_integer_value(one) <= 0)
			return xfp_fail(fold->err, XFP_BAD_INPUT,
					"%s/config.json: weight_block_size is not two numbers of rows and columns; "
					"download the file again",
					fold->checkpoint->folder);
		block[i] = (uint64_t)json_integer_value(one);
	}
	return XFP_OK;
}

/* Compare format names of DeepSeek, and of PyTorch: MiniMax uses float8_e4m3fn. */
static bool is_format(const char *name, enum xfp_dtype dtype)
{
	static const char prefix[] = "float8_";

	if (!strncmp(name, prefix, sizeof prefix - 1))
		name += sizeof prefix - 1;
	return dtype == XFP_F8_E4M3 ? !strcmp(name, "e4m3") || !strcmp(name, "e4m3fn") : !strcmp(name, "e5m2");
}

/* Check that the 8-bit floats are of the format in config.json. */
static enum xfp_status check_format(const struct xfp_fold *fold, const struct xfp_source_tensor *weight)
{
	const char *format = json_string_value(json_object_get(fold->config, "fmt"));

	if (!format || is_format(format, weight->dtype))
		return XFP_OK;
	return xfp_fold_bad(fold, weight, "is %s, but config.json says fmt %.32s; download both again",
			    xfp_dtype_name(weight->dtype), format);
}

/* Return the block size along a dimension with `scales` scales, or 0 if there is none. */
static uint64_t block_of(uint64_t n, uint64_t scales, uint64_t declared)
{
	if (declared && scales == xfp_divide_up(n, declared))
		return declared;
	return scales == 1 ? n : scales == n ? 1 : 0;
}

/* Compute rows of a matrix and of a block, and columns of a block, from both shapes. */
static bool geometry(const struct xfp_source_tensor *weight, const struct xfp_source_tensor *scale,
		     const uint64_t declared[2], uint64_t parameters[XFP_CODEC_PARAMETERS])
{
	uint32_t stack = weight->rank - 2; /* dimensions before the matrix */
	const uint64_t *matrix = weight->shape + stack;
	uint64_t elements = 1, all = matrix[0] * (stack ? weight->shape[0] : 1), rows = 1, cols = 1;

	for (uint32_t d = 0; d < scale->rank; d++)
		elements *= scale->shape[d];
	parameters[XFP_FP8_MATRIX_ROWS] = matrix[0];
	if (elements == 1) {
		parameters[XFP_FP8_MATRIX_ROWS] = parameters[XFP_FP8_BLOCK_ROWS] = all;
		parameters[XFP_FP8_BLOCK_COLS] = matrix[1];
		return true;
	}
	if (scale->rank < stack || scale->rank > stack + 2 || (stack && scale->shape[0] != weight->shape[0]))
		return false;
	if (scale->rank > stack)
		rows = scale->shape[stack];
	if (scale->rank > stack + 1)
		cols = scale->shape[stack + 1];
	/* Both block sizes are from config.json, or neither is; config.json does not apply to stacks. */
	if (declared[0] && rows == xfp_divide_up(matrix[0], declared[0]) &&
	    cols == xfp_divide_up(matrix[1], declared[1])) {
		parameters[XFP_FP8_BLOCK_ROWS] = declared[0];
		parameters[XFP_FP8_BLOCK_COLS] = declared[1];
		return true;
	}
	if (declared[0] && !stack)
		return false;
	parameters[XFP_FP8_BLOCK_ROWS] = block_of(matrix[0], rows, 0);
	parameters[XFP_FP8_BLOCK_COLS] = block_of(matrix[1], cols, 0);
	return parameters[XFP_FP8_BLOCK_ROWS] && parameters[XFP_FP8_BLOCK_COLS];
}

static enum xfp_status bad_shape(const struct xfp_fold *fold, const struct xfp_source_tensor *weight,
				 const struct xfp_source_tensor *scale, const uint64_t declared[2])
{
	struct xfp_shape_text scales = xfp_fold_shape(scale->rank, scale->shape);
	struct xfp_shape_text weights = xfp_fold_shape(weight->rank, weight->shape);
	uint64_t wanted[XFP_MAX_RANK];

	if (!declared[0])
		return xfp_fold_bad(fold, scale,
				    "has the shape %s, which is ambiguous for the weights %s of shape %s; "
				    "config.json should say weight_block_size: download it again",
				    scales.text, xfp_printable(weight->name).text, weights.text);
	memcpy(wanted, weight->shape, sizeof wanted);
	for (int i = 0; i < 2; i++)
		wanted[weight->rank - 2 + i] = xfp_divide_up(weight->shape[weight->rank - 2 + i], declared[i]);
	return xfp_fold_bad(fold, scale,
			    "has the shape %s, but weights of the shape %s in blocks of %llu x %llu, as config.json "
			    "says, have scales %s; download both again",
			    scales.text, weights.text, (unsigned long long)declared[0], (unsigned long long)declared[1],
			    xfp_fold_shape(weight->rank, wanted).text);
}

static enum xfp_status fold_one(struct xfp_fold *fold, uint32_t number, const uint64_t declared[2])
{
	struct xfp_source_tensor *weight = &fold->checkpoint->tensors[number];
	uint32_t inverse = xfp_fold_find(fold, weight, 0, "_scale_inv"),
		 direct = xfp_fold_find(fold, weight, 0, "_scale");
	uint32_t found = inverse != UINT32_MAX ? inverse : direct;
	struct xfp_component components[3];
	struct xfp_recipe_part part = { .codec = XFP_CODEC_FP8, .components = components, .component_count = 2 };
	const struct xfp_source_tensor *scale;
	enum xfp_status status;

	if (found == UINT32_MAX && !fold->method)
		return XFP_OK; /* plain 8-bit floats are kept as they are */
	if (found == UINT32_MAX)
		return xfp_fold_bad(
			fold, weight,
			"has no scales: there is neither %s_scale_inv nor %s_scale; download the checkpoint "
			"again, or name its folder if this is one of several files",
			xfp_printable(weight->name).text, xfp_printable(weight->name).text);
	scale = &fold->checkpoint->tensors[found];
	if (inverse != UINT32_MAX && direct != UINT32_MAX)
		return xfp_fold_bad(fold, weight, "has two sets of scales, %s and another; remove one of them",
				    xfp_printable(scale->name).text);
	if ((weight->rank != 2 && weight->rank != 3) || !weight->bytes)
		return xfp_fold_bad(fold, weight, "has scales, but is neither a matrix nor a stack of such: %s",
				    xfp_fold_shape(weight->rank, weight->shape).text);
	if (!xfp_dtype_is_scale(scale->dtype))
		return xfp_fold_bad(fold, scale, "is %s; scales are F32, BF16, F16 or F8_E8M0",
				    xfp_dtype_name(scale->dtype));
	if ((status = check_format(fold, weight)))
		return status;
	if (!geometry(weight, scale, declared, part.parameters))
		return bad_shape(fold, weight, scale, declared);
	part.cols = weight->shape[weight->rank - 1];
	part.rows = weight->bytes / part.cols;
	components[0] = xfp_fold_component(weight, XFP_COMPONENT_CODES);
	components[1] = xfp_fold_component(scale, XFP_COMPONENT_SCALES);
	fold->consumed[found] = true;
	weight->dtype = XFP_BF16;
	weight->bytes *= 2;
	return xfp_fold_make_tensor(fold, number, &part);
}

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	enum xfp_status status;
	uint64_t declared[2];

	if ((status = block_size(fold, declared)))
		return status;
	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++) {
		enum xfp_dtype dtype = fold->checkpoint->tensors[t].dtype;

		if (!fold->consumed[t] && (dtype == XFP_F8_E4M3 || dtype == XFP_F8_E5M2))
			status = fold_one(fold, t, declared);
	}
	return status;
}

static const char *const methods[] = { "fp8", "fbgemm_fp8", NULL };
static const char *const endings[] = { "_scale_inv", ".weight_scale", "_proj_scale", NULL };

const struct xfp_fold_form xfp_fold_fp8 = { "fp8", methods, endings, fold_all };
