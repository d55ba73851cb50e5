/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/rows.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/memory.h"
#include "kernels/common/scale.h"
#include "kernels/encode/encode.h"
#include "schemas/digest.h"

#define BLOCK_BYTES (512u << 10)

uint64_t xfp_rows_block(const struct xfp_matrix_source *source)
{
	uint64_t block = xfp_align(xfp_matrix_block_rows(source, BLOCK_BYTES), 64);

	return block < source->view.rows ? block : source->view.rows;
}

enum xfp_status xfp_rows_open(const struct xfp_matrix_source *source, struct xfp_rows *rows, struct xfp_error *err)
{
	enum xfp_status status;

	memset(rows, 0, sizeof *rows);
	rows->rows = source->view.rows;
	rows->cols = source->view.cols;
	rows->dtype = source->dtype;
	rows->element = xfp_dtype_bits(source->dtype) / 8;
	rows->block = xfp_rows_block(source);
	rows->path = source->path;
	rows->tensor = source->tensor;
	rows->watcher = source->watcher;
	status = xfp_matrix_open(source, &rows->reader, err);
	if (status)
		return status;
	rows->raw = malloc(rows->block * rows->cols * rows->element);
	if (!rows->raw) {
		xfp_rows_close(rows);
		return xfp_fail(err, XFP_FAILED, "out of memory for a block of %s", source->tensor);
	}
	return XFP_OK;
}

static enum xfp_status open_digest(const struct xfp_matrix_source *source, struct xfp_rows *rows, struct xfp_error *err)
{
	enum xfp_status status = xfp_rows_open(source, rows, err);

	if (!status && !(rows->digest = xfp_digest_new())) {
		xfp_rows_close(rows);
		status = xfp_no_memory(err);
	}
	return status;
}

enum xfp_status xfp_rows_open_first(const struct xfp_matrix_source *source, uint8_t digest[16], struct xfp_rows *rows,
				    struct xfp_error *err)
{
	enum xfp_status status = open_digest(source, rows, err);

	rows->digest_out = digest;
	return status;
}

enum xfp_status xfp_rows_open_again(const struct xfp_matrix_source *source, const uint8_t known[16],
				    struct xfp_rows *rows, struct xfp_error *err)
{
	enum xfp_status status = open_digest(source, rows, err);

	rows->known = known;
	return status;
}

enum xfp_status xfp_rows_changed(const struct xfp_rows *rows, struct xfp_error *err)
{
	return xfp_fail(err, XFP_CHANGED,
			"%s: tensor %s: weights changed during the conversion, although the file's times did not; let "
			"nothing write to the file, and run again",
			rows->path, xfp_printable(rows->tensor).text);
}

/* Finish the digest after all rows were read. */
static enum xfp_status finish_digest(struct xfp_rows *rows, struct xfp_error *err)
{
	uint8_t found[16];

	xfp_digest_final(rows->digest, found);
	rows->digest = NULL;
	if (rows->digest_out)
		memcpy(rows->digest_out, found, sizeof found);
	else if (memcmp(rows->known, found, sizeof found))
		return xfp_rows_changed(rows, err);
	return XFP_OK;
}

enum xfp_status xfp_rows_next(struct xfp_rows *rows, struct xfp_error *err)
{
	enum xfp_status status;
	uint64_t left;

	rows->first += rows->count;
	left = rows->rows - rows->first;
	/* Report the previous block, which has been processed. */
	if (rows->count)
		xfp_watch_done(rows->watcher, rows->count * rows->cols);
	rows->count = left < rows->block ? left : rows->block;
	if (!rows->count)
		return rows->digest ? finish_digest(rows, err) : XFP_OK;
	status = xfp_matrix_read(rows->reader, rows->first, rows->count, rows->raw, err);
	if (!status && rows->digest)
		xfp_digest_update(rows->digest, rows->raw, rows->count * rows->cols * rows->element);
	return status;
}

enum xfp_status xfp_rows_one(struct xfp_rows *rows, uint64_t row, struct xfp_error *err)
{
	rows->first = row;
	rows->count = 1;
	return xfp_matrix_read(rows->reader, row, 1, rows->raw, err);
}

void xfp_rows_load(const struct xfp_rows *rows, uint64_t r, float *w)
{
	xfp_encoder()->rows->load(rows->dtype, (const uint8_t *)rows->raw + r * rows->cols * rows->element, rows->cols,
				  w);
}

struct xfp_row_start xfp_rows_scaled(const struct xfp_rows *rows, const struct xfp_scaling *scaling, uint64_t r,
				     float unit, float *w, float *x)
{
	const struct xfp_row_encoder *encoder = xfp_encoder()->rows;
	const void *source = (const uint8_t *)rows->raw + r * rows->cols * rows->element;
	struct xfp_row_start start = { 0 };
	float *from = w ? w : x;

	if (scaling->fits)
		return encoder->load_scaled(rows->dtype, source, rows->cols, scaling->narrow, unit, w, x);
	encoder->load(rows->dtype, source, rows->cols, from);
	if (w)
		start.norm = encoder->norm(w, rows->cols);
	xfp_scaling_row(scaling, from, x);
	start.largest = encoder->largest(x, rows->cols);
	return start;
}

uint64_t xfp_rows_print(const struct xfp_rows *rows, uint64_t r)
{
	size_t bytes = rows->cols * rows->element;

	return XXH3_64bits((const uint8_t *)rows->raw + r * bytes, bytes);
}

void xfp_rows_close(struct xfp_rows *rows)
{
	if (rows->digest)
		xfp_digest_final(rows->digest, NULL);
	xfp_matrix_close(rows->reader);
	free(rows->raw);
	memset(rows, 0, sizeof *rows);
}

float *xfp_row_new(uint64_t cols)
{
	return xfp_aligned_new((xfp_padded(cols) + XFP_LANES) * sizeof(float));
}

enum xfp_status xfp_scaling_init(struct xfp_scaling *scaling, uint64_t cols, struct xfp_error *err)
{
	scaling->cols = cols;
	scaling->narrow = xfp_row_new(cols);
	scaling->wide = malloc(cols * sizeof *scaling->wide);
	return scaling->narrow && scaling->wide ? XFP_OK : xfp_no_memory(err);
}

void xfp_scaling_set(struct xfp_scaling *scaling, const uint8_t *balance, int exponent)
{
	scaling->fits = xfp_scale_factors(balance, exponent, scaling->cols, scaling->narrow, scaling->wide);
}

void xfp_scaling_row(const struct xfp_scaling *scaling, const float *w, float *x)
{
	if (scaling->fits) {
		xfp_encoder()->rows->scale(w, scaling->narrow, scaling->cols, x);
		return;
	}
	xfp_scale_row_wide(w, scaling->wide, scaling->cols, x);
	memset(x + scaling->cols, 0, (xfp_padded(scaling->cols) - scaling->cols) * sizeof *x);
}

void xfp_scaling_free(struct xfp_scaling *scaling)
{
	free(scaling->narrow);
	free(scaling->wide);
	memset(scaling, 0, sizeof *scaling);
}

struct xfp_matrix_source xfp_ledger_tensor_source(const struct xfp_ledger *ledger, uint32_t number)
{
	const struct xfp_ledger_tensor *tensor = &ledger->tensors[number];

	return (struct xfp_matrix_source){
		.path = ledger->files[tensor->file].path,
		.tensor = tensor->name,
		.dtype = tensor->dtype,
		.offset = tensor->offset,
		.bytes = tensor->bytes,
		.identity = &ledger->files[tensor->file].identity,
		.watcher = ledger->watcher,
		.recipe = tensor->recipe,
		.files = ledger->files,
	};
}

struct xfp_matrix_source xfp_ledger_source(const struct xfp_ledger *ledger, uint32_t index)
{
	const struct xfp_ledger_matrix *matrix = &ledger->matrices[index];
	struct xfp_matrix_source source = xfp_ledger_tensor_source(ledger, matrix->tensor);

	source.view =
		(struct xfp_view){ matrix->base, matrix->rows, matrix->cols, matrix->row_stride, matrix->col_stride };
	return source;
}
