/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_awq.c - matrices packed by AWQ, in three forms.
 *
 *   gemm        X.qweight I32 [in, out / 8]    X.qzeros I32 [groups, out / 8]    X.scales [groups, out]
 *   gemv        X.qweight I32 [out, in / 8]    X.qzeros I32 [out, words]         X.scales [out, words * 8]
 *   gemv_fast   X.qweight I16 [out / 4, in]    X.qzeros [words * 8, out]         X.scales [words * 8, out]
 *
 * `words` is the number of words for the zeros of all groups, padded (grouped.h). AWQ also scales inputs; these scales
 * are folded into the preceding weights and norms if those are linear. Otherwise the activation has separate scales,
 * which a bundle cannot store.
 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/open/fold_grouped.h"
#include "checkpoints/packed/grouped.h"

struct awq {
	struct xfp_grouped_config config;
	enum xfp_codec codec;
};

static enum xfp_status read_config(const struct xfp_fold *fold, struct awq *awq)
{
	static const struct {
		const char *version;
		enum xfp_codec codec;
	} versions[] = { { "gemm", XFP_CODEC_AWQ },
			 { "gemv", XFP_CODEC_AWQ_GEMV },
			 { "gemv_fast", XFP_CODEC_AWQ_GEMV_FAST } };
	struct xfp_config_word version = xfp_grouped_word(fold, "version", "checkpoint_format",
							  xfp_grouped_word(fold, "format", NULL, "gemm").text);
	enum xfp_status status = xfp_grouped_read_config(fold, &awq->config);

	if (status)
		return status;
	if (awq->config.bits != 4)
		return xfp_fold_bad_config(fold, "says %u bits; AWQ has 4", (unsigned)awq->config.bits);
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
		if (!strcmp(version.text, versions[i].version)) {
			awq->codec = versions[i].codec;
			return XFP_OK;
		}
	return xfp_fold_bad_config(fold,
				   "says version %s, whose order of codes is not supported; only "
				   "gemm, gemv and gemv_fast are: convert the model in one of these, or the "
				   "unquantized one",
				   version.text);
}

static bool is(const struct xfp_source_tensor *tensor, uint64_t rows, uint64_t cols)
{
	return tensor->shape[0] == rows && tensor->shape[1] == cols;
}

/* Compute rows, columns and group size; returns whether all shapes match. */
static bool geometry(const struct awq *awq, struct xfp_grouped *m, uint64_t *group)
{
	const struct xfp_source_tensor *q = m->codes, *z = m->zeros, *s = m->scales;
	bool fast = awq->codec == XFP_CODEC_AWQ_GEMV_FAST;
	enum xfp_dtype words = fast ? XFP_I16 : XFP_I32;
	uint64_t groups;

	if (q->dtype != words || z->dtype != (fast ? s->dtype : words))
		return false;
	if (awq->codec == XFP_CODEC_AWQ_GEMV) {
		m->rows = q->shape[0];
		if (!xfp_mul(q->shape[1], 8, &m->cols))
			return false;
	} else {
		m->cols = fast ? q->shape[1] : q->shape[0];
		if (!xfp_mul(fast ? q->shape[0] : q->shape[1], fast ? 4 : 8, &m->rows))
			return false;
	}
	*group = awq->config.group ? awq->config.group : m->cols;
	if (m->cols % *group)
		return false;
	if (awq->codec == XFP_CODEC_AWQ)
		return is(z, m->cols / *group, m->rows / 8) && is(s, m->cols / *group, m->rows);
	groups = xfp_awq_gemv_words(m->cols, *group) * 8;
	if (!groups)
		return false;
	if (fast)
		return m->cols % 64 == 0 && is(z, groups, m->rows) && is(s, groups, m->rows);
	return is(z, m->rows, groups / 8) && is(s, m->rows, groups);
}

static enum xfp_status bad_shapes(const struct xfp_fold *fold, const struct awq *awq, const struct xfp_grouped *m)
{
	static const char *const forms[XFP_CODECS] = { [XFP_CODEC_AWQ] = "AWQ's gemm",
						       [XFP_CODEC_AWQ_GEMV] = "AWQ's gemv",
						       [XFP_CODEC_AWQ_GEMV_FAST] = "AWQ's gemv_fast" };
	static const char *const shapes[XFP_CODECS] = {
		[XFP_CODEC_AWQ] = "I32 [in, out / 8], I32 [groups, out / 8] and [groups, out]",
		[XFP_CODEC_AWQ_GEMV] = "I32 [out, in / 8], I32 [out, words] and [out, 8 * words], words for all groups",
		[XFP_CODEC_AWQ_GEMV_FAST] = "I16 [out / 4, in] and [8 * words, out] twice, words for all groups",
	};
	char expected[200], group[40];

	snprintf(group, sizeof group, awq->config.group ? "of %llu inputs, which they divide" : "of all inputs",
		 (unsigned long long)awq->config.group);
	snprintf(expected, sizeof expected, "%s, and groups %s", shapes[awq->codec], group);
	return xfp_grouped_bad_shapes(fold, m, forms[awq->codec], expected);
}

static enum xfp_status fold_one(struct xfp_fold *fold, const struct awq *awq, uint32_t number)
{
	struct xfp_component components[4];
	struct xfp_recipe_part part = { .codec = awq->codec, .components = components };
	struct xfp_grouped matrix;
	enum xfp_status status;

	if ((status = xfp_grouped_find(fold, number, &matrix)))
		return status;
	if (!geometry(awq, &matrix, &part.parameters[XFP_AWQ_GROUP]))
		return bad_shapes(fold, awq, &matrix);
	return xfp_grouped_fold(fold, &matrix, &part, UINT32_MAX);
}

/* Refuse scales of activations: X.scales without codes. */
static enum xfp_status refuse_activations(const struct xfp_fold *fold)
{
	for (uint32_t t = 0; t < fold->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &fold->checkpoint->tensors[t];

		if (!fold->consumed[t] && tensor->rank == 1 && xfp_stem(tensor->name, ".scales"))
			return xfp_fold_bad(
				fold, tensor,
				"divides the output of an activation, as AWQ does if nothing linear comes "
				"before; a bundle cannot store it: convert the unquantized model");
	}
	return XFP_OK;
}

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	struct awq awq = { .codec = XFP_CODEC_AWQ };
	enum xfp_status status = XFP_OK;

	if (fold->config)
		status = read_config(fold, &awq);
	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++)
		if (xfp_grouped_is_codes(fold, t))
			status = fold_one(fold, &awq, t);
	return status || !fold->folded ? status : refuse_activations(fold);
}

static const char *const methods[] = { "awq", NULL };
static const char *const endings[] = { ".qzeros", ".scales", NULL };

const struct xfp_fold_form xfp_fold_awq = { "awq", methods, endings, fold_all };
