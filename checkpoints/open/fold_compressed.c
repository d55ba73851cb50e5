/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_compressed.c - the forms of compressed-tensors, as llm-compressor writes them.
 *
 *   X.weight F8 or I8 [out, in]         X.weight_scale, X.weight_zero_point
 *   X.weight_packed I32 [out, words]    X.weight_scale, X.weight_zero_point, X.weight_shape, X.weight_g_idx
 *   X.weight_packed U8 [out, in / 2]    X.weight_scale; X.weight_global_scale, by which it is divided
 *
 * config_groups are sets of parameters. The set of a tensor is not found by name: all sets whose shapes match the
 * tensor are used, and they must agree.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/open/compressed_sets.h"
#include "checkpoints/open/fold.h"
#include "checkpoints/open/scaling.h"
#include "checkpoints/packed/int.h"
#include "checkpoints/packed/number.h"

#define PACKED "_packed"
#define MAX_ORDERED (UINT64_C(1) << 22) /* maximum columns with explicit groups, which are all read on opening */

struct compressed {
	struct xfp_fold *fold;
	struct xfp_compressed_set *sets;
	uint32_t count;
};

/* ---- one weight ---------------------------------------------------------------------------------- */

/* The tensors of a weight, by number, or UINT32_MAX. */
struct weight {
	uint32_t codes, scale, zeros, groups, shape, global;
};

static const struct xfp_source_tensor *at(const struct compressed *c, uint32_t number)
{
	return &c->fold->checkpoint->tensors[number];
}

static struct weight find_weight(const struct compressed *c, uint32_t number, size_t cut)
{
	const struct xfp_source_tensor *codes = at(c, number);

	return (struct weight){
		.codes = number,
		.scale = xfp_fold_find(c->fold, codes, cut, "_scale"),
		.zeros = xfp_fold_find(c->fold, codes, cut, "_zero_point"),
		.groups = xfp_fold_find(c->fold, codes, cut, "_g_idx"),
		.shape = xfp_fold_find(c->fold, codes, cut, "_shape"),
		.global = xfp_fold_find(c->fold, codes, cut, "_global_scale"),
	};
}

static enum xfp_status none_fits(const struct compressed *c, const struct weight *w)
{
	const struct xfp_source_tensor *codes = at(c, w->codes), *scale = at(c, w->scale);

	return xfp_fold_bad(
		c->fold, codes, "is %s %s with scales %s%s%s, which match no group in config.json; download both again",
		xfp_dtype_name(codes->dtype), xfp_fold_shape(codes->rank, codes->shape).text,
		xfp_fold_shape(scale->rank, scale->shape).text,
		w->zeros != UINT32_MAX ? " and zero points " : " and no zero points",
		w->zeros != UINT32_MAX ? xfp_fold_shape(at(c, w->zeros)->rank, at(c, w->zeros)->shape).text : "");
}

static enum xfp_status several_fit(const struct compressed *c, const struct weight *w)
{
	return xfp_fold_bad(c->fold, at(c, w->codes),
			    "matches several groups of config.json that contradict each other, or its codes "
			    "can be packed in two ways; convert the unquantized checkpoint");
}

static enum xfp_status not_of_it(const struct compressed *c, uint32_t number, const char *what)
{
	return number == UINT32_MAX ? XFP_OK : xfp_fold_bad(c->fold, at(c, number), "%s; download both again", what);
}

/* Check that weights with scales are a matrix. */
static enum xfp_status check_weight(const struct compressed *c, const struct weight *w)
{
	const struct xfp_source_tensor *codes = at(c, w->codes);

	if (w->scale == UINT32_MAX)
		return xfp_fold_missing(c->fold, codes, "scales", "_scale");
	if (codes->rank != 2 || !codes->bytes)
		return xfp_fold_bad(c->fold, codes, "has scales, but is not a matrix: %s",
				    xfp_fold_shape(codes->rank, codes->shape).text);
	return XFP_OK;
}

/* ---- float-quantized, int-quantized, naive-quantized ---------------------------------------------- */

static bool same_shape(const struct xfp_source_tensor *a, const struct xfp_source_tensor *b)
{
	return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

static bool fits_bytes(const struct compressed *c, const struct xfp_compressed_set *set, const struct weight *w,
		       uint64_t block[2])
{
	const struct xfp_source_tensor *codes = at(c, w->codes);
	bool ints = codes->dtype == XFP_I8;

	if ((set->form != XFP_COMPRESSED_BYTES && set->form != XFP_COMPRESSED_ANY) || set->floats == ints ||
	    set->bits > 8 || (set->floats && set->bits != 8) || (w->zeros == UINT32_MAX) != set->symmetric)
		return false;
	if (w->zeros != UINT32_MAX &&
	    (!ints || at(c, w->zeros)->dtype != XFP_I8 || !same_shape(at(c, w->zeros), at(c, w->scale))))
		return false;
	return xfp_scaling_fits(&set->scaling, at(c, w->scale), codes->shape[0], codes->shape[1], block);
}

static enum xfp_status fold_bytes(struct compressed *c, uint32_t number)
{
	struct weight w = find_weight(c, number, 0);
	uint64_t found[2] = { 0, 0 }, block[2];
	enum xfp_status status;

	if ((status = check_weight(c, &w)) ||
	    (status = not_of_it(c, w.groups, "describes groups of columns, but the weights are not packed")))
		return status;
	for (uint32_t i = 0; i < c->count; i++) {
		if (!fits_bytes(c, &c->sets[i], &w, block))
			continue;
		if (found[0] && (found[0] != block[0] || found[1] != block[1]))
			return several_fit(c, &w);
		memcpy(found, block, sizeof found);
	}
	if (!found[0])
		return none_fits(c, &w);
	return xfp_fold_bytes(c->fold, number, w.scale, w.zeros, found);
}

/* ---- pack-quantized ------------------------------------------------------------------------------ */

/* Read rows and columns from X.weight_shape. */
static enum xfp_status read_shape(const struct compressed *c, const struct weight *w, uint64_t shape[2])
{
	const struct xfp_source_tensor *tensor, *codes = at(c, w->codes);
	unsigned char data[16];
	enum xfp_status status;

	if (w->shape == UINT32_MAX)
		return xfp_fold_missing(c->fold, codes, "shape", "_shape");
	tensor = at(c, w->shape);
	if ((tensor->dtype != XFP_I64 && tensor->dtype != XFP_I32) || tensor->rank != 1 || tensor->shape[0] != 2)
		return xfp_fold_bad(c->fold, tensor,
				    "is %s %s, but should be two numbers of rows and columns; download it again",
				    xfp_dtype_name(tensor->dtype), xfp_fold_shape(tensor->rank, tensor->shape).text);
	if ((status = xfp_fold_read(c->fold, tensor, data)))
		return status;
	for (int i = 0; i < 2; i++)
		shape[i] = tensor->dtype == XFP_I64 ? xfp_load64(data + 8 * i) : xfp_load32(data + 4 * i);
	if (shape[0] != codes->shape[0] || !shape[1] || (shape[1] - 1) / 32 >= codes->shape[1])
		return xfp_fold_bad(c->fold, tensor, "says %s, but the packed weights are %s; download both again",
				    xfp_fold_shape(2, shape).text, xfp_fold_shape(codes->rank, codes->shape).text);
	return XFP_OK;
}

/* Zero points of groups and of rows are packed; that of a whole tensor is not. */
static bool fits_zeros(const struct compressed *c, const struct weight *w, const uint64_t shape[2],
		       const uint64_t p[XFP_CODEC_PARAMETERS])
{
	const struct xfp_source_tensor *zeros = at(c, w->zeros);
	uint64_t words, across = shape[1] / p[XFP_INT_BLOCK_COLS];

	if (zeros->dtype == XFP_I8)
		return same_shape(zeros, at(c, w->scale));
	return zeros->dtype == XFP_I32 && p[XFP_INT_BLOCK_ROWS] == 1 &&
	       xfp_int_words(p[XFP_INT_PACKING], p[XFP_INT_BITS], shape[0], &words) && zeros->rank == 2 &&
	       zeros->shape[0] == words && zeros->shape[1] == across;
}

/* Return whether weights of this shape and packing match the existing tensors. */
static bool fits_words(const struct compressed *c, const struct xfp_compressed_set *set, const struct weight *w,
		       const uint64_t shape[2], enum xfp_int_packing packing, uint64_t p[XFP_CODEC_PARAMETERS])
{
	uint64_t words, block[2];

	if ((set->form != XFP_COMPRESSED_WORDS && set->form != XFP_COMPRESSED_ANY) || set->floats || set->bits > 8 ||
	    (packing == XFP_INT_WORDS && 32 % set->bits == 0) || /* same as dense */
	    !xfp_int_words(packing, set->bits, shape[1], &words) || words != at(c, w->codes)->shape[1] ||
	    (w->zeros == UINT32_MAX) != set->symmetric ||
	    !xfp_scaling_fits(&set->scaling, at(c, w->scale), shape[0], shape[1], block) || shape[1] % block[1])
		return false;
	p[XFP_INT_BITS] = set->bits;
	p[XFP_INT_PACKING] = packing;
	p[XFP_INT_BLOCK_ROWS] = block[0];
	p[XFP_INT_BLOCK_COLS] = block[1];
	return w->zeros == UINT32_MAX || fits_zeros(c, w, shape, p);
}

/* Check that every group has the regular number of columns. *use is false if all are -1, which means unused. */
static enum xfp_status check_groups(const struct compressed *c, const struct xfp_source_tensor *groups, uint64_t cols,
				    uint64_t size, bool *use)
{
	uint64_t count = cols / size, unset = 0;
	unsigned char *data = NULL;
	uint64_t *of = NULL;
	enum xfp_status status;

	if (groups->dtype != XFP_I32 || groups->rank != 1 || groups->shape[0] != cols)
		return xfp_fold_bad(
			c->fold, groups,
			"is %s %s, but there are %" PRIu64 " columns that have a group; download both again",
			xfp_dtype_name(groups->dtype), xfp_fold_shape(groups->rank, groups->shape).text, cols);
	if (cols > MAX_ORDERED)
		return xfp_fold_bad(c->fold, groups,
				    "has %" PRIu64 " columns; a matrix with reordered columns has at most %" PRIu64
				    ": download it again",
				    cols, MAX_ORDERED);
	if (!(data = malloc(groups->bytes + 1)) || !(of = calloc(count, sizeof *of))) {
		status = xfp_no_memory_for(c->fold->err, c->fold->checkpoint->folder);
		goto done;
	}
	if ((status = xfp_fold_read(c->fold, groups, data)))
		goto done;
	for (uint64_t i = 0; i < cols; i++) {
		uint32_t group = xfp_load32(data + 4 * i);

		if (group < count)
			of[group]++;
		unset += group == UINT32_MAX;
	}
	*use = unset < cols;
	for (uint64_t g = 0; *use && !status && g < count; g++)
		if (of[g] != size)
			status = xfp_fold_bad(c->fold, groups,
					      "puts %" PRIu64 " columns into group %" PRIu64 " of %" PRIu64
					      ", each of which has %" PRIu64 "; download it again",
					      of[g], g, count, size);

done:
	free(data);
	free(of);
	return status;
}

static void add(struct compressed *c, struct xfp_recipe_part *part, uint32_t number, enum xfp_component_role role)
{
	part->components[part->component_count++] = xfp_fold_component(at(c, number), role);
	if (role != XFP_COMPONENT_CODES)
		c->fold->consumed[number] = true;
}

static enum xfp_status make_packed(struct compressed *c, const struct weight *w, struct xfp_recipe_part *part)
{
	struct xfp_source_tensor *codes = &c->fold->checkpoint->tensors[w->codes];
	enum xfp_status status;
	bool use = false;

	if (w->groups != UINT32_MAX &&
	    (status = check_groups(c, at(c, w->groups), part->cols, part->parameters[XFP_INT_BLOCK_COLS], &use)))
		return status;
	add(c, part, w->codes, XFP_COMPONENT_CODES);
	add(c, part, w->scale, XFP_COMPONENT_SCALES);
	if (w->zeros != UINT32_MAX)
		add(c, part, w->zeros, XFP_COMPONENT_ZEROS);
	if (use)
		add(c, part, w->groups, XFP_COMPONENT_GROUPS);
	else if (w->groups != UINT32_MAX)
		c->fold->consumed[w->groups] = true;
	c->fold->consumed[w->shape] = true;
	c->fold->cut[w->codes] = (uint32_t)strlen(PACKED);
	codes->dtype = xfp_scaling_dtype(at(c, w->scale));
	codes->shape[1] = part->cols;
	if (!xfp_mul(part->rows, part->cols, &codes->bytes) || !xfp_mul(codes->bytes, 2, &codes->bytes))
		return xfp_fold_bad(c->fold, codes, "is too large");
	return xfp_fold_make_tensor(c->fold, w->codes, part);
}

static enum xfp_status fold_words(struct compressed *c, uint32_t number)
{
	struct weight w = find_weight(c, number, strlen(PACKED));
	struct xfp_component components[XFP_MAX_COMPONENTS];
	struct xfp_recipe_part part = { .codec = XFP_CODEC_INT, .components = components };
	uint64_t shape[2], parameters[XFP_CODEC_PARAMETERS];
	enum xfp_status status;
	bool found = false;

	if ((status = check_weight(c, &w)) || (status = read_shape(c, &w, shape)) ||
	    (status = not_of_it(c, w.global, "is a scale of scales, which packed integers do not have")))
		return status;
	if (!xfp_dtype_is_scale(at(c, w.scale)->dtype))
		return xfp_fold_bad(c->fold, at(c, w.scale), "is %s; scales are F32, BF16 or F16: download it again",
				    xfp_dtype_name(at(c, w.scale)->dtype));
	for (uint32_t i = 0; i < c->count; i++)
		for (int packing = XFP_INT_WORDS; packing <= XFP_INT_DENSE; packing++) {
			if (!fits_words(c, &c->sets[i], &w, shape, (enum xfp_int_packing)packing, parameters))
				continue;
			if (found && memcmp(parameters, part.parameters, sizeof parameters) != 0)
				return several_fit(c, &w);
			memcpy(part.parameters, parameters, sizeof parameters);
			found = true;
		}
	if (!found)
		return none_fits(c, &w);
	part.rows = shape[0];
	part.cols = shape[1];
	return make_packed(c, &w, &part);
}

/* ---- nvfp4-pack-quantized, mxfp4-pack-quantized --------------------------------------------------- */

static enum xfp_status fold_floats(struct compressed *c, uint32_t number)
{
	struct weight w = find_weight(c, number, strlen(PACKED));
	bool nv = w.global != UINT32_MAX, found = false;
	enum xfp_status status;

	if ((status = check_weight(c, &w)) ||
	    (status = not_of_it(c, w.zeros, "is a zero point, which 4-bit floats do not have")) ||
	    (status = not_of_it(c, w.groups, "describes groups of columns, but those of 4-bit floats are in order")))
		return status;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct xfp_compressed_set *set = &c->sets[i];

		found = found || (set->floats && set->bits == 4 && set->scaling.cols == (nv ? 16 : 32) &&
				  (set->form == XFP_COMPRESSED_ANY ||
				   set->form == (nv ? XFP_COMPRESSED_NVFP4 : XFP_COMPRESSED_MXFP4)));
	}
	if (!found)
		return none_fits(c, &w);
	if (w.shape != UINT32_MAX)
		c->fold->consumed[w.shape] = true;
	return xfp_fold_fp4(c->fold, number, strlen(PACKED), w.scale, w.global, true);
}

/* -------------------------------------------------------------------------------------------------- */

static enum xfp_status fold_one(struct compressed *c, uint32_t number)
{
	const struct xfp_source_tensor *tensor = at(c, number);

	if (c->fold->consumed[number])
		return XFP_OK;
	if (xfp_stem(tensor->name, ".weight" PACKED)) {
		if (tensor->dtype == XFP_I32)
			return fold_words(c, number);
		if (tensor->dtype == XFP_U8)
			return fold_floats(c, number);
		return xfp_fold_bad(c->fold, tensor, "is %s; packed weights are I32 or U8: download it again",
				    xfp_dtype_name(tensor->dtype));
	}
	if ((tensor->dtype == XFP_F8_E4M3 || tensor->dtype == XFP_F8_E5M2 || tensor->dtype == XFP_I8) &&
	    xfp_stem(tensor->name, ".weight"))
		return fold_bytes(c, number);
	return XFP_OK;
}

static enum xfp_status fold_all(struct xfp_fold *fold)
{
	struct compressed c = { .fold = fold };
	enum xfp_status status = XFP_OK;

	if (!fold->method)
		return XFP_OK; /* shapes alone are ambiguous */
	status = xfp_compressed_sets(fold, &c.sets, &c.count);
	for (uint32_t t = 0; !status && t < fold->checkpoint->tensor_count; t++)
		status = fold_one(&c, t);
	free(c.sets);
	return status;
}

static const char *const methods[] = { "compressed-tensors", "compressed_tensors", NULL };
static const char *const endings[] = { ".weight_scale", ".weight_zero_point", ".weight_global_scale",
				       ".weight_g_idx", ".weight_shape",      NULL };

const struct xfp_fold_form xfp_fold_compressed = { "compressed-tensors", methods, endings, fold_all };
