/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec - how fast rows are multiplied, beside what this machine reads and multiplies at best.
 *
 *     matvec [--mib 256] [--cols 4096] [--rounds 9] [--threads 2] [--set NAME] [--filter TEXT]
 *            [--processor-time]
 *
 * Every case multiplies a matrix of that size, which should be larger than the last cache; all cases take turns, and
 * medians are shown: weights a second, bytes a second with codebooks and groups counted, and shares of what the same
 * threads read just before, and of what they multiply and add in f32. With --processor-time, the time that the
 * threads were running counts, for machines that others use too.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "dtype.h"
#include "matvec.h"

#define MAX_CASES 96
#define MAX_THREADS 64
#define MAX_ROUNDS 99

struct bench_case {
	char name[24];
	struct xfp_matvec w;
	struct xfp_matvec_x x;
	double bytes, flops; /* of a round */
	double seconds[MAX_ROUNDS];
	double read[MAX_ROUNDS], multiplied[MAX_ROUNDS]; /* shares of the ceilings, measured just before */
};

static struct bench_case cases[MAX_CASES];
static int count, threads = 2, rounds = 9;
static size_t mib = 256, cols = 4096, matrix_bytes;
static uint8_t *matrix;
static float *y;
static pthread_barrier_t begin, end;
static struct bench_case *current;
static bool processor_time;
static double taken[MAX_THREADS];
static volatile uint64_t sink;

static void *room(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("matvec");
		exit(1);
	}
	return at;
}

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Small numbers, finite in every format. */
static void *halves(size_t number)
{
	uint16_t *half = room(number * 2 + 64);

	for (size_t i = 0; i < number; i++)
		half[i] = (uint16_t)(0x3000 | (next_random() & 0x83ff));
	return half;
}

/* ---- the ceilings ------------------------------------------------------------------------------ */

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define EVERY_PROCESSOR __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), optimize("O3")))
#else
#define EVERY_PROCESSOR
#endif

EVERY_PROCESSOR
static uint64_t read_all(const uint8_t *from, size_t bytes)
{
	uint64_t sum[64] = { 0 };

	for (size_t i = 0; i + 512 <= bytes; i += 512) {
		const uint64_t *word = (const uint64_t *)(const void *)(from + i);

		__builtin_prefetch(from + i + 4096);
		__builtin_prefetch(from + i + 4160);
		__builtin_prefetch(from + i + 4224);
		__builtin_prefetch(from + i + 4288);
		__builtin_prefetch(from + i + 4352);
		__builtin_prefetch(from + i + 4416);
		__builtin_prefetch(from + i + 4480);
		__builtin_prefetch(from + i + 4544);
		for (int j = 0; j < 64; j++)
			sum[j] |= word[j];
	}
	for (int j = 1; j < 64; j++)
		sum[0] |= sum[j];
	return sum[0];
}

/* Independent sums of sixteen registers' worth. */
#define FMA_STEPS 2000000
typedef float wide __attribute__((vector_size(64)));

#ifdef __x86_64__
__attribute__((target("avx512f,fma"))) static float multiply_all(void)
{
	wide sum[16] = { { 0 } }, a = { 1 }, b = { 1 };

	for (int i = 0; i < FMA_STEPS; i++) {
#pragma GCC unroll 16
		for (int j = 0; j < 16; j++)
			__asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(sum[j]) : "v"(a), "v"(b));
	}
	return sum[0][0] + sum[15][0];
}

static bool can_multiply(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f");
}
#else
static float multiply_all(void)
{
	return 0;
}

static bool can_multiply(void)
{
	return false;
}
#endif

/* ---- cases ------------------------------------------------------------------------------------- */

static void add_case(enum xfp_matvec_mode mode, unsigned k, unsigned batch)
{
	static const char *const names[] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c" };
	struct bench_case *c = &cases[count++];
	size_t row_bytes = xfp_matvec_row_bytes(mode, k, cols), rows = matrix_bytes / row_bytes, groups;
	float *source = room(batch * cols * sizeof *source);

	snprintf(c->name, sizeof c->name, k ? "%s k=%u M=%u" : "%s%.0u M=%u", names[mode], k, batch);
	c->w = (struct xfp_matvec){ .mode = mode, .k = k, .rows = rows, .cols = cols, .unit = 1, .index = matrix };
	c->bytes = (double)rows * (double)row_bytes;
	c->flops = 2.0 * (double)rows * (double)cols * batch;
	if (mode == XFP_MATVEC_V2) {
		c->w.code = halves(rows << k);
		c->bytes += (double)(rows * 2 << k);
	} else if (mode == XFP_MATVEC_FP8) {
		c->w.code = room(rows * 4);
		c->bytes += (double)rows * 4;
	} else if (mode >= XFP_MATVEC_V2A) {
		bool compact = mode == XFP_MATVEC_V2C;
		uint8_t *byte, *tables = room(xfp_matvec_tables_room(k));

		c->w.group = compact ? 5 : 7;
		groups = rows * ((cols + ((size_t)1 << c->w.group) - 1) >> c->w.group);
		byte = room(groups + rows);
		for (size_t i = 0; i < groups; i++)
			byte[i] = (uint8_t)(next_random() >> 20 & (compact ? 255 : 31));
		memset(byte + groups, 20, rows);
		c->w.byte = byte;
		c->w.row = byte + groups;
		c->w.pair = halves(compact ? 1 : groups * 2);
		c->w.tables = tables;
		xfp_matvec_tables(k, compact ? 8 : 32, halves(32 << k), compact ? halves(32) : NULL, tables);
		c->bytes += compact ? (double)(groups + rows) : (double)groups * 5;
	}
	xfp_matvec_whole(&c->w);
	for (size_t i = 0; i < batch * cols; i++)
		source[i] = (float)(int64_t)next_random() * 0x1p-63f;
	xfp_matvec_x_init(&c->x, k, cols, batch, XFP_F32, source, cols, NULL, room(xfp_matvec_x_room(k, cols, batch)));
}

static void run_part(const struct bench_case *c, int thread)
{
	size_t first = c->w.rows * (size_t)thread / (size_t)threads,
	       last = c->w.rows * ((size_t)thread + 1) / (size_t)threads;

	if (!strcmp(c->name, "read"))
		sink = sink | read_all(matrix + matrix_bytes / (size_t)threads * (size_t)thread,
				       matrix_bytes / (size_t)threads);
	else if (!strcmp(c->name, "fma"))
		sink = sink + (uint64_t)multiply_all();
	else
		xfp_matvec_rows(&c->w, &c->x, first, last - first, false, y + first * XFP_MAX_BATCH, last - first);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *worker(void *number)
{
	int thread = (int)(intptr_t)number;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(thread, &cpu);
	sched_setaffinity(0, sizeof cpu, &cpu);
	for (;;) {
		pthread_barrier_wait(&begin);
		if (!current)
			return NULL;
		taken[thread] = -now(CLOCK_THREAD_CPUTIME_ID);
		run_part(current, thread);
		taken[thread] += now(CLOCK_THREAD_CPUTIME_ID);
		pthread_barrier_wait(&end);
	}
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static double median(double *of)
{
	qsort(of, (size_t)rounds, sizeof *of, by_size);
	return of[rounds / 2];
}

static double run(struct bench_case *c)
{
	double start = now(CLOCK_MONOTONIC), most = 0;

	current = c;
	pthread_barrier_wait(&begin);
	if (c)
		pthread_barrier_wait(&end);
	for (int t = 0; processor_time && t < threads; t++)
		most = taken[t] > most ? taken[t] : most;
	return processor_time ? most : now(CLOCK_MONOTONIC) - start;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "mib", 1, 0, 'm' },
						 { "cols", 1, 0, 'c' },
						 { "rounds", 1, 0, 'r' },
						 { "threads", 1, 0, 't' },
						 { "set", 1, 0, 's' },
						 { "filter", 1, 0, 'f' },
						 { "processor-time", 0, 0, 'p' },
						 { 0, 0, 0, 0 } };
	const char *set = NULL, *filter = "";
	pthread_t thread[MAX_THREADS];
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm':
			mib = strtoul(optarg, NULL, 10);
			break;
		case 'c':
			cols = strtoul(optarg, NULL, 10);
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 't':
			threads = atoi(optarg);
			break;
		case 's':
			set = optarg;
			break;
		case 'f':
			filter = optarg;
			break;
		case 'p':
			processor_time = true;
			break;
		default:
			return 2;
		}
	}
	if (rounds < 1 || rounds > MAX_ROUNDS || threads < 1 || threads > MAX_THREADS || !mib || !cols ||
	    (set && !xfp_matvec_use(set))) {
		fprintf(stderr, "matvec: no such set here, or a number out of range\n");
		return 2;
	}
	matrix_bytes = mib << 20;
	matrix = room(matrix_bytes + 8192);
	y = room((matrix_bytes * 8 / (cols * 2) + 64) * XFP_MAX_BATCH * sizeof *y);
	for (size_t i = 0; i < matrix_bytes / 8; i++)
		((uint64_t *)(void *)matrix)[i] = (next_random() & 0xbfbfbfbfbfbfbfbf) | 0x2020202020202020;
	snprintf(cases[count++].name, sizeof cases->name, "read");
	cases[0].bytes = (double)matrix_bytes;
	snprintf(cases[count++].name, sizeof cases->name, "fma");
	cases[1].flops = 32.0 * 16 * FMA_STEPS * threads;
	for (unsigned batch = 1; batch <= XFP_MAX_BATCH; batch *= 2) {
		for (unsigned mode = XFP_MATVEC_F32; mode <= XFP_MATVEC_V2C; mode++)
			for (unsigned k = mode >= XFP_MATVEC_V2 ? 2 : 0; k <= (mode >= XFP_MATVEC_V2 ? 6u : 0u); k++) {
				add_case(mode, k, batch);
				if (!strstr(cases[count - 1].name, filter))
					count--;
			}
	}
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int t = 0; t < threads; t++)
		pthread_create(&thread[t], NULL, worker, (void *)(intptr_t)t);
	for (int r = 0; r < rounds; r++) {
		cases[1].seconds[r] = can_multiply() ? run(&cases[1]) : 0;
		for (int i = 2; i < count; i++) {
			struct bench_case *c = &cases[i];

			cases[0].seconds[r] = run(&cases[0]);
			c->seconds[r] = run(c);
			c->read[r] = c->bytes / c->seconds[r] / (cases[0].bytes / cases[0].seconds[r]);
			c->multiplied[r] = c->flops / c->seconds[r] / (cases[1].flops / cases[1].seconds[r]);
		}
	}
	run(NULL);
	for (int t = 0; t < threads; t++)
		pthread_join(thread[t], NULL);
	printf("%s, %zu MiB, %zu columns, %d threads, median of %d: reading %.1f GB/s, multiplying %.0f GFLOP/s\n",
	       xfp_matvec_set()->name, mib, cols, threads, rounds, cases[0].bytes / median(cases[0].seconds) * 1e-9,
	       can_multiply() ? cases[1].flops / median(cases[1].seconds) * 1e-9 : 0.0);
	for (int i = 2; i < count; i++) {
		struct bench_case *c = &cases[i];
		double seconds = median(c->seconds);

		printf("%-14s %6.2f Gw/s %6.2f GB/s %4.0f %% of reading %4.0f %% of multiplying\n", c->name,
		       (double)c->w.rows * (double)cols / seconds * 1e-9, c->bytes / seconds * 1e-9,
		       100 * median(c->read), can_multiply() ? 100 * median(c->multiplied) : 0.0);
	}
	return 0;
}
