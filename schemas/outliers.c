/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/outliers.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "schemas/h5.h"

enum xfp_status xfp_outliers_init(struct xfp_outliers *o, uint32_t matrices, uint64_t rows, uint64_t cols,
				  struct xfp_error *err)
{
	size_t count = matrices ? matrices : 1;

	*o = (struct xfp_outliers){ .matrices = matrices, .rows = rows, .cols = cols };
	o->source = calloc(count, sizeof *o->source);
	o->balance = calloc(cols ? cols : 1, sizeof *o->balance);
	o->exponent = calloc(count, sizeof *o->exponent);
	o->mean = calloc(count, sizeof *o->mean);
	o->sigma = calloc(count, sizeof *o->sigma);
	o->first = calloc(count + 1, sizeof *o->first);
	if (o->source && o->balance && o->exponent && o->mean && o->sigma && o->first)
		return XFP_OK;
	xfp_outliers_free(o);
	return xfp_fail(err, XFP_FAILED, "out of memory for the outlier tables of %u matrices of %llu columns",
			matrices, (unsigned long long)cols);
}

void xfp_outliers_free(struct xfp_outliers *o)
{
	free(o->source);
	free(o->balance);
	free(o->exponent);
	free(o->mean);
	free(o->sigma);
	free(o->first);
	*o = (struct xfp_outliers){ 0 };
}

enum xfp_status xfp_outliers_begin(struct xfp_artifact *a, struct xfp_error *err)
{
	return xfp_h5_stream(a, "position", H5T_NATIVE_UINT64, err);
}

enum xfp_status xfp_outliers_append(struct xfp_artifact *a, struct xfp_outliers *o, uint32_t matrix,
				    const uint64_t *position, uint64_t count, struct xfp_error *err)
{
	o->first[matrix + 1] = o->first[matrix] + count;
	return xfp_h5_append(a, "position", H5T_NATIVE_UINT64, count, position, err);
}

enum xfp_status xfp_outliers_end(struct xfp_artifact *a, const struct xfp_outliers *o, struct xfp_error *err)
{
	uint64_t m = o->matrices;
	enum xfp_status status;

	(void)((status = xfp_h5_write_u64(a, "matrices", m, err)) ||
	       (status = xfp_h5_write_u64(a, "rows", o->rows, err)) ||
	       (status = xfp_h5_write_u64(a, "cols", o->cols, err)) ||
	       (status = xfp_h5_write_u64(a, "sigma_milli", o->sigma_milli, err)) ||
	       (status = xfp_h5_write(a, "source", H5T_NATIVE_UINT8, m * 16, o->source, err)) ||
	       (status = xfp_h5_write(a, "balance", H5T_NATIVE_UINT8, o->cols, o->balance, err)) ||
	       (status = xfp_h5_write(a, "exponent", H5T_NATIVE_INT16, m, o->exponent, err)) ||
	       (status = xfp_h5_write(a, "mean", H5T_NATIVE_DOUBLE, m, o->mean, err)) ||
	       (status = xfp_h5_write(a, "sigma", H5T_NATIVE_DOUBLE, m, o->sigma, err)) ||
	       (status = xfp_h5_write(a, "first", H5T_NATIVE_UINT64, m + 1, o->first, err)));
	return status;
}

/* Check that the positions of each matrix follow those of the previous one, and that all are present. */
static enum xfp_status check_first(struct xfp_artifact *a, const struct xfp_outliers *o, struct xfp_error *err)
{
	uint64_t each = o->rows * o->cols, total;
	enum xfp_status status;

	if ((status = xfp_h5_count(a, "position", &total, err)))
		return status;
	if (o->first[0] || o->first[o->matrices] != total)
		return xfp_h5_damaged(a, err, "outlier positions are missing");
	for (uint32_t m = 0; m < o->matrices; m++)
		if (o->first[m + 1] < o->first[m] || o->first[m + 1] - o->first[m] > each)
			return xfp_h5_damaged(a, err, "impossible outlier count of matrix %u", m);
	return XFP_OK;
}

enum xfp_status xfp_outliers_read(struct xfp_artifact *a, struct xfp_outliers *o, struct xfp_error *err)
{
	uint64_t m, rows, cols, sigma, each, first, balance;
	struct xfp_outliers read = { 0 };
	enum xfp_status status;

	if ((status = xfp_h5_read_u64(a, "matrices", &m, err)) || (status = xfp_h5_read_u64(a, "rows", &rows, err)) ||
	    (status = xfp_h5_read_u64(a, "cols", &cols, err)) ||
	    (status = xfp_h5_read_u64(a, "sigma_milli", &sigma, err)) ||
	    (status = xfp_h5_count(a, "first", &first, err)) || (status = xfp_h5_count(a, "balance", &balance, err)))
		return status;
	/* Check that the tables match the shape before allocating memory for it. */
	if (m >= UINT32_MAX || sigma > UINT32_MAX || !xfp_mul(rows, cols, &each) || first != m + 1 || balance != cols)
		return xfp_h5_damaged(a, err, "impossible shape");
	if ((status = xfp_outliers_init(&read, (uint32_t)m, rows, cols, err)))
		return status;
	read.sigma_milli = (uint32_t)sigma;
	(void)((status = xfp_h5_read(a, "source", H5T_NATIVE_UINT8, m * 16, read.source, err)) ||
	       (status = xfp_h5_read(a, "balance", H5T_NATIVE_UINT8, cols, read.balance, err)) ||
	       (status = xfp_h5_read(a, "exponent", H5T_NATIVE_INT16, m, read.exponent, err)) ||
	       (status = xfp_h5_read(a, "mean", H5T_NATIVE_DOUBLE, m, read.mean, err)) ||
	       (status = xfp_h5_read(a, "sigma", H5T_NATIVE_DOUBLE, m, read.sigma, err)) ||
	       (status = xfp_h5_read(a, "first", H5T_NATIVE_UINT64, m + 1, read.first, err)) ||
	       (status = check_first(a, &read, err)));
	if (status)
		xfp_outliers_free(&read);
	else
		*o = read;
	return status;
}

enum xfp_status xfp_outliers_positions(struct xfp_artifact *a, const struct xfp_outliers *o, uint32_t matrix,
				       uint64_t from, uint64_t count, uint64_t *position, struct xfp_error *err)
{
	uint64_t each = o->rows * o->cols;
	enum xfp_status status;

	if ((status = xfp_h5_read_range(a, "position", H5T_NATIVE_UINT64, o->first[matrix] + from, count, position,
					err)))
		return status;
	for (uint64_t i = 0; i < count; i++)
		if (position[i] >= each)
			return xfp_h5_damaged(a, err, "outlier outside matrix %u", matrix);
	return XFP_OK;
}
