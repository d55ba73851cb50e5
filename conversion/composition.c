/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/composition.h"

#include <string.h>

#include "schemas/policy.h"
#include "schemas/recipe/recipe.h"

/* ---- tensors ----------------------------------------------------------------------------------- */

struct tensor {
	enum xfp_class class_;
	enum xfp_dtype dtype;
	enum xfp_fate fate;
	const char *reason; /* reason of its fate: tensors kept by request could be quantized */
	uint32_t rank;
	uint64_t bytes, cols;
	bool apart; /* stored separately, not in a unit */
};

/* Add a matrix that --format could quantize. */
static void add_kept(struct xfp_composition *composition, enum xfp_class class_, uint64_t bytes, uint64_t cols)
{
	if (!composition->quantizable[class_] || cols < composition->cols[class_])
		composition->cols[class_] = cols;
	composition->quantizable[class_] += bytes;
}

static void add_tensor(struct xfp_composition *composition, const struct tensor *t)
{
	const struct xfp_parameters usual = xfp_parameters_default();
	bool reached = xfp_policy_extends(&usual, t->class_) || (t->reason && strstr(t->reason, "as asked for"));

	composition->source += t->bytes;
	if (t->fate != XFP_FATE_TIED)
		composition->elements += t->bytes * 8 / xfp_dtype_bits(t->dtype);
	if (!t->apart)
		return;
	composition->kept += t->bytes;
	if (reached && t->rank == 2 && xfp_dtype_is_weight(t->dtype))
		add_kept(composition, t->class_, t->bytes, t->cols);
}

void xfp_composition_add_unit(struct xfp_composition *composition, enum xfp_class class_, enum xfp_mode mode,
			      uint64_t bytes, uint64_t weights, uint64_t cols, double paper)
{
	if (mode == XFP_MODE_KEEP) {
		composition->kept += bytes;
		add_kept(composition, class_, bytes, cols);
		return;
	}
	composition->units += bytes;
	composition->unit_weights += weights;
	composition->paper += paper * (double)weights;
}

/* Bytes of a tensor in the checkpoint; dtypes below one byte are packed. */
static uint64_t source_bytes(const struct xfp_tensor_info *tensor)
{
	return (tensor->elements * xfp_dtype_bits((enum xfp_dtype)tensor->dtype) + 7) / 8;
}

double xfp_unit_paper_bits(const struct xfp_bundle *bundle, const struct xfp_unit_info *unit)
{
	struct xfp_matrix_info matrix;
	double k = 0;

	for (uint32_t e = 0; e < unit->experts; e++)
		if (xfp_bundle_matrix(bundle, unit->first_matrix + e, &matrix))
			k += matrix.k;
	return xfp_paper_bits((enum xfp_mode)unit->mode, unit->experts ? k / unit->experts : 0, unit->group_size,
			      (enum xfp_dtype)unit->dtype);
}

struct xfp_composition xfp_composition_of_bundle(const struct xfp_bundle *bundle)
{
	struct xfp_bundle_info info;
	struct xfp_composition composition = { 0 };
	struct xfp_tensor_info tensor;
	struct xfp_unit_info unit;
	struct xfp_file_info file;

	xfp_bundle_describe(bundle, &info);
	composition.bytes = info.file_bytes;
	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++)
		xfp_composition_add_unit(&composition, (enum xfp_class)unit.class_, (enum xfp_mode)unit.mode,
					 unit.bytes, unit.weights, unit.cols, xfp_unit_paper_bits(bundle, &unit));
	for (uint32_t f = 0; xfp_bundle_file(bundle, f, &file); f++)
		composition.files += file.bytes;
	for (uint32_t t = 0; xfp_bundle_tensor(bundle, t, &tensor); t++)
		add_tensor(&composition, &(struct tensor){ .class_ = (enum xfp_class)tensor.class_,
							   .dtype = (enum xfp_dtype)tensor.dtype,
							   .fate = (enum xfp_fate)tensor.fate,
							   .reason = tensor.reason,
							   .rank = tensor.rank,
							   .bytes = source_bytes(&tensor),
							   .cols = tensor.rank == 2 ? tensor.shape[1] : 0,
							   .apart = tensor.data != NULL });
	return composition;
}

uint64_t xfp_composition_stored(const struct xfp_ledger *ledger)
{
	uint64_t bytes = 0;
	bool packed = false;

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		bytes += xfp_tensor_stored_bytes(&ledger->tensors[t]);
		packed |= ledger->tensors[t].recipe && ledger->tensors[t].recipe->parts[0].codec != XFP_CODEC_PLAIN;
	}
	return packed ? bytes : 0;
}

struct xfp_composition xfp_composition_of_ledger(const struct xfp_ledger *ledger)
{
	struct xfp_composition composition = { .stored = xfp_composition_stored(ledger) };

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		add_tensor(&composition, &(struct tensor){ .class_ = tensor->class_,
							   .dtype = tensor->dtype,
							   .fate = tensor->fate,
							   .reason = tensor->reason,
							   .rank = tensor->rank,
							   .bytes = tensor->bytes,
							   .cols = tensor->rank == 2 ? tensor->shape[1] : 0,
							   .apart = tensor->fate == XFP_FATE_KEPT });
	}
	return composition;
}

/* ---- bits per weight --------------------------------------------------------------------------- */

double xfp_bits_per_weight(uint64_t bytes, uint64_t weights)
{
	return weights ? (double)bytes * 8 / (double)weights : 0;
}

double xfp_paper_bits(enum xfp_mode mode, double k, uint32_t group, enum xfp_dtype source)
{
	switch (mode) {
	case XFP_MODE_KEEP:
		return xfp_dtype_bits(source);
	case XFP_MODE_FP8:
		return 8;
	case XFP_MODE_V2A:
		return k + 40.0 / group; /* codebook index, scale, midpoint */
	case XFP_MODE_V2C:
		return k + 8.0 / group;
	default:
		return k;
	}
}

double xfp_composition_paper_bits(const struct xfp_composition *composition)
{
	return composition->unit_weights ? composition->paper / (double)composition->unit_weights : 0;
}

double xfp_composition_bits(const struct xfp_composition *composition)
{
	return xfp_bits_per_weight(composition->bytes, composition->elements);
}

static void widen(uint32_t *min, uint32_t *max, uint32_t value)
{
	if (value && (!*min || value < *min))
		*min = value;
	if (value > *max)
		*max = value;
}

void xfp_format_ranges_add(struct xfp_format_ranges *ranges, enum xfp_mode mode, uint32_t k, uint32_t group)
{
	ranges->modes |= 1u << mode;
	widen(&ranges->min_k, &ranges->max_k, k);
	widen(&ranges->min_group, &ranges->max_group, group);
}
