/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/packed.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "schemas/h5.h"
#include "schemas/layout/classes.h"
#include "schemas/receipt.h"

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

/* Check that every matrix has a valid mode, begins inside the parts, and that the outliers add up. */
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

/* Read the sizes of the parts; a receipt contains only the sizes. */
static enum xfp_status read_bytes(struct xfp_artifact *a, bool receipt, uint64_t bytes[XFP_PARTS],
				  struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (receipt)
		return xfp_h5_read(a, "bytes", H5T_NATIVE_UINT64, XFP_PARTS, bytes, err);
	for (unsigned p = 0; !status && p < XFP_PARTS; p++) {
		uint64_t offset;
		bool has;

		if (!(status = xfp_h5_has(a, part_names[p], &has, err)) && has)
			status = xfp_packed_extent(a, p, &offset, &bytes[p], err);
	}
	return status;
}

static enum xfp_status read_packed(struct xfp_artifact *a, bool receipt, struct xfp_packed *packed,
				   struct xfp_error *err)
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
	if ((status = read_bytes(a, receipt, read.bytes, err)))
		return status;
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

enum xfp_status xfp_packed_read(struct xfp_artifact *a, struct xfp_packed *packed, struct xfp_error *err)
{
	return read_packed(a, false, packed, err);
}

enum xfp_status xfp_packed_write_tables(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err)
{
	enum xfp_status status = xfp_h5_write(a, "bytes", H5T_NATIVE_UINT64, XFP_PARTS, packed->bytes, err);

	return status ? status : xfp_packed_end(a, packed, err);
}

enum xfp_status xfp_packed_read_tables(struct xfp_artifact *a, struct xfp_packed *packed, struct xfp_error *err)
{
	return read_packed(a, true, packed, err);
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

/* ---- receipts (receipt.h) ----------------------------------------------------------------------- */

#define CHOICE_GROUP "choice"

/* The choice's attributes share names with those of the packed unit, hence a group of their own. */
static struct xfp_artifact in_group(const struct xfp_artifact *a, hid_t group)
{
	struct xfp_artifact inner = *a;

	inner.file = group;
	return inner;
}

static enum xfp_status write_choice(struct xfp_artifact *a, const struct xfp_choice *choice, struct xfp_error *err)
{
	hid_t group = H5Gcreate2(a->file, CHOICE_GROUP, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	struct xfp_artifact inner = in_group(a, group);
	enum xfp_status status;

	if (group < 0)
		return xfp_no_memory_for(err, a->path);
	status = xfp_choice_write(&inner, choice, err);
	if (H5Gclose(group) < 0 && !status)
		status = xfp_fail(err, XFP_FAILED, "%s: cannot write", a->path);
	return status;
}

static enum xfp_status read_choice(struct xfp_artifact *a, struct xfp_choice *choice, struct xfp_error *err)
{
	hid_t group = H5Gopen2(a->file, CHOICE_GROUP, H5P_DEFAULT);
	struct xfp_artifact inner = in_group(a, group);
	enum xfp_status status;

	if (group < 0)
		return xfp_h5_damaged(a, err, "no choice");
	status = xfp_choice_read(&inner, choice, err);
	H5Gclose(group);
	return status;
}

enum xfp_status xfp_receipt_write(struct xfp_artifact *a, const struct xfp_receipt *receipt, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_packed_write_tables(a, &receipt->packed, err)) ||
	       (status = xfp_h5_write_u64(a, "chosen", receipt->chosen, err)) ||
	       (status = xfp_h5_write_u64(a, "nonfinite", receipt->nonfinite, err)) ||
	       (status = xfp_h5_write_text(a, "files", receipt->files, err)) ||
	       (status = xfp_h5_write_text(a, "keys", receipt->keys, err)));
	return !status && receipt->chosen ? write_choice(a, &receipt->choice, err) : status;
}

enum xfp_status xfp_receipt_read(struct xfp_artifact *a, struct xfp_receipt *receipt, struct xfp_error *err)
{
	struct xfp_receipt read = { 0 };
	uint64_t chosen = 0, nonfinite = 0;
	enum xfp_status status;
	char *files = NULL;

	if ((status = xfp_packed_read_tables(a, &read.packed, err)))
		return status;
	(void)((status = xfp_h5_read_u64(a, "chosen", &chosen, err)) ||
	       (status = xfp_h5_read_u64(a, "nonfinite", &nonfinite, err)) ||
	       (status = xfp_h5_read_text(a, "files", &files, err)) ||
	       (status = xfp_h5_read_text(a, "keys", &read.keys, err)));
	if (!status && (chosen > 1 || nonfinite > 1 || strlen(files) != 32))
		status = xfp_h5_damaged(a, err, "impossible receipt");
	if (!status && chosen)
		status = read_choice(a, &read.choice, err);
	if (!status) {
		read.chosen = chosen;
		read.nonfinite = nonfinite;
		memcpy(read.files, files, sizeof read.files);
		*receipt = read;
	} else {
		xfp_receipt_free(&read);
	}
	free(files);
	return status;
}

void xfp_receipt_free(struct xfp_receipt *receipt)
{
	xfp_packed_free(&receipt->packed);
	free(receipt->keys);
	*receipt = (struct xfp_receipt){ 0 };
}
