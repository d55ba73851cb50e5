/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - multiply every matrix of a bundle by a few vectors with every instruction set, and compare with the
 * weights that libxfp decodes, multiplied in double.
 */
#include <math.h> /* fabs, which is exact */
#include <string.h>

#include "base/dtype.h"
#include "kernel-verify/kernel_verify.h"
#include "kernel-verify/threads.h"
#include "kernel-verify/trial/bound.h"
#include "kernels/common/number.h"
#include "runtime/linear.h"

#define VECTORS XFP_MAX_BATCH

/* Results for one mode, k and set. A trial is a matrix with one number of vectors. */
struct unit_tally {
	unsigned trials, failed;
	char failures[XFP_KEPT_FAILURES][640];
};

struct bundle_run {
	struct xfp_kernel_report *report;
	struct xfp_bundle *bundle;
	struct unit_tally *tally; /* [modes][k][sets] */
	uint64_t random;

	/* The current matrix. */
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;
	uint32_t number;
	struct xfp_matvec w;
	struct xfp_matvec_bound bound;
	struct xfp_matvec_x x;
	struct xfp_linear linear; /* the matrix's unit */
	size_t rows;              /* rows to check */
	void *prepared;
	float *source;                /* [VECTORS][cols] */
	double *expected, *magnitude; /* [rows][VECTORS] */
	float *y;                     /* [VECTORS][rows] */
	enum xfp_kernel_set set;
	bool refused;
	const char *signal;
};

#define MODES (XFP_MATVEC_V2C + 1)
static struct unit_tally *tally_of(struct bundle_run *run, unsigned mode, unsigned k, unsigned set)
{
	return &run->tally[(mode * 7 + k) * XFP_KERNEL_SETS + set];
}

static const char *const mode_names[] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c" };

static void name_group(char name[40], unsigned mode, unsigned k)
{
	snprintf(name, 40, k ? "bundle %s k=%u" : "bundle %s", mode_names[mode], k);
}

static void *allocated(size_t bytes)
{
	void *at = aligned_alloc(64, (bytes + 64) / 64 * 64);

	if (!at) {
		perror("xfp-kernel-verify: memory for a matrix");
		exit(XFP_FAILED);
	}
	return at;
}

/* ---- the reference --------------------------------------------------------------------------------------- */

/* Sum of |residual x| over a row. Base and residual may each be larger than their sum. */
static double outlier_magnitude(const struct xfp_matvec *w, size_t row, const float *natural)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;
	double sum = 0;

	xfp_outlier_rows_begin(o, row, &at);
	if (!xfp_outlier_rows_next(o, row, &at))
		return 0; /* refused by decoding */
	for (uint32_t i = at.first; i < at.end; i++) {
		uint16_t half;

		memcpy(&half, o->residual + (size_t)i * 2, 2);
		sum += fabs((double)xfp_half_to_float(half) * natural[xfp_outlier_column(o, i)]);
	}
	return sum * w->unit;
}

static void refer(const struct xfp_row_range *range)
{
	struct bundle_run *run = range->context;
	size_t cols = run->w.cols;
	float *w = allocated(cols * sizeof *w);

	for (size_t r = range->first; r < range->first + range->rows; r++) {
		if (xfp_bundle_dequantize(run->bundle, run->number, r, 1, XFP_FLOAT32, w, NULL)) {
			__atomic_store_n(&run->refused, true, __ATOMIC_RELAXED);
			break;
		}
		for (size_t m = 0; m < VECTORS; m++) {
			const float *x = run->source + m * cols;
			double sum = 0, magnitude = 0;

			for (size_t c = 0; c < cols; c++) {
				double product = (double)w[c] * x[c];

				sum += product;
				magnitude += fabs(product);
			}
			run->expected[r * VECTORS + m] = sum;
			run->magnitude[r * VECTORS + m] =
				magnitude + 2 * outlier_magnitude(&run->w, r, run->x.natural + m * cols);
		}
	}
	free(w);
}

/* ---- one instruction set --------------------------------------------------------------------------------- */

static void multiply_rows(void *context)
{
	const struct xfp_row_range *range = context;
	struct bundle_run *run = range->context;

	if (!xfp_kernel_rows(run->set, &run->w, &run->x, range->first, range->rows, false, run->y + range->first,
			     run->rows))
		__atomic_store_n(&run->refused, true, __ATOMIC_RELAXED);
}

static void multiply(const struct xfp_row_range *range)
{
	struct bundle_run *run = range->context;
	const char *signal = xfp_kernel_guarded(multiply_rows, (void *)(uintptr_t)range, NULL);

	if (signal)
		__atomic_store_n(&run->signal, signal, __ATOMIC_RELAXED);
}

static void judge(struct bundle_run *run, struct unit_tally *tally)
{
	char *text = tally->failures[tally->failed < XFP_KEPT_FAILURES ? tally->failed : XFP_KEPT_FAILURES - 1];
	const size_t capacity = sizeof *tally->failures;
	bool failed = true;

	tally->trials++;
	if (run->signal || run->refused) {
		snprintf(text, capacity, "%s %s, expert %u, M = %u: %s", run->unit.name, run->unit.role,
			 run->matrix.expert, run->x.count, run->signal ? run->signal : "outliers are refused");
		tally->failed++;
		return;
	}
	for (size_t i = 0; i < run->rows * run->x.count; i++) {
		size_t r = i / run->x.count, m = i % run->x.count;
		double expected = run->expected[r * VECTORS + m], magnitude = run->magnitude[r * VECTORS + m];
		float got = run->y[m * run->rows + r];
		/* Decoded weights and balanced x have been rounded four times. */
		double max = xfp_matvec_bound(&run->bound, run->set, &run->w, r, run->x.natural + m * run->w.cols,
					      magnitude) +
			     4 * 0x1p-24 * magnitude + 1e-30;

		if (xfp_matvec_is_narrow(run->set, &run->w, &run->x))
			max += xfp_matvec_bound_of_rounding(&run->bound, &run->w, r, run->x.natural + m * run->w.cols);

		failed = isfinite(expected)
				 ? xfp_matvec_bound_holds(&run->w, r) && !(fabs((double)got - expected) <= max)
				 : isfinite(got);
		if (!failed)
			continue;
		snprintf(text, capacity, "%s %s, expert %u, M = %u: row %zu of vector %zu is %.9g, not %.9g (%.3g)",
			 run->unit.name, run->unit.role, run->matrix.expert, run->x.count, r, m, (double)got, expected,
			 max);
		tally->failed++;
		return;
	}
}

static void prepare(struct bundle_run *run, unsigned batch)
{
	xfp_matvec_x_init(&run->x, run->w.k, run->w.cols, batch, XFP_F32, run->source, run->w.cols, run->linear.down,
			  run->prepared);
}

static void all_sets(struct bundle_run *run, unsigned batch)
{
	const struct xfp_kernel_request *request = run->report->request;
	char name[40];

	prepare(run, batch);
	name_group(name, run->w.mode, run->w.k);
	if (batch == VECTORS)
		xfp_each_range(request->threads, run->rows, refer, run);
	for (unsigned set = 0; set < XFP_KERNEL_SETS && !run->refused; set++) {
		if (!(request->sets >> set & 1) || !xfp_kernel_wanted(request, name, set))
			continue;
		run->set = set;
		run->signal = NULL;
		xfp_kernel_use((enum xfp_kernel_set)set);
		prepare(run, batch);
		memset(run->y, 0xff, run->rows * batch * sizeof *run->y);
		xfp_each_range(request->threads, run->rows, multiply, run);
		judge(run, tally_of(run, run->w.mode, run->w.k, set));
	}
}

static float next(uint64_t *random)
{
	*random = *random * 6364136223846793005 + 1442695040888963407;
	return (float)(int32_t)(*random >> 32) * 0x1p-31f;
}

static enum xfp_status one_matrix(struct bundle_run *run, uint32_t number, struct xfp_error *err)
{
	const struct xfp_kernel_request *request = run->report->request;
	enum xfp_status status = XFP_OK;
	size_t cols;

	run->number = number;
	run->refused = false;
	xfp_bundle_matrix(run->bundle, number, &run->matrix);
	xfp_bundle_unit(run->bundle, run->matrix.unit, &run->unit);
	cols = run->matrix.cols;
	if ((status = xfp_linear_init(&run->linear, run->bundle, run->matrix.unit, true, err)))
		return status;
	if (!run->matrix.rows || !cols || !xfp_linear_matrix(&run->linear, run->matrix.expert, &run->w)) {
		run->report->unsupported++;
		xfp_linear_release(&run->linear);
		return XFP_OK;
	}
	run->rows = run->matrix.rows;
	if (request->bundle_rows && request->bundle_rows < run->rows)
		run->rows = request->bundle_rows;
	xfp_matvec_bound_init(&run->bound, &run->w);
	run->source = allocated(VECTORS * cols * sizeof *run->source);
	run->prepared = allocated(xfp_matvec_x_bytes(run->w.k, cols, VECTORS));
	run->expected = allocated(run->rows * VECTORS * sizeof *run->expected);
	run->magnitude = allocated(run->rows * VECTORS * sizeof *run->magnitude);
	run->y = allocated(run->rows * VECTORS * sizeof *run->y);
	for (size_t i = 0; i < VECTORS * cols; i++)
		run->source[i] = next(&run->random);
	all_sets(run, VECTORS);
	if (!run->refused)
		all_sets(run, 1);
	if (run->refused) {
		/* Decoding reports the error. If it succeeds, a kernel refused the matrix, which is reported with the
		 * others. */
		float *w = allocated(cols * sizeof *w);

		for (uint64_t r = 0; !status && r < run->rows; r++)
			status = xfp_bundle_dequantize(run->bundle, number, r, 1, XFP_FLOAT32, w, err);
		free(w);
	}
	free(run->source);
	free(run->prepared);
	free(run->expected);
	free(run->magnitude);
	free(run->y);
	xfp_linear_release(&run->linear);
	return status;
}

static void print_result(struct bundle_run *run)
{
	char name[40];

	for (unsigned mode = 0; mode < MODES; mode++)
		for (unsigned k = 0; k < 7; k++)
			for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
				const struct unit_tally *tally = tally_of(run, mode, k, set);
				unsigned kept = tally->failed < XFP_KEPT_FAILURES ? tally->failed : XFP_KEPT_FAILURES;

				name_group(name, mode, k);
				if (tally->trials)
					xfp_report_group(run->report, name, set, tally->trials, tally->failed,
							 (const char(*)[640])tally->failures, kept);
			}
}

enum xfp_status xfp_kernel_verify_bundle(struct xfp_kernel_report *report, struct xfp_error *err)
{
	struct bundle_run run = { .report = report, .random = report->request->seed };
	struct xfp_bundle_info info;
	enum xfp_status status = xfp_bundle_open(report->request->bundle, &run.bundle, err);

	if (status)
		return status;
	run.tally = calloc((size_t)MODES * 7 * XFP_KERNEL_SETS, sizeof *run.tally);
	if (!run.tally) {
		xfp_bundle_close(run.bundle);
		return xfp_no_memory(err);
	}
	xfp_bundle_describe(run.bundle, &info);
	for (uint32_t number = 0; !status && number < info.matrices; number++)
		status = one_matrix(&run, number, err);
	print_result(&run);
	free(run.tally);
	xfp_bundle_close(run.bundle);
	return status;
}
