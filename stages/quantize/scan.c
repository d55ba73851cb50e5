/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/scan.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "kernels/common/balance.h"
#include "kernels/common/scale.h"
#include "kernels/encode/encode.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/threads.h"

#define MAX_WORKERS 8 /* only one worker reads at a time, and reading takes a fourth of the time */

struct unit_scan {
	float *largest; /* [matrices][cols] largest |w| */
	double *square; /* [cols] sums of squares over the unit */
	struct xfp_peaks *peaks;
	uint64_t all, sampled; /* rows of the unit, and of the sample so far */
	struct worker *workers;
	int count;
};

/* A thread's own state. */
struct worker {
	void *spare;    /* a block; NULL with a single worker, which processes data in place */
	double *chunk;  /* [chunks of a block][cols] sums of squares over a chunk of rows */
	float *largest; /* [cols] of a matrix; for the first worker the unit's */
	float *peak;    /* [rows of a block] largest |w| of a row */
	float *tile;    /* [rows of a block][tiles] largest |w| of each tile of a row; NULL: not needed */
	float *row;     /* one row, padded */
	size_t nonfinite;
};

/* A matrix being scanned. Blocks are read and digested sequentially, processed concurrently, and their results are
 * added sequentially again: neither digests nor sums depend on the number of threads. */
struct line {
	struct unit_scan *scan;
	uint64_t matrix;
	struct xfp_rows rows;
	uint64_t taken; /* blocks */
	enum xfp_status status;
	struct xfp_error *err;
	pthread_mutex_t reading; /* protects all of the above */
	uint64_t added;
	pthread_mutex_t adding; /* protects this, and the sums */
	pthread_cond_t turn;
};

static void scan_free(struct unit_scan *scan)
{
	for (int w = 0; scan->workers && w < scan->count; w++) {
		struct worker *worker = &scan->workers[w];

		free(worker->spare);
		free(worker->chunk);
		free(worker->peak);
		free(worker->tile);
		free(worker->row);
		if (w)
			free(worker->largest);
	}
	free(scan->workers);
	free(scan->largest);
	free(scan->square);
}

static uint64_t chunks_of(uint64_t rows)
{
	return (rows + XFP_BALANCE_CHUNK - 1) / XFP_BALANCE_CHUNK;
}

static int workers_for(const struct xfp_ledger_unit *unit, uint64_t block)
{
	uint64_t blocks = block ? (unit->rows + block - 1) / block : 1;
	int count = xfp_threads() < MAX_WORKERS ? xfp_threads() : MAX_WORKERS;

	return blocks < (uint64_t)count ? (int)blocks : count;
}

/* The first worker updates the unit's array directly; it is set for each matrix. */
static bool worker_init(struct worker *worker, const struct unit_scan *scan, const struct xfp_ledger_unit *unit,
			uint64_t block, bool first)
{
	size_t bytes = block * unit->cols * (xfp_dtype_bits(unit->dtype) / 8);
	bool tiles = scan->peaks && scan->peaks->tile;

	worker->chunk = malloc(chunks_of(block) * unit->cols * sizeof *worker->chunk);
	worker->row = xfp_row_new(unit->cols);
	worker->peak = scan->peaks ? malloc(block * sizeof *worker->peak) : NULL;
	worker->tile = tiles ? malloc(block * xfp_tiles(unit->cols) * sizeof *worker->tile) : NULL;
	worker->spare = scan->count > 1 ? malloc(bytes) : NULL;
	worker->largest = first ? NULL : malloc(unit->cols * sizeof *worker->largest);
	return worker->chunk && worker->row && (worker->peak || !scan->peaks) && (worker->tile || !tiles) &&
	       (worker->spare || scan->count == 1) && (worker->largest || first);
}

static enum xfp_status scan_init(struct unit_scan *scan, const struct xfp_ledger *ledger,
				 const struct xfp_ledger_unit *unit, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(ledger, unit->first_matrix);
	uint64_t block = xfp_rows_block(&source);
	bool good;

	scan->count = workers_for(unit, block);
	scan->largest = calloc(unit->experts * unit->cols, sizeof *scan->largest);
	scan->square = calloc(unit->cols, sizeof *scan->square);
	scan->workers = calloc((size_t)scan->count, sizeof *scan->workers);
	good = scan->largest && scan->square && scan->workers;
	for (int w = 0; good && w < scan->count; w++)
		good = worker_init(&scan->workers[w], scan, unit, block, !w);
	return good ? XFP_OK : xfp_no_memory(err);
}

/* Maximum of magnitudes, which compare like their bits, with NaN above infinity. */
static void raise_to(float *largest, const float *other, uint64_t cols)
{
	for (uint64_t c = 0; c < cols; c++) {
		uint32_t a, b;

		memcpy(&a, &largest[c], sizeof a);
		memcpy(&b, &other[c], sizeof b);
		if (b > a)
			largest[c] = other[c];
	}
}

/* Note row r of the block, number `row` of the unit. Rows arrive in ascending order, so that among equal ones the first
 * is kept. */
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

/* Collect what a survey needs from a block of matrix m; `largest` is the largest |w| of each of its rows. */
static void note_rows(struct unit_scan *scan, uint64_t m, const struct xfp_rows *block, const float *largest)
{
	struct xfp_peaks *peaks = scan->peaks;

	for (uint64_t r = 0; r < block->count; r++) {
		uint64_t row = m * block->rows + block->first + r;

		note_peak(peaks, block, r, row, largest[r]);
		if (peaks->sample && scan->sampled < peaks->samples &&
		    row == xfp_sampled_row(scan->sampled, scan->all, peaks->samples))
			peaks->sample[scan->sampled++] = xfp_rows_print(block, r);
	}
}

/* A tile may have rows in several blocks. `tile`: the maxima of each row's tiles. */
static void raise_tiles(float *unit, uint64_t m, const struct xfp_rows *block, const float *tile)
{
	uint64_t across = xfp_tiles(block->cols);
	float *matrix = unit + m * xfp_tiles(block->rows) * across;

	for (uint64_t r = 0; r < block->count; r++)
		raise_to(matrix + (block->first + r) / XFP_TILE * across, tile + r * across, across);
}

/* Take the next block and its number; false after the last. The next read uses this worker's spare buffer. */
static bool next_block(struct line *line, struct worker *worker, struct xfp_rows *block, uint64_t *number)
{
	struct xfp_rows *rows = &line->rows;
	bool taken;

	pthread_mutex_lock(&line->reading);
	if (!line->status)
		line->status = xfp_rows_next(rows, line->err);
	if ((taken = !line->status && rows->count)) {
		*block = *rows;
		*number = line->taken++;
		if (worker->spare) {
			rows->raw = worker->spare;
			worker->spare = block->raw;
		}
	}
	pthread_mutex_unlock(&line->reading);
	return taken;
}

static void count_block(const struct unit_scan *scan, struct worker *worker, const struct xfp_rows *block)
{
	uint64_t cols = block->cols;

	for (uint64_t r = 0; r < block->count; r += XFP_BALANCE_CHUNK) {
		uint64_t left = block->count - r;
		size_t count = left < XFP_BALANCE_CHUNK ? (size_t)left : XFP_BALANCE_CHUNK;

		worker->nonfinite += xfp_encoder()->rows->column_scan(
			block->dtype, (uint8_t *)block->raw + r * cols * block->element, count, cols,
			worker->chunk + r / XFP_BALANCE_CHUNK * cols, worker->largest);
	}
	for (uint64_t r = 0; scan->peaks && r < block->count; r++) {
		xfp_rows_load(block, r, worker->row);
		worker->peak[r] = xfp_encoder()->rows->largest(worker->row, cols);
		for (uint64_t t = 0; worker->tile && t < xfp_tiles(cols); t++) {
			uint64_t at = t * XFP_TILE, left = cols - at;

			worker->tile[r * xfp_tiles(cols) + t] =
				xfp_encoder()->rows->largest(worker->row + at, left < XFP_TILE ? left : XFP_TILE);
		}
	}
}

/* Add in the order of the rows, which defines the sums and the peaks. */
static void add_block(struct line *line, const struct worker *worker, const struct xfp_rows *block, uint64_t number)
{
	struct unit_scan *scan = line->scan;
	uint64_t cols = block->cols;

	pthread_mutex_lock(&line->adding);
	while (line->added != number)
		pthread_cond_wait(&line->turn, &line->adding);
	for (uint64_t chunk = 0; chunk < chunks_of(block->count); chunk++)
		for (uint64_t c = 0; c < cols; c++)
			scan->square[c] += worker->chunk[chunk * cols + c];
	if (scan->peaks)
		note_rows(scan, line->matrix, block, worker->peak);
	if (worker->tile)
		raise_tiles(scan->peaks->tile, line->matrix, block, worker->tile);
	line->added++;
	pthread_cond_broadcast(&line->turn);
	pthread_mutex_unlock(&line->adding);
}

static void work(struct line *line, struct worker *worker)
{
	struct xfp_rows block;
	uint64_t number;

	/* The worker that takes a block also adds it, so that none waits forever. */
	while (next_block(line, worker, &block, &number)) {
		count_block(line->scan, worker, &block);
		add_block(line, worker, &block, number);
	}
}

/* Scan one matrix: its digest, its largest weights and its share of the column sums. */
static enum xfp_status scan_matrix(struct unit_scan *scan, const struct xfp_matrix_source *source, uint32_t m,
				   uint8_t digest_of[16], size_t *nonfinite, struct xfp_error *err)
{
	struct line line = { .scan = scan,
			     .matrix = m,
			     .err = err,
			     .reading = PTHREAD_MUTEX_INITIALIZER,
			     .adding = PTHREAD_MUTEX_INITIALIZER,
			     .turn = PTHREAD_COND_INITIALIZER };
	uint64_t cols = source->view.cols;

	line.status = xfp_rows_open_first(source, digest_of, &line.rows, err);
	scan->workers[0].largest = scan->largest + m * cols;
	for (int w = 0; w < scan->count; w++) {
		scan->workers[w].nonfinite = 0;
		if (w)
			memset(scan->workers[w].largest, 0, cols * sizeof(float));
	}
	if (!line.status && scan->count == 1)
		work(&line, &scan->workers[0]);
	else if (!line.status) {
#pragma omp parallel num_threads(scan->count)
		work(&line, &scan->workers[xfp_thread()]);
	}
	for (int w = 0; w < scan->count; w++) {
		*nonfinite += scan->workers[w].nonfinite;
		if (w)
			raise_to(scan->workers[0].largest, scan->workers[w].largest, cols);
	}
	xfp_rows_close(&line.rows);
	return line.status;
}

enum xfp_status xfp_scan_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
			      const struct xfp_parameters *parameters, struct xfp_outliers *known,
			      struct xfp_peaks *peaks, struct xfp_error *err)
{
	struct unit_scan scan = { .peaks = peaks, .all = unit->experts * unit->rows };
	const char *tensor = NULL;
	size_t nonfinite = 0;
	enum xfp_status status = xfp_outliers_init(known, unit->experts, unit->rows, unit->cols, err);

	if (peaks)
		peaks->count = 0;
	if (!status)
		status = scan_init(&scan, ledger, unit, err);
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
	/* Indicated by a negative standard deviation; such a unit has no candidates. */
	for (uint32_t m = 0; !status && nonfinite && m < unit->experts; m++)
		known->sigma[m] = -1;
	scan_free(&scan);
	return status;
}

enum xfp_status xfp_fail_nonfinite(struct xfp_error *err, const char *tensor, uint64_t count)
{
	return xfp_fail(err, XFP_BAD_INPUT,
			"tensor %s: %" PRIu64
			" weights are NaN or infinite; repair the checkpoint, or keep such tensors "
			"unchanged with --on-nonfinite keep",
			xfp_printable(tensor).text, count);
}
