/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama - weights per second of products with bundles, and with llama.cpp's types of as many bits an index, in one run.
 *
 *     GGML_CPU_LIBRARY=.../libggml-cpu.so llama [--rounds 15] [--threads 2] [--vectors 1] [--rows 0] [--seed 1]
 *           [--only NAME] [--instructions NAME] [--processor-time] BUNDLE...
 *
 * Each bundle gives a case: its largest unit. `make bench BENCH=llama` (llama.py) makes such bundles. Build
 * llama.cpp's library yourself, for your machine: GGML_NATIVE=ON, or without AMX if the system does not allow it. It
 * multiplies by a graph of its own, as its engine does, with weights as in a file and in every other layout that it has
 * for this machine; the fastest result counts.
 *
 * Both create their threads before the first measurement, and prepare activations within it. Before each one the
 * program sleeps, so that it does not find the processor throttled, or memory busy, by another. Every round has another
 * order, drawn from --seed. Medians are printed. --rows multiplies only by the first rows; --only measures the cases
 * whose name begins with NAME; --instructions is for libxfp only. --processor-time measures that of all threads, for
 * busy machines, best with one thread. With eight vectors or more, rates are compared with f32 multiply-adds in
 * registers, by one thread, with AVX-512 if the processor has it.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel-verify/kernel_verify.h"
#include "runtime/xfp.h"
#include "tests/bench/bench.h"

#define XFP_GGML_F32 0
#define MADE_ROWS 64 /* number of different rows of theirs; they are repeated */
#define MAX_CASES 64
#define MAX_ROUNDS 99
#define PAUSE 30000000 /* nanoseconds */

static size_t rounds = 15, threads = 2, vectors = 1, limit, seed = 1;
static const char *only = "";
static clockid_t timer = CLOCK_MONOTONIC;
static uint64_t state; /* of random numbers */

/* ---- cases --------------------------------------------------------------------------------------- */

struct bench_case {
	char name[64];
	unsigned bits; /* an index: Q4_K is compared with k = 4 */
	double true_bits, weights, seconds[MAX_ROUNDS], median;
	void (*run)(struct bench_case *c);
	void *graph;               /* theirs */
	struct xfp_linear *linear; /* ours */
};

static struct bench_case cases[MAX_CASES];
static unsigned count;
static size_t rows, cols; /* of every matrix */

static bool is_selected(const char *name)
{
	return !strncmp(name, only, strlen(only));
}

/* The caller fills in the rest. */
static struct bench_case *add(const char *name)
{
	struct bench_case *c = &cases[count];

	if (count == MAX_CASES)
		bench_die("llama", "too many cases");
	snprintf(c->name, sizeof c->name, "%s", name);
	c->weights = (double)rows * (double)cols;
	count++;
	return c;
}

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
	void (*ggml_backend_cpu_set_threadpool)(void *backend, void *pool);
	void (*ggml_threadpool_params_init)(void *parameters, int threads);
	void *(*ggml_threadpool_new)(void *parameters);
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
	FUNCTION(ggml_backend_cpu_set_threadpool);
	FUNCTION(ggml_threadpool_params_init);
	FUNCTION(ggml_threadpool_new);
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

static void fill(void *tensor, int type, size_t row, const float *made)
{
	uint8_t *some = bench_need(malloc(MADE_ROWS * row)), *all = bench_need(malloc(rows * row));

	ggml.ggml_quantize_chunk(type, made, some, 0, MADE_ROWS, (int64_t)cols, NULL);
	/* Other layouts are converted from the whole matrix. */
	for (size_t r = 0; r < rows; r += MADE_ROWS)
		memcpy(all + r * row, some, MADE_ROWS * row);
	ggml.ggml_backend_tensor_set(tensor, all, 0, rows * row);
	free(all);
	free(some);
}

static void add_theirs(const char *type_name, unsigned bits, int type, void *buffer_type, const float *made,
		       const float *x)
{
	struct ggml_parameters parameters = { 1 << 20, NULL, true };
	void *weights, *rest, *w, *in, *out;
	size_t row = ggml.ggml_row_size(type, (int64_t)cols);
	struct bench_case *c;
	char name[64];

	snprintf(name, sizeof name, "%s %s", type_name, ggml.ggml_backend_buft_name(buffer_type));
	if (!is_selected(name))
		return;
	weights = bench_need(ggml.ggml_init(parameters));
	rest = bench_need(ggml.ggml_init(parameters));
	w = ggml.ggml_new_tensor_2d(weights, type, (int64_t)cols, (int64_t)rows);
	in = ggml.ggml_new_tensor_2d(rest, XFP_GGML_F32, (int64_t)cols, (int64_t)vectors);
	out = ggml.ggml_mul_mat(rest, w, in);
	if (!ggml.ggml_backend_alloc_ctx_tensors_from_buft(weights, buffer_type) ||
	    !ggml.ggml_backend_alloc_ctx_tensors_from_buft(rest, ggml.ggml_backend_cpu_buffer_type()) ||
	    !ggml.ggml_backend_supports_op(backend, out))
		return;
	c = add(name);
	c->graph = bench_need(ggml.ggml_new_graph(rest));
	ggml.ggml_build_forward_expand(c->graph, out);
	fill(w, type, row, made);
	ggml.ggml_backend_tensor_set(in, x, 0, vectors * cols * sizeof *x);
	c->bits = bits;
	c->true_bits = 8.0 * (double)row / (double)cols;
	c->run = run_theirs;
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

static void add_all_theirs(const float *made, const float *x)
{
	static const char *const names[] = { "q2_K", "q3_K", "q4_K", "q5_K", "q6_K" };
	void *registry = ggml.ggml_backend_cpu_reg(), *device = ggml.ggml_backend_reg_dev_get(registry, 0);
	void **(*extra)(void *device);
	void **others;
	union {
		char bytes[4096]; /* larger than its parameters of a pool */
		max_align_t aligned;
	} parameters;

	*(void **)&extra = ggml.ggml_backend_reg_get_proc_address(registry, "ggml_backend_dev_get_extra_bufts");
	backend = bench_need(ggml.ggml_backend_cpu_init());
	ggml.ggml_backend_cpu_set_n_threads(backend, (int)threads);
	ggml.ggml_threadpool_params_init(&parameters, (int)threads);
	ggml.ggml_backend_cpu_set_threadpool(backend, bench_need(ggml.ggml_threadpool_new(&parameters)));
	for (unsigned k = 2; k <= 6; k++) {
		const char *name = names[k - 2];
		int type = type_named(name);

		add_theirs(name, k, type, ggml.ggml_backend_cpu_buffer_type(), made, x);
		others = extra ? extra(device) : NULL;
		for (; others && *others; others++)
			add_theirs(name, k, type, *others, made, x);
	}
}

/* ---- ours -------------------------------------------------------------------------------------------- */

static struct xfp_team *team;
static struct xfp_input input;
static struct xfp_output output;

static void run_ours(struct bench_case *c)
{
	struct xfp_error err;

	if (xfp_multiply(team, c->linear, 0, vectors, &input, &output, &err))
		bench_die(c->name, err.text);
}

static struct xfp_bundle *open_bundle(const char *path, uint32_t *largest, struct xfp_unit_info *unit)
{
	struct xfp_bundle_info all;
	struct xfp_bundle *bundle;
	struct xfp_unit_info info;
	struct xfp_error err;

	if (xfp_bundle_open(path, &bundle, &err))
		bench_die("llama", err.text);
	xfp_bundle_describe(bundle, &all);
	*unit = (struct xfp_unit_info){ .weights = 0 };
	for (uint32_t i = 0; xfp_bundle_unit(bundle, i, &info); i++)
		if (info.k && info.weights > unit->weights) {
			*unit = info;
			*largest = i;
		}
	if (!unit->weights)
		bench_die(path, "has no unit with a codebook");
	return bundle;
}

static void add_ours(struct xfp_bundle *bundle, uint32_t number, const struct xfp_unit_info *unit)
{
	const struct xfp_slice slice = { .rows = rows };
	struct bench_case *c;
	struct xfp_error err;
	char name[64], outliers[32] = "";

	if (unit->cols != cols || unit->rows < rows)
		bench_die(unit->name, "has another shape than that of the first bundle");
	if (unit->outliers)
		snprintf(outliers, sizeof outliers, ", %.1f outliers a row",
			 (double)unit->outliers / (double)unit->rows / unit->experts);
	snprintf(name, sizeof name, "%s k=%u%s", unit->mode_name, unit->k, outliers);
	if (!is_selected(name))
		return;
	c = add(name);
	if (xfp_linear_open(bundle, number, &slice, &c->linear, &err))
		bench_die(c->name, err.text);
	c->bits = unit->k;
	c->true_bits = 8.0 * (double)unit->bytes / (double)unit->weights;
	c->run = run_ours;
}

/* ---- the processor ------------------------------------------------------------------------------------- */

#define PEAK_STEPS 2000000

static struct bench_case *peak;

static void run_peak(struct bench_case *c)
{
	c->weights = xfp_ceiling_multiply(PEAK_STEPS) / 2 / (double)vectors;
}

/* ---- the program --------------------------------------------------------------------------------------- */

static float *random_vectors(size_t number)
{
	float *x = bench_need(malloc(number * cols * sizeof *x));

	for (size_t i = 0; i < number * cols; i++)
		x[i] = (float)((double)(int64_t)bench_random(&state) + (double)(int64_t)bench_random(&state) +
			       (double)(int64_t)bench_random(&state)) *
		       0x1p-63f;
	return x;
}

static void add_cases(char **bundles, bool theirs)
{
	struct xfp_unit_info unit;
	struct xfp_bundle *bundle;
	struct xfp_error err;
	float *x;

	if (xfp_team_start((unsigned)threads, &team, &err))
		bench_die("llama", err.text);
	for (size_t i = 0; bundles[i]; i++) {
		uint32_t number = 0;

		bundle = open_bundle(bundles[i], &number, &unit);
		if (!cols) {
			cols = unit.cols;
			rows = (limit && limit < unit.rows ? limit : unit.rows) / MADE_ROWS * MADE_ROWS;
		}
		add_ours(bundle, number, &unit);
	}
	x = random_vectors(vectors);
	input = (struct xfp_input){ x, XFP_FLOAT32, vectors, cols };
	output = (struct xfp_output){ bench_need(malloc(vectors * rows * sizeof(float))), XFP_FLOAT32, vectors, rows };
	if (vectors >= 8) {
		peak = add("multiply-adds in registers");
		peak->run = run_peak;
	}
	if (theirs)
		add_all_theirs(random_vectors(MADE_ROWS), x);
}

static void measure(struct bench_case *c, size_t round)
{
	const struct timespec pause = { 0, PAUSE };
	double start;

	nanosleep(&pause, NULL);
	start = bench_seconds(timer);
	c->run(c);
	c->seconds[round] = bench_seconds(timer) - start;
}

static void measure_all(void)
{
	unsigned order[MAX_CASES];

	for (unsigned i = 0; i < count; i++)
		order[i] = i;
	for (size_t round = 0; round <= rounds; round++) { /* the first warms up */
		for (unsigned i = count; i > 1; i--) {
			const unsigned j = (unsigned)(bench_random(&state) % i), other = order[j];

			order[j] = order[i - 1];
			order[i - 1] = other;
		}
		for (unsigned i = 0; i < count; i++)
			measure(&cases[order[i]], round ? round - 1 : 0);
	}
	for (unsigned i = 0; i < count; i++)
		cases[i].median = bench_median(cases[i].seconds, rounds);
}

static double rate(const struct bench_case *c)
{
	return c->weights / c->median * 1e-9;
}

static void print_all(void)
{
	for (unsigned i = 0; i < count; i++) {
		const struct bench_case *c = &cases[i], *best = NULL;

		for (unsigned j = 0; c->linear && j < count; j++)
			if (!cases[j].linear && cases[j].bits == c->bits && (!best || rate(&cases[j]) > rate(best)))
				best = &cases[j];
		printf("%-30s %5.3f bits %8.3f G weights/s %7.2f GB/s", c->name, c->true_bits, rate(c),
		       rate(c) * c->true_bits / 8);
		if (peak)
			printf(" %4.0f %% of multiply-adds", 100 * rate(c) / rate(peak));
		if (best)
			printf("   %.2f of %s", rate(c) / rate(best), best->name);
		putchar('\n');
	}
}

static bool parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", 1, 0, 'r' },         { "threads", 1, 0, 't' },      { "vectors", 1, 0, 'v' },
		{ "rows", 1, 0, 'n' },           { "seed", 1, 0, 's' },         { "only", 1, 0, 'o' },
		{ "processor-time", 0, 0, 'p' }, { "instructions", 1, 0, 'i' }, { 0, 0, 0, 0 }
	};
	static const char letters[] = "rtvns";
	static size_t *const values[] = { &rounds, &threads, &vectors, &limit, &seed };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const char *at = strchr(letters, option);

		if (option == 'p')
			timer = CLOCK_PROCESS_CPUTIME_ID;
		else if (option == 'o')
			only = optarg;
		else if (option == 'i' && xfp_use_instructions(optarg))
			continue;
		else if (!at || !(*values[at - letters] = strtoul(optarg, NULL, 10)))
			return false;
	}
	return rounds <= MAX_ROUNDS && argv[optind];
}

PROGRAM("llama")
{
	const char *path = getenv("GGML_CPU_LIBRARY");
	bool theirs = path && *path;

	if (!parse(argc, argv)) {
		fprintf(stderr, "llama: see the head of tests/bench/llama.c\n");
		return 2;
	}
	if (!theirs) {
		printf("llama.cpp is skipped: GGML_CPU_LIBRARY names no libggml-cpu.so\n");
	} else if (!load(path)) {
		printf("llama.cpp is skipped: %s lacks what is needed of it\n", path);
		theirs = false;
	}
	state = seed;
	add_cases(argv + optind, theirs);
	measure_all();
	printf("%s, %zu x %zu weights, %zu vectors, %zu threads, median of %zu%s, order of seed %zu\n",
	       xfp_instructions(), rows, cols, vectors, threads, rounds,
	       timer == CLOCK_MONOTONIC ? "" : ", processor time", seed);
	print_all();
	return 0;
}
