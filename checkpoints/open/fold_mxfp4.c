/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_mxfp4.c - stacks of experts in 4-bit floats, in the format of gpt-oss.
 *
 *   X_blocks U8 [experts, out, in / 32, 16]    X_scales U8 [experts, out, in / 32]
 *
 * Unpacked, X is [experts, in, out]: transposed.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/open/fold.h"

#define BLOCKS "_blocks"
#define SCALES "_scales"

static bool is_blocks(const struct xfp_fold *fold, uint32_t number)
{
	const struct xfp_source_tensor *t = &fold->checkpoint->tensors[number];
	size_t length = strlen(t->name);

	return !fold->consumed[number] && t->dtype == XFP_U8 && length > strlen(BLOCKS) &&
	       !strcmp(t->name + length - strlen(BLOCKS), BLOCKS);
}

static enum xfp_status fold_one(struct xfp_fold *fold, uint32_t number)
{
	struct xfp_source_tensor *blocks = &fold->checkpoint->tensors[number];
	uint32_t found = xfp_fold_find(fold, blocks, strlen(BLOCKS), SCALES);
	struct xfp_component components[3];
	struct xfp_recipe_part part = { .codec = XFP_CODEC_MXFP4, .components = components, .component_count = 2 };
	const struct xfp_source_tensor *scales;
	uint64_t experts, out, in, bytes;
	enum xfp_status status;

	if (found == UINT32_MAX && !fold->method)
		return XFP_OK;
	if (found == UINT32_MAX)
		return xfp_fold_missing(fold, blocks, "scales", SCALES);
	scales = &fold->checkpoint->tensors[found];
	if (blocks->rank != 4 || blocks->shape[3] != 16 || !blocks->bytes)
		return xfp_fold_bad(
			fold, blocks,
			"has the shape %s; blocks of 32 weights have [experts, out, in / 32, 16]: download it "
			"again",
			xfp_fold_shape(blocks->rank, blocks->shape).text);
	if ((scales->dtype != XFP_U8 && scales->dtype != XFP_F8_E8M0) || scales->rank != 3 ||
	    memcmp(scales->shape, blocks->shape, 3 * sizeof *scales->shape) != 0)
		return xfp_fold_bad(fold, scales,
				    "is %s %s, but the blocks that it scales have the shape %s: download both again",
				    xfp_dtype_name(scales->dtype), xfp_fold_shape(scales->rank, scales->shape).text,
				    xfp_fold_shape(4, blocks->shape).text);
	experts = blocks->shape[0];
	out = blocks->shape[1];
	in = blocks->shape[2] * 32;
	if (!xfp_mul(blocks->bytes, 4, &bytes))
		return xfp_fold_bad(fold, blocks, "is too large");
	components[0] = xfp_fold_component(blocks, XFP_COMPONENT_CODES);
	components[1] = xfp_fold_component(scales, XFP_COMPONENT_SCALES);
	part.rows = experts * out;
	part.cols = in;
	fold->consumed[found] = true;
	fold->cut[number] = (uint32_t)strlen(BLOCKS);
	blocks->dtype = XFP_BF16;
	blocks->rank = 3;
	blocks->shape[1] = in;
	blocks->shape[2] = out;
	blocks->shape[3] = 0;
	blocks->bytes = bytes;
	if (!(status = xfp_fold_make_tensor(fold, number, &part)))
		blocks->recipe->transposed = out;
	return status;
}

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++)
		if (is_blocks(fold, t))
			status = fold_one(fold, t);
	return status;
}

static const char *const methods[] = { "mxfp4", NULL };
static const char *const endings[] = { "_proj_scales", NULL };

const struct xfp_fold_form xfp_fold_mxfp4 = { "mxfp4", methods, endings, fold_all };
