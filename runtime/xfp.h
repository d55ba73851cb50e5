/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp.h - libxfp: read .xfp bundles, decode their weights, and multiply by them on the CPU.
 *
 * A bundle contains the quantized weights of a model and its small files (config, tokenizer). The library maps the
 * bundle once. It returns the location of every part of every matrix, for use in place or for upload; it decodes
 * weights to f32, f16 or bf16; and it computes matrix-vector products directly from the stored bytes. It depends on
 * no other library.
 *
 *     #include <stdio.h>
 *     #include <stdlib.h>
 *     #include <xfp.h>
 *
 *     int main(void)
 *     {
 *         struct xfp_error err = { XFP_FAILED, "out of memory" };
 *         struct xfp_bundle *bundle = NULL;
 *         struct xfp_team *team = NULL;
 *         struct xfp_linear *linear = NULL;
 *         struct xfp_linear_info info;
 *         float *x = NULL, *y = NULL;
 *         enum xfp_status status = xfp_bundle_open("model.xfp", &bundle, &err);
 *
 *         if (!status)
 *             status = xfp_team_start(0, &team, &err);
 *         if (!status) {
 *             uint32_t unit = xfp_bundle_find_unit(bundle, "model.layers.0.self_attn.q_proj.weight", "q");
 *
 *             status = xfp_linear_open(bundle, unit, NULL, &linear, &err);
 *         }
 *         if (!status) {
 *             xfp_linear_describe(linear, &info);
 *             x = calloc(info.cols, sizeof *x);
 *             y = calloc(info.rows, sizeof *y);
 *             status = x && y ? XFP_OK : XFP_FAILED;
 *         }
 *         for (int token = 0; !status && token < 10; token++) {
 *             struct xfp_input in = { .data = x, .type = XFP_FLOAT32, .count = 1, .stride = info.cols };
 *             struct xfp_output out = { .data = y, .type = XFP_FLOAT32, .count = 1, .stride = info.rows };
 *
 *             x[token] = 1;                                                   // your activations
 *             status = xfp_multiply(team, linear, 0, 1, &in, &out, &err);     // y = W x
 *             if (!status)
 *                 printf("%g\n", y[0]);
 *         }
 *         if (status)
 *             fprintf(stderr, "%s\n", err.text);
 *         free(x);
 *         free(y);
 *         xfp_linear_close(linear);
 *         xfp_team_end(team);
 *         xfp_bundle_close(bundle);
 *         return status;
 *     }
 *
 * (cc program.c $(pkg-config --cflags --libs xfp))
 *
 * Terms: a tensor is a named array of the checkpoint that the bundle was converted from. A matrix is W [rows, cols] in
 * y = W x: one tensor, or a view of one. A unit is one matrix, or all experts of one projection in one layer. xfp(5)
 * documents the file format.
 *
 * Errors: functions that can fail return XFP_OK (0) or the reason, and write a message to `err`, which may be NULL.
 * Output handles are NULL after a failure. The statuses are
 *
 *     XFP_FAILED     the system failed: I/O, memory, threads, the CUDA driver
 *     XFP_USAGE      an argument is invalid
 *     XFP_BAD_INPUT  the file is missing, damaged, or not a bundle
 *
 * Trust: opening verifies the index, its digest, and every offset and size in it, without reading weights. Only
 * xfp_bundle_check verifies the weights: it reads the whole file. No call reads or writes out of bounds, whatever the
 * file contains. If the file is truncated while it is mapped, an access raises SIGBUS, as with any mapped file.
 *
 * Ownership: every pointer that these functions return belongs to the bundle and is valid until xfp_bundle_close.
 *
 * Threads: a bundle, and everything opened from it, is immutable and may be used by several threads at once.
 *
 * The numeric values of class, mode, dtype and fate are defined in xfp(5); the structures also contain their names.
 */
#ifndef XFP_H
#define XFP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xfp_bundle;

#define XFP_NOT_FOUND UINT32_MAX

/* Version of the library, "0.2.0", for bindings to other languages: compare it with the version of your bindings. */
const char *xfp_version(void);

/*
 * Map a bundle and verify its index.
 *
 * @param path  The file.
 * @param out   Receives the bundle; close it with xfp_bundle_close.
 * @param err   Receives the message on failure; may be NULL.
 *
 * @return XFP_OK         The bundle is open.
 *         XFP_BAD_INPUT  The file is missing, is not a bundle, is damaged, or has an unsupported format version.
 *         XFP_FAILED     The file cannot be read or mapped, or memory ran out.
 */
enum xfp_status xfp_bundle_open(const char *path, struct xfp_bundle **out, struct xfp_error *err);

/* Unmap and free a bundle. Close every xfp_linear opened from it first. NULL is allowed. */
void xfp_bundle_close(struct xfp_bundle *bundle);

/* ---- contents ---------------------------------------------------------------------------------- */

struct xfp_bundle_info {
	uint32_t version;   /* version of the format */
	const char *family; /* model family: "qwen3_moe" */
	const char *json;   /* conversion parameters and algorithm versions; not NUL-terminated */
	size_t json_bytes;
	uint64_t file_bytes;
	uint64_t weights; /* elements of all units */
	uint32_t units, matrices, tensors, files;
	const char *path; /* path given to xfp_bundle_open */
};

/* Describe a bundle: sizes, and the number of units, matrices, tensors and files. Numbers begin at 0. */
void xfp_bundle_describe(const struct xfp_bundle *bundle, struct xfp_bundle_info *info);

struct xfp_unit_info {
	const char *name; /* name of the source tensor; for a stack of experts, * stands for the expert number */
	const char *role; /* "q", "gate" ...: distinguishes the units of one fused tensor */
	const char *class_name, *mode_name, *dtype_name;
	uint8_t class_, mode, dtype; /* dtype: of the source tensor */
	uint8_t k;                   /* bits per index, the maximum over its matrices; 0 without a codebook */
	bool met;                    /* true if the quality floor was met */
	uint32_t group_size;         /* v2a, v2c: columns per group; 0 in other modes */
	uint32_t library_size;       /* v2a, v2c: codebooks in the library; 0 in other modes */
	uint32_t experts;            /* matrices first_matrix ... first_matrix + experts - 1 */
	uint32_t first_matrix;
	uint64_t rows, cols; /* shape of each matrix */
	uint64_t weights;    /* experts * rows * cols */
	uint64_t bytes;      /* stored bytes of all parts */
	uint64_t outliers;
	double cos_median, cos_p5; /* median and 5th percentile of the per-row cosine to the source */
	double error;              /* squared error / squared norm */
	double floor;              /* minimum median cosine that was requested */
};

struct xfp_matrix_info {
	uint32_t unit, expert;
	uint32_t tensor;                       /* source tensor that this matrix is a view of */
	uint64_t base, row_stride, col_stride; /* (r, c) is element base + r * row_stride + c * col_stride */
	uint64_t rows, cols;
	uint8_t mode, k;
	uint32_t group_size, library_size; /* same as in its unit */
	int exponent;                      /* s: weights are 2^-s times the stored entries */
	uint64_t outliers;
	const uint8_t *source; /* XXH3-128 of the source rows, canonical byte order */

	/* Location of this matrix in the parts of its unit; NULL and 0 if the matrix has no such part. `balance` is
	 * shared by the unit, and so is `code` in v2a and v2c. */
	const void *index, *code, *group, *balance, *outlier;
	uint64_t index_bytes, code_bytes, group_bytes, balance_bytes, outlier_bytes;
};

struct xfp_tensor_info {
	const char *name;
	const char *reason; /* reason for the fate, as text */
	const char *class_name, *dtype_name, *fate_name;
	uint8_t class_, dtype, fate;
	uint32_t rank;
	uint64_t shape[8];
	uint64_t elements;
	uint32_t tied;         /* fate "tied": the identical tensor; otherwise XFP_NOT_FOUND */
	const void *data;      /* bytes of a tensor that was kept unquantized; NULL if its weights are in units, in */
	uint64_t bytes;        /* the tied tensor, or dropped */
	const uint8_t *source; /* XXH3-128 of the bytes; NULL without data */
};

struct xfp_file_info {
	const char *name; /* relative path, with '/' between folders, without ".." */
	const void *data;
	uint64_t bytes;
};

/*
 * Describe one unit, matrix, tensor or file.
 *
 * @param number  0 ... the count in struct xfp_bundle_info - 1.
 * @param info    Receives the description; its pointers belong to the bundle.
 *
 * @return false if `number` is out of range; `info` is then unchanged.
 */
bool xfp_bundle_unit(const struct xfp_bundle *bundle, uint32_t number, struct xfp_unit_info *info);
bool xfp_bundle_matrix(const struct xfp_bundle *bundle, uint32_t number, struct xfp_matrix_info *info);
bool xfp_bundle_tensor(const struct xfp_bundle *bundle, uint32_t number, struct xfp_tensor_info *info);
bool xfp_bundle_file(const struct xfp_bundle *bundle, uint32_t number, struct xfp_file_info *info);

/*
 * Find a unit, tensor or file by its exact name.
 *
 * @param name  The name, as in the info structures.
 * @param role  Role of the unit, because the units of a fused tensor share its name; NULL matches any role.
 *
 * @return The number, or XFP_NOT_FOUND.
 */
uint32_t xfp_bundle_find_unit(const struct xfp_bundle *bundle, const char *name, const char *role);
uint32_t xfp_bundle_find_tensor(const struct xfp_bundle *bundle, const char *name);
uint32_t xfp_bundle_find_file(const struct xfp_bundle *bundle, const char *name);

/* ---- weights ----------------------------------------------------------------------------------- */

/* Element types of inputs and outputs. The values equal the dtypes of xfp(5). */
enum xfp_float { XFP_FLOAT32 = 1, XFP_FLOAT16 = 2, XFP_BFLOAT16 = 3 };

/*
 * Decode rows of a matrix, in the range of the source weights.
 *
 * Weights are computed in f32, then rounded to nearest, ties to even. f16 can overflow to infinity.
 *
 * @param matrix     Number of the matrix.
 * @param first_row  First row to decode.
 * @param rows       Number of rows.
 * @param type       Element type of `out`.
 * @param out        [rows, cols], row-major and contiguous; undefined after a failure.
 *
 * @return XFP_OK         The rows are decoded.
 *         XFP_USAGE      The matrix, the rows or the type do not exist.
 *         XFP_BAD_INPUT  Outliers are out of order or outside the matrix, or a group has an invalid codebook number.
 *         XFP_FAILED     Out of memory.
 */
enum xfp_status xfp_bundle_dequantize(const struct xfp_bundle *bundle, uint32_t matrix, uint64_t first_row,
				      uint64_t rows, enum xfp_float type, void *out, struct xfp_error *err);

/* ---- products ---------------------------------------------------------------------------------- */

/*
 * y = W x, for one vector or many, computed from the mapped bytes. Open each linear once, start one team of threads
 * once, then call xfp_multiply for every token, as in the example at the top. x and y must not overlap.
 *
 * Reproducibility: a result has the same bits for every team, for every slice of rows, and from run to run. It changes,
 * by rounding only, with the instruction set, with the number of vectors per expert in a call, and with whether all of
 * these vectors are finite and less than 2^64 after balancing.
 *
 * Accuracy: let S be the sum over a row's columns of |base x| + |outlier x|, where a weight is base + outlier. The
 * result differs from W x, computed in double with the weights of xfp_bundle_dequantize as f32, by at most
 *
 *     (columns / 16 + 40) 2^-24 S
 *
 * "avx2", "vbmi" and "dotprod" convert weights and activations to 16-bit integers. Their bound is larger by
 *
 *     2^-14 n e a
 *
 * summed over blocks of n = 256 columns: e is the largest |entry| of the row's codebook (v2a, v2c: of the library,
 * times the largest scale of the row), and a the largest |x| of the block, or 2^-100 if that is larger, both after
 * balancing. This is about 1e-4 of a typical result, far below the quantization error; the other instruction sets are
 * near 1e-7.
 *
 * With one or two vectors per expert, "vbmi" also rounds the entries of v2a and v2c to 8 bits, up to k = 4, if that
 * adds at most about 1 % to the mean square of the quantization error. The library alone decides, so that a unit is
 * rounded on every machine with "vbmi", or on none. The bound of such units is larger by
 *
 *     e / 254 times the sum over all columns of |x|, after balancing.
 *
 * 16-bit output types
 * round once more, and f16 can overflow to infinity. If weights or activations are not finite, the result is not
 * finite. The bounds ignore underflow.
 */

/* A team of threads that multiplies. One call at a time uses a team; concurrent calls wait. */
struct xfp_team;

/*
 * Start a team. Do not use a team after fork in the child process.
 *
 * @param threads  Threads of the team, including the calling thread: 1 to 1024; 0 means one per available processor.
 * @param out      Receives the team; end it with xfp_team_end.
 *
 * @return XFP_OK      The threads run, with all signals blocked.
 *         XFP_USAGE   `threads` is too large.
 *         XFP_FAILED  A thread could not be started, or memory ran out.
 */
enum xfp_status xfp_team_start(unsigned threads, struct xfp_team **out, struct xfp_error *err);

/*
 * Run a task on the caller's threads: call task(context, i) once for every i < threads, then return. Calls may run
 * at the same time, in any order, on any thread. The function must not multiply with the same team.
 */
typedef void xfp_team_run_fn(void *pool, void (*task)(void *context, unsigned i), void *context, unsigned threads);

/*
 * Create a team from the caller's thread pool.
 *
 * @param threads  Number of tasks per run: 1 to 1024.
 * @param run      Runs the tasks.
 * @param pool     Passed to `run`.
 * @param out      Receives the team; end it with xfp_team_end before the pool is destroyed.
 *
 * @return XFP_OK      The team can be used.
 *         XFP_USAGE   `run` is NULL, or `threads` is out of range.
 *         XFP_FAILED  Out of memory.
 */
enum xfp_status xfp_team_borrow(unsigned threads, xfp_team_run_fn *run, void *pool, struct xfp_team **out,
				struct xfp_error *err);

/* Stop the threads and free the team. NULL is allowed. */
void xfp_team_end(struct xfp_team *team);

/*
 * A linear layer: the matrix, or all experts, of a unit; or a two-dimensional tensor that was kept unquantized or is
 * one unit. A tied tensor (an output head that equals the word embedding) opens the tensor that it is tied to. It owns
 * what is decoded once (shared codebooks, the balance) and points into the bundle, which must stay open.
 */
struct xfp_linear;

/*
 * A part of every matrix, for tensor parallelism: rows of the output, columns of the input. If `rows` or `cols` is 0,
 * the slice extends from the first one to the end; it must not be empty. Columns may begin and end anywhere. Multiples
 * of 512 are fastest, and in v2a and v2c multiples of the group size: columns between a boundary and the slice are
 * multiplied by zero, so a weight there that is not finite makes the row NaN.
 */
struct xfp_slice {
	uint64_t first_row, rows, first_col, cols;
};

/*
 * Open a unit, or a tensor, to multiply by. Open word embeddings and output heads by tensor: this works for every fate.
 *
 * @param unit    Number of the unit.
 * @param tensor  Number of the tensor.
 * @param slice   Rows and columns to use; NULL: all.
 * @param out     Receives the linear; close it with xfp_linear_close before the bundle.
 *
 * @return XFP_OK      The linear is open.
 *         XFP_USAGE   The unit, tensor or slice does not exist, or the tensor is not stored as one two-dimensional
 *                     matrix (open the units of that name instead).
 *         XFP_FAILED  Out of memory.
 */
enum xfp_status xfp_linear_open(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				struct xfp_linear **out, struct xfp_error *err);
enum xfp_status xfp_linear_open_tensor(const struct xfp_bundle *bundle, uint32_t tensor, const struct xfp_slice *slice,
				       struct xfp_linear **out, struct xfp_error *err);

/* Free a linear. NULL is allowed. */
void xfp_linear_close(struct xfp_linear *linear);

struct xfp_linear_info {
	uint32_t experts;    /* 1 for a tensor */
	uint64_t rows, cols; /* shape of the slice */
};

/* Describe a linear. */
void xfp_linear_describe(const struct xfp_linear *linear, struct xfp_linear_info *info);

/* `count` vectors, each `stride` elements after the previous one. An input vector has as many elements as the slice has
 * columns; an output vector has as many as the slice has rows. */
struct xfp_input {
	const void *data;
	enum xfp_float type;
	size_t count, stride;
};
struct xfp_output {
	void *data;
	enum xfp_float type;
	size_t count, stride;
};

/*
 * Multiply vectors by one matrix: y[m] = W x[m] for m < count.
 *
 * @param team    The threads; NULL: the calling thread alone.
 * @param linear  The linear.
 * @param expert  Number of the expert; 0 if there is only one matrix.
 * @param count   Number of vectors, at most x->count and y->count.
 * @param x       Inputs, [count, cols].
 * @param y       Outputs, [count, rows]; they may not overlap x; undefined after a failure.
 *
 * @return XFP_OK         The products are in y.
 *         XFP_USAGE      The expert, a vector or a type does not exist, or a stride is too small.
 *         XFP_BAD_INPUT  Outliers are out of order or outside the matrix, or a group has an invalid codebook number.
 *         XFP_FAILED     Out of memory.
 */
enum xfp_status xfp_multiply(struct xfp_team *team, const struct xfp_linear *linear, uint32_t expert, size_t count,
			     const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err);

/* One term of a mixture-of-experts layer: y[.y] += weight * W[expert] x[.x]. */
struct xfp_product {
	uint32_t expert;
	uint32_t x, y; /* numbers of the input and the output vector */
	float weight;
};

/*
 * Multiply vectors by the top-k experts of a stack, in one call.
 *
 * Products with the same y are summed in f32, in the order of the list. The previous contents of these y are
 * overwritten; a y that no product names is unchanged. Products of the same expert are batched. For one token:
 *
 *     gate, up:  { expert[i], 0, i, 1 }          for i < k: one y per expert
 *     down:      { expert[i], i, 0, weight[i] }  for i < k: one y, the weighted sum
 *
 * @param team      The threads; NULL: the calling thread alone.
 * @param linear    The linear.
 * @param products  [count], in any order.
 * @param x         Inputs, [x->count, cols].
 * @param y         Outputs, [y->count, rows]; they may not overlap products or x; undefined after a failure.
 *
 * @return As xfp_multiply.
 */
enum xfp_status xfp_multiply_experts(struct xfp_team *team, const struct xfp_linear *linear,
				     const struct xfp_product *products, size_t count, const struct xfp_input *x,
				     const struct xfp_output *y, struct xfp_error *err);

/*
 * Multiply the same vectors by several linears, in one call: y[i] = W[i] x for i < linear_count.
 *
 * The results have the bits of separate calls, but for few vectors, up to 64 products in all, the vectors are prepared
 * once for linears with the same number of bits per index and the same balance, and threads wait for each other once.
 * The linears may come from different bundles, and one may appear twice. For the projections q, k and v, or gate and
 * up, of one token:
 *
 *     const struct xfp_linear *const qkv[] = { q, k, v };
 *     struct xfp_output out[] = { { q_out, XFP_FLOAT32, 1, q_rows }, { k_out, XFP_FLOAT32, 1, k_rows },
 *                                 { v_out, XFP_FLOAT32, 1, v_rows } };
 *
 *     status = xfp_multiply_linears(team, qkv, 3, NULL, 1, &in, out, &err);
 *
 * @param team          The threads; NULL: the calling thread alone.
 * @param linears       [linear_count], whose slices have the same number of columns.
 * @param linear_count  Number of linears and of outputs; 0 does nothing.
 * @param products      [count], for every linear, as for xfp_multiply_experts; NULL: vectors 0 ... count - 1 by the
 *                      first matrix, as for xfp_multiply.
 * @param x             Inputs, [x->count, cols].
 * @param y             [linear_count]: outputs of each linear, [y[i].count, rows]; they may not overlap each other,
 *                      products or x; undefined after a failure.
 *
 * @return As xfp_multiply; XFP_USAGE also if the numbers of columns differ.
 */
enum xfp_status xfp_multiply_linears(struct xfp_team *team, const struct xfp_linear *const *linears,
				     size_t linear_count, const struct xfp_product *products, size_t count,
				     const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err);

/*
 * Copy rows of W, decoded: y[i] = W[ids[i]] for i < count. This is the look-up of a token embedding.
 *
 * The values equal those of xfp_bundle_dequantize. Nothing is allocated, and any number of threads may call at once.
 *
 * @param ids    [count] row numbers within the slice, in any order, with repetitions. The rows of a stack are numbered
 *               through its experts.
 * @param count  Number of rows, at most y->count.
 * @param y      Outputs, [count, cols]; they may not overlap ids; undefined after a failure.
 *
 * @return XFP_OK         The rows are in y.
 *         XFP_USAGE      A row does not exist, or y is too small.
 *         XFP_BAD_INPUT  As xfp_multiply.
 */
enum xfp_status xfp_rows(const struct xfp_linear *linear, const uint32_t *ids, size_t count, const struct xfp_output *y,
			 struct xfp_error *err);

/* Name of the instruction set that multiplies: "plain"; "avx2", "avx512" or "vbmi" on x86; "neon" or "dotprod" on Arm.
 * The default is the best one that the processor supports. */
const char *xfp_instructions(void);

/*
 * Select the instruction set. This is the only global state of the library: do not call it while a thread multiplies.
 *
 * @return false if the name is NULL or unknown, or the processor does not support the set; nothing changes then.
 */
bool xfp_use_instructions(const char *name);

/* ---- integrity --------------------------------------------------------------------------------- */

/*
 * Verify every byte that xfp_bundle_open does not: headers, digests and padding of all small files and data members.
 *
 * @param progress  Called with the bytes checked so far and in total; returns false to stop. May be NULL.
 * @param context   Passed to `progress`.
 *
 * @return XFP_OK         The bundle is intact.
 *         XFP_BAD_INPUT  A member is damaged; the message names the first one.
 *         XFP_FAILED     `progress` returned false.
 */
enum xfp_status xfp_bundle_check(const struct xfp_bundle *bundle,
				 bool (*progress)(void *context, uint64_t done, uint64_t total), void *context,
				 struct xfp_error *err);

/* Number of members of the bundle. */
uint32_t xfp_bundle_members(const struct xfp_bundle *bundle);

/*
 * Verify one member, so that callers can divide xfp_bundle_check among their own threads.
 *
 * @param member  0 ... xfp_bundle_members - 1, in any order.
 *
 * @return XFP_OK, XFP_BAD_INPUT if the member is damaged, XFP_USAGE if it does not exist.
 */
enum xfp_status xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t member, struct xfp_error *err);

/*
 * Verify the bytes that no digest covers: tar headers and padding of all members. It reads one or two pages per
 * member. Together with the digests of all members (xfp_bundle_member) this equals xfp_bundle_check.
 *
 * @return XFP_OK, or XFP_BAD_INPUT; the message names the first damaged member.
 */
enum xfp_status xfp_bundle_check_frames(const struct xfp_bundle *bundle, struct xfp_error *err);

/* Contents and digest of a member. Exactly one of file, unit and tensor is a number; the others are XFP_NOT_FOUND. */
struct xfp_member_info {
	uint32_t file, unit, tensor;
	const void *data;
	uint64_t bytes;
	const uint8_t *sha256; /* expected SHA-256 of `data`, 32 bytes */
};

/* Describe a member, for callers that verify data as they read it. Returns false if `number` is out of range. */
bool xfp_bundle_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_member_info *info);

#ifdef __cplusplus
}
#endif
#endif
