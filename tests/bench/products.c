/* SPDX-License-Identifier: Apache-2.0 */
/*
 * products ROUNDS COLS - time reproducible products with 1, 8 and 512 vectors (model/forward/product.h) on one thread,
 * with each instruction set of this machine. Prints its name, the number of vectors, and the least processor time per
 * multiply-add in nanoseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/instructions.h"
#include "model/forward/product.h"
#include "tests/bench/bench.h"

#define LEAST_PRODUCTS 0x2000000 /* multiply-adds of a round */

static const size_t counts[] = { 1, 8, 512 };

static float *random_floats(size_t count, uint64_t *state)
{
	float *x = bench_need(malloc(count * sizeof *x));

	for (size_t i = 0; i < count; i++)
		x[i] = (float)(bench_random(state) >> 40) * 0x1p-24f - 0.5f;
	return x;
}

static float *w, *x, *y, *panels; /* until the program ends */
static double *scratch;

/* Seconds of `times` products. */
static double seconds_of(size_t times, size_t rows, size_t cols, size_t count)
{
	const double begin = bench_seconds(CLOCK_THREAD_CPUTIME_ID);

	for (; times; times--) {
		for (size_t some, t = 0; t < count; t += some) {
			some = count - t < XFP_PRODUCT_VECTORS ? count - t : XFP_PRODUCT_VECTORS;
			xfp_product_rows(w, rows, cols, panels + t * cols, some, scratch, y + t * rows, rows);
		}
	}
	return bench_seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static void time_products(const char *set, size_t rounds, size_t cols, size_t count)
{
	const size_t rows = count > XFP_PANEL ? XFP_PRODUCT_ROWS : XFP_PRODUCT_ROWS / 4;
	const size_t times = LEAST_PRODUCTS / (rows * cols * count) + 1;
	double least = 0;

	xfp_panels(x, cols, count, cols, panels);
	for (size_t i = 0; i < rounds; i++) {
		const double took = seconds_of(times, rows, cols, count);

		least = !i || took < least ? took : least;
	}
	printf("%s\t%zu\t%.4f\n", set, count, least / (double)(times * rows * cols * count) * 1e9);
}

PROGRAM("products")
{
	size_t rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, cols = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t state = 1;

	if (!rounds || !cols) {
		fprintf(stderr, "usage: products ROUNDS COLS\n");
		return 2;
	}
	w = random_floats(XFP_PRODUCT_ROWS * cols, &state);
	x = random_floats(512 * cols, &state);
	y = bench_need(malloc(512 * XFP_PRODUCT_ROWS * sizeof *y));
	panels = bench_need(malloc(xfp_panels_size(512, cols) * sizeof *panels));
	scratch = bench_need(aligned_alloc(64, XFP_PRODUCT_SCRATCH * sizeof *scratch));
	for (enum xfp_instruction_set set = 0; set < XFP_INSTRUCTION_SETS; set++)
		for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
			if (set != XFP_VBMI && xfp_instruction_set_use(xfp_instruction_set_name(set)))
				time_products(xfp_instruction_set_name(set), rounds, cols, counts[i]);
	return 0;
}
