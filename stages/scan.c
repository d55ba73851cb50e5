/* SPDX-License-Identifier: Apache-2.0 */
#include "scan.h"

#include <stdlib.h>

#include "balance.h"
#include "encode.h"
#include "rows.h"
#include "scale.h"
#include "work.h"

struct scan {
	float *largest; /* [matrices][cols] largest |w| */
	double *square; /* [cols] sums of squares over the unit */
	double *chunk;  /* [cols] the same over one chunk of rows */
	float *row;     /* one, padded */
	struct xfp_peaks *peaks;
	uint64_t all, sampled; /* rows of the unit, and of the sample so far */
};

static void scan_free(struct scan *scan)
{
	free(scan->largest);
	free(scan->square);
	free(scan->chunk);
	free(scan->row);
}

static enum xfp_status scan_init(struct scan *scan, const struct xfp_ledger_unit *unit, struct xfp_error *err)
{
	scan->largest = calloc(unit->experts * unit->cols, sizeof *scan->largest);
	scan->square = calloc(unit->cols, sizeof *scan->square);
	scan->chunk = malloc(unit->cols * sizeof *scan->chunk);
	scan->row = xfp_row_new(unit->cols);
	return scan->largest && scan->square && scan->chunk && scan->row ? XFP_OK
									 : xfp_fail(err, XFP_FAILED, "out of memory");
}

/* Row r of the block, number `row` of the unit. They come in rising order, so that of equal ones the first stays in
 * front. */
static void note_peak(struct xfp_peaks *peaks, const struct xfp_rows *rows, uint64_t r, uint64_t row, float largest)
{
	uint32_t at = peaks->count;

	if (at == XFP_PEAKS && !(largest > peaks->largest[--at]))
		return;
	peaks->count = at + 1;
	for (; at && largest > peaks->largest[at - 1]; at--) {
		peaks->row[at] = peaks->row[at - 1];
		peaks->largest[at] = peaks->largest[at - 1];
		peaks->print[at] = peaks->print[at - 1];
	}
	peaks->row[at] = row;
	peaks->largest[at] = largest;
	peaks->print[at] = xfp_rows_print(rows, r);
}

/* What a survey will want to know of a block of matrix m. */
static void note_rows(struct scan *scan, uint32_t m, const struct xfp_rows *rows)
{
	struct xfp_peaks *peaks = scan->peaks;

	for (uint64_t r = 0; r < rows->count; r++) {
		uint64_t row = m * rows->rows + rows->first + r;

		xfp_rows_load(rows, r, scan->row);
		note_peak(peaks, rows, r, row, xfp_encoder()->largest(scan->row, rows->cols));
		if (peaks->sample && scan->sampled < peaks->samples &&
		    row == xfp_sampled_row(scan->sampled, scan->all, peaks->samples))
			peaks->sample[scan->sampled++] = xfp_rows_print(rows, r);
	}
}

/* Digest of one matrix, its largest weights and its share of the column sums. */
static enum xfp_status scan_matrix(struct scan *scan, const struct xfp_matrix_source *source, uint32_t m,
				   uint8_t digest_of[16], size_t *nonfinite, struct xfp_error *err)
{
	uint64_t cols = source->view.cols;
	float *largest = scan->largest + m * cols;
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open_first(source, digest_of, &rows, err);

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		for (uint64_t r = 0; r < rows.count; r += XFP_BALANCE_CHUNK) {
			uint64_t left = rows.count - r;
			size_t count = left < XFP_BALANCE_CHUNK ? (size_t)left : XFP_BALANCE_CHUNK;

			*nonfinite +=
				xfp_encoder()->column_scan(rows.dtype, (uint8_t *)rows.raw + r * cols * rows.element,
							   count, cols, scan->chunk, largest);
			for (uint64_t c = 0; c < cols; c++)
				scan->square[c] += scan->chunk[c];
		}
		if (scan->peaks)
			note_rows(scan, m, &rows);
	}
	xfp_rows_close(&rows);
	return status;
}

enum xfp_status xfp_scan_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
			      const struct xfp_parameters *parameters, struct xfp_outliers *known,
			      struct xfp_peaks *peaks, struct xfp_error *err)
{
	struct scan scan = { .peaks = peaks, .all = unit->experts * unit->rows };
	const char *tensor = NULL;
	size_t nonfinite = 0;
	enum xfp_status status = xfp_outliers_init(known, unit->experts, unit->rows, unit->cols, err);

	if (peaks)
		peaks->count = 0;
	if (!status)
		status = scan_init(&scan, unit, err);
	for (uint32_t m = 0; !status && m < unit->experts; m++) {
		struct xfp_matrix_source source = xfp_ledger_source(ledger, unit->first_matrix + m);

		status = scan_matrix(&scan, &source, m, known->source[m], &nonfinite, err);
		if (nonfinite && !tensor)
			tensor = source.tensor;
	}
	if (!status && nonfinite && parameters->on_nonfinite == XFP_NONFINITE_FAIL)
		status = xfp_fail_nonfinite(err, tensor, nonfinite);
	if (!status && !nonfinite) {
		xfp_balance(scan.square, unit->experts * unit->rows, unit->cols, parameters->balance, known->balance);
		for (uint32_t m = 0; m < unit->experts; m++)
			known->exponent[m] =
				(int16_t)xfp_matrix_exponent(scan.largest + m * unit->cols, known->balance, unit->cols);
	}
	/* Said by a standard deviation that is none; such a unit has no candidates. */
	for (uint32_t m = 0; !status && nonfinite && m < unit->experts; m++)
		known->sigma[m] = -1;
	scan_free(&scan);
	return status;
}
