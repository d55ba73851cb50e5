/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.c - decode a unit with libxfp and compare it row by row with its source.
 *
 * Blocks of rows are independent and a thread takes one at a time; what follows from all rows is
 * computed afterwards, in their order, so no result depends on the threads.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "commands/verify/verify.h"
#include "kernels/common/number.h"
#include "kernels/encode/cosine.h"
#include "schemas/digest.h"
#include "schemas/layout/classes.h"

#define BLOCK_BYTES ((uint64_t)1 << 20)

/* State of the comparison of one unit. */
struct comparison {
	const struct xfp_bundle *bundle;
	const struct xfp_checkpoint *source; /* NULL if not given */
	struct xfp_unit_info unit;
	size_t element;             /* bytes per source element */
	uint64_t block;             /* rows per block */
	struct xfp_row_error *rows; /* [experts * rows]; NULL without a source */
	uint8_t *wrong;             /* [experts * rows]: not finite, or not the same bytes */
};

static struct xfp_matrix_source source_of(const struct comparison *c, const struct xfp_matrix_info *matrix)
{
	struct xfp_tensor_info info = { .name = "" };
	const struct xfp_source_tensor *tensor;
	struct xfp_matrix_source source;

	xfp_bundle_tensor(c->bundle, matrix->tensor, &info);
	tensor = &c->source->tensors[xfp_checkpoint_find(c->source, info.name)];
	source = xfp_checkpoint_source(c->source, tensor);
	source.view =
		(struct xfp_view){ matrix->base, matrix->rows, matrix->cols, matrix->row_stride, matrix->col_stride };
	return source;
}

static bool all_finite(const float *w, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (!(w[i] - w[i] == 0))
			return false;
	return true;
}

/* Buffers for a block in each representation. */
struct decode_buffers {
	float *decoded, *w;
	uint8_t *raw;
};

static void compare_rows(struct comparison *c, const struct xfp_matrix_info *matrix, uint64_t first, uint64_t count,
			 const struct decode_buffers *buffers)
{
	uint64_t cols = matrix->cols, at = matrix->expert * matrix->rows + first;
	size_t row_bytes = cols * c->element;

	if (c->source)
		xfp_to_float(c->unit.dtype, buffers->raw, count * cols, buffers->w);
	for (uint64_t r = 0; r < count; r++, at++) {
		const float *decoded = buffers->decoded + r * cols;

		if (matrix->mode != XFP_MODE_KEEP)
			c->wrong[at] = !all_finite(decoded, cols);
		else if (c->source && cols)
			c->wrong[at] = !!memcmp((const uint8_t *)matrix->index + (first + r) * row_bytes,
						buffers->raw + r * row_bytes, row_bytes);
		if (c->source && matrix->mode != XFP_MODE_KEEP)
			c->rows[at] = xfp_row_compare(buffers->w + r * cols, decoded, cols);
	}
}

static enum xfp_status compare_block(struct comparison *c, uint64_t number, struct xfp_error *err)
{
	uint64_t per_matrix = (c->unit.rows + c->block - 1) / c->block, first = number % per_matrix * c->block;
	uint64_t count = c->unit.rows - first < c->block ? c->unit.rows - first : c->block;
	uint64_t weights = count * c->unit.cols;
	struct decode_buffers buffers = { .decoded = malloc(weights * sizeof(float) + 1) };
	struct xfp_matrix_reader *reader = NULL;
	struct xfp_matrix_source source;
	struct xfp_matrix_info matrix;
	uint32_t m = c->unit.first_matrix + (uint32_t)(number / per_matrix);
	enum xfp_status status = buffers.decoded ? XFP_OK : xfp_no_memory(err);

	xfp_bundle_matrix(c->bundle, m, &matrix);
	if (!status && c->source) {
		buffers.w = malloc(weights * sizeof(float) + 1);
		buffers.raw = malloc(weights * c->element + 1);
		source = source_of(c, &matrix);
		if (!buffers.w || !buffers.raw)
			status = xfp_no_memory(err);
		else if (!(status = xfp_matrix_open(&source, &reader, err)))
			status = xfp_matrix_read(reader, first, count, buffers.raw, err);
	}
	if (!status && !(status = xfp_bundle_dequantize(c->bundle, m, first, count, XFP_FLOAT32, buffers.decoded, err)))
		compare_rows(c, &matrix, first, count, &buffers);
	xfp_matrix_close(reader);
	free(buffers.decoded);
	free(buffers.w);
	free(buffers.raw);
	return status;
}

/* Whether a matrix of the checkpoint has the digest recorded in the bundle. */
static enum xfp_status digest_matrix(const struct comparison *c, uint32_t number, bool *same, struct xfp_error *err)
{
	struct xfp_matrix_info matrix;
	struct xfp_matrix_source source;
	struct xfp_matrix_reader *reader = NULL;
	struct xfp_digest *digest = xfp_digest_new();
	uint8_t *raw = malloc(c->block * c->unit.cols * c->element + 1), result[16];
	enum xfp_status status = XFP_OK;

	xfp_bundle_matrix(c->bundle, number, &matrix);
	source = source_of(c, &matrix);
	if (!digest || !raw)
		status = xfp_no_memory(err);
	else
		status = xfp_matrix_open(&source, &reader, err);
	for (uint64_t first = 0; !status && first < matrix.rows; first += c->block) {
		uint64_t count = matrix.rows - first < c->block ? matrix.rows - first : c->block;

		if (!(status = xfp_matrix_read(reader, first, count, raw, err)))
			xfp_digest_update(digest, raw, count * matrix.cols * c->element);
	}
	if (digest)
		xfp_digest_final(digest, result);
	if (!status)
		*same = !memcmp(result, matrix.source, sizeof result);
	xfp_matrix_close(reader);
	free(raw);
	return status;
}

/* Compare all blocks and digests in parallel. Of several failures the first in order is reported. */
static enum xfp_status compare_all(struct comparison *c, bool *same, struct xfp_error *err)
{
	uint64_t blocks = c->unit.experts * ((c->unit.rows + c->block - 1) / c->block);
	uint64_t digests = c->source ? c->unit.experts : 0, failed = UINT64_MAX;
	enum xfp_status status = XFP_OK;

#pragma omp parallel for schedule(dynamic)
	for (uint64_t i = 0; i < blocks + digests; i++) {
		struct xfp_error own = { .status = XFP_OK };
		enum xfp_status result;

		result = i < blocks ? compare_block(c, i, &own)
				    : digest_matrix(c, c->unit.first_matrix + (uint32_t)(i - blocks), &same[i - blocks],
						    &own);
		if (result) {
#pragma omp critical(verify_failure)
			if (i < failed) {
				failed = i;
				status = result;
				if (err)
					*err = own;
			}
		}
	}
	return status;
}

/* ---- results of all rows ----------------------------------------------------------------------- */

static enum xfp_status find_rows(const struct comparison *c, struct xfp_faults *faults, struct xfp_error *err)
{
	bool kept = c->unit.mode == XFP_MODE_KEEP;
	uint64_t total = c->unit.experts * c->unit.rows, wrong = 0, first = 0;

	for (uint64_t i = total; i-- > 0;) {
		if (c->wrong[i]) {
			wrong++;
			first = i;
		}
	}
	if (!wrong)
		return XFP_OK;
	return xfp_faults_add(faults, err, kept ? XFP_UNMET : XFP_BAD_INPUT,
			      "unit %s (%s): %" PRIu64 " of %" PRIu64 " rows %s, the first is row %" PRIu64
			      " of expert %" PRIu64,
			      xfp_printable(c->unit.name).text, xfp_printable(c->unit.role).text, wrong, total,
			      kept ? "differ from the checkpoint" : "decode to weights that are not finite",
			      first % c->unit.rows, first / c->unit.rows);
}

static enum xfp_status find_foreign(const struct comparison *c, const bool *same, bool *foreign,
				    struct xfp_faults *faults, struct xfp_error *err)
{
	for (uint32_t e = 0; e < c->unit.experts; e++) {
		struct xfp_tensor_info tensor = { .name = "" };
		struct xfp_matrix_info matrix;

		if (same[e])
			continue;
		*foreign = true;
		xfp_bundle_matrix(c->bundle, c->unit.first_matrix + e, &matrix);
		xfp_bundle_tensor(c->bundle, matrix.tensor, &tensor);
		return xfp_faults_add(faults, err, XFP_UNMET,
				      "unit %s (%s): the weights of tensor %s are not those that were converted",
				      xfp_printable(c->unit.name).text, xfp_printable(c->unit.role).text,
				      xfp_printable(tensor.name).text);
	}
	return XFP_OK;
}

static enum xfp_status check_stated(const struct comparison *c, const char *what, double is, double stated,
				    struct xfp_faults *faults, struct xfp_error *err)
{
	if (is - stated <= XFP_VERIFY_SLACK && stated - is <= XFP_VERIFY_SLACK)
		return XFP_OK;
	return xfp_faults_add(faults, err, XFP_UNMET, "unit %s (%s): its %s is %.12g, the bundle says %.12g",
			      xfp_printable(c->unit.name).text, xfp_printable(c->unit.role).text, what, is, stated);
}

/* Measure again and compare with the values in the bundle. */
static enum xfp_status measure(const struct comparison *c, struct xfp_quality *quality, struct xfp_faults *faults,
			       struct xfp_error *err)
{
	uint64_t total = c->unit.experts * c->unit.rows;
	double *cosine = malloc(total * sizeof *cosine + 1), error = 0, norm = 0;
	enum xfp_status status;

	if (!cosine)
		return xfp_no_memory(err);
	for (uint64_t i = 0; i < total; i++) {
		cosine[i] = c->rows[i].cosine;
		error += c->rows[i].error;
		norm += c->rows[i].norm;
	}
	xfp_cosine_summary(cosine, total, &quality->median, &quality->p5);
	quality->error = norm > 0 ? error / norm : 0;
	free(cosine);
	status = check_stated(c, "median cosine", quality->median, c->unit.cos_median, faults, err);
	if (!status)
		status = check_stated(c, "5th-percentile cosine", quality->p5, c->unit.cos_p5, faults, err);
	if (!status)
		status = check_stated(c, "relative squared error", quality->error, c->unit.error, faults, err);
	return status;
}

enum xfp_status xfp_verify_unit(const struct xfp_bundle *bundle, uint32_t number, const struct xfp_checkpoint *source,
				struct xfp_quality *quality, struct xfp_faults *faults, struct xfp_error *err)
{
	struct comparison c = { .bundle = bundle, .source = source };
	struct xfp_matrix_info matrix;
	struct xfp_matrix_source first;
	enum xfp_status status;
	uint64_t total;
	bool *same;

	if (!xfp_bundle_unit(bundle, number, &c.unit) || !xfp_bundle_matrix(bundle, c.unit.first_matrix, &matrix))
		return xfp_fail(err, XFP_USAGE, "there is no unit %" PRIu32, number);
	*quality = (struct xfp_quality){ c.unit.cos_median, c.unit.cos_p5, c.unit.error, false };
	if (!c.unit.rows)
		return XFP_OK;
	c.element = xfp_dtype_bits((enum xfp_dtype)c.unit.dtype) / 8;
	c.block = c.unit.cols ? BLOCK_BYTES / sizeof(float) / c.unit.cols : c.unit.rows;
	if (source) {
		first = source_of(&c, &matrix);
		c.block = xfp_matrix_block_rows(&first, BLOCK_BYTES);
	}
	if (!c.block)
		c.block = 1;
	total = c.unit.experts * c.unit.rows;
	c.rows = source ? calloc(total, sizeof *c.rows) : NULL;
	c.wrong = calloc(total, 1);
	same = calloc(c.unit.experts, sizeof *same);
	if ((source && !c.rows) || !c.wrong || !same)
		status = xfp_no_memory(err);
	else if (!(status = compare_all(&c, same, err)) && !(status = find_rows(&c, faults, err)) && source &&
		 !(status = find_foreign(&c, same, &quality->foreign, faults, err)) && c.unit.mode != XFP_MODE_KEEP &&
		 !quality->foreign)
		status = measure(&c, quality, faults, err);
	free(c.rows);
	free(c.wrong);
	free(same);
	return status;
}
