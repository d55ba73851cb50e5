/* SPDX-License-Identifier: Apache-2.0 */
#include "fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "h5.h"

#define MIN_K 2
#define MAX_K 6
#define MAX_CANDIDATES (sizeof((struct xfp_fit *)0)->candidates / sizeof(struct xfp_candidate))

static hid_t candidate_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct xfp_candidate));

	if (type < 0)
		return type;
#define MEMBER(name, native) (H5Tinsert(type, #name, HOFFSET(struct xfp_candidate, name), native) >= 0)
	if (MEMBER(mode, H5T_NATIVE_UINT32) && MEMBER(k, H5T_NATIVE_UINT32) && MEMBER(sigma_milli, H5T_NATIVE_UINT32) &&
	    MEMBER(reserved, H5T_NATIVE_UINT32) && MEMBER(bytes, H5T_NATIVE_UINT64) &&
	    MEMBER(outliers, H5T_NATIVE_UINT64) && MEMBER(cos_median, H5T_NATIVE_DOUBLE) &&
	    MEMBER(cos_p5, H5T_NATIVE_DOUBLE) && MEMBER(error, H5T_NATIVE_DOUBLE))
		return type;
#undef MEMBER
	H5Tclose(type);
	return -1;
}

static const char *dataset_of(const char *prefix, unsigned k, char name[16])
{
	snprintf(name, 16, "%s-%u", prefix, k);
	return name;
}

/* ---- writing ----------------------------------------------------------------------------------- */

enum xfp_status xfp_fit_begin(struct xfp_artifact *a, uint64_t total_rows, uint32_t bits, struct xfp_error *err)
{
	enum xfp_status status;
	char name[16];

	for (unsigned k = MIN_K; k <= MAX_K; k++) {
		if (!(bits & 1u << k))
			continue;
		if ((status = xfp_h5_reserve(a, dataset_of("codebook", k, name), H5T_NATIVE_UINT16, total_rows << k,
					     err)) ||
		    (status = xfp_h5_reserve(a, dataset_of("cosine", k, name), H5T_NATIVE_DOUBLE, total_rows, err)))
			return status;
	}
	return XFP_OK;
}

enum xfp_status xfp_fit_write_rows(struct xfp_artifact *a, unsigned k, uint64_t first, uint64_t count,
				   const uint16_t *codebook, const double *cosine, struct xfp_error *err)
{
	enum xfp_status status;
	char name[16];

	if ((status = xfp_h5_write_range(a, dataset_of("codebook", k, name), H5T_NATIVE_UINT16, first << k, count << k,
					 codebook, err)))
		return status;
	return xfp_h5_write_range(a, dataset_of("cosine", k, name), H5T_NATIVE_DOUBLE, first, count, cosine, err);
}

enum xfp_status xfp_fit_end(struct xfp_artifact *a, const struct xfp_fit *fit, struct xfp_error *err)
{
	hid_t type = candidate_type();
	enum xfp_status status;

	if (type < 0)
		return xfp_fail(err, XFP_FAILED, "%s: out of memory", a->path);
	(void)((status = xfp_h5_write_u64(a, "matrices", fit->matrices, err)) ||
	       (status = xfp_h5_write_u64(a, "rows", fit->rows, err)) ||
	       (status = xfp_h5_write_u64(a, "cols", fit->cols, err)) ||
	       (status = xfp_h5_write_text(a, "outliers", fit->outliers, err)) ||
	       (status = xfp_h5_write_u64(a, "candidates", fit->candidate_count, err)) ||
	       (status = xfp_h5_write(a, "candidate", type, fit->candidate_count, fit->candidates, err)));
	H5Tclose(type);
	return status;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The datasets that a candidate's k promises, and numbers that a measurement can be. */
static enum xfp_status check_candidate(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t total_rows,
				       struct xfp_error *err)
{
	enum xfp_status status;
	uint64_t entries, cosines;
	char name[16];

	/* The comparisons are false for NaN. */
	if (c->mode != XFP_MODE_V2 || c->k < MIN_K || c->k > MAX_K || !(c->cos_median >= -2 && c->cos_median <= 2) ||
	    !(c->cos_p5 >= -2 && c->cos_p5 <= 2) || !(c->error >= 0))
		return xfp_h5_damaged(a, err, "impossible candidate");
	if ((status = xfp_h5_count(a, dataset_of("codebook", c->k, name), &entries, err)) ||
	    (status = xfp_h5_count(a, dataset_of("cosine", c->k, name), &cosines, err)))
		return status;
	if (cosines != total_rows || entries >> c->k != total_rows || entries != total_rows << c->k)
		return xfp_h5_damaged(a, err, "candidate of %u bits is incomplete", c->k);
	return XFP_OK;
}

enum xfp_status xfp_fit_read(struct xfp_artifact *a, struct xfp_fit *fit, struct xfp_error *err)
{
	uint64_t matrices, count, total_rows;
	struct xfp_fit read = { 0 };
	char *outliers = NULL;
	enum xfp_status status;
	hid_t type;

	if ((status = xfp_h5_read_u64(a, "matrices", &matrices, err)) ||
	    (status = xfp_h5_read_u64(a, "rows", &read.rows, err)) ||
	    (status = xfp_h5_read_u64(a, "cols", &read.cols, err)) ||
	    (status = xfp_h5_read_u64(a, "candidates", &count, err)))
		return status;
	if ((status = xfp_h5_read_text(a, "outliers", &outliers, err)))
		return status;
	if (strlen(outliers) < sizeof read.outliers)
		strcpy(read.outliers, outliers);
	free(outliers);
	if (matrices > UINT32_MAX || count > MAX_CANDIDATES || !xfp_mul(matrices, read.rows, &total_rows))
		return xfp_h5_damaged(a, err, "impossible shape");
	read.matrices = (uint32_t)matrices;
	read.candidate_count = (uint32_t)count;
	if ((type = candidate_type()) < 0)
		return xfp_fail(err, XFP_FAILED, "%s: out of memory", a->path);
	status = xfp_h5_read(a, "candidate", type, count, read.candidates, err);
	H5Tclose(type);
	for (uint32_t i = 0; !status && i < read.candidate_count; i++) {
		status = check_candidate(a, &read.candidates[i], total_rows, err);
		if (!status && i && read.candidates[i].k <= read.candidates[i - 1].k)
			status = xfp_h5_damaged(a, err, "candidates do not ascend");
	}
	if (!status)
		*fit = read;
	return status;
}

enum xfp_status xfp_fit_read_rows(struct xfp_artifact *a, unsigned k, uint64_t first, uint64_t count,
				  uint16_t *codebook, double *cosine, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char name[16];

	if (codebook)
		status = xfp_h5_read_range(a, dataset_of("codebook", k, name), H5T_NATIVE_UINT16, first << k,
					   count << k, codebook, err);
	if (!status && cosine)
		status = xfp_h5_read_range(a, dataset_of("cosine", k, name), H5T_NATIVE_DOUBLE, first, count, cosine,
					   err);
	return status;
}
