/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_gptq.c - matrices packed by GPTQ.
 *
 *   X.qweight I32 [in * bits / 32, out]    X.qzeros I32 [groups, out * bits / 32]    X.scales [groups, out]
 *   X.g_idx I32 [in], the group of each input; without it, groups are in order
 *
 * If config.json has `dynamic`, some tensors have other bits or groups than the global ones; shapes determine these.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/open/fold_grouped.h"
#include "checkpoints/packed/grouped.h"

/* Settings for all matrices. */
struct gptq {
	struct xfp_grouped_config config;
	bool less_one; /* zeros are stored minus one */
	bool dynamic;
	bool ordered; /* inputs were not sorted by activation (desc_act), so groups may be in order */
};

static enum xfp_status read_config(const struct xfp_fold *fold, struct gptq *gptq)
{
	struct xfp_config_word format = xfp_grouped_word(fold, "checkpoint_format", "format", "gptq");
	enum xfp_status status = xfp_grouped_read_config(fold, &gptq->config);

	if (status)
		return status;
	if (json_is_true(json_object_get(fold->config, "is_marlin_format")))
		strcpy(format.text, "marlin");
	if (strcmp(format.text, "gptq") != 0 && strcmp(format.text, "gptq_v2") != 0)
		return xfp_fold_bad_config(
			fold,
			"says checkpoint_format %s, whose order of codes is not supported; only "
			"gptq and gptq_v2 are: convert the model in one of these, or the unquantized one",
			format.text);
	gptq->less_one = !strcmp(format.text, "gptq");
	gptq->dynamic = json_object_size(json_object_get(fold->config, "dynamic")) > 0;
	gptq->ordered = !json_is_true(json_object_get(fold->config, "desc_act"));
	if (gptq->config.bits != 2 && gptq->config.bits != 3 && gptq->config.bits != 4 && gptq->config.bits != 8)
		return xfp_fold_bad_config(fold, "says %u bits; only 2, 3, 4 and 8 are supported",
					   (unsigned)gptq->config.bits);
	return XFP_OK;
}

/* Return bits per code, from shapes or config; 0 if inconsistent. */
static uint64_t bits_of(const struct gptq *gptq, const struct xfp_grouped *m)
{
	uint64_t out = m->scales->shape[1], along = m->zeros->shape[1], bits;

	if (!gptq->dynamic)
		return gptq->config.bits;
	for (bits = 2; bits <= 8; bits += bits < 4 ? 1 : 4)
		if (along <= UINT64_MAX / 32 && along * 32 / bits == out && along * 32 % bits == 0)
			return bits;
	return 0;
}

/* Compute rows, columns and parameters; returns whether all shapes match. */
static bool geometry(const struct gptq *gptq, struct xfp_grouped *m, uint64_t parameters[XFP_CODEC_PARAMETERS])
{
	uint64_t bits = bits_of(gptq, m), along, groups = m->scales->shape[0], group = gptq->config.group;

	m->rows = m->codes->shape[1];
	if (!bits || m->codes->dtype != XFP_I32 || m->zeros->dtype != XFP_I32 || m->scales->shape[1] != m->rows ||
	    m->zeros->shape[0] != groups || !xfp_mul(m->codes->shape[0], 32, &m->cols) || m->cols % bits ||
	    !xfp_mul(m->rows, bits, &along) || along % 32 || m->zeros->shape[1] != along / 32)
		return false;
	m->cols /= bits;
	if (!group)
		group = m->cols;
	/* Groups of another size than the global one. */
	if (gptq->dynamic && xfp_divide_up(m->cols, group) != groups && m->cols % groups == 0)
		group = m->cols / groups;
	parameters[XFP_GPTQ_BITS] = bits;
	parameters[XFP_GPTQ_GROUP] = group;
	parameters[XFP_GPTQ_ZEROS_LESS_ONE] = gptq->less_one;
	return xfp_divide_up(m->cols, group) == groups;
}

static enum xfp_status bad_shapes(const struct xfp_fold *fold, const struct gptq *gptq, const struct xfp_grouped *m)
{
	char expected[200], group[40];

	snprintf(group, sizeof group, gptq->config.group ? "in / %llu, rounded up" : "1",
		 (unsigned long long)gptq->config.group);
	snprintf(expected, sizeof expected,
		 "I32 [in * %u / 32, out], I32 [groups, out * %u / 32] and [groups, out], where groups are %s",
		 (unsigned)gptq->config.bits, (unsigned)gptq->config.bits, group);
	return xfp_grouped_bad_shapes(fold, m, "GPTQ", expected);
}

static enum xfp_status fold_one(struct xfp_fold *fold, const struct gptq *gptq, uint32_t number)
{
	struct xfp_component components[5];
	struct xfp_recipe_part part = { .codec = XFP_CODEC_GPTQ, .components = components };
	const struct xfp_source_tensor *index;
	struct xfp_grouped matrix;
	enum xfp_status status;
	uint32_t groups;

	if ((status = xfp_grouped_find(fold, number, &matrix)))
		return status;
	if (!geometry(gptq, &matrix, part.parameters))
		return bad_shapes(fold, gptq, &matrix);
	groups = xfp_fold_find(fold, matrix.codes, strlen(XFP_QWEIGHT), ".g_idx");
	if (groups == UINT32_MAX && !gptq->ordered && matrix.scales->shape[0] > 1)
		return xfp_fold_bad(fold, matrix.codes,
				    "has no g_idx, but %s says desc_act, so the groups of its inputs are unknown; "
				    "download the checkpoint again, or name its folder if this is one of several files",
				    fold->config_name);
	if (groups != UINT32_MAX) {
		index = &fold->checkpoint->tensors[groups];
		if (index->dtype != XFP_I32 || index->rank != 1 || index->shape[0] != matrix.cols)
			return xfp_fold_bad(
				fold, index,
				"is %s %s, but %s has a group for each of its %llu inputs, as I32: download both again",
				xfp_dtype_name(index->dtype), xfp_fold_shape(index->rank, index->shape).text,
				xfp_printable(matrix.codes->name).text, (unsigned long long)matrix.cols);
	}
	return xfp_grouped_fold(fold, &matrix, &part, groups);
}

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	struct gptq gptq = { .ordered = true };
	enum xfp_status status = XFP_OK;

	if (fold->config)
		status = read_config(fold, &gptq);
	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++)
		if (xfp_grouped_is_codes(fold, t))
			status = fold_one(fold, &gptq, t);
	return status;
}

static const char *const methods[] = { "gptq", NULL };
static const char *const endings[] = { ".qzeros", ".scales", ".g_idx", NULL };

const struct xfp_fold_form xfp_fold_gptq = { "gptq", methods, endings, fold_all };
