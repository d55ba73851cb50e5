/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a GPU to test kernels on: libxfp-cuda, loaded on request, and the driver calls needed next to it. All
 * functions of libxfp-cuda in use are in the table here, and are called in api.c alone.
 */
#ifndef XFP_KERNEL_VERIFY_DEVICE_H
#define XFP_KERNEL_VERIFY_DEVICE_H

#include "kernel-verify/trial/trial.h"
#include "runtime/cuda/driver.h"
#include "runtime/xfp_cuda.h"

/* ---- an open device ------------------------------------------------------------------------------ */

/* Driver functions as of version 12.0; runtime/cuda/driver.h has the others. */
#define XFP_DEVICE_CALLS(F)                                                                                  \
	F(cuDeviceGet, (int *device, int number))                                                            \
	F(cuDevicePrimaryCtxRetain, (xfp_cu_handle * context, int device))                                   \
	F(cuDevicePrimaryCtxRelease, (int device))                                                           \
	F(cuCtxSetCurrent, (xfp_cu_handle context))                                                          \
	F(cuCtxSynchronize, (void))                                                                          \
	F(cuMemAlloc, (xfp_cu_address * memory, size_t bytes))                                               \
	F(cuMemFree, (xfp_cu_address memory))                                                                \
	F(cuMemcpyDtoHAsync, (void *to, xfp_cu_address from, size_t bytes, xfp_cu_handle stream))            \
	F(cuMemsetD8Async, (xfp_cu_address to, unsigned char value, size_t count, xfp_cu_handle stream))     \
	F(cuStreamCreate, (xfp_cu_handle * stream, unsigned flags))                                          \
	F(cuStreamDestroy, (xfp_cu_handle stream))                                                           \
	F(cuStreamSynchronize, (xfp_cu_handle stream))                                                       \
	F(cuStreamBeginCapture, (xfp_cu_handle stream, int mode))                                            \
	F(cuStreamEndCapture, (xfp_cu_handle stream, xfp_cu_handle * graph))                                 \
	F(cuGraphInstantiateWithFlags, (xfp_cu_handle * run, xfp_cu_handle graph, unsigned long long flags)) \
	F(cuGraphLaunch, (xfp_cu_handle run, xfp_cu_handle stream))                                          \
	F(cuGraphDestroy, (xfp_cu_handle graph))                                                             \
	F(cuGraphExecDestroy, (xfp_cu_handle run))                                                           \
	F(cuEventElapsedTime, (float *milliseconds, xfp_cu_handle begin, xfp_cu_handle end))

/* Functions of libxfp-cuda, and of the libxfp it links, as in their headers. */
#define XFP_DEVICE_LIBRARY(F)                                                                                          \
	F(xfp_bundle_open)                                                                                             \
	F(xfp_bundle_close)                                                                                            \
	F(xfp_cuda_open)                                                                                               \
	F(xfp_cuda_close)                                                                                              \
	F(xfp_cuda_describe)                                                                                           \
	F(xfp_cuda_queue_open)                                                                                         \
	F(xfp_cuda_linear_bytes)                                                                                       \
	F(xfp_cuda_linear_bytes_tensor)                                                                                \
	F(xfp_cuda_linear_open)                                                                                        \
	F(xfp_cuda_linear_open_tensor) F(xfp_cuda_linear_close) F(xfp_cuda_linear_describe) F(xfp_cuda_prepared_bytes) \
		F(xfp_cuda_prepare) F(xfp_cuda_multiply) F(xfp_cuda_multiply_experts)

struct xfp_device {
	void *library;
	struct xfp_cu_driver cu;
	xfp_cu_handle context, stream;
	int number;
	struct xfp_cuda *cuda;
	struct xfp_cuda_info info;
	struct xfp_cuda_queue queue; /* of the stream */
	uint64_t workspace;          /* of the queue */
	size_t memory;               /* bytes of device memory */
	size_t cache;                /* bytes of L2 cache */
	bool lost;                   /* the device no longer responds */
	bool capturing;              /* the stream is capturing */
#define XFP_DEVICE_MEMBER(name, parameters) int(*name) parameters;
	XFP_DEVICE_CALLS(XFP_DEVICE_MEMBER)
#undef XFP_DEVICE_MEMBER
	struct {
#define XFP_DEVICE_MEMBER(name) __typeof__(name) *name;
		XFP_DEVICE_LIBRARY(XFP_DEVICE_MEMBER)
#undef XFP_DEVICE_MEMBER
	} lib;
};

/* Parse "cuda" or "cuda:N". Returns false for anything else. */
bool xfp_device_parse(const char *text, int *number);

/* Open a device and make its primary context current. XFP_FAILED, with a remedy in the message, if libxfp-cuda, the
 * driver or the device is missing or too old. On failure nothing is open. */
enum xfp_status xfp_device_open(struct xfp_device *device, int number, struct xfp_error *err);
void xfp_device_close(struct xfp_device *device);

/* Update device->lost. */
void xfp_device_check_lost(struct xfp_device *device);

/* Returns XFP_OK if `result` is 0. Otherwise fails with the driver's message and the name of the call, and updates
 * device->lost. */
enum xfp_status xfp_device_check(struct xfp_device *device, int result, const char *call, struct xfp_error *err);
#define XFP_DEVICE_DO(device, call, arguments, err) xfp_device_check(device, (device)->call arguments, #call, err)

/* Allocate device memory. XFP_FAILED if there is not enough. */
enum xfp_status xfp_device_alloc(struct xfp_device *device, size_t bytes, uint64_t *memory, struct xfp_error *err);
void xfp_device_free(struct xfp_device *device, uint64_t memory);

/* Copies to and from device memory on the device's stream, done when the call returns. Everything here copies this way:
 * the stream is non-blocking, so it does not wait for cuMemcpyHtoD, which may return before the bytes have reached the
 * device. The stream must not be capturing. XFP_FAILED when the driver fails. */
enum xfp_status xfp_device_copy_in(struct xfp_device *device, uint64_t to, const void *from, size_t bytes,
				   struct xfp_error *err);
enum xfp_status xfp_device_copy_out(struct xfp_device *device, void *to, uint64_t from, size_t bytes,
				    struct xfp_error *err);

/* Open a queue on the device's stream, which launches need (api.c). */
enum xfp_status xfp_device_queue_open(struct xfp_device *device, struct xfp_error *err);

/* ---- matrices on the device (api.c) -------------------------------------------------------------- */

struct xfp_device_linear {
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_linear_info info;
	uint64_t memory, bytes;
};

/* Upload the only unit of a bundle or, with `tensor`, its only tensor. */
enum xfp_status xfp_device_linear_open(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
				       const struct xfp_slice *slice, struct xfp_device_linear *linear,
				       struct xfp_error *err);
/* Upload it again into the same memory, for timing. */
enum xfp_status xfp_device_linear_upload(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
					 struct xfp_device_linear *linear, struct xfp_error *err);
void xfp_device_linear_close(struct xfp_device *device, struct xfp_device_linear *linear);

/* Vectors and the library's work area, in memory allocated for them. */
struct xfp_device_vectors {
	uint64_t memory, bytes;
	struct xfp_cuda_prepared prepared;
};
enum xfp_status xfp_device_vectors_alloc(struct xfp_device *device, const struct xfp_device_linear *linear,
					 size_t count, struct xfp_device_vectors *vectors, struct xfp_error *err);

/* Runs on the device's stream, which may be capturing. */
enum xfp_status xfp_device_prepare(struct xfp_device *device, const struct xfp_device_linear *linear,
				   const struct xfp_cuda_input *x, struct xfp_device_vectors *vectors,
				   struct xfp_error *err);
enum xfp_status xfp_device_multiply(struct xfp_device *device, const struct xfp_device_linear *linear, uint32_t expert,
				    const struct xfp_device_vectors *x, const struct xfp_cuda_output *y,
				    struct xfp_error *err);
enum xfp_status xfp_device_multiply_experts(struct xfp_device *device, const struct xfp_device_linear *linear,
					    uint64_t products, size_t count, const struct xfp_device_vectors *x,
					    const struct xfp_cuda_output *y, struct xfp_error *err);

/* ---- graphs --------------------------------------------------------------------------------------- */

/* Enqueues work on the device's stream, to be captured as a graph. */
typedef enum xfp_status xfp_device_enqueue_fn(void *context, struct xfp_error *err);
enum xfp_status xfp_device_graph(struct xfp_device *device, xfp_device_enqueue_fn *enqueue, void *context,
				 xfp_cu_handle *run, struct xfp_error *err);
void xfp_device_graph_free(struct xfp_device *device, xfp_cu_handle run);

/* ---- tests and benches --------------------------------------------------------------------------- */

/* Test products of a matrix, and of lists of experts, with the kernel named by `trial->op`. */
void xfp_device_product(struct xfp_trial *trial);
void xfp_device_experts(struct xfp_trial *trial);
void xfp_kernel_ops_device(struct xfp_kernel_ops *ops);

/* Parses a comma-separated list of numbers of vectors. Bit i of `selected` stands for the i-th number that the bench
 * measures. Returns false if it does not measure one of them. */
bool xfp_bench_counts_parse(const char *text, unsigned *selected);
enum xfp_status xfp_device_bench(struct xfp_device *device, struct xfp_kernel_report *report, struct xfp_error *err);

/* The verifier's own device code, measure.cu; NULL if it was built without nvcc. */
extern const unsigned char *const xfp_device_code;

#endif
