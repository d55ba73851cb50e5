/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_check.c - check sampled rows of the bench's results against the reference in double. Matrices of the bench have
 * the size of real models; few matrices of the trials do.
 */
#include <math.h> /* fabs and isfinite, which are exact */
#include <stdlib.h>

#include "base/dtype.h"
#include "kernel-verify/cuda/bench.h"
#include "kernel-verify/cuda/expected.h"
#include "kernels/common/number.h"
#include "schemas/layout/classes.h"

#define ROWS 16 /* sampled, including the first and the last; and of vectors: */
#define VECTORS 32
#define MAX_EXPERTS 8

static enum xfp_matvec_mode mode_of(const struct xfp_unit_file *unit)
{
	switch (unit->mode) {
	case XFP_MODE_V2:
		return XFP_MATVEC_V2;
	case XFP_MODE_V2A:
		return XFP_MATVEC_V2A;
	case XFP_MODE_V2C:
		return XFP_MATVEC_V2C;
	case XFP_MODE_FP8:
		return XFP_MATVEC_FP8;
	default:
		return XFP_MATVEC_BF16;
	}
}

/* A unit's library in the processor's layout; NULL if it has none, or if out of memory. */
static void *tables_of(const struct xfp_unit_file *unit)
{
	const uint16_t *entry = (const uint16_t *)unit->part[XFP_PART_CODE];
	size_t bytes = (xfp_matvec_tables_bytes(unit->k) + 63) / 64 * 64;
	void *tables;

	if ((unit->mode != XFP_MODE_V2A && unit->mode != XFP_MODE_V2C) || !(tables = aligned_alloc(64, bytes)))
		return NULL;
	xfp_matvec_tables(unit->k, 1u << unit->library, entry,
			  unit->mode == XFP_MODE_V2C ? entry + ((size_t)1 << (unit->library + unit->k)) : NULL, tables);
	return tables;
}

static const uint8_t *part_of(const struct xfp_unit_file *unit, enum xfp_part part, uint32_t expert)
{
	return unit->part[part] ? unit->part[part] + xfp_unit_file_offset(unit, part, expert) : NULL;
}

static struct xfp_matvec matrix_of(const struct xfp_unit_file *unit, uint32_t expert, const void *tables)
{
	const uint8_t *group = part_of(unit, XFP_PART_GROUP, expert);
	struct xfp_matvec w = { .mode = mode_of(unit),
				.k = unit->k,
				.group = unit->group,
				.rows = unit->rows,
				.cols = unit->cols,
				.unit = 1,
				.index = part_of(unit, XFP_PART_INDEX, expert),
				.tables = tables };
	size_t groups;

	xfp_matvec_set_row_layout(&w);
	groups = w.rows * w.row_groups;
	if (w.mode == XFP_MATVEC_V2 || w.mode == XFP_MATVEC_FP8)
		w.code = part_of(unit, XFP_PART_CODE, expert);
	if (w.mode == XFP_MATVEC_V2A) {
		w.pair = group;
		w.byte = group + 4 * groups;
	} else if (w.mode == XFP_MATVEC_V2C) {
		w.byte = group;
		w.row = group + groups;
	}
	return w;
}

struct row_check {
	const struct xfp_bench_results *of;
	struct xfp_matvec w[MAX_EXPERTS]; /* one per product, or one in all */
	struct xfp_expected_row row[MAX_EXPERTS];
	float *x;
	uint8_t *y;
};

static void vector_of(const struct row_check *c, size_t number)
{
	size_t cols = c->of->unit->cols;

	xfp_to_float(XFP_BFLOAT16, c->of->x + number * cols * 2, cols, c->x);
}

/* The expected result m for the row decoded in c->row; *off receives the bound. */
static double expected(const struct row_check *c, size_t m, double *off)
{
	const struct xfp_bench_results *of = c->of;
	double sum = 0, one, bound;

	*off = 0;
	if (!of->listed) {
		vector_of(c, m);
		return xfp_expected_product(&c->row[0], &c->w[0], c->x, of->count, off);
	}
	for (size_t i = 0; i < of->listed; i++) {
		const struct xfp_product *product = &of->list[i];

		if (product->y != m)
			continue;
		vector_of(c, product->x);
		one = xfp_expected_product(&c->row[i], &c->w[i], c->x, 1, &bound);
		sum += one * (double)product->weight;
		*off += fabs((double)product->weight) * (bound + ((double)of->listed + 2) * 0x1p-24 * fabs(one));
	}
	return sum;
}

static enum xfp_status check_row(const struct row_check *c, size_t r, struct xfp_error *err)
{
	size_t count = c->of->count, some = count < VECTORS ? count : VECTORS;

	for (size_t i = 0; i < some; i++) {
		size_t m = some > 1 ? i * (count - 1) / (some - 1) : 0;
		double off, value = expected(c, m, &off);
		float got;

		xfp_to_float(XFP_BFLOAT16, c->y + (m * c->of->unit->rows + r) * 2, 1, &got);
		off += xfp_expected_rounding(XFP_BFLOAT16, fabs(value) + off);
		if (!(fabs((double)got - value) <= off))
			return xfp_fail(err, XFP_UNMET,
					"row %zu of y %zu is %.9g, not %.9g: the error is %.3g, the bound %.3g", r, m,
					(double)got, value, fabs((double)got - value), off);
	}
	return XFP_OK;
}

static enum xfp_status check_rows(struct row_check *c, struct xfp_error *err)
{
	size_t rows = c->of->unit->rows, some = rows < ROWS ? rows : ROWS, matrices = c->of->listed ? c->of->listed : 1;
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < some; i++) {
		size_t r = some > 1 ? i * (rows - 1) / (some - 1) : 0;
		bool holds = true;

		for (size_t e = 0; e < matrices; e++) {
			xfp_expected_row(&c->w[e], r, 0, &c->row[e]);
			holds = holds && c->row[e].holds;
		}
		if (holds)
			status = check_row(c, r, err);
	}
	return status;
}

enum xfp_status xfp_bench_check(struct xfp_bench *bench, const struct xfp_bench_results *of, struct xfp_error *err)
{
	const struct xfp_unit_file *unit = of->unit;
	size_t matrices = of->listed ? of->listed : 1, bytes = of->count * unit->rows * 2;
	bool library = unit->mode == XFP_MODE_V2A || unit->mode == XFP_MODE_V2C;
	struct row_check c = { .of = of, .x = malloc(unit->cols * sizeof *c.x), .y = malloc(bytes) };
	void *tables = tables_of(unit);
	enum xfp_status status = c.x && c.y && (tables || !library) ? XFP_OK : xfp_no_memory(err);

	for (size_t e = 0; !status && e < matrices; e++) {
		c.w[e] = matrix_of(unit, of->listed ? of->list[e].expert : 0, tables);
		c.row[e] = (struct xfp_expected_row){ .weight = malloc(unit->cols * sizeof(double)),
						      .size = malloc(unit->cols * sizeof(double)),
						      .cols = unit->cols };
		if (!c.row[e].weight || !c.row[e].size)
			status = xfp_no_memory(err);
	}
	if (!status)
		status = xfp_device_copy_out(bench->device, c.y, of->y, bytes, err);
	if (!status)
		status = check_rows(&c, err);
	for (size_t e = 0; e < matrices; e++) {
		free(c.row[e].weight);
		free(c.row[e].size);
	}
	free(tables);
	free(c.x);
	free(c.y);
	return status;
}
