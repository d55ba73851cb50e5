/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a GPU to try kernels on: libxfp-cuda, which is looked for when it is asked for, and what the driver is
 * called for beside it. Everything that is called of libxfp-cuda is in the table here, and called in api.c alone.
 */
#ifndef XFP_KERNEL_VERIFY_DEVICE_H
#define XFP_KERNEL_VERIFY_DEVICE_H

#include "kernel-verify/trial/trial.h"
#include "runtime/cuda/driver.h"
#include "runtime/xfp_cuda.h"

/* ---- what is open -------------------------------------------------------------------------------- */

/* Of the driver, as of version 12.0; runtime/cuda/driver.h has the others. */
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

/* Of libxfp-cuda, and of the libxfp that it brings, by their headers. */
#define XFP_DEVICE_LIBRARY(F)                                                                                   \
	F(xfp_bundle_open)                                                                                      \
	F(xfp_bundle_close)                                                                                     \
	F(xfp_cuda_open)                                                                                        \
	F(xfp_cuda_close)                                                                                       \
	F(xfp_cuda_info)                                                                                        \
	F(xfp_cuda_queue_open)                                                                                  \
	F(xfp_cuda_linear_bytes)                                                                                \
	F(xfp_cuda_linear_bytes_tensor)                                                                         \
	F(xfp_cuda_linear_open) F(xfp_cuda_linear_open_tensor) F(xfp_cuda_linear_close) F(xfp_cuda_linear_info) \
		F(xfp_cuda_prepared_bytes) F(xfp_cuda_prepare) F(xfp_cuda_multiply) F(xfp_cuda_multiply_experts)

struct xfp_device {
	void *library;
	struct xfp_cu_driver cu;
	xfp_cu_handle context, stream;
	int number;
	struct xfp_cuda *cuda;
	struct xfp_cuda_info info;
	struct xfp_cuda_queue queue; /* of the stream */
	uint64_t workspace;          /* and its */
	size_t memory;               /* bytes that it has */
	size_t cache;                /* of its second level */
	bool lost;                   /* it answers no more */
	bool capturing;              /* its stream */
#define XFP_DEVICE_MEMBER(name, parameters) int(*name) parameters;
	XFP_DEVICE_CALLS(XFP_DEVICE_MEMBER)
#undef XFP_DEVICE_MEMBER
	struct {
#define XFP_DEVICE_MEMBER(name) __typeof__(name) *name;
		XFP_DEVICE_LIBRARY(XFP_DEVICE_MEMBER)
#undef XFP_DEVICE_MEMBER
	} lib;
};

/* "cuda" or "cuda:N"; false when it is none of these. */
bool xfp_device_parse(const char *text, int *number);

/* With its primary context current. XFP_FAILED, with a text that says what to do, when there is no libxfp-cuda, driver
 * or device, or one that is too old. On failure nothing is open. */
enum xfp_status xfp_device_open(struct xfp_device *device, int number, struct xfp_error *err);
void xfp_device_close(struct xfp_device *device);

/* Notes whether the device is lost. */
void xfp_device_look(struct xfp_device *device);

/* XFP_OK for 0; else the driver's message, for a call by its name, and whether the device is lost is noted. */
enum xfp_status xfp_device_check(struct xfp_device *device, int result, const char *call, struct xfp_error *err);
#define XFP_DEVICE_DO(device, call, arguments, err) xfp_device_check(device, (device)->call arguments, #call, err)

/* Bytes on the device; XFP_FAILED when there are not so many. */
enum xfp_status xfp_device_alloc(struct xfp_device *device, size_t bytes, uint64_t *memory, struct xfp_error *err);
void xfp_device_free(struct xfp_device *device, uint64_t memory);

/* Copies to and from device memory on the device's stream, done when the call returns. Everything here copies this way:
 * the stream is non-blocking, so it does not wait for cuMemcpyHtoD, which may return before the bytes have reached the
 * device. The stream must not be capturing. XFP_FAILED when the driver fails. */
enum xfp_status xfp_device_copy_in(struct xfp_device *device, uint64_t to, const void *from, size_t bytes,
				   struct xfp_error *err);
enum xfp_status xfp_device_copy_out(struct xfp_device *device, void *to, uint64_t from, size_t bytes,
				    struct xfp_error *err);

/* The device's stream as what is launched goes by (api.c). */
enum xfp_status xfp_device_queue_open(struct xfp_device *device, struct xfp_error *err);

/* ---- something to multiply by (api.c) ------------------------------------------------------------ */

struct xfp_device_linear {
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_linear_info info;
	uint64_t memory, bytes;
};

/* The only unit, or tensor where it has none, of a bundle. */
enum xfp_status xfp_device_linear_open(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
				       const struct xfp_slice *slice, struct xfp_device_linear *linear,
				       struct xfp_error *err);
/* The same again, into memory that there is already: for measuring. */
enum xfp_status xfp_device_linear_upload(struct xfp_device *device, const struct xfp_bundle *bundle, bool tensor,
					 struct xfp_device_linear *linear, struct xfp_error *err);
void xfp_device_linear_close(struct xfp_device *device, struct xfp_device_linear *linear);

/* Vectors, and what the library wants beside them, in memory that was allocated for them. */
struct xfp_device_vectors {
	uint64_t memory, bytes;
	struct xfp_cuda_prepared prepared;
};
enum xfp_status xfp_device_vectors_alloc(struct xfp_device *device, const struct xfp_device_linear *linear,
					 size_t count, struct xfp_device_vectors *vectors, struct xfp_error *err);

/* On the device's stream, which may be capturing. */
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

/* What `tell(context)` has the device's stream do, as a graph. */
typedef enum xfp_status xfp_device_tell_fn(void *context, struct xfp_error *err);
enum xfp_status xfp_device_graph(struct xfp_device *device, xfp_device_tell_fn *tell, void *context, xfp_cu_handle *run,
				 struct xfp_error *err);
void xfp_device_graph_free(struct xfp_device *device, xfp_cu_handle run);

/* ---- what is done with it ------------------------------------------------------------------------ */

/* Products of a matrix, by the kernel that is asked for by `trial->op`; and of lists of them. */
void xfp_device_product(struct xfp_trial *trial);
void xfp_device_experts(struct xfp_trial *trial);
void xfp_kernel_ops_device(struct xfp_kernel_ops *ops);

/* Parses a comma-separated list of numbers of vectors. Bit i of `selected` stands for the i-th number that the bench
 * measures. Returns false if it does not measure one of them. */
bool xfp_bench_counts_parse(const char *text, unsigned *selected);
enum xfp_status xfp_device_bench(struct xfp_device *device, struct xfp_kernel_report *report, struct xfp_error *err);

/* Device code of the verifier's own, measure.cu; NULL where it was built without nvcc. */
extern const unsigned char *const xfp_device_code;

#endif
