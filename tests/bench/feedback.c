/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback ROUNDS COLS - time the kernels of error feedback (kernels/feedback/feedback.h) on one thread: second moments
 * of 4,096 and of 28,672 inputs, the factor, 256 rows encoded without and with two passes for k = 2, 3 and 4 in groups
 * of 32. Prints one line per kernel: its name, weights (0 if it has none), the least processor time in seconds, f64
 * multiply-adds of its sums, and its share of the processor's f64 multiply-adds a second, measured before each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel-verify/kernel_verify.h"
#include "kernels/common/number.h"
#include "kernels/encode/encode.h"
#include "kernels/feedback/feedback.h"
#include "tests/bench/bench.h"

#define INPUTS 4096
#define MORE_INPUTS (7 * INPUTS)
#define ROWS 256
#define GROUP 32
#define PEAK_STEPS 500000

static size_t rounds, cols;
static uint64_t state = 1; /* of random numbers */
static uint16_t *x;        /* [INPUTS][cols] */
static float *w;           /* [ROWS][cols] */
static double *sum, *scratch;
static float *own, *panels;
static struct xfp_feedback f;
static struct xfp_feedback_batch batch;
static struct xfp_compact_book book;
static double peak; /* the highest measured */

static void *zeros(size_t bytes)
{
	void *block = bench_need(aligned_alloc(64, (bytes + 64) / 64 * 64));

	return memset(block, 0, (bytes + 64) / 64 * 64);
}

/* ---- the case ------------------------------------------------------------------------------------ */

/* Of variance 1, nearly normal. */
static float number(void)
{
	float total = 0;

	for (int i = 0; i < 4; i++)
		total += (float)(bench_random(&state) >> 40) * 0x1p-24f - 0.5f;
	return total * 1.7320508f;
}

/* Columns of different sizes that have something in common; rows of weights. */
static void generate(void)
{
	float *scale = zeros(cols * sizeof *scale);

	for (size_t c = 0; c < cols; c++)
		scale[c] = 0.25f + number() * number();
	for (size_t r = 0; r < INPUTS; r++) {
		const float common = number();

		for (size_t c = 0; c < cols; c++)
			x[r * cols + c] = xfp_float_to_bf16((number() + common) * scale[c]);
	}
	for (size_t i = 0; i < ROWS * cols; i++)
		w[i] = number();
	free(scale);
}

/* A library from the constants, as fits start with. */
static void make_book(unsigned k)
{
	static uint64_t peaks[XFP_COMPACT_PEAKS];
	const size_t groups = cols / GROUP;
	struct xfp_compact_groups to = { .group = GROUP };

	to.y = zeros(cols * sizeof *to.y);
	to.mark = zeros(cols / 8);
	to.code = zeros(cols);
	to.largest = zeros(groups * sizeof *to.largest);
	to.square = zeros(groups * sizeof *to.square);
	for (size_t r = 0; r < ROWS; r++) {
		xfp_encoder()->compact->load(&to, 0, w + r * cols, NULL, cols, 1);
		xfp_compact_count(&to, 0, groups, peaks);
	}
	xfp_compact_seed(&book, k, GROUP, xfp_compact_entries(k), peaks);
	xfp_compact_prepare(&book);
	free(to.y);
	free(to.mark);
	free(to.code);
	free(to.largest);
	free(to.square);
}

static void reserve(void)
{
	const size_t values = xfp_triangle_values(cols);

	f = (struct xfp_feedback){ .cols = cols, .padded = cols, .group = GROUP };
	x = zeros(INPUTS * cols * sizeof *x);
	w = zeros(ROWS * cols * sizeof *w);
	sum = zeros(values * sizeof *sum);
	own = zeros(values * sizeof *own);
	panels = zeros(xfp_feedback_moments_scratch(cols) * sizeof *panels);
	scratch = zeros(xfp_feedback_scratch(cols) * sizeof *scratch);
	f.column = zeros(cols * sizeof *f.column);
	f.h = zeros(values * sizeof *f.h);
	f.factor = zeros(values * sizeof *f.factor);
	f.diagonal = zeros(cols * sizeof *f.diagonal);
	f.pivot = zeros(cols * sizeof *f.pivot);
	xfp_feedback_batch_init(&batch, &f, zeros(xfp_feedback_batch_bytes(&f, ROWS)), ROWS);
}

/* ---- kernels ------------------------------------------------------------------------------------- */

static void add_inputs(unsigned times)
{
	memset(sum, 0, xfp_triangle_values(cols) * sizeof *sum);
	while (times--)
		xfp_feedback_moments_add(sum, x, cols, INPUTS, cols, 0, (cols + XFP_LANES - 1) / XFP_LANES, panels);
}

static void factor(unsigned none)
{
	size_t bad;

	(void)none;
	if (!xfp_feedback_factor(&f, scratch, &bad))
		bench_die("feedback", "H is not positive definite");
}

static void encode(unsigned passes)
{
	xfp_feedback_encode(&batch, &book, XFP_COMPACT_TRIED);
	while (passes--)
		xfp_feedback_pass(&batch, &book);
}

static double seconds_of(void (*run)(unsigned count), unsigned count)
{
	const double begin = bench_seconds(CLOCK_THREAD_CPUTIME_ID);

	run(count);
	return bench_seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Multiply-adds a second. */
static void measure_peak(void)
{
	const double begin = bench_seconds(CLOCK_THREAD_CPUTIME_ID), flops = xfp_ceiling_multiply_f64(PEAK_STEPS);
	const double rate = flops / 2 / (bench_seconds(CLOCK_THREAD_CPUTIME_ID) - begin);

	peak = rate > peak ? rate : peak;
}

static struct kernel {
	char name[24];
	void (*run)(unsigned count);
	unsigned count, k;
	bool encodes;
	double sums; /* multiply-adds */
	double least;
} kernels[16];
static size_t kernel_count;

static void add(const char *name, unsigned k, void (*run)(unsigned count), unsigned count, double sums)
{
	struct kernel *kernel = &kernels[kernel_count++];

	*kernel = (struct kernel){ .run = run, .count = count, .k = k, .encodes = run == encode, .sums = sums };
	snprintf(kernel->name, sizeof kernel->name, k ? "%s k=%u" : "%s", name, k);
}

static void add_kernels(void)
{
	const double n = (double)cols, half = n * n / 2;

	add("moments 4096", 0, add_inputs, 1, half * INPUTS);
	add("moments 28672", 0, add_inputs, MORE_INPUTS / INPUTS, half * MORE_INPUTS);
	add("factor", 0, factor, 0, n * n * n / 6);
	for (unsigned k = 2; k <= 4; k++) {
		add("encode", k, encode, 0, half * ROWS);
		add("passes", k, encode, 2, (half + 2 * n * n) * ROWS);
	}
}

/* Prepare what the timed kernels use: H and R. */
static void prepare(void)
{
	struct xfp_feedback_source source = { .own = own, .inputs = INPUTS, .cols = cols };
	float *diagonal = zeros(cols * sizeof *diagonal), scale;

	add_inputs(1);
	xfp_feedback_moments_mean(sum, xfp_triangle_values(cols), INPUTS, own);
	for (size_t c = 0; c < cols; c++)
		diagonal[c] = own[xfp_triangle_at(cols, c, c)];
	source.own = diagonal;
	scale = xfp_feedback_scale(&source);
	source.own = own;
	xfp_feedback_prepare(&f, &source, scale);
	for (size_t r = 0; r < ROWS; r++)
		xfp_feedback_load(&batch, r, w + r * cols, NULL, 1);
	free(diagonal);
}

PROGRAM("feedback")
{
	rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	cols = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	if (!rounds || !cols || cols % GROUP || cols > XFP_FEEDBACK_COLS) {
		fprintf(stderr, "usage: feedback ROUNDS COLS, a multiple of 32\n");
		return 2;
	}
	reserve(); /* until the program ends */
	generate();
	prepare();
	add_kernels();
	for (size_t i = 0; i < rounds; i++) {
		for (struct kernel *kernel = kernels; kernel < kernels + kernel_count; kernel++) {
			double took;

			if (kernel->k)
				make_book(kernel->k);
			/* Only encoding needs the quotients. */
			if (kernel->encodes && kernel->k == 2 && !kernel->count)
				xfp_feedback_divide(&f);
			measure_peak();
			took = seconds_of(kernel->run, kernel->count);
			if (!i || took < kernel->least)
				kernel->least = took;
		}
	}
	for (struct kernel *kernel = kernels; kernel < kernels + kernel_count; kernel++)
		printf("%s\t%.0f\t%.9f\t%.0f\t%.4f\n", kernel->name, kernel->encodes ? (double)ROWS * (double)cols : 0,
		       kernel->least, kernel->sums, peak > 0 ? kernel->sums / kernel->least / peak : 0);
	return 0;
}
