/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/slice.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "base/printable.h"

static const char *path_of(const struct xfp_bundle *bundle)
{
	struct xfp_bundle_info info;

	xfp_bundle_describe(bundle, &info);
	return info.path;
}

enum xfp_status xfp_no_such(const struct xfp_bundle *bundle, const char *what, uint32_t number, struct xfp_error *err)
{
	if (number == XFP_NOT_FOUND)
		return xfp_fail(err, XFP_USAGE, "%s: has no %s of that name", path_of(bundle), what);
	return xfp_fail(err, XFP_USAGE, "%s: has no %s %" PRIu32, path_of(bundle), what, number);
}

/* ---- slices ------------------------------------------------------------------------------------ */

/* Restrict a range to `all`; `count` 0 means up to the end. The result must not be empty. */
static bool cut(uint64_t *first, uint64_t *count, uint64_t all)
{
	if (*first >= all || *count > all - *first)
		return false;
	if (!*count)
		*count = all - *first;
	return true;
}

static enum xfp_status bad_slice(const struct xfp_bundle *bundle, const char *name, const char *what, uint64_t first,
				 uint64_t count, uint64_t all, struct xfp_error *err)
{
	if (!count)
		return xfp_fail(err, XFP_USAGE, "%s: %s: the slice begins at %s %" PRIu64 ", but there are %" PRIu64,
				path_of(bundle), xfp_printable(name).text, what, first, all);
	return xfp_fail(err, XFP_USAGE,
			"%s: %s: the slice has %" PRIu64 " %ss from %" PRIu64 " on, but there are %" PRIu64,
			path_of(bundle), xfp_printable(name).text, count, what, first, all);
}

enum xfp_status xfp_slice_resolve(const struct xfp_bundle *bundle, const char *name, uint64_t rows, uint64_t cols,
				  const struct xfp_slice *slice, struct xfp_slice *out, struct xfp_error *err)
{
	struct xfp_slice s = slice ? *slice : (struct xfp_slice){ .rows = rows, .cols = cols };

	if (slice && !cut(&s.first_row, &s.rows, rows))
		return bad_slice(bundle, name, "row", slice->first_row, slice->rows, rows, err);
	if (slice && !cut(&s.first_col, &s.cols, cols))
		return bad_slice(bundle, name, "column", slice->first_col, slice->cols, cols, err);
	*out = s;
	return XFP_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------- */

static uint32_t whole_unit(const struct xfp_bundle *bundle, uint32_t of, const struct xfp_tensor_info *tensor)
{
	uint32_t number =
		tensor->data || tensor->rank != 2 ? XFP_NOT_FOUND : xfp_bundle_find_unit(bundle, tensor->name, NULL);
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;

	if (!xfp_bundle_unit(bundle, number, &unit) || unit.experts != 1 || !unit.weights ||
	    !xfp_bundle_matrix(bundle, unit.first_matrix, &matrix))
		return XFP_NOT_FOUND;
	return matrix.tensor == of && matrix.base == 0 && matrix.rows == tensor->shape[0] &&
			       matrix.cols == tensor->shape[1] && matrix.col_stride == 1 &&
			       matrix.row_stride == matrix.cols
		       ? number
		       : XFP_NOT_FOUND;
}

enum xfp_status xfp_tensor_matrix(const struct xfp_bundle *bundle, uint32_t number, struct xfp_tensor_info *tensor,
				  uint32_t *unit, struct xfp_error *err)
{
	if (!xfp_bundle_tensor(bundle, number, tensor))
		return xfp_no_such(bundle, "tensor", number, err);
	if (tensor->tied != XFP_NOT_FOUND && !xfp_bundle_tensor(bundle, number = tensor->tied, tensor))
		return xfp_no_such(bundle, "tensor", number, err);
	if ((*unit = whole_unit(bundle, number, tensor)) != XFP_NOT_FOUND)
		return XFP_OK;
	if (!tensor->data || tensor->rank != 2 || !tensor->elements || !xfp_dtype_is_weight(tensor->dtype))
		return xfp_fail(err, XFP_USAGE, "%s: %s is not stored as one matrix; open the units of that name",
				path_of(bundle), xfp_printable(tensor->name).text);
	return XFP_OK;
}
