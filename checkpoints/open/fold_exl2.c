/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_exl2.c - matrices packed by EXL2, with individual bit widths.
 *
 *   X.q_weight I32 [words, out]    X.q_scale I32 [groups, out / 8]    X.q_scale_max F16 [groups]
 *   X.q_groups I16 [2 groups]      X.q_invperm I32 [in]               X.q_perm, its inverse, which older files have
 *
 * `out` is padded to a multiple of 32, and these tensors do not contain the real number. If a matrix has a bias, that
 * does; for a head, the embedding.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/open/fold.h"
#include "checkpoints/packed/exl2.h"

#define CODES ".q_weight"
#define HEAD "lm_head" CODES

enum { SCALES, SCALE_MAX, GROUPS, ORDER, OTHERS };

static const struct {
	const char *ending;
	enum xfp_dtype dtype;
	uint32_t rank;
	enum xfp_component_role role;
} others[OTHERS] = {
	[SCALES] = { ".q_scale", XFP_I32, 2, XFP_COMPONENT_SCALES },
	[SCALE_MAX] = { ".q_scale_max", XFP_F16, 1, XFP_COMPONENT_GLOBAL },
	[GROUPS] = { ".q_groups", XFP_I16, 1, XFP_COMPONENT_GROUPS },
	[ORDER] = { ".q_invperm", XFP_I32, 1, XFP_COMPONENT_ORDER },
};

/* ---- one matrix ---------------------------------------------------------------------------------- */

static enum xfp_status find_others(const struct xfp_fold *fold, const struct xfp_source_tensor *codes,
				   uint32_t found[OTHERS])
{
	for (int i = 0; i < OTHERS; i++) {
		const struct xfp_source_tensor *t;

		found[i] = xfp_fold_find(fold, codes, strlen(CODES), others[i].ending);
		if (found[i] == UINT32_MAX)
			return xfp_fold_missing(fold, codes, others[i].ending + 1, others[i].ending);
		t = &fold->checkpoint->tensors[found[i]];
		if (t->dtype != others[i].dtype || t->rank != others[i].rank || !t->bytes)
			return xfp_fold_bad(fold, t, "is %s %s, but EXL2 has %s in %u dimension%s; download it again",
					    xfp_dtype_name(t->dtype), xfp_fold_shape(t->rank, t->shape).text,
					    xfp_dtype_name(others[i].dtype), (unsigned)others[i].rank,
					    others[i].rank == 1 ? "" : "s");
	}
	return XFP_OK;
}

/* Return the rows of the embedding, or 0 if it cannot be found. */
static uint64_t vocabulary(const struct xfp_checkpoint *c)
{
	for (uint32_t t = 0; t < c->tensor_count; t++)
		if (xfp_stem(c->tensors[t].name, ".embed_tokens.weight") && c->tensors[t].rank == 2)
			return c->tensors[t].shape[0];
	return 0;
}

/* Return the rows of a matrix with `padded` rows. */
static uint64_t rows_of(const struct xfp_fold *fold, const struct xfp_source_tensor *codes, uint64_t padded)
{
	uint32_t bias = xfp_fold_find(fold, codes, strlen(CODES), ".bias");
	uint64_t rows = 0;

	if (bias != UINT32_MAX && fold->checkpoint->tensors[bias].rank == 1)
		rows = fold->checkpoint->tensors[bias].shape[0];
	else if (!strcmp(codes->name, HEAD) || xfp_stem(codes->name, "." HEAD))
		rows = vocabulary(fold->checkpoint);
	return rows <= padded && padded - rows < XFP_EXL2_MULTIPLE ? rows : padded;
}

static enum xfp_status bad_shapes(const struct xfp_fold *fold, const struct xfp_source_tensor *codes,
				  const uint32_t found[OTHERS])
{
	const struct xfp_source_tensor *t = fold->checkpoint->tensors;

	return xfp_fold_bad(fold, codes,
			    "is %s %s with q_scale %s, q_scale_max %s and q_groups %s, but EXL2 has I32 [words, out], "
			    "[groups, out / 8], [groups] and [2 groups], where 32 divides out; download them again",
			    xfp_dtype_name(codes->dtype), xfp_fold_shape(codes->rank, codes->shape).text,
			    xfp_fold_shape(2, t[found[SCALES]].shape).text,
			    xfp_fold_shape(1, t[found[SCALE_MAX]].shape).text,
			    xfp_fold_shape(1, t[found[GROUPS]].shape).text);
}

static enum xfp_status fold_one(struct xfp_fold *fold, uint32_t number)
{
	struct xfp_source_tensor *tensors = fold->checkpoint->tensors, *codes = &tensors[number];
	struct xfp_component components[OTHERS + 2] = { xfp_fold_component(codes, XFP_COMPONENT_CODES) };
	struct xfp_recipe_part part = { .codec = XFP_CODEC_EXL2, .components = components, .component_count = 1 };
	uint32_t found[OTHERS], perm;
	enum xfp_status status;
	uint64_t padded, groups;

	if ((status = find_others(fold, codes, found)))
		return status;
	groups = tensors[found[SCALE_MAX]].shape[0];
	padded = codes->shape[1];
	if (codes->dtype != XFP_I32 || codes->rank != 2 || !codes->bytes || padded % XFP_EXL2_MULTIPLE ||
	    tensors[found[SCALES]].shape[0] != groups || tensors[found[SCALES]].shape[1] != padded / 8 ||
	    tensors[found[GROUPS]].shape[0] != 2 * groups)
		return bad_shapes(fold, codes, found);
	part.rows = rows_of(fold, codes, padded);
	part.cols = tensors[found[ORDER]].shape[0];
	if (part.cols / 16 > codes->shape[0] || part.cols / 4 < codes->shape[0])
		return xfp_fold_bad(
			fold, codes,
			"has %llu rows of words, but its q_invperm has %llu inputs of 2 to 8 bits each; download "
			"both again",
			(unsigned long long)codes->shape[0], (unsigned long long)part.cols);
	part.parameters[XFP_EXL2_PADDED_ROWS] = padded;
	if (part.cols > XFP_EXL2_MAX_COLS)
		return xfp_fold_bad(fold, &tensors[found[ORDER]], "has %llu inputs; no more than %u are supported",
				    (unsigned long long)part.cols, XFP_EXL2_MAX_COLS);
	for (int i = 0; i < OTHERS; i++) {
		components[part.component_count++] = xfp_fold_component(&tensors[found[i]], others[i].role);
		fold->consumed[found[i]] = true;
	}
	if ((perm = xfp_fold_find(fold, codes, strlen(CODES), ".q_perm")) != UINT32_MAX)
		fold->consumed[perm] = true;
	fold->cut[number] = (uint32_t)strlen(CODES);
	fold->ending[number] = ".weight";
	codes->dtype = XFP_F16;
	codes->shape[0] = part.rows;
	codes->shape[1] = part.cols;
	codes->bytes = part.rows * part.cols * 2;
	return xfp_fold_make_tensor(fold, number, &part);
}

/* -------------------------------------------------------------------------------------------------- */

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++)
		if (!fold->consumed[t] && !fold->checkpoint->tensors[t].recipe &&
		    xfp_stem(fold->checkpoint->tensors[t].name, CODES))
			status = fold_one(fold, t);
	return status;
}

static const char *const methods[] = { "exl2", NULL };
static const char *const endings[] = { ".q_scale_max", ".q_groups", ".q_invperm", ".q_perm", NULL };

const struct xfp_fold_form xfp_fold_exl2 = { "exl2", methods, endings, fold_all };
