/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/packed.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "schemas/h5.h"
#include "schemas/layout/classes.h"

static const char *const part_names[XFP_PARTS] = { "part-idx", "part-cb", "part-grp", "part-bal", "part-out" };

static hid_t matrix_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct xfp_packed_matrix));
	hsize_t parts = XFP_PARTS, digest = 16;
	hid_t offsets = H5Tarray_create2(H5T_NATIVE_UINT64, 1, &parts);
	hid_t source = H5Tarray_create2(H5T_NATIVE_UINT8, 1, &digest);
	bool good;

#define MEMBER(name, native) (H5Tinsert(type, #name, HOFFSET(struct xfp_packed_matrix, name), native) >= 0)
	good = type >= 0 && offsets >= 0 && source >= 0 && MEMBER(mode, H5T_NATIVE_UINT32) &&
	       MEMBER(k, H5T_NATIVE_UINT32) && MEMBER(exponent, H5T_NATIVE_INT32) &&
	       MEMBER(reserved, H5T_NATIVE_UINT32) && MEMBER(outliers, H5T_NATIVE_UINT64) && MEMBER(offset, offsets) &&
	       MEMBER(source, source);
#undef MEMBER
	if (source >= 0)
		H5Tclose(source);
	if (offsets >= 0)
		H5Tclose(offsets);
	if (!good && type >= 0)
		H5Tclose(type);
	return good ? type : -1;
}

enum xfp_status xfp_packed_begin(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err)
{
	enum xfp_status status;

	for (unsigned p = 0; p < XFP_PARTS; p++)
		if (packed->bytes[p] &&
		    (status = xfp_h5_reserve(a, part_names[p], H5T_NATIVE_UINT8, packed->bytes[p], err)))
			return status;
	return XFP_OK;
}

enum xfp_status xfp_packed_write(struct xfp_artifact *a, enum xfp_part part, uint64_t offset, uint64_t bytes,
				 const void *data, struct xfp_error *err)
{
	return xfp_h5_write_range(a, part_names[part], H5T_NATIVE_UINT8, offset, bytes, data, err);
}

enum xfp_status xfp_packed_end(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err)
{
	hid_t type = matrix_type();
	enum xfp_status status;

	if (type < 0)
		return xfp_no_memory_for(err, a->path);
	(void)((status = xfp_h5_write_u64(a, "mode", packed->mode, err)) ||
	       (status = xfp_h5_write_u64(a, "k", packed->k, err)) ||
	       (status = xfp_h5_write_u64(a, "group", packed->group, err)) ||
	       (status = xfp_h5_write_u64(a, "library", packed->library, err)) ||
	       (status = xfp_h5_write_u64(a, "matrices", packed->matrices, err)) ||
	       (status = xfp_h5_write_u64(a, "rows", packed->rows, err)) ||
	       (status = xfp_h5_write_u64(a, "cols", packed->cols, err)) ||
	       (status = xfp_h5_write_u64(a, "outliers", packed->outliers, err)) ||
	       (status = xfp_h5_write_f64(a, "cos_median", packed->cos_median, err)) ||
	       (status = xfp_h5_write_f64(a, "cos_p5", packed->cos_p5, err)) ||
	       (status = xfp_h5_write_f64(a, "error", packed->error, err)) ||
	       (status = xfp_h5_write(a, "matrix", type, packed->matrices, packed->matrix, err)) ||
	       (status = xfp_h5_write(a, "digest", H5T_NATIVE_UINT8, sizeof packed->digest, packed->digest, err)));
	H5Tclose(type);
	return status;
}

/* Every matrix is of a mode there is, begins inside the parts, and the outliers add up. */
static enum xfp_status check_matrices(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err)
{
	uint64_t outliers = 0;

	for (uint32_t m = 0; m < packed->matrices; m++) {
		const struct xfp_packed_matrix *matrix = &packed->matrix[m];

		if (matrix->mode >= XFP_MODES || matrix->k > 8 || !xfp_add(outliers, matrix->outliers, &outliers))
			return xfp_h5_damaged(a, err, "impossible record of matrix %u", m);
		for (unsigned p = 0; p < XFP_PARTS; p++)
			if (matrix->offset[p] > packed->bytes[p])
				return xfp_h5_damaged(a, err, "matrix %u begins outside its part", m);
	}
	if (outliers != packed->outliers)
		return xfp_h5_damaged(a, err, "outliers do not add up");
	return XFP_OK;
}

static bool possible_mode(uint64_t mode, uint64_t k, uint64_t group, uint64_t library)
{
	struct xfp_idx_unit unit = {
		.mode = (uint8_t)mode, .k = (uint8_t)k, .group = (uint8_t)group, .library = (uint8_t)library
	};
	uint64_t bytes[XFP_PARTS];

	return mode < XFP_MODES && k <= 8 && group <= UINT8_MAX && library <= UINT8_MAX &&
	       xfp_unit_part_bytes(&unit, false, bytes);
}

enum xfp_status xfp_packed_read(struct xfp_artifact *a, struct xfp_packed *packed, struct xfp_error *err)
{
	uint64_t mode, k, group, library, matrices, records, each, weights;
	struct xfp_packed read = { 0 };
	enum xfp_status status;
	hid_t type = -1;

	if ((status = xfp_h5_read_u64(a, "mode", &mode, err)) || (status = xfp_h5_read_u64(a, "k", &k, err)) ||
	    (status = xfp_h5_read_u64(a, "group", &group, err)) ||
	    (status = xfp_h5_read_u64(a, "library", &library, err)) ||
	    (status = xfp_h5_read_u64(a, "matrices", &matrices, err)) ||
	    (status = xfp_h5_read_u64(a, "rows", &read.rows, err)) ||
	    (status = xfp_h5_read_u64(a, "cols", &read.cols, err)) ||
	    (status = xfp_h5_read_u64(a, "outliers", &read.outliers, err)) ||
	    (status = xfp_h5_read_f64(a, "cos_median", &read.cos_median, err)) ||
	    (status = xfp_h5_read_f64(a, "cos_p5", &read.cos_p5, err)) ||
	    (status = xfp_h5_read_f64(a, "error", &read.error, err)) ||
	    (status = xfp_h5_count(a, "matrix", &records, err)) ||
	    (status = xfp_h5_read(a, "digest", H5T_NATIVE_UINT8, sizeof read.digest, read.digest, err)))
		return status;
	if (!possible_mode(mode, k, group, library) || matrices > UINT32_MAX || records != matrices ||
	    !xfp_mul(read.rows, read.cols, &each) || !xfp_mul(each, matrices, &weights))
		return xfp_h5_damaged(a, err, "impossible shape");
	read.mode = (uint32_t)mode;
	read.k = (uint32_t)k;
	read.group = (uint32_t)group;
	read.library = (uint32_t)library;
	read.matrices = (uint32_t)matrices;
	for (unsigned p = 0; p < XFP_PARTS; p++) {
		uint64_t offset;
		bool has;

		if ((status = xfp_h5_has(a, part_names[p], &has, err)) ||
		    (has && (status = xfp_packed_extent(a, p, &offset, &read.bytes[p], err))))
			return status;
	}
	if ((type = matrix_type()) < 0 || !(read.matrix = calloc(matrices ? matrices : 1, sizeof *read.matrix)))
		status = xfp_no_memory_for(err, a->path);
	else
		(void)((status = xfp_h5_read(a, "matrix", type, matrices, read.matrix, err)) ||
		       (status = check_matrices(a, &read, err)));
	if (type >= 0)
		H5Tclose(type);
	if (status)
		xfp_packed_free(&read);
	else
		*packed = read;
	return status;
}

enum xfp_status xfp_packed_extent(struct xfp_artifact *a, enum xfp_part part, uint64_t *offset, uint64_t *bytes,
				  struct xfp_error *err)
{
	return xfp_h5_extent(a, part_names[part], offset, bytes, err);
}

void xfp_packed_free(struct xfp_packed *packed)
{
	free(packed->matrix);
	*packed = (struct xfp_packed){ 0 };
}
