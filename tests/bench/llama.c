/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama - weights per second of llama.cpp's Q4_K, Q3_K and Q2_K, and of v2c with as many bits, in one run.
 *
 *     GGML_CPU_LIBRARY=.../libggml-cpu.so llama [--mib 192] [--rounds 15] [--threads 2] [--batch 1]
 *           [--processor-time]
 *
 * Build llama.cpp's library yourself, for your machine (GGML_NATIVE=ON). It multiplies by a graph of its own, as its
 * engine does, with weights as in a file and in every other layout that it has for this machine; the fastest result
 * counts. Times include the preparation of activations, matrices are larger than typical caches, cases are measured in
 * turn, and medians are printed. --processor-time measures the processor time of all threads, for busy machines, best
 * with one thread.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "kernel-verify/threads.h"
#include "kernels/common/instructions.h"
#include "kernels/multiply/matvec.h"
#include "tests/bench/bench.h"

#define COLS 4096
#define XFP_GGML_F32 0
#define MADE_ROWS 64 /* number of different rows; they are repeated */
#define MAX_CASES 24
#define MAX_ROUNDS 99

static size_t mib = 192;
static unsigned rounds = 15, threads = 2, batch = 1;
static clockid_t timer = CLOCK_MONOTONIC;
static uint64_t state = 1; /* of random numbers */

/* ---- cases --------------------------------------------------------------------------------------- */

struct bench_case {
	char name[48];
	unsigned bits; /* bits of one weight: compare Q4_K with k = 4 */
	bool ours;
	double true_bits, weights, seconds[MAX_ROUNDS], median;
	void (*run)(struct bench_case *c);
	void *graph; /* theirs */
	struct xfp_matvec w;
};

static struct bench_case cases[MAX_CASES];
static unsigned count;

/* ---- llama.cpp ------------------------------------------------------------------------------------- */

/* The part of its public interface in use, as ggml.h, ggml-backend.h and ggml-cpu.h declare it. */
struct ggml_parameters {
	size_t bytes;
	void *buffer;
	bool no_alloc;
};

static struct {
	void *(*ggml_init)(struct ggml_parameters parameters);
	const char *(*ggml_type_name)(int type);
	size_t (*ggml_row_size)(int type, int64_t elements);
	size_t (*ggml_quantize_chunk)(int type, const float *from, void *to, int64_t start, int64_t rows, int64_t cols,
				      const float *importance);
	void *(*ggml_new_tensor_2d)(void *context, int type, int64_t cols, int64_t rows);
	void *(*ggml_mul_mat)(void *context, void *weights, void *vectors);
	void *(*ggml_new_graph)(void *context);
	void (*ggml_build_forward_expand)(void *graph, void *node);
	void *(*ggml_backend_cpu_init)(void);
	void (*ggml_backend_cpu_set_n_threads)(void *backend, int threads);
	void *(*ggml_backend_cpu_reg)(void);
	void *(*ggml_backend_cpu_buffer_type)(void);
	void *(*ggml_backend_reg_dev_get)(void *registry, size_t number);
	void *(*ggml_backend_reg_get_proc_address)(void *registry, const char *name);
	const char *(*ggml_backend_buft_name)(void *buffer_type);
	void *(*ggml_backend_alloc_ctx_tensors_from_buft)(void *context, void *buffer_type);
	bool (*ggml_backend_supports_op)(void *backend, const void *op);
	void (*ggml_backend_tensor_set)(void *tensor, const void *data, size_t offset, size_t bytes);
	int (*ggml_backend_graph_compute)(void *backend, void *graph);
} ggml;

static void *backend;

static bool load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	bool found = library;

	if (!library)
		printf("%s\n", dlerror());
#define FUNCTION(name) *(void **)&ggml.name = library ? dlsym(library, #name) : NULL, found &= ggml.name != NULL
	FUNCTION(ggml_init);
	FUNCTION(ggml_type_name);
	FUNCTION(ggml_row_size);
	FUNCTION(ggml_quantize_chunk);
	FUNCTION(ggml_new_tensor_2d);
	FUNCTION(ggml_mul_mat);
	FUNCTION(ggml_new_graph);
	FUNCTION(ggml_build_forward_expand);
	FUNCTION(ggml_backend_cpu_init);
	FUNCTION(ggml_backend_cpu_set_n_threads);
	FUNCTION(ggml_backend_cpu_reg);
	FUNCTION(ggml_backend_cpu_buffer_type);
	FUNCTION(ggml_backend_reg_dev_get);
	FUNCTION(ggml_backend_reg_get_proc_address);
	FUNCTION(ggml_backend_buft_name);
	FUNCTION(ggml_backend_alloc_ctx_tensors_from_buft);
	FUNCTION(ggml_backend_supports_op);
	FUNCTION(ggml_backend_tensor_set);
	FUNCTION(ggml_backend_graph_compute);
#undef FUNCTION
	return found;
}

static void run_theirs(struct bench_case *c)
{
	if (ggml.ggml_backend_graph_compute(backend, c->graph))
		bench_die(c->name, "failed");
}

static void add_theirs(const char *name, unsigned bits, int type, void *buffer_type, const float *made,
		       const float *vectors)
{
	struct ggml_parameters parameters = { 1 << 20, NULL, true };
	void *weights = bench_need(ggml.ggml_init(parameters)), *rest = bench_need(ggml.ggml_init(parameters)), *w, *x,
	     *y;
	size_t row = ggml.ggml_row_size(type, COLS), rows = (mib << 20) / row / MADE_ROWS * MADE_ROWS;
	struct bench_case *c = &cases[count];
	uint8_t *some = bench_need(malloc(MADE_ROWS * row)), *all;

	w = ggml.ggml_new_tensor_2d(weights, type, COLS, (int64_t)rows);
	x = ggml.ggml_new_tensor_2d(rest, XFP_GGML_F32, COLS, batch);
	y = ggml.ggml_mul_mat(rest, w, x);
	if (!ggml.ggml_backend_alloc_ctx_tensors_from_buft(weights, buffer_type) ||
	    !ggml.ggml_backend_alloc_ctx_tensors_from_buft(rest, ggml.ggml_backend_cpu_buffer_type()) ||
	    !ggml.ggml_backend_supports_op(backend, y))
		return;
	c->graph = bench_need(ggml.ggml_new_graph(rest));
	ggml.ggml_build_forward_expand(c->graph, y);
	ggml.ggml_quantize_chunk(type, made, some, 0, MADE_ROWS, COLS, NULL);
	all = bench_need(malloc(rows * row));
	for (size_t r = 0; r < rows; r += MADE_ROWS)
		memcpy(all + r * row, some, MADE_ROWS * row);
	ggml.ggml_backend_tensor_set(w, all, 0, rows * row);
	free(all);
	free(some);
	ggml.ggml_backend_tensor_set(x, vectors, 0, (size_t)batch * COLS * sizeof *vectors);
	snprintf(c->name, sizeof c->name, "%s %s", name, ggml.ggml_backend_buft_name(buffer_type));
	c->bits = bits;
	c->true_bits = 8.0 * (double)row / COLS;
	c->weights = (double)rows * COLS;
	c->run = run_theirs;
	count++;
}

static int type_named(const char *name)
{
	for (int type = 0; type < 24; type++) {
		const char *other = ggml.ggml_type_name(type);

		if (other && !strcmp(other, name))
			return type;
	}
	bench_die(name, "is missing in the library");
}

static void add_all_theirs(const float *made, const float *vectors)
{
	static const char *const names[] = { "q4_K", "q3_K", "q2_K" };
	void *registry = ggml.ggml_backend_cpu_reg(), *device = ggml.ggml_backend_reg_dev_get(registry, 0);
	void **(*extra)(void *device);
	void **others;

	*(void **)&extra = ggml.ggml_backend_reg_get_proc_address(registry, "ggml_backend_dev_get_extra_bufts");
	backend = bench_need(ggml.ggml_backend_cpu_init());
	ggml.ggml_backend_cpu_set_n_threads(backend, (int)threads);
	for (unsigned i = 0; i < 3; i++) {
		int type = type_named(names[i]);

		add_theirs(names[i], 4 - i, type, ggml.ggml_backend_cpu_buffer_type(), made, vectors);
		others = extra ? extra(device) : NULL;
		for (; others && *others; others++)
			add_theirs(names[i], 4 - i, type, *others, made, vectors);
	}
}

/* ---- ours -------------------------------------------------------------------------------------------- */

static const float *our_vectors;
static void *prepared;
static struct xfp_matvec_x x;
static float *y;

static void multiply(const struct xfp_row_range *range)
{
	struct bench_case *c = range->context;

	if (!xfp_matvec_rows(&c->w, &x, range->first, range->rows, false, y + range->first, c->w.rows))
		abort();
}

static void run_ours(struct bench_case *c)
{
	xfp_matvec_x_init(&x, c->w.k, COLS, batch, XFP_F32, our_vectors, COLS, NULL, prepared);
	xfp_each_range(threads, c->w.rows, multiply, c);
}

/* Add this many outliers to each row, evenly over the columns. */
static void add_outliers(struct xfp_matvec *w, uint32_t a_row)
{
	uint32_t all = (uint32_t)w->rows * a_row, *pointer = bench_need(malloc((w->rows + 1) * sizeof *pointer));
	uint16_t *column = bench_need(malloc(all * sizeof *column)),
		 *residual = bench_need(malloc(all * sizeof *residual));

	for (uint32_t r = 0; r <= w->rows; r++)
		pointer[r] = r * a_row;
	for (uint32_t i = 0; i < all; i++) {
		column[i] = (uint16_t)(i % a_row * (COLS / a_row) + bench_random(&state) % (COLS / a_row));
		residual[i] = (uint16_t)(0x3000 | (bench_random(&state) & 0x83ff));
	}
	w->outliers = (struct xfp_outlier_rows){ .row = (const uint8_t *)pointer,
						 .column = (const uint8_t *)column,
						 .residual = (const uint8_t *)residual,
						 .rows = w->rows,
						 .cols = COLS,
						 .count = all };
}

static void add_ours(unsigned k, uint32_t outliers, const uint8_t *matrix)
{
	struct bench_case *c = &cases[count++];
	size_t row = xfp_matvec_row_bytes(XFP_MATVEC_V2C, k, COLS), rows = (mib << 20) / row, groups = rows * COLS / 32;
	uint8_t *byte = bench_need(malloc(groups + rows)),
		*tables = bench_need(aligned_alloc(64, xfp_matvec_tables_bytes(k)));
	uint16_t entry[8 * 16], ratio[32];

	for (unsigned i = 0; i < 8u << k; i++)
		entry[i] = (uint16_t)(0x3000 | (bench_random(&state) & 0x83ff));
	for (unsigned i = 0; i < 32; i++)
		ratio[i] = (uint16_t)(0x3000 | (bench_random(&state) & 0x3ff));
	xfp_matvec_tables(k, 8, entry, ratio, tables);
	for (size_t i = 0; i < groups; i++)
		byte[i] = (uint8_t)(bench_random(&state) >> 20);
	memset(byte + groups, 20, rows);
	c->w = (struct xfp_matvec){ .mode = XFP_MATVEC_V2C,
				    .k = k,
				    .group = 5,
				    .rows = rows,
				    .cols = COLS,
				    .unit = 1,
				    .index = matrix,
				    .byte = byte,
				    .row = byte + groups,
				    .tables = tables };
	xfp_matvec_set_row_layout(&c->w);
	if (outliers)
		add_outliers(&c->w, outliers);
	snprintf(c->name, sizeof c->name, outliers ? "v2c k=%u, %u outliers a row" : "v2c k=%u", k, outliers);
	c->bits = k;
	c->ours = true;
	c->true_bits = 8.0 * ((double)row + COLS / 32 + 1 + 4.0 * outliers) / COLS;
	c->weights = (double)rows * COLS;
	c->run = run_ours;
}

static void add_all_ours(const float *vectors)
{
	uint64_t *matrix = bench_need(malloc((mib << 20) + 8192));

	for (size_t i = 0; i < (mib << 20) / 8 + 1024; i++)
		matrix[i] = bench_random(&state);
	our_vectors = vectors;
	prepared = bench_need(aligned_alloc(
		64, (xfp_matvec_x_bytes(2, COLS, batch) + xfp_matvec_x_bytes(3, COLS, batch) + 63) / 64 * 64));
	y = bench_need(malloc((mib << 20) / (COLS / 4) * batch * sizeof *y));
	for (unsigned k = 4; k >= 2; k--) {
		add_ours(k, 0, (const uint8_t *)matrix);
		add_ours(k, 12, (const uint8_t *)matrix); /* 0.3 % */
	}
}

/* ---- the program --------------------------------------------------------------------------------------- */

static double rate(const struct bench_case *c)
{
	return c->weights / c->median * 1e-9;
}

static void tell(void)
{
	for (unsigned i = 0; i < count; i++)
		cases[i].median = bench_median(cases[i].seconds, rounds);
	for (unsigned i = 0; i < count; i++) {
		const struct bench_case *c = &cases[i], *best = NULL;

		for (unsigned j = 0; c->ours && j < count; j++)
			if (!cases[j].ours && cases[j].bits == c->bits && (!best || rate(&cases[j]) > rate(best)))
				best = &cases[j];
		printf("%-28s %5.3f bits %7.2f G weights/s %6.2f GB/s", c->name, c->true_bits, rate(c),
		       rate(c) * c->true_bits / 8);
		if (best)
			printf("   %.2f x %s", rate(c) / rate(best), best->name);
		putchar('\n');
	}
}

PROGRAM("llama")
{
	static const struct option options[] = {
		{ "mib", 1, 0, 'm' },   { "rounds", 1, 0, 'r' },         { "threads", 1, 0, 't' },
		{ "batch", 1, 0, 'b' }, { "processor-time", 0, 0, 'p' }, { 0, 0, 0, 0 }
	};
	const char *path = getenv("GGML_CPU_LIBRARY");
	float *made, *vectors;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned number;

		if (option == 'p') {
			timer = CLOCK_PROCESS_CPUTIME_ID;
			continue;
		}
		number = option == '?' ? 0 : (unsigned)strtoul(optarg, NULL, 10);

		if (!number || (option == 'r' && number > MAX_ROUNDS) || (option == 'b' && number > XFP_MAX_BATCH)) {
			fprintf(stderr, "llama: see the head of tests/bench/llama.c\n");
			return 2;
		}
		*(option == 'r' ? &rounds : option == 't' ? &threads : &batch) = option == 'm' ? batch : number;
		mib = option == 'm' ? number : mib;
	}
	if (!path || !*path) {
		printf("llama: skipped: GGML_CPU_LIBRARY names no libggml-cpu.so\n");
		return 0;
	}
	if (!load(path)) {
		printf("llama: skipped: %s lacks what is needed of llama.cpp\n", path);
		return 0;
	}
	made = bench_need(malloc(MADE_ROWS * COLS * sizeof *made));
	vectors = bench_need(malloc((size_t)batch * COLS * sizeof *vectors));
	for (size_t i = 0; i < MADE_ROWS * COLS; i++)
		made[i] = (float)((double)(int64_t)bench_random(&state) + (double)(int64_t)bench_random(&state) +
				  (double)(int64_t)bench_random(&state)) *
			  0x1p-63f;
	for (size_t i = 0; i < (size_t)batch * COLS; i++)
		vectors[i] = (float)(int64_t)bench_random(&state) * 0x1p-63f;
	add_all_theirs(made, vectors);
	add_all_ours(vectors);
	for (unsigned round = 0; round <= rounds; round++) /* the first warms up */
		for (unsigned i = 0; i < count; i++) {
			double start = bench_seconds(timer);

			cases[i].run(&cases[i]);
			cases[i].seconds[round ? round - 1 : 0] = bench_seconds(timer) - start;
		}
	printf("%s, %zu MiB, %d columns, M = %u, %u threads, median of %u%s\n",
	       xfp_instruction_set_name(xfp_instruction_set()), mib, COLS, batch, threads, rounds,
	       timer == CLOCK_MONOTONIC ? "" : ", processor time");
	tell();
	return 0;
}
