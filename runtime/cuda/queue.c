/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - checks of streams and device memory that the caller provides.
 */
#include <inttypes.h>

#include "base/printable.h"
#include "runtime/cuda/cuda.h"

_Static_assert(XFP_CUDA_PARTS_OFFSET + XFP_CUDA_MAX_PARTS * XFP_CUDA_PART_BYTES <= XFP_CUDA_WORKSPACE,
	       "the workspace must hold the parts of all shared tiles");

/* Check that the memory is usable: memory of this device, or managed memory. */
enum xfp_status xfp_cuda_check_memory(struct xfp_cuda *cuda, const char *what, uint64_t memory, uint64_t bytes,
				      uint64_t wanted, const char *see, struct xfp_error *err)
{
	int type = 0, device = 0;

	if (!memory || memory % XFP_CUDA_ALIGN)
		return xfp_fail(err, XFP_USAGE, "%s: the address of device memory, %#" PRIx64 ", is %s", what, memory,
				memory ? "not a multiple of 256 bytes (XFP_CUDA_ALIGN)" : "null");
	if (bytes < wanted)
		return xfp_fail(err, XFP_USAGE,
				"%s: needs %" PRIu64 " bytes of device memory, but only %" PRIu64
				" were given (see %s)",
				what, wanted, bytes, see);
	if (cuda->cu.cuPointerGetAttribute(&type, XFP_CU_POINTER_MEMORY_TYPE, memory) || type == XFP_CU_MEMORY_HOST)
		return xfp_fail(err, XFP_USAGE, "%s: %#" PRIx64 " is not an address of device memory", what, memory);
	if (!cuda->cu.cuPointerGetAttribute(&device, XFP_CU_POINTER_DEVICE, memory) && device != cuda->device)
		return xfp_fail(err, XFP_USAGE,
				"%s: the memory at %#" PRIx64 " belongs to device %d, but the context to device %d",
				what, memory, device, cuda->device);
	return XFP_OK;
}

enum xfp_status xfp_cuda_check_stream(struct xfp_cuda *cuda, const char *what, void *stream, struct xfp_error *err)
{
	int capturing = 0, result = cuda->cu.cuStreamIsCapturing(stream, &capturing);

	if (result)
		return xfp_cu_fail(&cuda->cu, result, "cuStreamIsCapturing", what, 0, err);
	if (capturing)
		return xfp_fail(err, XFP_USAGE,
				"%s: cannot be opened while the stream captures a graph; open it earlier", what);
	return XFP_OK;
}

enum xfp_status xfp_cuda_queue_open(struct xfp_cuda *cuda, void *stream, uint64_t workspace, uint64_t bytes,
				    struct xfp_cuda_queue *queue, struct xfp_error *err)
{
	static const char what[] = "a queue";
	enum xfp_status status;
	int result;

	if ((status = xfp_cuda_check_context(cuda, err)) ||
	    (status = xfp_cuda_check_memory(cuda, what, workspace, bytes, XFP_CUDA_WORKSPACE, "XFP_CUDA_WORKSPACE",
					    err)) ||
	    (status = xfp_cuda_check_stream(cuda, what, stream, err)))
		return status;
	if ((result = cuda->cu.cuMemsetD8Async(workspace, 0, XFP_CUDA_PARTS_OFFSET, stream)))
		return xfp_cu_fail(&cuda->cu, result, "cuMemsetD8Async", what, 0, err);
	*queue = (struct xfp_cuda_queue){ .stream = stream, .workspace = workspace };
	return XFP_OK;
}

enum xfp_status xfp_cuda_check_queue(const struct xfp_cuda_linear *linear, const struct xfp_cuda_queue *queue,
				     struct xfp_error *err)
{
	if (queue && queue->workspace && queue->workspace % XFP_CUDA_ALIGN == 0)
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE, "%s: %s; see xfp_cuda_queue_open", xfp_printable(linear->name).text,
			!queue             ? "the queue is NULL"
			: queue->workspace ? "the queue's workspace is not at a multiple of 256 bytes (XFP_CUDA_ALIGN)"
					   : "the queue has no workspace");
}
