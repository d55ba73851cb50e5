/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "schemas/h5.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/setting.h"

#define MIN_K 2
#define MAX_K 6

static hid_t candidate_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct xfp_candidate));

	if (type < 0)
		return type;
#define MEMBER(name, native) (H5Tinsert(type, #name, HOFFSET(struct xfp_candidate, name), native) >= 0)
	if (MEMBER(mode, H5T_NATIVE_UINT32) && MEMBER(k, H5T_NATIVE_UINT32) && MEMBER(sigma_milli, H5T_NATIVE_UINT32) &&
	    MEMBER(group, H5T_NATIVE_UINT16) && MEMBER(library, H5T_NATIVE_UINT16) &&
	    MEMBER(bytes, H5T_NATIVE_UINT64) && MEMBER(outliers, H5T_NATIVE_UINT64) &&
	    MEMBER(cos_median, H5T_NATIVE_DOUBLE) && MEMBER(cos_p5, H5T_NATIVE_DOUBLE) &&
	    MEMBER(error, H5T_NATIVE_DOUBLE))
		return type;
#undef MEMBER
	H5Tclose(type);
	return -1;
}

static hid_t output_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct xfp_output_measure));

	if (type < 0)
		return type;
#define MEMBER(name) (H5Tinsert(type, #name, HOFFSET(struct xfp_output_measure, name), H5T_NATIVE_DOUBLE) >= 0)
	if (MEMBER(median) && MEMBER(p5) && MEMBER(error))
		return type;
#undef MEMBER
	H5Tclose(type);
	return -1;
}

static const char *dataset_of(const char *prefix, const struct xfp_candidate *c, char name[40])
{
	const char *mode = xfp_mode_name((enum xfp_mode)c->mode);

	if (c->group)
		snprintf(name, 40, "%s-%s-%u-%u", prefix, mode, c->group, c->k);
	else
		snprintf(name, 40, "%s-%s-%u", prefix, mode, c->k);
	return name;
}

uint64_t xfp_candidate_code(const struct xfp_candidate *c)
{
	if (c->mode == XFP_MODE_V2)
		return (uint64_t)1 << c->k;
	if (c->mode == XFP_MODE_FP8)
		return 0;
	return ((uint64_t)c->library << c->k) + (c->mode == XFP_MODE_V2C ? 256u / c->library : 0);
}

uint64_t xfp_candidate_hints(const struct xfp_candidate *c)
{
	return c->mode == XFP_MODE_V2A ? 2 * (uint64_t)c->library : 0;
}

uint32_t xfp_fit_bits(const struct xfp_parameters *p, enum xfp_fit_kind kind)
{
	bool library = kind == XFP_FIT_LIBRARY || kind == XFP_FIT_EXTENDED_LIBRARY,
	     libraries = p->modes & XFP_LIBRARY_MODES;
	uint32_t bits = kind >= XFP_FIT_EXTENDED ? xfp_parameters_extended_bits(p) : xfp_parameters_base_bits(p);

	return library == libraries ? bits : bits & ~XFP_FP8_BIT;
}

/* ---- writing ----------------------------------------------------------------------------------- */

uint64_t xfp_fit_group_bytes(const struct xfp_candidate *candidates, uint32_t count, uint64_t cols)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += candidates[i].mode == XFP_MODE_V2C ? xfp_candidate_groups(&candidates[i], cols) : 0;
	return bytes;
}

static enum xfp_status reserve_bytes(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t total_rows,
				     uint64_t cols, struct xfp_error *err)
{
	const uint64_t bytes = total_rows * xfp_candidate_groups(c, cols);
	enum xfp_status status;
	char name[40];

	(void)((status = xfp_h5_reserve(a, dataset_of("byte", c, name), H5T_NATIVE_UINT8, bytes, err)) ||
	       (status = xfp_h5_reserve(a, dataset_of("row", c, name), H5T_NATIVE_UINT8, total_rows, err)));
	return status;
}

enum xfp_status xfp_fit_begin(struct xfp_artifact *a, uint64_t total_rows, uint64_t cols,
			      const struct xfp_candidate *candidates, uint32_t count, struct xfp_error *err)
{
	enum xfp_status status;
	char name[40];

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &candidates[i];
		uint64_t codes = xfp_candidate_code(c) * (c->group ? 1 : total_rows);

		if ((codes &&
		     (status = xfp_h5_reserve(a, dataset_of("codebook", c, name), H5T_NATIVE_UINT16, codes, err))) ||
		    (status = xfp_h5_reserve(a, dataset_of("cosine", c, name), H5T_NATIVE_DOUBLE, total_rows, err)))
			return status;
		if (xfp_candidate_hints(c) && (status = xfp_h5_reserve(a, dataset_of("hints", c, name),
								       H5T_NATIVE_FLOAT, xfp_candidate_hints(c), err)))
			return status;
		if (c->mode == XFP_MODE_V2C && cols && (status = reserve_bytes(a, c, total_rows, cols, err)))
			return status;
	}
	return XFP_OK;
}

enum xfp_status xfp_fit_write_rows(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t first,
				   uint64_t count, const uint16_t *codebook, const double *cosine,
				   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char name[40];

	if (codebook)
		status = xfp_h5_write_range(a, dataset_of("codebook", c, name), H5T_NATIVE_UINT16, first << c->k,
					    count << c->k, codebook, err);
	return status ? status
		      : xfp_h5_write_range(a, dataset_of("cosine", c, name), H5T_NATIVE_DOUBLE, first, count, cosine,
					   err);
}

enum xfp_status xfp_fit_write_library(struct xfp_artifact *a, const struct xfp_candidate *c, const uint16_t *library,
				      const float *hints, struct xfp_error *err)
{
	enum xfp_status status;
	char name[40];

	status = xfp_h5_write_range(a, dataset_of("codebook", c, name), H5T_NATIVE_UINT16, 0, xfp_candidate_code(c),
				    library, err);
	if (!status && xfp_candidate_hints(c))
		status = xfp_h5_write_range(a, dataset_of("hints", c, name), H5T_NATIVE_FLOAT, 0,
					    xfp_candidate_hints(c), hints, err);
	return status;
}

/* The number of candidates that have indices in a calibrated fit: all but fp8. */
static uint32_t coded(const struct xfp_candidate *candidates, uint32_t count)
{
	return count && candidates[count - 1].mode == XFP_MODE_FP8 ? count - 1 : count;
}

enum xfp_status xfp_fit_begin_codes(struct xfp_artifact *a, uint64_t total_rows, uint64_t cols, uint64_t outliers,
				    const struct xfp_candidate *candidates, uint32_t count, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char name[40];

	for (uint32_t i = 0; !status && i < coded(candidates, count); i++) {
		const struct xfp_candidate *c = &candidates[i];

		(void)((status = reserve_bytes(a, c, total_rows, cols, err)) ||
		       (status = xfp_h5_reserve(a, dataset_of("index", c, name), H5T_NATIVE_UINT8,
						total_rows * xfp_index_row_bytes(cols, c->k), err)) ||
		       (status = xfp_h5_reserve(a, dataset_of("residual", c, name), H5T_NATIVE_UINT16, outliers, err)));
	}
	return status;
}

enum xfp_status xfp_fit_write_codes(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t cols,
				    uint64_t first, uint64_t count, const struct xfp_fit_codes *codes,
				    struct xfp_error *err)
{
	const uint64_t groups = xfp_candidate_groups(c, cols), bytes = xfp_index_row_bytes(cols, c->k);
	enum xfp_status status;
	char name[40];

	(void)((status = xfp_h5_write_range(a, dataset_of("byte", c, name), H5T_NATIVE_UINT8, first * groups,
					    count * groups, codes->byte, err)) ||
	       (status = xfp_h5_write_range(a, dataset_of("row", c, name), H5T_NATIVE_UINT8, first, count, codes->row,
					    err)) ||
	       (codes->index && (status = xfp_h5_write_range(a, dataset_of("index", c, name), H5T_NATIVE_UINT8,
							     first * bytes, count * bytes, codes->index, err))));
	return status;
}

enum xfp_status xfp_fit_write_residuals(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t first,
					uint64_t count, const uint16_t *residual, struct xfp_error *err)
{
	char name[40];

	return count ? xfp_h5_write_range(a, dataset_of("residual", c, name), H5T_NATIVE_UINT16, first, count, residual,
					  err)
		     : XFP_OK;
}

enum xfp_status xfp_candidates_write(struct xfp_artifact *a, const struct xfp_candidate *list, uint32_t count,
				     struct xfp_error *err)
{
	hid_t type = candidate_type();
	enum xfp_status status;

	if (type < 0)
		return xfp_no_memory_for(err, a->path);
	(void)((status = xfp_h5_write_u64(a, "candidates", count, err)) ||
	       (status = xfp_h5_write(a, "candidate", type, count, list, err)));
	H5Tclose(type);
	return status;
}

enum xfp_status xfp_fit_end(struct xfp_artifact *a, const struct xfp_fit *fit, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_h5_write_u64(a, "matrices", fit->matrices, err)) ||
	       (status = xfp_h5_write_u64(a, "rows", fit->rows, err)) ||
	       (status = xfp_h5_write_u64(a, "cols", fit->cols, err)) ||
	       (status = xfp_h5_write_text(a, "outliers", fit->outliers, err)));
	if (!status && fit->calibrated)
		(void)((status = xfp_h5_write_u64(a, "unreached", fit->unreached, err)) ||
		       (status = xfp_outputs_write(a, fit->outputs, fit->candidate_count, err)));
	return status ? status : xfp_candidates_write(a, fit->candidates, fit->candidate_count, err);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* Whether the mode allows this group size and library size. */
static bool is_possible(const struct xfp_candidate *c)
{
	uint32_t mode = (uint32_t)1 << (c->mode & 31);

	if (c->mode == XFP_MODE_FP8)
		return c->k == XFP_FP8_BITS && !c->group && !c->library && !c->outliers && !c->sigma_milli;
	if (c->mode >= XFP_MODES || !(XFP_ALL_MODES & mode) || c->k < MIN_K || c->k > MAX_K)
		return false;
	if (c->mode == XFP_MODE_V2)
		return !c->group && !c->library;
	return c->group && c->library && xfp_group_size_fits(c->group, mode) && xfp_library_size_fits(c->library);
}

enum xfp_status xfp_candidates_read(struct xfp_artifact *a, uint32_t max, struct xfp_candidate *list, uint32_t *count,
				    struct xfp_error *err)
{
	uint64_t claimed;
	enum xfp_status status = xfp_h5_read_u64(a, "candidates", &claimed, err);
	hid_t type;

	if (status)
		return status;
	if (claimed > max)
		return xfp_h5_damaged(a, err, "too many candidates");
	if ((type = candidate_type()) < 0)
		return xfp_no_memory_for(err, a->path);
	status = xfp_h5_read(a, "candidate", type, claimed, list, err);
	H5Tclose(type);
	for (uint64_t i = 0; !status && i < claimed; i++) {
		const struct xfp_candidate *c = &list[i];

		/* The comparisons are false for NaN. */
		if (!is_possible(c) || !(c->cos_median >= -2 && c->cos_median <= 2) ||
		    !(c->cos_p5 >= -2 && c->cos_p5 <= 2) || !(c->error >= 0))
			status = xfp_h5_damaged(a, err, "impossible candidate");
	}
	*count = (uint32_t)claimed;
	return status;
}

/* Check that a dataset of a candidate has `rows` times `each` elements. */
static enum xfp_status check_count(struct xfp_artifact *a, const char *prefix, const struct xfp_candidate *c,
				   uint64_t rows, uint64_t each, struct xfp_error *err)
{
	uint64_t wanted, count;
	enum xfp_status status;
	char name[40];

	if ((status = xfp_h5_count(a, dataset_of(prefix, c, name), &count, err)))
		return status;
	if (!xfp_mul(rows, each, &wanted) || count != wanted)
		return xfp_h5_damaged(a, err, "%s has %" PRIu64 " elements", name, count);
	return XFP_OK;
}

/* Check that the datasets of a candidate exist with the right sizes. */
static enum xfp_status check_candidate(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t total_rows,
				       struct xfp_error *err)
{
	enum xfp_status status;
	uint64_t codes = 0, cosines, each = xfp_candidate_code(c), hints;
	char name[40];

	if ((each && (status = xfp_h5_count(a, dataset_of("codebook", c, name), &codes, err))) ||
	    (status = xfp_h5_count(a, dataset_of("cosine", c, name), &cosines, err)))
		return status;
	if (xfp_candidate_hints(c)) {
		if ((status = xfp_h5_count(a, dataset_of("hints", c, name), &hints, err)))
			return status;
		if (hints != xfp_candidate_hints(c))
			return xfp_h5_damaged(a, err, "candidate of %u bits lacks hints", c->k);
	}
	if (cosines != total_rows ||
	    (c->group ? codes != each : each && (codes / each != total_rows || codes != total_rows * each)))
		return xfp_h5_damaged(a, err, "candidate of %u bits is incomplete", c->k);
	return XFP_OK;
}

/* Check the datasets of all codes that the fit has. */
static enum xfp_status check_codes(struct xfp_artifact *a, const struct xfp_fit *fit, uint64_t total_rows,
				   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < coded(fit->candidates, fit->candidate_count); i++) {
		const struct xfp_candidate *c = &fit->candidates[i];

		if (c->mode != XFP_MODE_V2C && !fit->calibrated)
			continue;
		if (c->mode != XFP_MODE_V2C || !fit->cols || fit->cols > UINT32_MAX)
			return xfp_h5_damaged(a, err, "candidate of %u bits cannot have codes", c->k);
		(void)((status = check_count(a, "byte", c, total_rows, xfp_candidate_groups(c, fit->cols), err)) ||
		       (status = check_count(a, "row", c, total_rows, 1, err)));
		if (status || !fit->calibrated)
			continue;
		(void)((status = check_count(a, "index", c, total_rows, xfp_index_row_bytes(fit->cols, c->k), err)) ||
		       (status = check_count(a, "residual", c, c->outliers, 1, err)));
	}
	return status;
}

/* The comparisons are false for NaN. */
static bool possible_outputs(const struct xfp_output_measure *o)
{
	return o->median >= -2 && o->median <= 2 && o->p5 >= -2 && o->p5 <= 2 && o->error >= 0;
}

enum xfp_status xfp_outputs_write(struct xfp_artifact *a, const struct xfp_output_measure *outputs, uint32_t count,
				  struct xfp_error *err)
{
	hid_t type = output_type();
	enum xfp_status status;

	if (type < 0)
		return xfp_no_memory_for(err, a->path);
	status = xfp_h5_write(a, "output", type, count, outputs, err);
	H5Tclose(type);
	return status;
}

enum xfp_status xfp_outputs_read(struct xfp_artifact *a, uint32_t count, struct xfp_output_measure *outputs,
				 bool *calibrated, struct xfp_error *err)
{
	enum xfp_status status = xfp_h5_has(a, "output", calibrated, err);
	hid_t type = output_type();

	if (type < 0)
		return xfp_no_memory_for(err, a->path);
	if (!status && *calibrated)
		status = xfp_h5_read(a, "output", type, count, outputs, err);
	for (uint32_t i = 0; !status && *calibrated && i < count; i++)
		if (!possible_outputs(&outputs[i]))
			status = xfp_h5_damaged(a, err, "impossible outputs");
	H5Tclose(type);
	return status;
}

static enum xfp_status read_calibrated(struct xfp_artifact *a, struct xfp_fit *fit, struct xfp_error *err)
{
	uint64_t unreached;
	enum xfp_status status = xfp_outputs_read(a, fit->candidate_count, fit->outputs, &fit->calibrated, err);

	if (status || !fit->calibrated)
		return status;
	status = xfp_h5_read_u64(a, "unreached", &unreached, err);
	if (!status && unreached > fit->matrices)
		status = xfp_h5_damaged(a, err, "impossible count of matrices");
	fit->unreached = status ? 0 : (uint32_t)unreached;
	return status;
}

static bool ascends(const struct xfp_candidate *a, const struct xfp_candidate *b)
{
	if (a->mode == XFP_MODE_FP8 || b->mode == XFP_MODE_FP8)
		return a->mode != b->mode && b->mode == XFP_MODE_FP8;
	if (a->mode != b->mode)
		return a->mode < b->mode;
	return a->group != b->group ? a->group < b->group : a->k < b->k;
}

enum xfp_status xfp_fit_read(struct xfp_artifact *a, struct xfp_fit *fit, struct xfp_error *err)
{
	uint64_t matrices, total_rows;
	struct xfp_fit read = { 0 };
	char *outliers = NULL;
	enum xfp_status status;

	if ((status = xfp_h5_read_u64(a, "matrices", &matrices, err)) ||
	    (status = xfp_h5_read_u64(a, "rows", &read.rows, err)) ||
	    (status = xfp_h5_read_u64(a, "cols", &read.cols, err)) ||
	    (status = xfp_candidates_read(a, XFP_MAX_CANDIDATES, read.candidates, &read.candidate_count, err)) ||
	    (status = xfp_h5_read_text(a, "outliers", &outliers, err)))
		return status;
	if (strlen(outliers) < sizeof read.outliers)
		strcpy(read.outliers, outliers);
	free(outliers);
	if (matrices > UINT32_MAX || !xfp_mul(matrices, read.rows, &total_rows))
		return xfp_h5_damaged(a, err, "impossible shape");
	read.matrices = (uint32_t)matrices;
	for (uint32_t i = 0; !status && i < read.candidate_count; i++) {
		status = check_candidate(a, &read.candidates[i], total_rows, err);
		if (!status && i && !ascends(&read.candidates[i - 1], &read.candidates[i]))
			status = xfp_h5_damaged(a, err, "candidates do not ascend");
	}
	if (!status)
		status = read_calibrated(a, &read, err);
	read.bytes = read.calibrated || xfp_fit_keeps_bytes(read.candidates, read.candidate_count, read.cols);
	if (!status && read.bytes)
		status = check_codes(a, &read, total_rows, err);
	if (!status)
		*fit = read;
	return status;
}

enum xfp_status xfp_fit_read_rows(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t first, uint64_t count,
				  uint16_t *codebook, double *cosine, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char name[40];

	if (codebook)
		status = xfp_h5_read_range(a, dataset_of("codebook", c, name), H5T_NATIVE_UINT16, first << c->k,
					   count << c->k, codebook, err);
	if (!status && cosine)
		status = xfp_h5_read_range(a, dataset_of("cosine", c, name), H5T_NATIVE_DOUBLE, first, count, cosine,
					   err);
	return status;
}

enum xfp_status xfp_fit_read_library(struct xfp_artifact *a, const struct xfp_candidate *c, uint16_t *library,
				     float *hints, struct xfp_error *err)
{
	enum xfp_status status;
	char name[40];

	status = xfp_h5_read_range(a, dataset_of("codebook", c, name), H5T_NATIVE_UINT16, 0, xfp_candidate_code(c),
				   library, err);
	if (!status && xfp_candidate_hints(c))
		status = xfp_h5_read_range(a, dataset_of("hints", c, name), H5T_NATIVE_FLOAT, 0, xfp_candidate_hints(c),
					   hints, err);
	return status;
}

enum xfp_status xfp_fit_read_codes(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t cols, uint64_t first,
				   uint64_t count, const struct xfp_fit_codes *codes, struct xfp_error *err)
{
	const uint64_t groups = xfp_candidate_groups(c, cols), bytes = xfp_index_row_bytes(cols, c->k);
	enum xfp_status status;
	char name[40];

	(void)((status = xfp_h5_read_range(a, dataset_of("byte", c, name), H5T_NATIVE_UINT8, first * groups,
					   count * groups, codes->byte, err)) ||
	       (status = xfp_h5_read_range(a, dataset_of("row", c, name), H5T_NATIVE_UINT8, first, count, codes->row,
					   err)) ||
	       (codes->index && (status = xfp_h5_read_range(a, dataset_of("index", c, name), H5T_NATIVE_UINT8,
							    first * bytes, count * bytes, codes->index, err))));
	return status;
}

enum xfp_status xfp_fit_read_residuals(struct xfp_artifact *a, const struct xfp_candidate *c, uint64_t first,
				       uint64_t count, uint16_t *residual, struct xfp_error *err)
{
	char name[40];

	return count ? xfp_h5_read_range(a, dataset_of("residual", c, name), H5T_NATIVE_UINT16, first, count, residual,
					 err)
		     : XFP_OK;
}
