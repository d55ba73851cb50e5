/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c - kernel speed: encoder kernels on a row that stays in the cache, products on matrices larger than the cache,
 * next to the read bandwidth of the same threads measured just before.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/dtype.h"
#include "base/system/clock.h"
#include "base/system/output.h"
#include "kernel-verify/kernel_verify.h"
#include "kernel-verify/threads.h"
#include "kernels/multiply/panel.h"

#define COLS 4096
#define ROUNDS 7
#define LONG_SECONDS 0.2 /* per round */
#define MULTIPLY_STEPS 1000000
#define PANEL_VECTORS 128
#define PANEL_ROWS 96 /* per thread */

/* ---- output ------------------------------------------------------------------------------------------------ */

struct timing {
	const char *op;
	enum xfp_kernel_set set;
	double ns; /* per weight */
	/* Omitted if 0: */
	double bytes, share;      /* per second, and as a share of the ceiling */
	double flops, multiplied; /* per second, and as a share of the ceiling */
	double times;             /* speed relative to plain C */
	double one;               /* time relative to one vector */
};

static void print_timing(struct xfp_kernel_report *report, const struct timing *m)
{
	if (report->request->json) {
		printf("%s\n    {\"op\": \"%s\", \"set\": \"%s\", \"ns\": %.5f, \"weights_per_second\": %.4g",
		       report->any ? "," : "", m->op, xfp_kernel_set_name(m->set), m->ns, 1e9 / m->ns);
		report->any = true;
		if (m->bytes > 0)
			printf(", \"bytes_per_second\": %.4g, \"of_reading\": %.3f", m->bytes, m->share);
		if (m->multiplied > 0)
			printf(", \"flops_per_second\": %.4g, \"of_multiplying\": %.3f", m->flops, m->multiplied);
		if (m->one > 0)
			printf(", \"of_one_vector\": %.2f", m->one);
		if (m->times > 0)
			printf(", \"of_plain\": %.2f", m->times);
		printf("}");
		return;
	}
	printf("%-28s %-7s %8.4f ns per weight %8.3f G weights/s", m->op, xfp_kernel_set_name(m->set), m->ns,
	       1 / m->ns);
	if (m->bytes > 0)
		printf(" %7.2f GB/s %4.0f %% of reading", m->bytes * 1e-9, 100 * m->share);
	if (m->multiplied > 0)
		printf(" %7.1f GFLOP/s %4.0f %% of FMA", m->flops * 1e-9, 100 * m->multiplied);
	if (m->one > 0)
		printf(" %5.2f x M=1", m->one);
	if (m->times > 0)
		printf(" %6.1f x plain", m->times);
	putchar('\n');
	xfp_output_flush();
}

/* ---- kernels in the cache ------------------------------------------------------------------------------------- */

static double time_of(const struct xfp_kernel_op *op, enum xfp_kernel_set set)
{
	struct xfp_timing timing = { 0 };
	struct xfp_trial trial = { .timing = &timing };

	xfp_trial_run(&trial, op, set, 1, 1);
	xfp_trial_free(&trial);
	if (trial.failed || !timing.rounds)
		return 0;
	return xfp_median_of(timing.seconds, timing.rounds) / trial.weights * 1e9;
}

static void in_cache(const struct xfp_kernel_op *op, struct xfp_kernel_report *report)
{
	const struct xfp_kernel_request *request = report->request;
	double plain = 0;

	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
		struct timing m = { .op = op->name, .set = set };

		if (!((op->sets & request->sets) >> set & 1) || !xfp_kernel_wanted(request, op->name, set))
			continue;
		m.ns = time_of(op, set);
		if (set == XFP_SET_PLAIN)
			plain = m.ns;
		if (op->sets != XFP_ONLY_PLAIN && plain > 0)
			m.times = plain / m.ns;
		if (m.ns > 0)
			print_timing(report, &m);
	}
}

/* ---- products beyond the cache ---------------------------------------------------------------------------------- */

struct timed_product {
	const struct xfp_kernel_request *request;
	enum xfp_kernel_set set;
	struct xfp_matvec w;
	struct xfp_matvec_x x;
	double bytes;
	uint8_t *matrix;
	size_t matrix_bytes;
	float *y, *tile, *panel;
	uint64_t sums; /* of the bytes read, so that the reads are not optimized away */
	uint64_t random;
	unsigned batch, times; /* repetitions per row */
	uint64_t flops;        /* of the ceiling */
	void (*part)(const struct xfp_row_range *range);
	uint64_t longest; /* longest thread, in nanoseconds of processor time */
};

static void timed_part(const struct xfp_row_range *range)
{
	struct timed_product *p = range->context;
	double start = xfp_thread_seconds();
	uint64_t spent, longest = 0;

	p->part(range);
	spent = (uint64_t)((xfp_thread_seconds() - start) * 1e9) + 1;
	while (longest < spent &&
	       !__atomic_compare_exchange_n(&p->longest, &longest, spent, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Seconds for all rows, in all threads. */
static double seconds_of(struct timed_product *p, size_t rows, void (*part)(const struct xfp_row_range *range))
{
	double start = xfp_seconds_now();

	p->part = part;
	p->longest = 0;
	xfp_each_range(p->request->threads, rows, timed_part, p);
	return p->request->processor_time ? (double)p->longest * 1e-9 : xfp_seconds_now() - start;
}

static void *pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("xfp-kernel-verify: memory for the bench");
		exit(XFP_FAILED);
	}
	return at;
}

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	return *random ^= *random << 17;
}

static void read_part(const struct xfp_row_range *range)
{
	struct timed_product *p = range->context;
	uint64_t sum = xfp_ceiling_read(p->matrix + range->first * 512, range->rows * 512);

	__atomic_fetch_or(&p->sums, sum, __ATOMIC_RELAXED);
}

static void multiply_part(const struct xfp_row_range *range)
{
	struct timed_product *p = range->context;

	for (unsigned i = 0; i < p->times; i++)
		xfp_kernel_rows(p->set, &p->w, &p->x, range->first, range->rows, false, p->y + range->first, p->w.rows);
}

static void multiply_and_add(const struct xfp_row_range *range)
{
	struct timed_product *p = range->context;
	uint64_t flops = (uint64_t)xfp_ceiling_multiply(MULTIPLY_STEPS);

	__atomic_fetch_add(&p->flops, flops, __ATOMIC_RELAXED);
}

/* Numbers that are finite and small in every format. */
static uint16_t *small_halves(struct timed_product *p, size_t count)
{
	uint16_t *half = pages(count * 2 + 64);

	for (size_t i = 0; i < count; i++)
		half[i] = (uint16_t)(0x3000 | (next(&p->random) & 0x83ff));
	return half;
}

/* Random weights with codebooks; v2a in groups of 128 with 32 codebooks, v2c in groups of 32 with 8. Memory mapped for
 * a case is small compared with the matrix and is not released. */
static void make_case(struct timed_product *p, enum xfp_matvec_mode mode, unsigned k)
{
	size_t row_bytes = xfp_matvec_row_bytes(mode, k, COLS), rows = p->matrix_bytes / row_bytes, groups;
	bool compact = mode == XFP_MATVEC_V2C;
	uint8_t *byte, *tables;

	p->w = (struct xfp_matvec){ .mode = mode, .k = k, .rows = rows, .cols = COLS, .unit = 1, .index = p->matrix };
	p->bytes = (double)rows * (double)row_bytes;
	if (mode == XFP_MATVEC_V2) {
		p->w.code = small_halves(p, rows << k);
		p->bytes += (double)(rows * 2 << k);
	} else if (mode == XFP_MATVEC_FP8) {
		p->w.code = pages(rows * 4);
		p->bytes += (double)rows * 4;
	} else if (mode >= XFP_MATVEC_V2A) {
		p->w.group = compact ? 5 : 7;
		groups = rows * (COLS >> p->w.group);
		byte = pages(groups + rows);
		for (size_t i = 0; i < groups; i++)
			byte[i] = (uint8_t)(next(&p->random) >> 20 & (compact ? 255 : 31));
		memset(byte + groups, 20, rows);
		tables = pages(xfp_matvec_tables_bytes(k));
		xfp_matvec_tables(k, compact ? 8 : 32, small_halves(p, 32 << k), compact ? small_halves(p, 32) : NULL,
				  tables);
		p->w.byte = byte;
		p->w.row = byte + groups;
		p->w.pair = small_halves(p, compact ? 1 : groups * 2);
		p->w.tables = tables;
		p->bytes += compact ? (double)(groups + rows) : (double)groups * 5;
	}
	xfp_matvec_set_row_layout(&p->w);
}

/* Use fewer rows for a slow case. */
static void shorten(struct timed_product *p, double seconds)
{
	size_t rows = p->w.rows;

	if (seconds > LONG_SECONDS)
		p->w.rows = (size_t)((double)rows * LONG_SECONDS / seconds) + 1;
	if (p->w.rows > rows)
		p->w.rows = rows;
	p->bytes *= (double)p->w.rows / (double)rows;
}

/* Returns nanoseconds per weight. `one`: those for one vector, or 0. */
static double time_case(struct timed_product *p, const char *op, double one,
			void (*part)(const struct xfp_row_range *range), struct xfp_kernel_report *report)
{
	double seconds[ROUNDS], read[ROUNDS], multiplied[ROUNDS], weights;
	struct timing m = { .op = op, .set = p->set };
	struct timed_product whole = *p;

	/* Select the instruction set before threads start. An eighth of the rows warms up and estimates the time for
	 * all. */
	p->w.rows = (p->w.rows + 7) / 8;
	xfp_kernel_panel(p->set);
	m.ns = seconds_of(p, p->w.rows, part) * 8;
	p->w.rows = whole.w.rows;
	shorten(p, m.ns);
	weights = (double)p->w.rows * COLS * p->times;
	for (int round = 0; round < ROUNDS; round++) {
		double flops, peak, reading;

		p->flops = 0;
		peak = seconds_of(p, p->request->threads, multiply_and_add);
		flops = (double)p->flops;
		reading = seconds_of(p, p->matrix_bytes / 512, read_part);
		seconds[round] = seconds_of(p, p->w.rows, part);
		read[round] = p->bytes / seconds[round] / ((double)p->matrix_bytes / reading);
		multiplied[round] = flops > 0 ? 2 * weights * p->batch / seconds[round] / (flops / peak) : 0;
	}
	m.ns = xfp_median_of(seconds, ROUNDS) / weights * 1e9;
	m.bytes = p->bytes / weights / m.ns * 1e9;
	m.share = xfp_median_of(read, ROUNDS);
	m.flops = 2 * p->batch / m.ns * 1e9;
	m.multiplied = xfp_median_of(multiplied, ROUNDS);
	m.one = one > 0 ? m.ns / one : 0;
	p->w.rows = whole.w.rows;
	p->bytes = whole.bytes;
	print_timing(report, &m);
	return m.ns;
}

static void batches(struct timed_product *p, const struct xfp_kernel_op *op, struct xfp_kernel_report *report)
{
	const struct xfp_kernel_request *request = p->request;
	unsigned k = op->kind >= XFP_MATVEC_V2 ? op->k : 0;
	float *source = pages(XFP_MAX_BATCH * COLS * sizeof *source);
	void *buffer = pages(xfp_matvec_x_bytes(k, COLS, XFP_MAX_BATCH));
	bool made = false;

	for (size_t i = 0; i < (size_t)XFP_MAX_BATCH * COLS; i++)
		source[i] = (float)(int64_t)next(&p->random) * 0x1p-63f;
	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
		double one = 0, ns;

		if (!((op->sets & request->sets) >> set & 1) || !xfp_kernel_wanted(request, op->name, set))
			continue;
		if (!made)
			make_case(p, (enum xfp_matvec_mode)op->kind, op->k);
		made = true;
		p->set = set;
		for (p->batch = 1; p->batch <= XFP_MAX_BATCH; p->batch *= 2) {
			char name[64];

			snprintf(name, sizeof name, "%s M=%u", op->name, p->batch);
			xfp_kernel_use((enum xfp_kernel_set)set);
			xfp_matvec_x_init(&p->x, k, COLS, p->batch, XFP_F32, source, COLS, NULL, buffer);
			ns = time_case(p, name, one, multiply_part, report);
			if (p->batch == 1)
				one = ns;
		}
	}
	munmap(source, XFP_MAX_BATCH * COLS * sizeof *source);
	munmap(buffer, xfp_matvec_x_bytes(k, COLS, XFP_MAX_BATCH));
}

/* ---- panels ----------------------------------------------------------------------------------------------------- */

/* Multiply a decoded tile, in turn for all columns, by panels of PANEL_VECTORS. */
static void panel_part(const struct xfp_row_range *range)
{
	struct timed_product *p = range->context;
	const struct xfp_matvec_set *set = xfp_matvec_set();
	size_t vectors = set->panel_width * XFP_PANEL_LANES;

	for (size_t c = 0; c < COLS; c += XFP_TILE_COLUMNS)
		for (size_t m = 0; m < PANEL_VECTORS; m += vectors)
			set->panel(p->tile, range->rows, XFP_TILE_COLUMNS, xfp_panel_part(COLS),
				   p->panel + m * COLS + c * vectors, set->panel_width, c > 0,
				   p->y + (range->first * PANEL_VECTORS + m), PANEL_VECTORS);
}

static void panels(const struct xfp_kernel_op *op, struct xfp_kernel_report *report)
{
	const struct xfp_kernel_request *request = report->request;
	struct timed_product p = { .request = request, .random = 1, .times = 1, .batch = PANEL_VECTORS };
	size_t rows = (size_t)PANEL_ROWS * request->threads;

	p.matrix_bytes = 1 << 20;
	p.matrix = pages(p.matrix_bytes);
	p.tile = pages(PANEL_ROWS * XFP_TILE_STRIDE * sizeof *p.tile);
	p.panel = pages(PANEL_VECTORS * COLS * sizeof *p.panel);
	p.y = pages((rows + XFP_TILE_ROWS) * PANEL_VECTORS * sizeof *p.y);
	for (size_t i = 0; i < PANEL_ROWS * XFP_TILE_STRIDE; i++)
		p.tile[i] = (float)(int64_t)next(&p.random) * 0x1p-63f;
	for (size_t i = 0; i < PANEL_VECTORS * COLS; i++)
		p.panel[i] = (float)(int64_t)next(&p.random) * 0x1p-63f;
	for (unsigned set = 0; set < XFP_KERNEL_SETS; set++) {
		char name[64];

		if (!((op->sets & request->sets) >> set & 1) || !xfp_kernel_wanted(request, op->name, set))
			continue;
		p.set = set;
		p.w = (struct xfp_matvec){ .rows = rows };
		snprintf(name, sizeof name, "%s M=%u", op->name, p.batch);
		time_case(&p, name, 0, panel_part, report);
	}
}

static void begin_products(struct timed_product *p)
{
	p->matrix_bytes = p->request->mib << 20;
	p->matrix = pages(p->matrix_bytes + 8192);
	p->y = pages((p->matrix_bytes / (COLS / 4) + 64) * XFP_MAX_BATCH * sizeof *p->y);
	for (size_t i = 0; i < p->matrix_bytes / 8; i++)
		((uint64_t *)(void *)p->matrix)[i] = (next(&p->random) & 0xbfbfbfbfbfbfbfbf) | 0x2020202020202020;
}

void xfp_kernel_bench(const struct xfp_kernel_ops *ops, struct xfp_kernel_report *report)
{
	struct timed_product p = { .request = report->request, .random = 88172645463325252, .times = 1 };

	if (report->request->json)
		printf(",\n  \"bench\": [");
	for (unsigned i = 0; i < ops->count; i++) {
		if (ops->op[i].exact) {
			in_cache(&ops->op[i], report);
			continue;
		}
		if (ops->op[i].kind == XFP_KIND_PANEL) {
			panels(&ops->op[i], report);
			continue;
		}
		if (!p.matrix)
			begin_products(&p);
		batches(&p, &ops->op[i], report);
	}
	if (report->request->json)
		printf("\n  ]");
}
