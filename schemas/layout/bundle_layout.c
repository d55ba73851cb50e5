/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_layout.c - the rules of the index that both its writer and its reader enforce.
 */
#include "schemas/layout/bundle_layout.h"

#include <string.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "schemas/layout/classes.h"

/* Below this limit, the product of a dimension and a small constant cannot overflow. */
#define SANE ((uint64_t)1 << 48)

static bool is_library_mode(unsigned mode)
{
	return mode == XFP_MODE_V2A || mode == XFP_MODE_V2C;
}

/* Whether the mode allows this group size and library size. */
static bool groups_fit(const struct xfp_idx_unit *unit)
{
	switch (unit->mode) {
	case XFP_MODE_V2A: /* 16 ... 1024 columns, 1 ... 256 codebooks */
		return unit->group >= 4 && unit->group <= 10 && unit->library <= 8;
	case XFP_MODE_V2C: /* 16, 32 or 64 columns, 4, 8 or 16 codebooks */
		return unit->group >= 4 && unit->group <= 6 && unit->library >= 2 && unit->library <= 4;
	default:
		return !unit->group && !unit->library;
	}
}

bool xfp_unit_part_bytes(const struct xfp_idx_unit *unit, bool balanced, uint64_t bytes[XFP_PARTS])
{
	bool library = is_library_mode(unit->mode);

	for (int p = 0; p < XFP_PARTS; p++)
		bytes[p] = 0;
	if (unit->mode >= XFP_MODES || !groups_fit(unit))
		return false;
	if ((library || unit->mode == XFP_MODE_V2) && balanced)
		bytes[XFP_PART_BALANCE] = unit->cols;
	if (!library)
		return true;
	if (unit->k < 2 || unit->k > 6)
		return false;
	bytes[XFP_PART_CODE] = (uint64_t)2 << (unit->library + unit->k);
	if (unit->mode == XFP_MODE_V2C)
		bytes[XFP_PART_CODE] += 2 * xfp_library_ratios(unit->library);
	return true;
}

/* INDEX and GROUP of a matrix; nothing here overflows below SANE. */
static void library_part_bytes(const struct xfp_idx_unit *unit, uint64_t bytes[XFP_PARTS])
{
	uint64_t groups = unit->rows * xfp_row_groups(unit->cols, unit->group);

	bytes[XFP_PART_GROUP] = xfp_align(unit->mode == XFP_MODE_V2A ? groups * 5 : groups + unit->rows, 16);
	bytes[XFP_PART_INDEX] = unit->rows * xfp_index_row_bytes(unit->cols, unit->k);
}

bool xfp_matrix_part_bytes(const struct xfp_idx_unit *unit, const struct xfp_idx_matrix *matrix,
			   uint64_t bytes[XFP_PARTS])
{
	uint64_t rows = unit->rows, cols = unit->cols, weights;

	if (rows > SANE || cols > SANE || !xfp_mul(rows, cols, &weights) || weights > SANE ||
	    matrix->outliers > weights || matrix->outliers > UINT32_MAX || (matrix->outliers && rows > UINT32_MAX) ||
	    !xfp_dtype_is_weight(unit->dtype) || matrix->exponent < -XFP_MAX_EXPONENT ||
	    matrix->exponent > XFP_MAX_EXPONENT)
		return false;
	for (int p = 0; p < XFP_PARTS; p++)
		bytes[p] = 0;
	bytes[XFP_PART_OUTLIER] = xfp_outlier_bytes(rows, cols, matrix->outliers);
	if (is_library_mode(matrix->mode)) {
		if (matrix->mode != unit->mode || matrix->k != unit->k || matrix->k < 2 || matrix->k > 6 ||
		    !groups_fit(unit))
			return false;
		library_part_bytes(unit, bytes);
		return true;
	}
	if (matrix->mode == XFP_MODE_V2) {
		if (matrix->k < 2 || matrix->k > 6)
			return false;
		bytes[XFP_PART_CODE] = rows * (2u << matrix->k);
		return xfp_mul(rows, xfp_index_row_bytes(cols, matrix->k), &bytes[XFP_PART_INDEX]);
	}
	if (matrix->k || matrix->outliers)
		return false;
	if (matrix->mode == XFP_MODE_FP8) {
		bytes[XFP_PART_INDEX] = weights;
		bytes[XFP_PART_CODE] = rows * 4;
		return true;
	}
	bytes[XFP_PART_INDEX] = weights * (xfp_dtype_bits(unit->dtype) / 8);
	return matrix->mode == XFP_MODE_KEEP;
}

bool xfp_file_name_valid(const char *name)
{
	for (const char *start = name;; start++) {
		size_t length = strcspn(start, "/");

		if (!length || (length == 1 && start[0] == '.') || (length == 2 && start[0] == '.' && start[1] == '.'))
			return false;
		start += length;
		if (!*start)
			return true;
	}
}
