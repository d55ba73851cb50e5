/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp_cuda.h - libxfp-cuda: multiply by the weights of .xfp bundles on NVIDIA GPUs.
 *
 * The library is the counterpart of xfp.h in device memory. A unit, or a tensor that was kept unquantized, is uploaded
 * to memory that the caller allocates. Vectors are prepared once and then multiplied by every linear with the same
 * columns and balance. Kernels are compiled into the library; it opens the driver (libcuda.so.1) at run time and links
 * to no library but libxfp. It supports compute capability 8.0 (A100) and newer.
 *
 *     struct xfp_cuda *cuda = NULL;
 *     struct xfp_cuda_linear *linear = NULL;
 *     struct xfp_cuda_queue queue;
 *     struct xfp_cuda_prepared prepared;
 *     uint64_t bytes;
 *
 *     status = xfp_cuda_open(&cuda, &err);                          // once; the caller's context is current
 *     workspace = ...                                               // XFP_CUDA_WORKSPACE bytes from cuMemAlloc
 *     if (!status)
 *         status = xfp_cuda_queue_open(cuda, stream, workspace, XFP_CUDA_WORKSPACE, &queue, &err);
 *     if (!status)
 *         status = xfp_cuda_linear_bytes(bundle, unit, NULL, &bytes, &err);
 *     memory = ...                                                  // `bytes` bytes from cuMemAlloc
 *     if (!status)
 *         status = xfp_cuda_linear_open(cuda, bundle, unit, NULL, memory, bytes, stream, &linear, &err);
 *
 *     for (int token = 0; !status && token < 10; token++) {         // may be captured in a graph
 *         struct xfp_cuda_input in = { .data = x, .type = XFP_BFLOAT16, .count = 1, .stride = 4096 };
 *         struct xfp_cuda_output out = { .data = y, .type = XFP_BFLOAT16, .count = 1, .stride = 1024 };
 *
 *         status = xfp_cuda_prepare(linear, &in, room, xfp_cuda_prepared_bytes(linear, 1), &queue, &prepared, &err);
 *         if (!status)
 *             status = xfp_cuda_multiply(linear, 0, 1, &prepared, &out, &queue, &err);
 *     }
 *
 *     xfp_cuda_linear_close(linear);                                // after cuStreamSynchronize(stream)
 *     xfp_cuda_close(cuda);
 *
 * (cc program.c $(pkg-config --cflags --libs xfp-cuda))
 *
 * Contexts and streams belong to the caller. The context that was current in xfp_cuda_open must be current in every
 * call, on any thread. A null stream is the context's default stream. Calls on different streams are not ordered: if
 * one stream prepares vectors and another multiplies them, the caller must order the streams. The same holds for copies
 * of inputs and outputs. Copy on the queue's stream (cuMemcpyHtoDAsync): cuMemcpyHtoD from pageable memory may return
 * before the bytes arrive, and a stream created with CU_STREAM_NON_BLOCKING does not wait for it.
 *
 * On compute capability 9.0 and newer, kernels use programmatic dependent launch. A kernel may start while the previous
 * kernel of the stream runs; it then reads only weights, and waits before it reads vectors or writes anything. In a
 * captured graph these launches are programmatic edges.
 *
 * xfp_cuda_prepare, xfp_cuda_multiply and xfp_cuda_multiply_experts only launch kernels. They do not allocate, wait or
 * read back, so they can be captured in a graph. The graph contains the addresses that they were given; while it runs,
 * nothing else may use the queue's workspace. These functions report invalid arguments and failed launches; the next
 * driver call reports an error on the device.
 *
 * Reproducibility: a result has the same bits from run to run, whatever else the device does, and on all devices of one
 * compute capability. It depends on shapes, never on the size of the device. Tensor cores of other generations may
 * differ in the last bits; sums of integers (see below) are the same on all devices.
 *
 * Accuracy: let S be as in xfp.h, x' the balanced vector, a the largest |x'|, and e the largest |W| of the row in terms
 * of x'. The result differs from W x, computed in double with the weights of xfp_bundle_dequantize as f32, by at most
 *
 *     (columns / 4 + 64) 2^-24 S + columns 2^-40 a e
 *
 * In v2a, whose weights are sums of two terms, S contains |entry scale x| + |midpoint x| in place of |base x|, and e is
 * the largest of both terms. The last term of the bound accounts for elements below 2^-40 a, which become 0, and for
 * elements of bfloat16 vectors below 2^-32 a, which lose bits.
 *
 * The faster integer path multiplies up to four vectors at a time, and all products of a list, if the mode is v2, or
 * v2c with groups of 32 columns or more; indices have 2, 3 or 4 bits; there are at most 65,536 columns; and all
 * codebooks are finite. Its bound is larger by
 *
 *     2^-14 c A + 2^-21 columns c a
 *
 * where c is the largest |weight| of the row's codebook (v2c: of the library, with the largest |ratio| and the row's
 * factor) and A the sum of all |x'|; with 2 or 3 bits it is 2^-16 c A. This is the accuracy class of "vbmi" in xfp.h,
 * about 1e-4 of a typical result. The number of vectors in the call selects the path.
 *
 * The bounds hold while no sum in terms of the stored entries, which are 2^s times the weights, overflows f32. 16-bit
 * output types round once more. If weights or vectors are not finite, the result is not finite.
 *
 * Several threads may use open objects at the same time. Device addresses are integers here (CUdeviceptr, or a pointer
 * cast to uintptr_t), so that the host cannot dereference them by mistake; the null address is 0.
 */
#ifndef XFP_CUDA_H
#define XFP_CUDA_H

#include "runtime/xfp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a device ---------------------------------------------------------------------------------- */

struct xfp_cuda;

/*
 * Load all kernels into the current context; no later call loads code. Do not call it while any thread captures a graph
 * in global mode: the driver then refuses to load.
 *
 * @param out  Receives the library's handle; close it with xfp_cuda_close.
 * @param err  Receives the message on failure, with a remedy; may be NULL.
 *
 * @return XFP_OK      The kernels are loaded.
 *         XFP_USAGE   No context is current.
 *         XFP_FAILED  The driver is missing or too old; there is no device, or one older than compute capability 8.0;
 *                     or memory ran out.
 */
enum xfp_status xfp_cuda_open(struct xfp_cuda **out, struct xfp_error *err);

/* Unload the kernels and free the handle. Close every linear first. The context may already be destroyed. NULL is
 * allowed. */
void xfp_cuda_close(struct xfp_cuda *cuda);

struct xfp_cuda_info {
	const char *device; /* device name: "NVIDIA H200" */
	int major, minor;   /* compute capability */
	int processors;     /* streaming multiprocessors */
	int shared_bytes;   /* maximum shared memory per block */
	int driver;         /* CUDA version of the driver, 1000 * major + 10 * minor */
	int toolkit;        /* CUDA version of the nvcc that compiled the kernels, in the same form */
};

/* Describe the device and the driver. Strings belong to `cuda`. */
void xfp_cuda_describe(const struct xfp_cuda *cuda, struct xfp_cuda_info *info);

/* ---- streams ----------------------------------------------------------------------------------- */

/* Size of a workspace in bytes. */
#define XFP_CUDA_WORKSPACE 4194304

/*
 * A stream, and the device memory in which the blocks of its launches exchange partial sums. The caller may copy the
 * structure; there is nothing to close. Launches that run one after the other on a stream share a workspace. Launches
 * that may run at the same time need one workspace each.
 */
struct xfp_cuda_queue {
	void *stream;
	uint64_t workspace;
};

/*
 * Clear a workspace on a stream. Launches expect a cleared workspace and leave it cleared.
 *
 * @param stream     CUstream or cudaStream_t; must not be capturing.
 * @param workspace  Device address, a multiple of XFP_CUDA_ALIGN.
 * @param bytes      Size of the workspace, at least XFP_CUDA_WORKSPACE.
 * @param queue      Receives the stream and the workspace; the memory remains the caller's.
 *
 * @return XFP_OK      The queue can be used.
 *         XFP_USAGE   The workspace is too small, misaligned or not memory of the device; the stream is capturing;
 *                     or the context of `cuda` is not current.
 *         XFP_FAILED  The driver failed.
 */
enum xfp_status xfp_cuda_queue_open(struct xfp_cuda *cuda, void *stream, uint64_t workspace, uint64_t bytes,
				    struct xfp_cuda_queue *queue, struct xfp_error *err);

/* ---- linear layers ----------------------------------------------------------------------------- */

struct xfp_cuda_linear;

/* Alignment of device memory that the caller provides. Memory from cuMemAlloc has it. */
#define XFP_CUDA_ALIGN 256

/*
 * Compute the device memory that a unit, or a tensor, needs. No driver is needed.
 *
 * @param slice  Rows and columns to use; NULL: all.
 * @param bytes  Receives the size in bytes.
 *
 * @return As xfp_linear_open; and XFP_BAD_INPUT if a slice of a matrix contains damaged outliers.
 */
enum xfp_status xfp_cuda_linear_bytes(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				      uint64_t *bytes, struct xfp_error *err);
enum xfp_status xfp_cuda_linear_bytes_tensor(const struct xfp_bundle *bundle, uint32_t tensor,
					     const struct xfp_slice *slice, uint64_t *bytes, struct xfp_error *err);

/*
 * Upload a unit, or a tensor. The copies are complete when the function returns; the bundle may then be closed.
 *
 * @param slice   Rows and columns to use; NULL: all.
 * @param memory  Device address, a multiple of XFP_CUDA_ALIGN; must stay allocated until xfp_cuda_linear_close.
 * @param bytes   Size of the memory, at least the size that xfp_cuda_linear_bytes returns.
 * @param stream  Stream of the copies; must not be capturing. No other stream may capture in global mode, because the
 *                function allocates pinned memory.
 * @param out     Receives the linear; close it with xfp_cuda_linear_close.
 *
 * @return XFP_OK         The linear is on the device.
 *         XFP_USAGE      As xfp_linear_open; or the memory is too small, misaligned or not memory of the device.
 *         XFP_BAD_INPUT  Outliers are out of order or outside the matrix, or a group has an invalid codebook number.
 *         XFP_FAILED     The driver failed, or memory ran out.
 */
enum xfp_status xfp_cuda_linear_open(struct xfp_cuda *cuda, const struct xfp_bundle *bundle, uint32_t unit,
				     const struct xfp_slice *slice, uint64_t memory, uint64_t bytes, void *stream,
				     struct xfp_cuda_linear **out, struct xfp_error *err);
enum xfp_status xfp_cuda_linear_open_tensor(struct xfp_cuda *cuda, const struct xfp_bundle *bundle, uint32_t tensor,
					    const struct xfp_slice *slice, uint64_t memory, uint64_t bytes,
					    void *stream, struct xfp_cuda_linear **out, struct xfp_error *err);

/* Free the handle after the last launch that uses it has finished. The device memory remains the caller's. NULL is
 * allowed. */
void xfp_cuda_linear_close(struct xfp_cuda_linear *linear);

struct xfp_cuda_linear_info {
	uint32_t experts;      /* 1 for a tensor */
	uint64_t rows, cols;   /* shape of the slice */
	uint64_t bytes;        /* device memory */
	char kernel[32];       /* kernel that multiplies one vector by expert 0 */
	uint32_t tiles;        /* tiles of 16 rows */
	uint32_t parts;        /* blocks that share the columns of a tile; 1 on the integer path, whose warps share all
	                        * chunks of the matrix. Tiles and parts depend on the shape, not on the device */
	uint32_t shared_bytes; /* shared memory per block */
	bool repacked;         /* true if the order of indices differs from the bundle: always for up to 4 bits; above
	                        * that, if the slice begins inside a chunk */
};

/* Describe a linear. */
void xfp_cuda_linear_describe(const struct xfp_cuda_linear *linear, struct xfp_cuda_linear_info *info);

/* ---- products ---------------------------------------------------------------------------------- */

/* `count` vectors in device memory, each `stride` elements after the previous one; the address must be a multiple of
 * the element size. An input vector has as many elements as the slice has columns; an output vector has as many as the
 * slice has rows. */
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

/* Prepared vectors: their location and layout. xfp_cuda_prepare fills in the structure; the caller may copy it, and
 * must not change it. */
struct xfp_cuda_prepared {
	uint64_t memory;
	uint32_t count, cols;
	uint32_t planes;     /* fp16 numbers per element: 1 or 2 */
	uint8_t columns[32]; /* digest of the columns and the balance */
};

/* Size of `count` prepared vectors in bytes of device memory. */
uint64_t xfp_cuda_prepared_bytes(const struct xfp_cuda_linear *linear, size_t count);

/*
 * Convert vectors to the layout that the kernels read. The result can be multiplied by every linear with the same
 * columns and the same balance, whatever its mode: for example the projections q, k and v, or all experts of a stack.
 *
 * @param linear    A linear with the columns and the balance.
 * @param x         Inputs, [count, cols].
 * @param memory    Device address for the result, a multiple of XFP_CUDA_ALIGN; must stay allocated until the last
 *                  product has finished.
 * @param bytes     Size of the memory, at least xfp_cuda_prepared_bytes.
 * @param queue     Stream and workspace.
 * @param prepared  Receives the description of the prepared vectors.
 *
 * @return XFP_OK      The kernel is launched.
 *         XFP_USAGE   The memory is too small, or an address (also of the workspace) is null or misaligned.
 *         XFP_FAILED  The launch failed.
 */
enum xfp_status xfp_cuda_prepare(const struct xfp_cuda_linear *linear, const struct xfp_cuda_input *x, uint64_t memory,
				 uint64_t bytes, const struct xfp_cuda_queue *queue,
				 struct xfp_cuda_prepared *prepared, struct xfp_error *err);

/*
 * Multiply vectors by one matrix: y[m] = W x[m] for m < count.
 *
 * @param expert  Number of the expert; 0 if there is only one matrix.
 * @param count   Number of vectors, at most x->count and y->count.
 * @param x       Prepared vectors.
 * @param y       Outputs, [count, rows].
 * @param queue   Stream and workspace.
 *
 * @return XFP_OK      The kernels are launched.
 *         XFP_USAGE   As xfp_multiply; or the vectors were prepared for other columns or another balance.
 *         XFP_FAILED  A launch failed.
 */
enum xfp_status xfp_cuda_multiply(const struct xfp_cuda_linear *linear, uint32_t expert, size_t count,
				  const struct xfp_cuda_prepared *x, const struct xfp_cuda_output *y,
				  const struct xfp_cuda_queue *queue, struct xfp_error *err);

/*
 * Multiply vectors by the top-k experts of a stack, with the semantics of xfp_multiply_experts.
 *
 * The kernel reads the list when it runs. It skips products whose expert or vector does not exist. A y that no product
 * names is unchanged.
 *
 * @param products  Device address of `count` struct xfp_product, a multiple of 4.
 * @param count     Number of products.
 * @param x         Prepared vectors.
 * @param y         Outputs.
 * @param queue     Stream and workspace.
 *
 * @return XFP_OK      The kernels are launched.
 *         XFP_USAGE   As xfp_cuda_multiply; or the experts' indices differ in the number of bits, as in a unit of mode
 *                     v2: multiply by one expert at a time.
 *         XFP_FAILED  A launch failed.
 */
enum xfp_status xfp_cuda_multiply_experts(const struct xfp_cuda_linear *linear, uint64_t products, size_t count,
					  const struct xfp_cuda_prepared *x, const struct xfp_cuda_output *y,
					  const struct xfp_cuda_queue *queue, struct xfp_error *err);

#ifdef __cplusplus
}
#endif
#endif
