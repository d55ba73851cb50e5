/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp_cuda.h - libxfp-cuda: multiplying by what is in .xfp bundles on NVIDIA GPUs.
 *
 * It mirrors what xfp.h has for the CPU, in device memory: a unit, or a tensor that was kept, is opened into memory
 * that the caller gives; vectors are prepared once for all that they are multiplied by; and products go to where the
 * caller wants them. The library opens the driver (libcuda.so.1) when it is asked to, has its kernels inside, and needs
 * no library but libxfp. Of devices, it takes compute capability 8.0 (A100) and newer.
 *
 *     struct xfp_cuda *cuda;
 *     struct xfp_cuda_linear *linear;
 *     struct xfp_cuda_queue queue;
 *     struct xfp_cuda_prepared prepared;
 *     uint64_t bytes;
 *
 *     status = xfp_cuda_open(&cuda, &err);                          // once, with the caller's context current
 *     workspace = ...                                               // cuMemAlloc, cudaMalloc, a torch tensor
 *     status = xfp_cuda_queue_open(cuda, stream, workspace, XFP_CUDA_WORKSPACE, &queue, &err);
 *     status = xfp_cuda_linear_bytes(bundle, unit, NULL, &bytes, &err);
 *     memory = ...
 *     status = xfp_cuda_linear_open(cuda, bundle, unit, NULL, memory, bytes, stream, &linear, &err);
 *
 *     // and then, for as long as it lives:
 *     struct xfp_cuda_input in = { .data = x, .type = XFP_BFLOAT16, .count = 1, .stride = 4096 };
 *     struct xfp_cuda_output out = { .data = y, .type = XFP_BFLOAT16, .count = 1, .stride = 1024 };
 *
 *     status = xfp_cuda_prepare(linear, &in, room, xfp_cuda_prepared_bytes(linear, 1), &queue, &prepared, &err);
 *     status = xfp_cuda_multiply(linear, 0, 1, &prepared, &out, &queue, &err);
 *
 * (cc program.c $(pkg-config --cflags --libs xfp-cuda))
 *
 * Contexts and streams are the caller's. Everything is open in the context that was current at xfp_cuda_open, which has
 * to be current in every call, on any thread; a null stream is the context's default stream. Calls on different streams
 * do not wait for each other: what one prepares and another multiplies is for the caller to order. That includes copies
 * of vectors and products to the device: copy on the queue's stream (cuMemcpyHtoDAsync), as cuMemcpyHtoD from pageable
 * memory may return before the bytes arrive, and a stream made with CU_STREAM_NON_BLOCKING does not wait for them.
 *
 * On compute capability 9.0 and newer, kernels use programmatic dependent launch: they may start while the previous
 * kernel of the stream still runs, and then read weights; they wait for it before they read vectors or write anything.
 * In a captured graph these launches are programmatic edges.
 *
 * xfp_cuda_prepare, xfp_cuda_multiply and xfp_cuda_multiply_experts launch kernels and do nothing else: they allocate
 * nothing, wait for nothing and read nothing back, so they can be captured in a graph, which then holds the addresses
 * that they were given, and has the queue's workspace to itself while it runs. Their errors are those of the arguments
 * and of launching; what goes wrong on the device is told by whatever of the driver's calls comes next.
 *
 * A result is the same bits from run to run, whatever else the device does, and on all devices of one compute
 * capability; they depend on shapes, never on how large a device is. Other generations of tensor cores may add up
 * differently in the last bits; sums of integers (see below) are the same on all of them. With S as in xfp.h, x' the
 * balanced vector, a the largest |x'| and e the largest |W| of the row in terms of x', it is within
 *
 *     (columns / 4 + 64) 2^-24 S + columns 2^-40 a e
 *
 * of W x with the weights that xfp_bundle_dequantize gives as f32, in double; in v2a, whose weights are sums of two, S
 * has |entry scale x| + |midpoint x| for |base x|, and e is the largest of those too. (The last term is what becomes of
 * elements below 2^-40 a, which are 0, and, of vectors of bfloat16, below 2^-32 a, which lose bits.)
 *
 * Up to four vectors at a time, and all products of a list, are multiplied as integers instead, which is faster, if the
 * mode is v2, or v2c with groups of 32 columns or more, indices have 2, 3 or 4 bits, there are at most 65,536 columns,
 * and all codebooks are finite. The bound is then larger by
 *
 *     2^-14 c A + 2^-21 columns c a
 *
 * where c is the largest |weight| that the row's codebook has (in v2c: the library, with the largest |ratio| and the
 * row's factor) and A the sum of all |x'|; with 2 or 3 bits it is 2^-16 c A. So it is of the class of "vbmi" in xfp.h,
 * some 1e-4 of a typical result. Which way a vector goes depends on the number of vectors in the call.
 *
 * All this is as long as no sum in terms of the stored entries, which are 2^s times the weights, is too large for f32.
 * Types of 16 bits round once more. If weights or vectors are not finite, neither is the result.
 *
 * Several threads may use what is open at the same time. Device addresses are numbers here (CUdeviceptr, or a pointer
 * as uintptr_t), so that nothing follows them by mistake; NULL is 0.
 */
#ifndef XFP_CUDA_H
#define XFP_CUDA_H

#include "runtime/xfp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a device ---------------------------------------------------------------------------------- */

struct xfp_cuda;

/* With the caller's current context: loads all kernels, so that nothing is loaded later. XFP_FAILED, with a text that
 * says what to do, when there is no driver, it is too old for the kernels, there is no device or memory, or the device
 * is older than compute capability 8.0; XFP_USAGE when no context is current. On failure *out is NULL. Not while any
 * thread captures in the global mode: a driver refuses then to load. */
enum xfp_status xfp_cuda_open(struct xfp_cuda **out, struct xfp_error *err);

/* After all that was opened with it. The context need not be there any more. NULL is fine. */
void xfp_cuda_close(struct xfp_cuda *cuda);

struct xfp_cuda_info {
	const char *device; /* its name: "NVIDIA H200" */
	int major, minor;   /* compute capability */
	int processors;     /* streaming multiprocessors */
	int shared_bytes;   /* the most shared memory that a block can have */
	int driver;         /* CUDA version of the driver, 1000 * major + 10 * minor */
	int toolkit;        /* likewise, of the nvcc that the kernels were built with */
};
void xfp_cuda_info(const struct xfp_cuda *cuda, struct xfp_cuda_info *info);

/* ---- streams ----------------------------------------------------------------------------------- */

/* Bytes of a workspace. */
#define XFP_CUDA_WORKSPACE 4194304

/* A stream, and device memory where blocks of its launches leave sums for each other. It is the caller's to keep and
 * copy; there is nothing to close. Launches one after the other, on one stream, share a workspace; those that may run
 * at the same time have to have one each. */
struct xfp_cuda_queue {
	void *stream;
	uint64_t workspace;
};

/* Has the workspace, of which `bytes` are there, cleared on the stream, which must not be capturing; launches find and
 * leave it so. XFP_USAGE also where it is too small, misaligned (XFP_CUDA_ALIGN) or no memory of the device;
 * XFP_FAILED when the driver fails. */
enum xfp_status xfp_cuda_queue_open(struct xfp_cuda *cuda, void *stream, uint64_t workspace, uint64_t bytes,
				    struct xfp_cuda_queue *queue, struct xfp_error *err);

/* ---- something to multiply by ------------------------------------------------------------------ */

struct xfp_cuda_linear;

/* What device memory that the library is given must be a multiple of: what cuMemAlloc returns is. */
#define XFP_CUDA_ALIGN 256

/* Bytes of device memory that a unit, or a tensor, takes; no driver is needed. `slice` and errors as of
 * xfp_linear_open; and XFP_BAD_INPUT when a slice of a matrix has to be looked for in outliers that are damaged. */
enum xfp_status xfp_cuda_linear_bytes(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				      uint64_t *bytes, struct xfp_error *err);
enum xfp_status xfp_cuda_linear_bytes_tensor(const struct xfp_bundle *bundle, uint32_t tensor,
					     const struct xfp_slice *slice, uint64_t *bytes, struct xfp_error *err);

/* Bring it into `memory`, which has `bytes` and stays until xfp_cuda_linear_close. The copies run on `stream`, which
 * must not be capturing (nor any other in the global mode: pinned memory is taken), and are done when this returns; the
 * bundle is then not needed any more. XFP_USAGE also where the memory is too small, misaligned or no memory of the
 * device; XFP_BAD_INPUT when outliers point outside the matrix or a group names a codebook that is not there;
 * XFP_FAILED when the driver fails. */
enum xfp_status xfp_cuda_linear_open(struct xfp_cuda *cuda, const struct xfp_bundle *bundle, uint32_t unit,
				     const struct xfp_slice *slice, uint64_t memory, uint64_t bytes, void *stream,
				     struct xfp_cuda_linear **out, struct xfp_error *err);
enum xfp_status xfp_cuda_linear_open_tensor(struct xfp_cuda *cuda, const struct xfp_bundle *bundle, uint32_t tensor,
					    const struct xfp_slice *slice, uint64_t memory, uint64_t bytes,
					    void *stream, struct xfp_cuda_linear **out, struct xfp_error *err);

/* Once no launch uses it any more. The memory stays the caller's. NULL is fine. */
void xfp_cuda_linear_close(struct xfp_cuda_linear *linear);

struct xfp_cuda_linear_info {
	uint32_t experts;      /* 1 of a tensor */
	uint64_t rows, cols;   /* of the slice */
	uint64_t bytes;        /* of device memory */
	char kernel[32];       /* that multiplies one vector by expert 0 */
	uint32_t tiles;        /* of 16 rows, */
	uint32_t parts;        /* and blocks that share the columns of each: 1 on the integer path, whose warps share
	                        * all chunks of the matrix. Both by shape, never by device */
	uint32_t shared_bytes; /* of each */
	bool repacked;         /* indices are not as the bundle has them: up to 4 bits, in an order for the
	                        * device; above, where the slice begins inside a chunk */
};
void xfp_cuda_linear_info(const struct xfp_cuda_linear *linear, struct xfp_cuda_linear_info *info);

/* ---- products ---------------------------------------------------------------------------------- */

/* Vectors in device memory, `stride` elements from one to the next, at a multiple of an element's size. Those of an
 * input have the slice's columns as elements, those of an output its rows. */
struct xfp_cuda_input {
	uint64_t data;
	enum xfp_float type;
	size_t count, stride;
};
struct xfp_cuda_output {
	uint64_t data;
	enum xfp_float type;
	size_t count, stride;
};

/* Vectors made ready: where they are, and for what. xfp_cuda_prepare fills it in; it is the caller's to keep and copy,
 * and nobody's to change. */
struct xfp_cuda_prepared {
	uint64_t memory;
	uint32_t count, cols;
	uint32_t planes;     /* fp16 numbers that an element has become: 1 or 2 */
	uint8_t columns[32]; /* which columns, by which balance */
};

/* Bytes of device memory that `count` vectors take once they are prepared for it. */
uint64_t xfp_cuda_prepared_bytes(const struct xfp_cuda_linear *linear, size_t count);

/* Vectors become what the kernels read, in `memory` (at a multiple of XFP_CUDA_ALIGN), which stays until they have been
 * multiplied. Whatever was opened with the same columns and has the same balance takes them, whatever it is stored as:
 * projections q, k and v of a model that has one balance for them, and all experts of a stack. XFP_USAGE when there is
 * no room, or an address, the workspace's included, is null or misaligned. */
enum xfp_status xfp_cuda_prepare(const struct xfp_cuda_linear *linear, const struct xfp_cuda_input *x, uint64_t memory,
				 uint64_t bytes, const struct xfp_cuda_queue *queue,
				 struct xfp_cuda_prepared *prepared, struct xfp_error *err);

/* y[m] = W x[m] of one expert, for m below `count`, any number. XFP_USAGE as of xfp_multiply, and when the vectors were
 * prepared for other columns or another balance. */
enum xfp_status xfp_cuda_multiply(const struct xfp_cuda_linear *linear, uint32_t expert, size_t count,
				  const struct xfp_cuda_prepared *x, const struct xfp_cuda_output *y,
				  const struct xfp_cuda_queue *queue, struct xfp_error *err);

/* Chosen experts of a stack, as of xfp_multiply_experts: `products` is the address of `count` struct xfp_product in
 * device memory, which the kernel reads when it runs, at a multiple of 4. So is a product of an expert or a vector that
 * is not there left out; a y that no product names stays as it is. XFP_USAGE also where the experts' indices have
 * different numbers of bits, as those of a unit in mode v2 may: multiply by one expert at a time. */
enum xfp_status xfp_cuda_multiply_experts(const struct xfp_cuda_linear *linear, uint64_t products, size_t count,
					  const struct xfp_cuda_prepared *x, const struct xfp_cuda_output *y,
					  const struct xfp_cuda_queue *queue, struct xfp_error *err);

#ifdef __cplusplus
}
#endif
#endif
