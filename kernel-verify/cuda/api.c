/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - calls into libxfp-cuda, and the memory passed to it.
 */
#include "kernel-verify/cuda/device.h"

enum xfp_status xfp_device_queue_open(struct xfp_device *device, struct xfp_error *err)
{
	enum xfp_status status = xfp_device_alloc(device, XFP_CUDA_WORKSPACE, &device->workspace, err);

	return status ? status
		      : device->lib.xfp_cuda_queue_open(device->cuda, device->stream, device->workspace,
							XFP_CUDA_WORKSPACE, &device->queue, err);
}

static enum xfp_status upload(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
			      const struct xfp_slice *slice, struct xfp_device_linear *linear, struct xfp_error *err)
{
	__typeof__(xfp_cuda_linear_open) *open =
		tensor ? device->lib.xfp_cuda_linear_open_tensor : device->lib.xfp_cuda_linear_open;

	return open(device->cuda, bundle, 0, slice, linear->memory, linear->bytes, device->stream, &linear->linear,
		    err);
}

enum xfp_status xfp_device_linear_open(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
				       const struct xfp_slice *slice, struct xfp_device_linear *linear,
				       struct xfp_error *err)
{
	__typeof__(xfp_cuda_linear_bytes) *bytes =
		tensor ? device->lib.xfp_cuda_linear_bytes_tensor : device->lib.xfp_cuda_linear_bytes;
	enum xfp_status status;

	*linear = (struct xfp_device_linear){ 0 };
	if ((status = bytes(bundle, 0, slice, &linear->bytes, err)) ||
	    (status = xfp_device_alloc(device, linear->bytes, &linear->memory, err)))
		return status;
	if ((status = upload(device, bundle, tensor, slice, linear, err)))
		xfp_device_linear_close(device, linear);
	else
		device->lib.xfp_cuda_linear_describe(linear->linear, &linear->info);
	return status;
}

enum xfp_status xfp_device_linear_upload(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
					 struct xfp_device_linear *linear, struct xfp_error *err)
{
	device->lib.xfp_cuda_linear_close(linear->linear);
	linear->linear = NULL;
	return upload(device, bundle, tensor, NULL, linear, err);
}

void xfp_device_linear_close(struct xfp_device *device, struct xfp_device_linear *linear)
{
	device->lib.xfp_cuda_linear_close(linear->linear);
	xfp_device_free(device, linear->memory);
	*linear = (struct xfp_device_linear){ 0 };
}

enum xfp_status xfp_device_vectors_alloc(struct xfp_device *device, const struct xfp_device_linear *linear,
					 size_t count, struct xfp_device_vectors *vectors, struct xfp_error *err)
{
	*vectors = (struct xfp_device_vectors){ .bytes = device->lib.xfp_cuda_prepared_bytes(linear->linear, count) };
	return xfp_device_alloc(device, vectors->bytes, &vectors->memory, err);
}

enum xfp_status xfp_device_prepare(struct xfp_device *device, const struct xfp_device_linear *linear,
				   const struct xfp_cuda_input *x, struct xfp_device_vectors *vectors,
				   struct xfp_error *err)
{
	return device->lib.xfp_cuda_prepare(linear->linear, x, vectors->memory, vectors->bytes, &device->queue,
					    &vectors->prepared, err);
}

enum xfp_status xfp_device_multiply(struct xfp_device *device, const struct xfp_device_linear *linear, uint32_t expert,
				    const struct xfp_device_vectors *x, const struct xfp_cuda_output *y,
				    struct xfp_error *err)
{
	return device->lib.xfp_cuda_multiply(linear->linear, expert, y->count, &x->prepared, y, &device->queue, err);
}

enum xfp_status xfp_device_multiply_experts(struct xfp_device *device, const struct xfp_device_linear *linear,
					    uint64_t products, size_t count, const struct xfp_device_vectors *x,
					    const struct xfp_cuda_output *y, struct xfp_error *err)
{
	return device->lib.xfp_cuda_multiply_experts(linear->linear, products, count, &x->prepared, y, &device->queue,
						     err);
}
