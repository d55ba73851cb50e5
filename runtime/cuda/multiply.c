/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multiply.c - launches that prepare and multiply vectors. Nothing here waits or allocates.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "runtime/cuda/cuda.h"

/* kernels/cuda/parts.h declares this structure under another name, because device code includes no header of libxfp. */
_Static_assert(sizeof(struct xfp_product) == 16 && offsetof(struct xfp_product, expert) == 0 &&
		       offsetof(struct xfp_product, x) == 4 && offsetof(struct xfp_product, y) == 8 &&
		       offsetof(struct xfp_product, weight) == 12,
	       "struct one_product of parts.h must match");

/* ---- vectors ----------------------------------------------------------------------------------- */

static size_t type_bytes(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? 4 : 2;
}

static enum xfp_status check_vectors(const struct xfp_cuda_linear *linear, const char *what, uint64_t data,
				     enum xfp_float type, size_t count, size_t stride, uint64_t elements,
				     struct xfp_error *err)
{
	const char *name = linear->name;

	if (type < XFP_FLOAT32 || type > XFP_BFLOAT16)
		return xfp_fail(err, XFP_USAGE, "%s: %s have an unknown type, %d", xfp_printable(name).text, what,
				(int)type);
	if (count && (!data || data % type_bytes(type)))
		return xfp_fail(err, XFP_USAGE, "%s: the address of %s, %#" PRIx64 ", is %s", xfp_printable(name).text,
				what, data, data ? "not a multiple of their size" : "null");
	if (count > 1 && stride < elements)
		return xfp_fail(err, XFP_USAGE,
				"%s: %zu %s have a stride of %zu elements, but %" PRIu64 " elements each",
				xfp_printable(name).text, count, what, stride, elements);
	if (count > INT32_MAX)
		return xfp_fail(err, XFP_USAGE, "%s: %zu %s are too many", xfp_printable(name).text, count, what);
	return XFP_OK;
}

uint64_t xfp_cuda_prepared_bytes(const struct xfp_cuda_linear *linear, size_t count)
{
	/* f32 values, planes and digits, and their scales */
	uint64_t vector = xfp_cuda_prepared_cols(linear->plan.cols) * 11 + sizeof(struct xfp_cuda_input_scale) + 4;
	uint64_t bytes;

	return xfp_mul(count, vector, &bytes) ? bytes : UINT64_MAX;
}

static struct xfp_cuda_vectors vectors_at(uint64_t memory, uint32_t count, uint32_t cols, uint32_t each)
{
	uint64_t elements = (uint64_t)count * cols;
	struct xfp_cuda_vectors x = { .natural = memory, .cols = cols, .count = count, .each = each };

	x.planes = x.natural + elements * 4;
	x.digits = x.planes + elements * 4;
	x.whole = x.digits + elements * 3;
	x.scale = x.whole + count * sizeof(struct xfp_cuda_input_scale);
	return x;
}

/* ---- launches ---------------------------------------------------------------------------------- */

/* Programmatic dependent launch: a kernel may start before the previous one of the stream ends. Our kernels read only
 * weights before they wait (wait_for_launch_before in kernels/cuda/device.h). It needs compute capability 9.0; graphs
 * capture it since CUDA 12.3. */
#ifndef XFP_CUDA_DEPENDENT
#define XFP_CUDA_DEPENDENT 1
#endif

static bool may_start_early(const struct xfp_cuda *cuda)
{
	return XFP_CUDA_DEPENDENT && cuda->info.major >= 9 && cuda->cu.version >= 12030;
}

static enum xfp_status launch(const struct xfp_cuda_linear *linear, xfp_cu_handle function, const uint32_t grid[3],
			      uint32_t threads, uint32_t shared, void *stream, void *call, struct xfp_error *err)
{
	const struct xfp_cu_driver *cu = &linear->cuda->cu;
	struct xfp_cu_attribute dependent = { .id = XFP_CU_LAUNCH_DEPENDENT, .value = 1 };
	struct xfp_cu_launch config = { .grid = { grid[0], grid[1], grid[2] },
					.block = { threads, 1, 1 },
					.shared = shared,
					.stream = stream,
					.attributes = &dependent,
					.count = may_start_early(linear->cuda) };
	void *parameters[] = { call };
	int result = cu->cuLaunchKernelEx(&config, function, parameters, NULL);

	return result ? xfp_cu_fail(cu, result, "cuLaunchKernelEx", xfp_printable(linear->name).text, 0, err) : XFP_OK;
}

/* Return how many warps of a kernel for few vectors the device runs at the same time. The limits are registers and
 * shared memory, of which the driver reserves 1 KB per block. */
static uint32_t resident_warps(const struct xfp_cuda *cuda, enum xfp_cuda_method method, unsigned k,
			       enum xfp_cuda_form form, uint32_t shared)
{
	unsigned vectors = xfp_cuda_integer_form_vectors(form);
	uint32_t blocks = XFP_CUDA_FEW_BLOCKS(k, vectors, method == XFP_CUDA_V2C32);
	uint32_t fit = (uint32_t)cuda->shared_all / (shared + 1024);

	return (uint32_t)cuda->info.processors * XFP_CUDA_WARPS * (fit < blocks ? fit ? fit : 1 : blocks);
}

static enum xfp_status launch_multiply(const struct xfp_cuda_linear *linear, const struct xfp_cuda_launch_shape *way,
				       unsigned k, const struct xfp_cuda_split *split,
				       const struct xfp_cuda_queue *queue, struct xfp_cuda_multiply *call,
				       struct xfp_error *err)
{
	const struct xfp_cuda_plan *plan = &linear->plan;
	xfp_cu_handle function = linear->cuda->multiply[plan->method][k ? k - 2 : 0][way->form];
	uint32_t shared = xfp_cuda_shared_bytes(plan->method, k, plan->codebooks, way->form);
	uint32_t grid[3] = { way->x, way->y, 1 };

	call->workspace = queue->workspace;
	if (xfp_cuda_of_integers(way->form)) {
		uint32_t warps = resident_warps(linear->cuda, plan->method, k, way->form, shared);
		struct xfp_cuda_share share = xfp_cuda_share(plan, k, warps);

		grid[0] = share.blocks;
		call->run = share.run;
	} else if (way->form != XFP_CUDA_WIDE) {
		grid[2] = split->parts;
	}
	call->part_chunks = split->part_chunks;
	call->part_products = split->part_products;
	return launch(linear, function, grid, XFP_CUDA_THREADS, shared, queue->stream, call, err);
}

enum xfp_status xfp_cuda_prepare(const struct xfp_cuda_linear *linear, const struct xfp_cuda_input *x, uint64_t memory,
				 uint64_t bytes, const struct xfp_cuda_queue *queue, struct xfp_cuda_prepared *prepared,
				 struct xfp_error *err)
{
	const struct xfp_cuda_plan *plan = &linear->plan;
	uint64_t wanted = xfp_cuda_prepared_bytes(linear, x->count);
	uint32_t cols = (uint32_t)xfp_cuda_prepared_cols(plan->cols), count = (uint32_t)x->count;
	uint32_t planes = x->type == XFP_FLOAT32 || plan->down ? 2 : 1;
	struct xfp_cuda_prepare call = { .source = x->data,
					 .stride = x->stride,
					 .down = plan->down ? linear->base + plan->down : 0,
					 .vectors = vectors_at(memory, count, cols, planes),
					 .cols = (uint32_t)plan->slice.cols,
					 .lead = plan->lead };
	uint32_t grid[3] = { count, 1, 1 };
	enum xfp_status status;

	if ((status = xfp_cuda_check_queue(linear, queue, err)) ||
	    (status = check_vectors(linear, "inputs", x->data, x->type, x->count, x->stride, plan->slice.cols, err)))
		return status;
	if (count && (!memory || memory % XFP_CUDA_ALIGN))
		return xfp_fail(err, XFP_USAGE, "%s: the address for prepared vectors, %#" PRIx64 ", is %s",
				xfp_printable(linear->name).text, memory,
				memory ? "not a multiple of 256 bytes (XFP_CUDA_ALIGN)" : "null");
	if (bytes < wanted)
		return xfp_fail(err, XFP_USAGE,
				"%s: %zu prepared vectors need %" PRIu64 " bytes of device memory, but got %" PRIu64,
				xfp_printable(linear->name).text, x->count, wanted, bytes);
	if (count && ((status = xfp_cuda_check_context(linear->cuda, err)) ||
		      (status = launch(linear, linear->cuda->prepare[x->type - XFP_FLOAT32], grid,
				       XFP_CUDA_PREPARE_THREADS, 0, queue->stream, &call, err))))
		return status;
	*prepared = (struct xfp_cuda_prepared){ .memory = memory, .count = count, .cols = cols, .planes = planes };
	memcpy(prepared->columns, linear->vectors, sizeof prepared->columns);
	return XFP_OK;
}

/* Check the arguments that both ways of multiplying share, and fill in the kernel's parameters. */
static enum xfp_status begin(const struct xfp_cuda_linear *linear, unsigned k, const struct xfp_cuda_prepared *x,
			     const struct xfp_cuda_output *y, const struct xfp_cuda_queue *queue,
			     struct xfp_cuda_multiply *call, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = xfp_cuda_check_queue(linear, queue, err)) ||
	    (status = check_vectors(linear, "outputs", y->data, y->type, y->count, y->stride, linear->plan.rows, err)))
		return status;
	if (memcmp(x->columns, linear->vectors, sizeof x->columns))
		return xfp_fail(
			err, XFP_USAGE,
			"%s: the vectors were prepared for other columns or another balance; prepare them again",
			xfp_printable(linear->name).text);
	*call = (struct xfp_cuda_multiply){ .weights = xfp_cuda_plan_weights(&linear->plan, k, linear->base),
					    .vectors = vectors_at(x->memory, x->count, x->cols, x->planes),
					    .result = { y->data, y->stride, (uint32_t)y->type, (uint32_t)y->count } };
	return xfp_cuda_check_context(linear->cuda, err);
}

enum xfp_status xfp_cuda_multiply(const struct xfp_cuda_linear *linear, uint32_t expert, size_t count,
				  const struct xfp_cuda_prepared *x, const struct xfp_cuda_output *y,
				  const struct xfp_cuda_queue *queue, struct xfp_error *err)
{
	const struct xfp_cuda_plan *plan = &linear->plan;
	struct xfp_cuda_multiply call;
	struct xfp_cuda_split split;
	unsigned integers = 0;
	enum xfp_status status;

	if (expert >= plan->experts || count > x->count || count > y->count)
		return xfp_fail(err, XFP_USAGE,
				"%s: cannot multiply %zu vectors by expert %" PRIu32 "; there are %" PRIu32
				" experts, %" PRIu32 " inputs and %zu outputs",
				xfp_printable(linear->name).text, count, expert, plan->experts, x->count, y->count);
	if ((status = begin(linear, plan->expert[expert].k, x, y, queue, &call, err)))
		return status;
	call.matrix = xfp_cuda_plan_matrix(plan, expert, linear->base);
	if (plan->expert[expert].integers)
		integers = xfp_cuda_integer_vectors(plan->method, plan->expert[expert].k,
						    (uint32_t)linear->cuda->info.shared_bytes);
	for (size_t done = 0; !status && done < count; done += call.count) {
		struct xfp_cuda_launch_shape way =
			xfp_cuda_choose_launch(plan->method, plan->rows, count - done, x->planes, integers);

		call.first = (uint32_t)done;
		call.count = way.count;
		split = xfp_cuda_split(plan, plan->expert[expert].k, way.y, 1);
		status = launch_multiply(linear, &way, plan->expert[expert].k, &split, queue, &call, err);
	}
	return status;
}

enum xfp_status xfp_cuda_multiply_experts(const struct xfp_cuda_linear *linear, uint64_t products, size_t count,
					  const struct xfp_cuda_prepared *x, const struct xfp_cuda_output *y,
					  const struct xfp_cuda_queue *queue, struct xfp_error *err)
{
	const struct xfp_cuda_plan *plan = &linear->plan;
	struct xfp_cuda_multiply call;
	struct xfp_cuda_launch_shape way = { .form = XFP_CUDA_LIST, .x = xfp_cuda_tiles(plan->rows) };
	struct xfp_cuda_split split;
	enum xfp_status status;

	if (!plan->same_k)
		return xfp_fail(
			err, XFP_USAGE,
			"%s: its experts have indices of different numbers of bits; multiply by one expert at a time",
			xfp_printable(linear->name).text);
	if (count > INT32_MAX)
		return xfp_fail(err, XFP_USAGE, "%s: %zu products are too many for one call",
				xfp_printable(linear->name).text, count);
	if (count && (!products || products % 4))
		return xfp_fail(err, XFP_USAGE, "%s: the address of the list, %#" PRIx64 ", is %s",
				xfp_printable(linear->name).text, products, products ? "not a multiple of 4" : "null");
	if ((status = begin(linear, plan->k, x, y, queue, &call, err)) || !count)
		return status;
	split = xfp_cuda_split(plan, plan->k, y->count, count);
	call.products = products;
	call.product_count = (uint32_t)count;
	for (size_t done = 0; !status && done < y->count; done += way.y) {
		way.y = y->count - done < XFP_CUDA_MAX_Y ? (uint32_t)(y->count - done) : XFP_CUDA_MAX_Y;
		call.first = (uint32_t)done;
		status = launch_multiply(linear, &way, plan->k, &split, queue, &call, err);
	}
	return status;
}
