/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_modelopt.c - the forms of modelopt (TensorRT Model Optimizer).
 *
 *   X.weight U8 [out, in / 2]     X.weight_scale F8_E4M3 [out, in / 16], X.weight_scale_2: NVFP4, multiplied by both
 *   X.weight U8 [out, in / 2]     X.weight_scale U8 [out, in / 32]: MXFP4
 *   X.weight F8_E4M3 [out, in]    X.weight_scale for all, for each row, for blocks, or U8 [out, in / 32]: FP8 and MXFP8
 *   X.weight I8 [out, in]         X.weight_scale for each row
 *   X F8_E4M3 [experts, in, out]  X_weight_scale for all or for each of them: FP8 of fused experts, as of Llama 4
 *
 * quant_algo determines the possible forms, and group_size the sizes that the shapes do not.
 */
#include <string.h>

#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/open/fold.h"
#include "checkpoints/open/scaling.h"
#include "checkpoints/packed/fp8.h"
#include "checkpoints/packed/number.h"

enum form { FP8 = 1, MXFP8 = 2, NVFP4 = 4, MXFP4 = 8, INT8 = 16, ALL = 31 };

static const struct {
	const char *name;
	unsigned forms;
} algorithms[] = {
	{ "FP8", FP8 },           { "FP8_PER_CHANNEL_PER_TOKEN", FP8 },
	{ "FP8_PB_WO", FP8 },     { "FP8_PB_REAL", FP8 },
	{ "MXFP8", MXFP8 },       { "NVFP4", NVFP4 },
	{ "NVFP4_AWQ", NVFP4 }, /* scales of activations are refused if they were not folded */
	{ "W4A16_NVFP4", NVFP4 }, { "W4A8_NVFP4_FP8", NVFP4 },
	{ "MXFP4", MXFP4 },       { "W4A8_MXFP4_FP8", MXFP4 },
	{ "W8A16", INT8 },        { "W8A8_SQ_PER_CHANNEL", INT8 },
};

struct modelopt {
	struct xfp_fold *fold;
	unsigned forms;      /* forms that the config allows */
	uint64_t group_size; /* global group size, or 0 */
};

/* ---- the config ---------------------------------------------------------------------------------- */

static enum xfp_status read_algorithm(const struct xfp_fold *fold, const char *name, unsigned *forms)
{
	for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
		if (!strcasecmp(algorithms[i].name, name)) {
			*forms |= algorithms[i].forms;
			return XFP_OK;
		}
	return xfp_fold_bad_config(
		fold,
		"quant_algo is %.64s, a form that this version does not read; convert the unquantized "
		"checkpoint, or a copy of this one with its weights as bf16",
		xfp_printable(name).text);
}

/* Read a group_size: that of 4-bit floats, which is fixed, or of blocks of 8-bit floats. */
static enum xfp_status read_group_size(const struct xfp_fold *fold, const json_t *of, unsigned forms, uint64_t *out)
{
	const json_t *size = json_object_get(of, "group_size");
	uint64_t number;

	if (!size || json_is_null(size) || (json_is_integer(size) && !json_integer_value(size)))
		return XFP_OK;
	number = (uint64_t)json_integer_value(size);
	if (!json_is_integer(size) || json_integer_value(size) < 0 || (forms == NVFP4 && number != 16) ||
	    ((forms == MXFP4 || forms == MXFP8) && number != 32))
		return xfp_fold_bad_config(fold, "group_size does not match its quant_algo; download it again");
	*out = number;
	return XFP_OK;
}

static enum xfp_status read_config(struct modelopt *m)
{
	const json_t *layers = json_object_get(m->fold->config, "quantized_layers"), *layer;
	const char *name = json_string_value(json_object_get(m->fold->config, "quant_algo")), *ignored;
	enum xfp_status status;

	if (name && strcmp(name, "MIXED_PRECISION") != 0) {
		if ((status = read_algorithm(m->fold, name, &m->forms)))
			return status;
		return read_group_size(m->fold, m->fold->config, m->forms, &m->group_size);
	}
	json_object_foreach ((json_t *)(uintptr_t)layers, ignored, layer) {
		unsigned forms = 0;

		name = json_string_value(json_object_get(layer, "quant_algo"));
		if (name && ((status = read_algorithm(m->fold, name, &forms)) ||
			     (status = read_group_size(m->fold, layer, forms,
						       forms == FP8 ? &m->group_size : &(uint64_t){ 0 }))))
			return status;
		m->forms |= forms;
	}
	if (!m->forms)
		m->forms = ALL;
	return XFP_OK;
}

/* ---- one weight ---------------------------------------------------------------------------------- */

static const char *form_name(unsigned form)
{
	return form == FP8     ? "FP8"
	       : form == MXFP8 ? "MXFP8"
	       : form == NVFP4 ? "NVFP4"
	       : form == MXFP4 ? "MXFP4"
			       : "INT8";
}

static enum xfp_status check_form(const struct modelopt *m, const struct xfp_source_tensor *codes, unsigned form)
{
	if (m->forms & form)
		return XFP_OK;
	return xfp_fold_bad(m->fold, codes,
			    "is %s by its dtype and that of its scales, but quant_algo in %s says "
			    "otherwise; download both again",
			    form_name(form), m->fold->config_name);
}

static enum xfp_status fold_bytes(struct modelopt *m, uint32_t number, uint32_t scales)
{
	const struct xfp_source_tensor *codes = &m->fold->checkpoint->tensors[number];
	const struct xfp_source_tensor *scale = &m->fold->checkpoint->tensors[scales];
	bool mx = scale->dtype == XFP_U8 || scale->dtype == XFP_F8_E8M0, found = false;
	uint64_t block[2], size = m->group_size ? m->group_size : 128;
	const struct xfp_scale_blocks choices[] = { { 0, 0 }, { 1, 0 }, { size, size } };
	enum xfp_status status;

	status = check_form(m, codes, codes->dtype == XFP_I8 ? INT8 : mx ? MXFP8 : FP8);
	if (status)
		return status;
	if (codes->rank != 2 || !codes->bytes)
		return xfp_fold_bad(m->fold, codes, "has scales, but is not a matrix: %s",
				    xfp_fold_shape(codes->rank, codes->shape).text);
	if (mx)
		found = xfp_scaling_fits(&(struct xfp_scale_blocks){ 1, 32 }, scale, codes->shape[0], codes->shape[1],
					 block);
	for (size_t i = 0; !mx && !found && i < sizeof choices / sizeof *choices; i++)
		found = xfp_scaling_fits(&choices[i], scale, codes->shape[0], codes->shape[1], block);
	if (!found)
		return xfp_fold_bad(
			m->fold, scale,
			"has the shape %s, but weights of the shape %s have one for all, for each row, or for "
			"each %llu x %llu; download both again",
			xfp_fold_shape(scale->rank, scale->shape).text, xfp_fold_shape(codes->rank, codes->shape).text,
			mx ? 1 : (unsigned long long)size, mx ? 32 : (unsigned long long)size);
	return xfp_fold_bytes(m->fold, number, scales, UINT32_MAX, block);
}

static enum xfp_status fold_fp4(struct modelopt *m, uint32_t number, uint32_t scales)
{
	const struct xfp_source_tensor *codes = &m->fold->checkpoint->tensors[number];
	uint32_t second = xfp_fold_find(m->fold, codes, 0, "_scale_2");
	bool nv = m->fold->checkpoint->tensors[scales].dtype == XFP_F8_E4M3;
	enum xfp_status status;

	if (nv && second == UINT32_MAX)
		return xfp_fold_missing(m->fold, codes, "scale of its scales", "_scale_2");
	if (!nv && !m->fold->method)
		return XFP_OK;
	if ((status = check_form(m, codes, nv || second != UINT32_MAX ? NVFP4 : MXFP4)))
		return status;
	return xfp_fold_fp4(m->fold, number, 0, scales, second, false);
}

/* Fold fused experts, identified by X_weight_scale. 4-bit codes are packed across their rows. */
static enum xfp_status fold_stack(struct modelopt *m, uint32_t number, uint32_t scales)
{
	struct xfp_source_tensor *codes = &m->fold->checkpoint->tensors[number];
	const struct xfp_source_tensor *scale = &m->fold->checkpoint->tensors[scales];
	struct xfp_component components[3] = { xfp_fold_component(codes, XFP_COMPONENT_CODES),
					       xfp_fold_component(scale, XFP_COMPONENT_SCALES) };
	struct xfp_recipe_part part = { .codec = XFP_CODEC_FP8, .components = components, .component_count = 2 };
	uint64_t count = scale->bytes / (xfp_dtype_bits(scale->dtype) / 8);
	enum xfp_status status;

	if (codes->dtype != XFP_F8_E4M3 || codes->rank != 3 || !codes->bytes)
		return xfp_fold_bad(
			m->fold, codes,
			"is %s %s and has a scale; fused experts are supported as 8-bit floats only: convert the "
			"unquantized checkpoint",
			xfp_dtype_name(codes->dtype), xfp_fold_shape(codes->rank, codes->shape).text);
	if ((status = check_form(m, codes, FP8)))
		return status;
	if (!xfp_dtype_is_scale(scale->dtype) || (count != 1 && (count != codes->shape[0] || scale->shape[0] != count)))
		return xfp_fold_bad(m->fold, scale,
				    "is %s %s, but fused experts of the shape %s have one scale for all or for each of "
				    "them; download both again",
				    xfp_dtype_name(scale->dtype), xfp_fold_shape(scale->rank, scale->shape).text,
				    xfp_fold_shape(codes->rank, codes->shape).text);
	part.cols = codes->shape[2];
	part.rows = codes->bytes / part.cols;
	part.parameters[XFP_FP8_MATRIX_ROWS] = part.parameters[XFP_FP8_BLOCK_ROWS] = part.rows / count;
	part.parameters[XFP_FP8_BLOCK_COLS] = part.cols;
	m->fold->consumed[scales] = true;
	codes->dtype = XFP_BF16;
	codes->bytes *= 2;
	return xfp_fold_make_tensor(m->fold, number, &part);
}

static bool is_bytes(enum xfp_dtype dtype)
{
	return dtype == XFP_F8_E4M3 || dtype == XFP_F8_E5M2 || dtype == XFP_I8;
}

/* Refuse scales that activations are multiplied by before packed weights; they would have to be folded into these. */
static enum xfp_status refuse_smoothed(const struct modelopt *m, const struct xfp_source_tensor *tensor)
{
	if (xfp_stem(tensor->name, "pre_quant_scale"))
		return xfp_fold_bad(m->fold, tensor,
				    "activations are multiplied by a pre_quant_scale, which this version does not fold "
				    "into weights; convert the unquantized checkpoint");
	if (strstr(tensor->name, "svdquant_lora_"))
		return xfp_fold_bad(m->fold, tensor,
				    "weights have a low-rank part (SVDQuant), which this version does not "
				    "add; convert the unquantized checkpoint");
	return XFP_OK;
}

static enum xfp_status fold_one(struct modelopt *m, uint32_t number)
{
	const struct xfp_source_tensor *tensor = &m->fold->checkpoint->tensors[number];
	bool floats = tensor->dtype == XFP_U8, bytes = m->fold->method && is_bytes(tensor->dtype);
	uint32_t scales;

	if (m->fold->consumed[number] || (!floats && !bytes))
		return XFP_OK;
	if (!xfp_stem(tensor->name, ".weight")) {
		scales = m->fold->method ? xfp_fold_find(m->fold, tensor, 0, "_weight_scale") : UINT32_MAX;
		if (scales != UINT32_MAX)
			return fold_stack(m, number, scales);
		return bytes && tensor->dtype != XFP_I8 ? xfp_fold_missing(m->fold, tensor, "scales", "_weight_scale")
							: XFP_OK;
	}
	scales = xfp_fold_find(m->fold, tensor, 0, "_scale");
	if (scales == UINT32_MAX)
		return m->fold->method ? xfp_fold_missing(m->fold, tensor, "scales", "_scale") : XFP_OK;
	return floats ? fold_fp4(m, number, scales) : fold_bytes(m, number, scales);
}

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	struct modelopt m = { .fold = fold, .forms = fold->method ? 0 : NVFP4 };
	enum xfp_status status = fold->method ? read_config(&m) : XFP_OK;

	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++)
		status = fold_one(&m, t);
	for (uint32_t t = 0; !status && fold->folded && t < fold->checkpoint->tensor_count; t++)
		status = refuse_smoothed(&m, &fold->checkpoint->tensors[t]);
	return status;
}

static const char *const methods[] = { "modelopt",       "modelopt_fp4",   "modelopt_fp8",
				       "modelopt_mxfp8", "modelopt_mixed", NULL };
static const char *const endings[] = { ".weight_scale", ".weight_scale_2", "_proj_weight_scale", "_proj_weight_scale_2",
				       NULL };

const struct xfp_fold_form xfp_fold_modelopt = { "modelopt", methods, endings, fold_all };
