/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/candidates.h"

#include "base/dtype.h"
#include "kernels/encode/compact.h"
#include "kernels/encode/lloyd.h"

#define V2A_GROUP 128
#define V2A_LIBRARY 32

/* v2c has a library size of 0. */
static uint32_t add(enum xfp_mode mode, uint32_t group, uint32_t library, uint32_t bits, struct xfp_candidate *list,
		    uint32_t count)
{
	for (unsigned k = XFP_MIN_K; k <= XFP_MAX_K && count < XFP_MAX_CANDIDATES; k++) {
		if (!(bits >> k & 1))
			continue;
		list[count] = (struct xfp_candidate){ .mode = mode, .k = k, .group = (uint16_t)group };
		list[count++].library = (uint16_t)(!group || library ? library : xfp_compact_entries(k));
	}
	return count;
}

static uint32_t add_fp8(struct xfp_candidate *list, uint32_t count)
{
	list[count++] = (struct xfp_candidate){ .mode = XFP_MODE_FP8, .k = XFP_FP8_BITS };
	return count;
}

uint32_t xfp_candidates_fitted(const struct xfp_candidate *list, uint32_t count)
{
	return count && list[count - 1].mode == XFP_MODE_FP8 ? count - 1 : count;
}

enum xfp_mode xfp_mode_to_fit(uint32_t mode, const struct xfp_parameters *parameters)
{
	if (mode != XFP_MODE_FP8)
		return (enum xfp_mode)mode;
	return *parameters->calibration.sha256 ? XFP_MODE_V2C : XFP_MODE_V2;
}

uint32_t xfp_candidates_with(bool library, const struct xfp_parameters *measured, uint32_t bits,
			     struct xfp_candidate list[XFP_MAX_CANDIDATES])
{
	uint32_t columns = measured->group_size, count = 0;
	bool libraries = measured->modes & XFP_LIBRARY_MODES, fp8 = bits >> XFP_FP8_BITS & 1 && library == libraries;

	if (!library && measured->modes >> XFP_MODE_V2 & 1)
		count = add(XFP_MODE_V2, 0, 0, bits, list, 0);
	if (!library)
		return fp8 ? add_fp8(list, count) : count;
	if (measured->modes >> XFP_MODE_V2A & 1)
		count = add(XFP_MODE_V2A, columns ? columns : V2A_GROUP,
			    measured->library_size ? measured->library_size : V2A_LIBRARY, bits, list, count);
	for (uint32_t group = 16; measured->modes >> XFP_MODE_V2C & 1 && group <= XFP_COMPACT_GROUP; group *= 2)
		if (columns ? group == columns : group <= 32)
			count = add(XFP_MODE_V2C, group, 0, bits, list, count);
	return fp8 ? add_fp8(list, count) : count;
}

uint32_t xfp_candidates_of(enum xfp_fit_kind kind, const struct xfp_parameters *measured,
			   struct xfp_candidate list[XFP_MAX_CANDIDATES])
{
	bool library = kind == XFP_FIT_LIBRARY || kind == XFP_FIT_EXTENDED_LIBRARY;

	return xfp_candidates_with(library, measured, xfp_fit_bits(measured, kind), list);
}

uint8_t xfp_candidate_log2(unsigned power)
{
	uint8_t log = 0;

	while (power >> log > 1)
		log++;
	return log;
}

struct xfp_idx_unit xfp_candidate_unit(const struct xfp_candidate *candidate, uint32_t matrices, uint64_t rows,
				       uint64_t cols)
{
	return (struct xfp_idx_unit){ .mode = (uint8_t)candidate->mode,
				      .k = candidate->mode == XFP_MODE_FP8 ? 0 : (uint8_t)candidate->k,
				      .group = xfp_candidate_log2(candidate->group),
				      .library = xfp_candidate_log2(candidate->library),
				      .dtype = XFP_BF16,
				      .experts = matrices,
				      .rows = rows,
				      .cols = cols };
}

void xfp_candidate_parts(const struct xfp_candidate *candidate, const struct xfp_outliers *known,
			 uint64_t bytes[XFP_PARTS])
{
	struct xfp_idx_unit unit = xfp_candidate_unit(candidate, known->matrices, known->rows, known->cols);
	bool balanced = false;

	for (uint64_t c = 0; c < known->cols; c++)
		balanced |= known->balance[c] != 0;
	xfp_unit_part_bytes(&unit, balanced, bytes);
	for (uint32_t m = 0; m < known->matrices; m++) {
		struct xfp_idx_matrix matrix = { .mode = unit.mode,
						 .k = unit.k,
						 .outliers = known->first[m + 1] - known->first[m] };
		uint64_t own[XFP_PARTS];

		if (unit.mode == XFP_MODE_FP8)
			matrix.outliers = 0;

		if (!xfp_matrix_part_bytes(&unit, &matrix, own))
			continue;
		for (int p = 0; p < XFP_PARTS; p++)
			bytes[p] += own[p];
	}
}

uint64_t xfp_candidate_bytes(const struct xfp_candidate *candidate, const struct xfp_outliers *known)
{
	uint64_t bytes[XFP_PARTS], total = 0;

	xfp_candidate_parts(candidate, known, bytes);
	for (int p = 0; p < XFP_PARTS; p++)
		total += bytes[p];
	return total;
}
