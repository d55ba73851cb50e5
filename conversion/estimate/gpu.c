/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/estimate/gpu.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *role; /* with a trailing *: prefix match */
	enum xfp_gpu_split cut;
} cuts[] = {
	{ "q", XFP_GPU_SPLIT_ROWS },         { "k", XFP_GPU_SPLIT_ROWS },       { "v", XFP_GPU_SPLIT_ROWS },
	{ "qkv", XFP_GPU_SPLIT_ROWS },       { "q_b", XFP_GPU_SPLIT_ROWS },     { "kv_b", XFP_GPU_SPLIT_ROWS },
	{ "gate", XFP_GPU_SPLIT_ROWS },      { "up", XFP_GPU_SPLIT_ROWS },      { "gate_up", XFP_GPU_SPLIT_ROWS },
	{ "in_proj_*", XFP_GPU_SPLIT_ROWS }, { "lm_head", XFP_GPU_SPLIT_ROWS }, { "embedding", XFP_GPU_SPLIT_ROWS },
	{ "o", XFP_GPU_SPLIT_COLUMNS },      { "down", XFP_GPU_SPLIT_COLUMNS }, { "out_proj", XFP_GPU_SPLIT_COLUMNS },
};

static bool is_role(const char *pattern, const char *role)
{
	size_t length = strcspn(pattern, "*");

	return pattern[length] ? !strncmp(pattern, role, length) : !strcmp(pattern, role);
}

enum xfp_gpu_split xfp_gpu_split_of(const struct xfp_ledger_unit *unit)
{
	if (unit->class_ == XFP_CLASS_ROUTED_EXPERT && unit->experts > 1)
		return XFP_GPU_SPLIT_EXPERTS;
	if (unit->class_ == XFP_CLASS_EMBEDDING || unit->class_ == XFP_CLASS_LM_HEAD)
		return XFP_GPU_SPLIT_ROWS;
	for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++)
		if (is_role(cuts[i].role, unit->role))
			return cuts[i].cut;
	return XFP_GPU_SPLIT_NONE;
}

const char *xfp_gpu_split_name(enum xfp_gpu_split cut)
{
	static const char *const names[] = { "on every GPU", "rows", "columns", "experts" };

	return names[cut];
}

uint64_t xfp_gpu_max_split(const struct xfp_ledger_unit *unit)
{
	switch (xfp_gpu_split_of(unit)) {
	case XFP_GPU_SPLIT_ROWS:
		return unit->rows;
	case XFP_GPU_SPLIT_COLUMNS:
		return unit->cols;
	case XFP_GPU_SPLIT_EXPERTS:
		return unit->experts;
	default:
		return UINT64_MAX;
	}
}

/* The largest GPU's share of `bytes` divided among `count` indivisible items. */
static uint64_t share(uint64_t bytes, uint64_t count, uint32_t gpus)
{
	uint64_t own = (count + gpus - 1) / gpus;

	return !count || own == count ? bytes : bytes / count * own + (bytes % count * own + count - 1) / count;
}

uint64_t xfp_gpu_unit(const struct xfp_ledger_unit *unit, enum xfp_mode mode, const uint64_t parts[XFP_PARTS],
		      uint32_t gpus)
{
	bool library = mode == XFP_MODE_V2A || mode == XFP_MODE_V2C;
	enum xfp_gpu_split cut = xfp_gpu_split_of(unit);
	uint64_t count = xfp_gpu_max_split(unit), bytes = 0;

	if (cut == XFP_GPU_SPLIT_NONE)
		count = 0;
	for (int p = 0; p < XFP_PARTS; p++) {
		bool whole = !count;

		/* In library units, CODE is the library; in others, the codebooks or scales of rows. */
		if (p == XFP_PART_CODE)
			whole |= library || cut == XFP_GPU_SPLIT_COLUMNS;
		if (p == XFP_PART_BALANCE)
			whole |= cut != XFP_GPU_SPLIT_COLUMNS;
		bytes += whole ? parts[p] : share(parts[p], count, gpus);
	}
	return bytes;
}

uint64_t xfp_gpu_kept(const struct xfp_ledger *ledger, uint32_t gpus)
{
	bool *held = calloc(ledger->tensor_count + (size_t)1, sizeof *held);
	uint64_t bytes = 0;

	for (uint32_t m = 0; held && m < ledger->matrix_count; m++)
		held[ledger->matrices[m].tensor] = true;
	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];
		bool cut = tensor->rank == 2 &&
			   (tensor->class_ == XFP_CLASS_EMBEDDING || tensor->class_ == XFP_CLASS_LM_HEAD);

		if (tensor->fate != XFP_FATE_KEPT || (held && held[t]))
			continue;
		bytes += cut ? share(tensor->bytes, tensor->shape[0], gpus) : tensor->bytes;
	}
	free(held);
	return bytes;
}
