/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c - test products on the device: a trial's matrix, from a bundle, times vectors, twice directly and twice in
 * a graph; all four results must be identical and within the bound.
 */
#include <math.h> /* fabs and isfinite, which are exact */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "kernel-verify/cuda/device.h"
#include "kernel-verify/cuda/expected.h"
#include "kernel-verify/cuda/stack.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"

#define AROUND 256 /* guard bytes before and after results */
#define FRESH 0x11 /* initial value of results and guards */
#define MAX_PRODUCTS 24

struct device_product {
	struct xfp_trial *trial;
	struct xfp_device *device;
	struct xfp_stack stack;
	struct xfp_device_linear linear;
	struct xfp_slice slice; /* no member is 0 */

	enum xfp_float type, y_type;
	size_t count, outputs; /* numbers of vectors and of results */
	size_t x_stride, y_stride;
	uint8_t *source;
	float *natural; /* [count][slice.cols], balanced */

	struct xfp_product list[MAX_PRODUCTS];
	size_t listed; /* 0: no list */

	uint64_t x, y, products;
	struct xfp_device_vectors vectors;
	struct xfp_cuda_input in;
	struct xfp_cuda_output out;
	size_t y_bytes; /* including guards */
};

static void *allocated(size_t bytes)
{
	void *at = calloc(1, bytes + 1);

	if (!at)
		abort();
	return at;
}

static size_t type_bytes(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? 4 : 2;
}

/* ---- vectors ------------------------------------------------------------------------------------------ */

static void make_vectors(struct device_product *p, bool infinite)
{
	size_t cols = p->slice.cols, size = type_bytes(p->type), elements;

	p->x_stride = cols + xfp_trial_random_below(p->trial, 3);
	elements = (p->count - 1) * p->x_stride + cols;
	p->source = allocated(elements * size);
	p->natural = allocated(p->count * cols * sizeof *p->natural);
	for (size_t i = 0; i < elements; i++) {
		/* Blocks of columns differ widely in magnitude. */
		float value = xfp_trial_gaussian(p->trial) * (i / 200 % 3 ? 1 : 0.01f);
		size_t m = i / p->x_stride, c = i % p->x_stride;

		if (infinite && i == elements / 2)
			value = __builtin_inff();
		xfp_from_float((int)p->type, &value, 1, p->source + i * size);
		if (c >= cols)
			continue;
		xfp_to_float((int)p->type, p->source + i * size, 1, &value);
		if (p->stack.balance)
			value *= xfp_balance_down(p->stack.balance[p->slice.first_col + c]);
		p->natural[m * cols + c] = value;
	}
}

/* ---- on the device ------------------------------------------------------------------------------------ */

static enum xfp_status place(struct device_product *p, struct xfp_error *err)
{
	size_t size = type_bytes(p->type), y_size = type_bytes(p->y_type);
	size_t bytes = ((p->count - 1) * p->x_stride + p->slice.cols) * size;
	/* Buffers have only the alignment of their elements. */
	size_t x_skip = p->trial->number % 3 * size, y_skip = p->trial->number % 2 * y_size;
	enum xfp_status status;

	p->y_stride = p->slice.rows + xfp_trial_random_below(p->trial, 3);
	p->y_bytes = ((p->outputs - 1) * p->y_stride + p->slice.rows) * y_size + 2 * AROUND + y_skip;
	if ((status = xfp_device_alloc(p->device, bytes + x_skip, &p->x, err)) ||
	    (status = xfp_device_alloc(p->device, p->y_bytes, &p->y, err)) ||
	    (status = xfp_device_alloc(p->device, sizeof p->list, &p->products, err)) ||
	    (status = xfp_device_vectors_alloc(p->device, &p->linear, p->count, &p->vectors, err)) ||
	    (status = xfp_device_copy_in(p->device, p->x + x_skip, p->source, bytes, err)) ||
	    (status = xfp_device_copy_in(p->device, p->products, p->list, sizeof p->list, err)))
		return status;
	p->in = (struct xfp_cuda_input){ p->x + x_skip, p->type, p->count, p->x_stride };
	p->out = (struct xfp_cuda_output){ p->y + AROUND + y_skip, p->y_type, p->outputs, p->y_stride };
	return XFP_OK;
}

/* Enqueue: prepare and multiply the vectors, into results with their initial value. */
static enum xfp_status enqueue_product(void *context, struct xfp_error *err)
{
	struct device_product *p = context;
	struct xfp_device *device = p->device;
	enum xfp_status status;

	if ((status = XFP_DEVICE_DO(device, cuMemsetD8Async, (p->y, FRESH, p->y_bytes, device->stream), err)) ||
	    (status = XFP_DEVICE_DO(device, cuMemsetD8Async,
				    (p->vectors.memory, 0xff, p->vectors.bytes, device->stream), err)) ||
	    (status = xfp_device_prepare(device, &p->linear, &p->in, &p->vectors, err)))
		return status;
	if (p->listed)
		return xfp_device_multiply_experts(device, &p->linear, p->products, p->listed, &p->vectors, &p->out,
						   err);
	return xfp_device_multiply(device, &p->linear, 0, &p->vectors, &p->out, err);
}

static enum xfp_status fetch(struct device_product *p, uint8_t *y, struct xfp_error *err)
{
	return xfp_device_copy_out(p->device, y, p->y, p->y_bytes, err);
}

static void compare(struct device_product *p, const uint8_t *first, const uint8_t *again, const char *how)
{
	for (size_t i = 0; i < p->y_bytes; i++)
		if (first[i] != again[i]) {
			xfp_trial_fail(p->trial, "byte %zu of the results is %#x, and %s %#x", i, first[i], how,
				       again[i]);
			return;
		}
}

/* Compute `y`: the result must be the same twice, and from a graph. */
static enum xfp_status multiply(struct device_product *p, uint8_t *y, struct xfp_error *err)
{
	uint8_t *again = allocated(p->y_bytes);
	xfp_cu_handle run = NULL;
	enum xfp_status status;

	for (int i = 0; i < 2; i++) {
		if ((status = enqueue_product(p, err)) || (status = fetch(p, i ? again : y, err)))
			goto done;
	}
	compare(p, y, again, "the second time");
	if ((status = xfp_device_graph(p->device, enqueue_product, p, &run, err)))
		goto done;
	for (int i = 0; i < 2; i++) {
		if ((status = XFP_DEVICE_DO(p->device, cuGraphLaunch, (run, p->device->stream), err)) ||
		    (status = fetch(p, again, err)))
			goto done;
		compare(p, y, again, i ? "from a graph, run again," : "from a graph");
	}
done:
	xfp_device_graph_free(p->device, run);
	free(again);
	return status;
}

static void release(struct device_product *p)
{
	xfp_device_free(p->device, p->x);
	xfp_device_free(p->device, p->y);
	xfp_device_free(p->device, p->products);
	xfp_device_free(p->device, p->vectors.memory);
	xfp_device_linear_close(p->device, &p->linear);
	free(p->source);
	free(p->natural);
}

/* ---- judging ------------------------------------------------------------------------------------------- */

/* The expected value of row r of result m. Returns false if no product writes this result. */
static bool expected(const struct device_product *p, const struct xfp_expected_row *rows, size_t m, double *value,
		     double *off)
{
	size_t cols = p->slice.cols;
	double one, bound;
	bool any = false;

	*value = *off = 0;
	if (!p->listed) {
		*value =
			xfp_expected_product(&rows[0], &p->stack.matrix[0].whole, p->natural + m * cols, p->count, off);
		return true;
	}
	for (size_t i = 0; i < p->listed; i++) {
		const struct xfp_product *of = &p->list[i];

		if (of->y != m || of->expert >= p->stack.experts || of->x >= p->count)
			continue;
		one = xfp_expected_product(&rows[of->expert], &p->stack.matrix[of->expert].whole,
					   p->natural + of->x * cols, 1, &bound);
		*value += one * (double)of->weight;
		*off += fabs((double)of->weight) * (bound + ((double)p->listed + 2) * 0x1p-24 * fabs(one));
		any = true;
	}
	return any;
}

static bool untouched(const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (from[i] != FRESH)
			return false;
	return true;
}

static void judge_row(const struct device_product *p, const struct xfp_expected_row *rows, size_t r, const uint8_t *y)
{
	size_t size = type_bytes(p->y_type);
	bool holds = true;

	for (uint32_t e = 0; e < p->stack.experts; e++)
		holds = holds && rows[e].holds;
	for (size_t m = 0; m < p->outputs; m++) {
		const uint8_t *at = y + (m * p->y_stride + r) * size;
		double value, off;
		float got;

		if (!expected(p, rows, m, &value, &off)) {
			if (!untouched(at, size))
				xfp_trial_fail(p->trial, "row %zu of y %zu was written, but no product names it", r, m);
			continue;
		}
		xfp_to_float((int)p->y_type, at, 1, &got);
		off += xfp_expected_rounding(p->y_type, fabs(value) + off);
		if (!isfinite(value) || !isfinite(off)) {
			if (isfinite(got))
				xfp_trial_fail(p->trial, "row %zu of y %zu is %g, not %g", r, m, (double)got, value);
		} else if (holds && !(fabs((double)got - value) <= off)) {
			xfp_trial_fail(p->trial,
				       "row %zu of y %zu is %.9g, not %.9g: the error is %.3g, the bound %.3g", r, m,
				       (double)got, value, fabs((double)got - value), off);
			return;
		}
	}
}

static void judge(const struct device_product *p, const uint8_t *all)
{
	const uint8_t *y = all + (p->out.data - p->y);
	size_t size = type_bytes(p->y_type), used = (p->outputs - 1) * p->y_stride + p->slice.rows;
	struct xfp_expected_row rows[XFP_STACK_MAX];

	for (uint32_t e = 0; e < p->stack.experts; e++)
		rows[e] = (struct xfp_expected_row){ .weight = allocated(p->slice.cols * sizeof(double)),
						     .size = allocated(p->slice.cols * sizeof(double)),
						     .cols = p->slice.cols };
	/* Sample the rows of a large matrix, from all its parts: the reference is slow. */
	for (size_t r = 0; r < p->slice.rows && !p->trial->failed; r += r < 200 ? 1 : p->slice.rows / 200) {
		for (uint32_t e = 0; e < p->stack.experts; e++)
			xfp_expected_row(&p->stack.matrix[e].whole, p->slice.first_row + r, p->slice.first_col,
					 &rows[e]);
		judge_row(p, rows, r, y);
	}
	for (uint32_t e = 0; e < p->stack.experts; e++) {
		free(rows[e].weight);
		free(rows[e].size);
	}
	if (!untouched(all, (size_t)(y - all)) ||
	    !untouched(y + used * size, p->y_bytes - (size_t)(y - all) - used * size))
		xfp_trial_fail(p->trial, "memory before or after the results was written");
	for (size_t m = 0; m + 1 < p->outputs; m++)
		if (!untouched(y + (m * p->y_stride + p->slice.rows) * size, (p->y_stride - p->slice.rows) * size))
			xfp_trial_fail(p->trial, "memory between two results was written");
}

/* ---- a trial -------------------------------------------------------------------------------------------- */

static enum xfp_status open_linear(struct device_product *p, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	enum xfp_status status;
	char path[32];
	int file = memfd_create("xfp-kernel-verify", MFD_CLOEXEC);

	if (file < 0)
		return xfp_fail(err, XFP_FAILED, "cannot create a file in memory");
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (!(status = xfp_stack_write(&p->stack, file, err)) &&
	    !(status = p->device->lib.xfp_bundle_open(path, &bundle, err)))
		status = xfp_device_linear_open(p->device, bundle, p->stack.tensor, &p->slice, &p->linear, err);
	p->device->lib.xfp_bundle_close(bundle); /* everything has been uploaded */
	close(file);
	return status;
}

static void run(struct device_product *p, bool infinite)
{
	struct xfp_error err = { XFP_OK, "" };
	uint8_t *y = NULL;
	enum xfp_status status;

	make_vectors(p, infinite);
	if (!(status = open_linear(p, &err)) && !(status = place(p, &err))) {
		y = allocated(p->y_bytes);
		status = multiply(p, y, &err);
	}
	if (status) {
		xfp_trial_fail(p->trial, "%s", err.text);
		p->device->lost = p->device->cuCtxSynchronize() != 0;
	} else {
		judge(p, y);
	}
	free(y);
	release(p);
}

static const char *type_name(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? "f32" : type == XFP_FLOAT16 ? "f16" : "bf16";
}

/* Choose all rows and columns, the trial's columns, or any block. */
static void choose_slice(struct device_product *p, bool any)
{
	const struct xfp_trial_matrix *matrix = &p->stack.matrix[0];
	size_t rows = matrix->whole.rows, cols = matrix->whole.cols;

	p->slice = (struct xfp_slice){ 0, rows, matrix->w.first_column, matrix->w.cols };
	if (!any)
		return;
	p->slice.first_row = xfp_trial_random_below(p->trial, rows);
	p->slice.rows = 1 + xfp_trial_random_below(p->trial, rows - p->slice.first_row);
	p->slice.first_col = xfp_trial_random_below(p->trial, cols);
	p->slice.cols = 1 + xfp_trial_random_below(p->trial, cols - p->slice.first_col);
}

static void describe(struct device_product *p, bool infinite)
{
	struct xfp_trial_matrix *matrix = &p->stack.matrix[0];
	char block[96] = "";

	if (p->slice.rows < matrix->whole.rows || p->slice.cols < matrix->w.cols)
		snprintf(block, sizeof block, ", %zu x %zu from %zu, %zu on", (size_t)p->slice.rows,
			 (size_t)p->slice.cols, (size_t)p->slice.first_row, (size_t)p->slice.first_col);
	xfp_trial_shape(p->trial, "%s%s%s, M = %zu, %s to %s%s%s%s", p->stack.tensor ? "a tensor of " : "",
			matrix->text, block, p->count, type_name(p->type), type_name(p->y_type),
			p->stack.balance ? ", balanced" : "", matrix->whole.outliers.count ? ", outliers" : "",
			infinite ? ", infinite" : "");
}

void xfp_device_product(struct xfp_trial *trial)
{
	static const uint8_t counts[] = { 1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100 };
	bool infinite = trial->number % 16 == 15, outliers = trial->number % 2;
	struct device_product p = { .trial = trial, .device = trial->device };

	p.count = p.outputs = counts[(trial->number + trial->number / 15) % sizeof counts];
	p.type = XFP_FLOAT32 + trial->number / 8 % 3;
	p.y_type = XFP_FLOAT32 + (trial->number + trial->number / 3) % 3;
	xfp_stack_make(trial, &p.stack, 1, outliers, infinite && trial->number % 32 == 15);
	choose_slice(&p, trial->number % 5 == 4 && !infinite);
	describe(&p, infinite);
	xfp_trial_seal(trial);
	run(&p, infinite);
}

/* Make a list in which some experts, vectors and results of each trial do not exist, and some results have no
 * product. */
static void make_list(struct device_product *p)
{
	p->listed = 1 + xfp_trial_random_below(p->trial, MAX_PRODUCTS);
	for (size_t i = 0; i < p->listed; i++)
		p->list[i] = (struct xfp_product){ .expert = (uint32_t)xfp_trial_random_below(p->trial,
											      p->stack.experts + 1),
						   .x = (uint32_t)xfp_trial_random_below(p->trial, p->count + 1),
						   .y = (uint32_t)xfp_trial_random_below(p->trial, p->outputs + 1),
						   .weight = xfp_trial_gaussian(p->trial) };
}

void xfp_device_experts(struct xfp_trial *trial)
{
	struct device_product p = { .trial = trial, .device = trial->device };

	p.count = 1 + xfp_trial_random_below(trial, 5);
	p.outputs = 1 + xfp_trial_random_below(trial, 8);
	p.type = XFP_FLOAT32 + trial->number % 3;
	p.y_type = XFP_FLOAT32 + (trial->number + trial->number / 3) % 3;
	xfp_stack_make(trial, &p.stack, 2 + (uint32_t)xfp_trial_random_below(trial, XFP_STACK_MAX - 1),
		       trial->number % 2, false);
	choose_slice(&p, trial->number % 5 == 4);
	make_list(&p);
	describe(&p, false);
	xfp_trial_seal(trial);
	run(&p, false);
}

void xfp_kernel_ops_device(struct xfp_kernel_ops *ops)
{
	static const char *const names[] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c" };
	char name[40];

	for (int mode = XFP_MATVEC_F32; mode <= XFP_MATVEC_V2C; mode++) {
		bool codebooks = mode >= XFP_MATVEC_V2;

		snprintf(name, sizeof name, codebooks ? "experts %s k=%%u" : "experts %s", names[mode]);
		for (unsigned k = codebooks ? 2 : 0; k <= (codebooks ? 6u : 0u); k++) {
			xfp_kernel_op_add(ops, name, k, mode, 1u << XFP_SET_CUDA, xfp_device_experts);
			ops->op[ops->count - 1].exact = false;
			ops->op[ops->count - 1].trials = 24;
		}
	}
}
