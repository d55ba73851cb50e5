/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload.c - uploads an image through two pinned buffers: the host fills one while the device copies the other. Then
 * kernels repack the indices into the device's order.
 */
#include "base/printable.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/image.h"

#define STAGING_BYTES ((size_t)4 << 20)

struct upload {
	struct xfp_cuda_sink sink; /* must be first: next() casts it */
	struct xfp_cuda *cuda;
	const char *name;
	uint64_t base;
	xfp_cu_handle stream;
	int filling;    /* buffer being filled */
	bool copied[2]; /* buffers that a copy has used */
};

static enum xfp_status fail(const struct upload *up, int result, const char *call, uint64_t wanted,
			    struct xfp_error *err)
{
	return xfp_cu_fail(&up->cuda->cu, result, call, xfp_printable(up->name).text, wanted, err);
}

static enum xfp_status make_buffers(struct upload *up, struct xfp_error *err)
{
	struct xfp_cuda *cuda = up->cuda;
	int result;

	for (int i = 0; i < 2; i++) {
		if (!cuda->staging[i] && (result = cuda->cu.cuMemHostAlloc(&cuda->staging[i], STAGING_BYTES, 0)))
			return fail(up, result, "cuMemHostAlloc", STAGING_BYTES, err);
		if (!cuda->copied[i] && (result = cuda->cu.cuEventCreate(&cuda->copied[i], XFP_CU_EVENT_NO_TIMING)))
			return fail(up, result, "cuEventCreate", 0, err);
	}
	return XFP_OK;
}

/* Start the copy of the current buffer. */
static enum xfp_status send(struct upload *up, struct xfp_error *err)
{
	struct xfp_cuda *cuda = up->cuda;
	uint8_t *staging = cuda->staging[up->filling];
	size_t bytes = up->sink.at ? (size_t)(up->sink.at - staging) : 0;
	int result;

	if (!bytes)
		return XFP_OK;
	if ((result = cuda->cu.cuMemcpyHtoDAsync(up->base + up->sink.done - bytes, staging, bytes, up->stream)))
		return fail(up, result, "cuMemcpyHtoDAsync", 0, err);
	if ((result = cuda->cu.cuEventRecord(cuda->copied[up->filling], up->stream)))
		return fail(up, result, "cuEventRecord", 0, err);
	up->copied[up->filling] = true;
	return XFP_OK;
}

/* Wait until a buffer can be filled again. */
static enum xfp_status wait(struct upload *up, int buffer, struct xfp_error *err)
{
	int result = up->copied[buffer] ? up->cuda->cu.cuEventSynchronize(up->cuda->copied[buffer]) : 0;

	up->copied[buffer] = false;
	return result ? fail(up, result, "cuEventSynchronize", 0, err) : XFP_OK;
}

static enum xfp_status next(struct xfp_cuda_sink *sink, struct xfp_error *err)
{
	struct upload *up = (struct upload *)sink;
	enum xfp_status status = send(up, err);

	if (!status && sink->at)
		up->filling = !up->filling;
	if (status || (status = wait(up, up->filling, err)))
		return status;
	sink->at = up->cuda->staging[up->filling];
	sink->left = STAGING_BYTES;
	return XFP_OK;
}

/* Repack the indices of all experts after the copy. */
static enum xfp_status repack(struct upload *up, const struct xfp_cuda_plan *plan, struct xfp_error *err)
{
	struct xfp_cuda *cuda = up->cuda;
	int result = 0;

	for (uint32_t e = 0; !result && e < plan->experts; e++) {
		unsigned k = plan->expert[e].k;
		struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, k, up->base);
		struct xfp_cuda_repack call = { .index = up->base + plan->expert[e].index,
						.chunks = xfp_cuda_tiled_rows(w.rows) * w.chunks };
		void *parameters[] = { &call };

		if (xfp_cuda_repacks(k))
			result = cuda->cu.cuLaunchKernel(cuda->repack[k - 2],
							 (uint32_t)((call.chunks - 1) / XFP_CUDA_THREADS + 1), 1, 1,
							 XFP_CUDA_THREADS, 1, 1, 0, up->stream, parameters, NULL);
	}
	if (result)
		return fail(up, result, "cuLaunchKernel", 0, err);
	if ((result = cuda->cu.cuEventRecord(cuda->copied[up->filling], up->stream)))
		return fail(up, result, "cuEventRecord", 0, err);
	up->copied[up->filling] = true;
	return XFP_OK;
}

enum xfp_status xfp_cuda_upload(struct xfp_cuda *cuda, const struct xfp_cuda_plan *plan, uint64_t base,
				xfp_cu_handle stream, struct xfp_error *err)
{
	struct upload up = {
		.sink = { .next = next }, .cuda = cuda, .name = plan->name, .base = base, .stream = stream
	};
	enum xfp_status status;

	pthread_mutex_lock(&cuda->uploads);
	if (!(status = make_buffers(&up, err)) && !(status = xfp_cuda_image_write(plan, base, &up.sink, err)) &&
	    !(status = send(&up, err)))
		status = repack(&up, plan, err);
	for (int i = 0; !status && i < 2; i++)
		status = wait(&up, i, err);
	/* Even after a failure, wait for the copies: the buffers and the memory may be reused or freed. */
	if (status)
		cuda->cu.cuStreamSynchronize(stream);
	pthread_mutex_unlock(&cuda->uploads);
	return status;
}

void xfp_cuda_upload_end(struct xfp_cuda *cuda)
{
	for (int i = 0; i < 2; i++) {
		if (cuda->copied[i])
			cuda->cu.cuEventDestroy(cuda->copied[i]);
		if (cuda->staging[i])
			cuda->cu.cuMemFreeHost(cuda->staging[i]);
	}
}
