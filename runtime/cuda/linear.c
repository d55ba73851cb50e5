/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c - a unit or a kept tensor in device memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/sha256.h"
#include "kernels/common/lane_index.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/image.h"

_Static_assert(XFP_CUDA_ALIGN == XFP_CUDA_PART_ALIGN, "an image begins where its parts may");

/* ---- sizes ------------------------------------------------------------------------------------- */

enum xfp_status xfp_cuda_linear_bytes(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				      uint64_t *bytes, struct xfp_error *err)
{
	struct xfp_cuda_plan plan;
	enum xfp_status status = xfp_cuda_plan_unit(bundle, unit, slice, &plan, err);

	if (status)
		return status;
	*bytes = plan.bytes;
	xfp_cuda_plan_free(&plan);
	return XFP_OK;
}

enum xfp_status xfp_cuda_linear_bytes_tensor(const struct xfp_bundle *bundle, uint32_t tensor,
					     const struct xfp_slice *slice, uint64_t *bytes, struct xfp_error *err)
{
	struct xfp_cuda_plan plan;
	enum xfp_status status = xfp_cuda_plan_tensor(bundle, tensor, slice, &plan, err);

	if (status)
		return status;
	*bytes = plan.bytes;
	xfp_cuda_plan_free(&plan);
	return XFP_OK;
}

/* ---- opening ----------------------------------------------------------------------------------- */

/* Compute the digest that is equal for linears that can share prepared vectors. */
static void digest_columns(const struct xfp_cuda_plan *plan, uint8_t digest[32])
{
	uint64_t columns[3] = { plan->slice.cols, plan->lead, plan->balance != NULL };
	struct xfp_sha256 sha;

	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, columns, sizeof columns);
	if (plan->balance)
		xfp_sha256_update(&sha, plan->balance, plan->slice.cols);
	xfp_sha256_final(&sha, digest);
}

/* Open a planned linear; takes ownership of the plan. */
static enum xfp_status open_plan(struct xfp_cuda *cuda, struct xfp_cuda_plan *plan, uint64_t memory, uint64_t bytes,
				 void *stream, struct xfp_cuda_linear **out, struct xfp_error *err)
{
	struct xfp_cuda_linear *linear = calloc(1, sizeof *linear);
	char *name = strdup(plan->name);
	enum xfp_status status;

	if (!linear || !name) {
		status = xfp_no_memory(err);
		goto done;
	}
	*linear = (struct xfp_cuda_linear){ .cuda = cuda, .base = memory };
	if ((status = xfp_cuda_check_context(cuda, err)) ||
	    (status = xfp_cuda_check_memory(cuda, xfp_printable(name).text, memory, bytes, plan->bytes,
					    "xfp_cuda_linear_bytes", err)) ||
	    (status = xfp_cuda_check_stream(cuda, xfp_printable(name).text, stream, err)) ||
	    (status = xfp_cuda_upload(cuda, plan, memory, stream, err)))
		goto done;
	digest_columns(plan, linear->vectors);
	linear->plan = *plan;
	linear->name = name;
	/* Launches do not use the bundle. */
	linear->plan.bundle = NULL;
	linear->plan.name = name;
	linear->plan.tensor = NULL;
	linear->plan.balance = NULL;
	*out = linear;
	return XFP_OK;
done:
	xfp_cuda_plan_free(plan);
	free(linear);
	free(name);
	return status;
}

enum xfp_status xfp_cuda_linear_open(struct xfp_cuda *cuda, const struct xfp_bundle *bundle, uint32_t unit,
				     const struct xfp_slice *slice, uint64_t memory, uint64_t bytes, void *stream,
				     struct xfp_cuda_linear **out, struct xfp_error *err)
{
	struct xfp_cuda_plan plan;
	enum xfp_status status;

	*out = NULL;
	if ((status = xfp_cuda_plan_unit(bundle, unit, slice, &plan, err)))
		return status;
	return open_plan(cuda, &plan, memory, bytes, stream, out, err);
}

enum xfp_status xfp_cuda_linear_open_tensor(struct xfp_cuda *cuda, const struct xfp_bundle *bundle, uint32_t tensor,
					    const struct xfp_slice *slice, uint64_t memory, uint64_t bytes,
					    void *stream, struct xfp_cuda_linear **out, struct xfp_error *err)
{
	struct xfp_cuda_plan plan;
	enum xfp_status status;

	*out = NULL;
	if ((status = xfp_cuda_plan_tensor(bundle, tensor, slice, &plan, err)))
		return status;
	return open_plan(cuda, &plan, memory, bytes, stream, out, err);
}

void xfp_cuda_linear_close(struct xfp_cuda_linear *linear)
{
	if (!linear)
		return;
	xfp_cuda_plan_free(&linear->plan);
	free(linear->name);
	free(linear);
}

void xfp_cuda_linear_describe(const struct xfp_cuda_linear *linear, struct xfp_cuda_linear_info *info)
{
	const struct xfp_cuda_plan *plan = &linear->plan;
	unsigned k = plan->expert[0].k;
	struct xfp_cuda_launch_shape way =
		xfp_cuda_choose_launch(plan->method, plan->rows, 1, 2, plan->expert[0].integers);

	*info = (struct xfp_cuda_linear_info){
		.experts = plan->experts,
		.rows = plan->slice.rows,
		.cols = plan->slice.cols,
		.bytes = plan->bytes,
		.tiles = way.x,
		.parts = xfp_cuda_parts_of_one(plan, k),
		.shared_bytes = xfp_cuda_shared_bytes(plan->method, k, plan->codebooks, way.form),
		.repacked = xfp_cuda_repacks(k) || (k && plan->first_col % xfp_chunk_columns(k))
	};
	xfp_cuda_kernel_name(plan->method, k, way.form, info->kernel);
}
