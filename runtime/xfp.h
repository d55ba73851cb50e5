/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp.h - libxfp: reading .xfp bundles, and multiplying by what is in them.
 *
 * A bundle holds the weights of a model, quantized matrix by matrix, and the small files that
 * belong to it (config, tokenizer). The library maps the file once and gives access to what is in it: the place of
 * every part of every matrix, ready to be used in place or uploaded; weights decoded to f32, f16 or bf16; and
 * products of matrices and vectors, computed directly from the stored bytes. It needs no other library.
 *
 *     #include <stdio.h>
 *     #include <stdlib.h>
 *     #include <xfp.h>
 *
 *     int main(void)
 *     {
 *         struct xfp_error err = { XFP_FAILED, "out of memory, or there is no such unit" };
 *         struct xfp_bundle *bundle = NULL;
 *         struct xfp_unit_info unit;
 *         enum xfp_status status = xfp_bundle_open("model.xfp", &bundle, &err);
 *         float *w = NULL;
 *
 *         if (!status) {
 *             uint32_t u = xfp_bundle_find_unit(bundle, "model.layers.0.self_attn.q_proj.weight", "q");
 *
 *             if (xfp_bundle_unit(bundle, u, &unit))
 *                 w = malloc(unit.rows * unit.cols * sizeof *w);
 *             status = w ? xfp_bundle_dequantize(bundle, unit.first_matrix, 0, unit.rows, XFP_FLOAT32, w, &err)
 *                        : XFP_FAILED;
 *         }
 *         if (status)
 *             fprintf(stderr, "%s\n", err.text);
 *         else
 *             printf("%g\n", w[0]);
 *         free(w);
 *         xfp_bundle_close(bundle);
 *         return status;
 *     }
 *
 * (cc program.c $(pkg-config --cflags --libs xfp))
 *
 * Words: a tensor is one named array of the checkpoint that the bundle was made from. A matrix is
 * W [rows, cols] with y = W x, one tensor or a view of one. A unit is one matrix, or all experts of one
 * projection in one layer. How the bytes are laid out is in xfp(5).
 *
 * Opening checks the index, its digest and every offset and size in it, and reads no weights.
 * Only xfp_bundle_check can tell whether the weights are those that were written: it reads everything.
 * Whatever a file holds, no call reads or writes out of bounds; a file that someone truncates while
 * it is open ends the process with SIGBUS, as any mapped file does.
 *
 * Several threads may use a bundle, and what is opened from it, at the same time; nothing changes them. Everything
 * that the functions return pointers to belongs to the bundle and stays until xfp_bundle_close. Numbers called class,
 * mode, dtype and fate are those of xfp(5); their names are given beside them.
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

/* XFP_BAD_INPUT when there is no such file, or when it is not a bundle, is damaged, or has a version that this
 * library does not read; XFP_FAILED when it cannot be read at all. On failure *out is NULL. */
enum xfp_status xfp_bundle_open(const char *path, struct xfp_bundle **out, struct xfp_error *err);
void xfp_bundle_close(struct xfp_bundle *bundle); /* NULL is fine */

/* ---- what is inside ---------------------------------------------------------------------------- */

struct xfp_bundle_info {
	uint32_t version;   /* of the format */
	const char *family; /* of the model: "qwen3_moe" */
	const char *json;   /* parameters and algorithm versions; no NUL at the end */
	size_t json_bytes;
	uint64_t file_bytes;
	uint64_t weights; /* elements of all units */
	uint32_t units, matrices, tensors, files;
	const char *path; /* as it was opened */
};
void xfp_bundle_info(const struct xfp_bundle *bundle, struct xfp_bundle_info *info);

struct xfp_unit_info {
	const char *name; /* of the source tensor; a stack's with * for the expert number */
	const char *role; /* "q", "gate" ...: tells units of one fused tensor apart */
	const char *class_name, *mode_name, *dtype_name;
	uint8_t class_, mode, dtype; /* dtype: of the source */
	uint8_t k;                   /* bits of an index, the largest of its matrices; 0 without a codebook */
	bool met;                    /* whether the floor was met */
	uint32_t group_size;         /* v2a, v2c: columns of a group; 0 in other modes */
	uint32_t library_size;       /* likewise: codebooks of the library */
	uint32_t experts;            /* matrices first_matrix ... first_matrix + experts - 1 */
	uint32_t first_matrix;
	uint64_t rows, cols; /* of each */
	uint64_t weights;    /* experts * rows * cols */
	uint64_t bytes;      /* stored, all parts */
	uint64_t outliers;
	double cos_median, cos_p5; /* per-row cosine to the source */
	double error;              /* squared error / squared norm */
	double floor;              /* least median that was promised */
};

struct xfp_matrix_info {
	uint32_t unit, expert;
	uint32_t tensor;                       /* the source tensor that it is a view of: */
	uint64_t base, row_stride, col_stride; /* (r, c) is element base + r * row_stride + c * col_stride */
	uint64_t rows, cols;
	uint8_t mode, k;
	uint32_t group_size, library_size; /* as those of its unit */
	int exponent;
	uint64_t outliers;
	const uint8_t *source; /* XXH3-128 of the source rows, canonical */

	/* Its bytes in the parts of its unit; NULL and 0 where there is none. `balance` is the unit's, and
	 * so is `code` in v2a and v2c. */
	const void *index, *code, *group, *balance, *outlier;
	uint64_t index_bytes, code_bytes, group_bytes, balance_bytes, outlier_bytes;
};

struct xfp_tensor_info {
	const char *name;
	const char *reason; /* of its fate, for people */
	const char *class_name, *dtype_name, *fate_name;
	uint8_t class_, dtype, fate;
	uint32_t rank;
	uint64_t shape[8];
	uint64_t elements;
	uint32_t tied;         /* fate "tied": the tensor that it equals; otherwise XFP_NOT_FOUND */
	const void *data;      /* its bytes, when it was kept as a whole; otherwise NULL: */
	uint64_t bytes;        /* its weights are in units, in the tied tensor, or dropped */
	const uint8_t *source; /* XXH3-128 of its bytes; NULL without data */
};

struct xfp_file_info {
	const char *name; /* relative, '/' between folders, never ".." */
	const void *data;
	uint64_t bytes;
};

/* Each fills in `info`; false when there is no such number. */
bool xfp_bundle_unit(const struct xfp_bundle *bundle, uint32_t number, struct xfp_unit_info *info);
bool xfp_bundle_matrix(const struct xfp_bundle *bundle, uint32_t number, struct xfp_matrix_info *info);
bool xfp_bundle_tensor(const struct xfp_bundle *bundle, uint32_t number, struct xfp_tensor_info *info);
bool xfp_bundle_file(const struct xfp_bundle *bundle, uint32_t number, struct xfp_file_info *info);

/* By exact name: the number, or XFP_NOT_FOUND. Units of a fused tensor share its name, so that a unit is
 * found by name and role; where role is NULL, any unit of that name will do. */
uint32_t xfp_bundle_find_unit(const struct xfp_bundle *bundle, const char *name, const char *role);
uint32_t xfp_bundle_find_tensor(const struct xfp_bundle *bundle, const char *name);
uint32_t xfp_bundle_find_file(const struct xfp_bundle *bundle, const char *name);

/* ---- weights ----------------------------------------------------------------------------------- */

/* Types of numbers that go in and come out; as numbers, the dtypes of xfp(5). */
enum xfp_float { XFP_FLOAT32 = 1, XFP_FLOAT16 = 2, XFP_BFLOAT16 = 3 };

/* Rows [first_row, first_row + rows) of a matrix as f32, f16 or bf16, row-major and contiguous, in the range of the
 * source weights. Weights are f32 numbers, which are then rounded to nearest, ties to even; f16 may be infinite.
 * XFP_USAGE when there are no such rows; XFP_BAD_INPUT when outliers of the matrix point outside it or are not in
 * order, or when a group names a codebook that is not there. `out` is then undefined. */
enum xfp_status xfp_bundle_dequantize(const struct xfp_bundle *bundle, uint32_t matrix, uint64_t first_row,
				      uint64_t rows, enum xfp_float type, void *out, struct xfp_error *err);

/* ---- products ---------------------------------------------------------------------------------- */

/*
 * y = W x, for one vector or many, straight from the mapped bytes. Open what you multiply by once, start a team
 * once, and then, for example,
 *
 *     float x[4096], y[1024];
 *     struct xfp_input in = { .data = x, .type = XFP_FLOAT32, .count = 1, .stride = 4096 };
 *     struct xfp_output out = { .data = y, .type = XFP_FLOAT32, .count = 1, .stride = 1024 };
 *
 *     status = xfp_multiply(team, linear, 0, 1, &in, &out, &err);
 *
 * A result is the same for any team, for any slice of rows, and from run to run. It differs, by rounding only, with
 * the instruction set, with how many vectors one expert has in a call, and with whether all of those are finite. Let S
 * be the sum over a row's columns of |base x| + |outlier x|, a weight being the sum of both. The result is then within
 *
 *     (columns / 16 + 40) 2^-24 S
 *
 * of W x with the weights that xfp_bundle_dequantize gives as f32, in double. With "vbmi", which takes weights and
 * activations as integers of 16 bits, the bound is larger by
 *
 *     2^-14 n e a
 *
 * added up over blocks of n = 256 columns: e is the largest |entry| of the row's codebook (in v2a and v2c: of the
 * library, times the largest scale of the row), a the largest |x| of the block, both as they are balanced. That is
 * some 1e-4 of a typical result, far below what quantizing did; the other sets come to 1e-7. Types of 16 bits round
 * the result once more, f16 perhaps to infinity. Where weights or activations are not finite, neither is the result;
 * underflow is not counted.
 *
 * x and y must not overlap.
 */

/* Threads that multiply. One call at a time uses a team; others wait. */
struct xfp_team;

/* `threads`, the calling one included, up to 1024; 0: one for each processor that the process may run on. XFP_USAGE
 * when they are too many, XFP_FAILED when they cannot be started. They block all signals. Do not use a team in a
 * process that was forked from the one that started it. */
enum xfp_status xfp_team_start(unsigned threads, struct xfp_team **out, struct xfp_error *err);

/* A team of the caller's own threads: run(pool, task, context, threads) must call task(context, i) for every i
 * below `threads`, no two of the same i at once, and return when all have returned. Any of them may be last, or do all
 * the work. It must not multiply with the same team. XFP_USAGE when there is no `run`, or not 1 to 1024 threads. */
typedef void xfp_team_run_fn(void *pool, void (*task)(void *context, unsigned i), void *context, unsigned threads);
enum xfp_status xfp_team_borrow(unsigned threads, xfp_team_run_fn *run, void *pool, struct xfp_team **out,
				struct xfp_error *err);
void xfp_team_end(struct xfp_team *team); /* NULL is fine */

/* Something to multiply by, or to take rows of: the matrix, or all experts, of a unit; or a tensor of two dimensions
 * that was kept or is a unit of its own (of a tied one, such as an output head that is the word embedding, the tensor
 * that it equals). It holds what is decoded once (codebooks that a unit shares, the balance) and points
 * into the bundle, which must stay open. */
struct xfp_linear;

/* Part of every matrix, for engines that split them: columns for a row of the vector, rows for one of the result.
 * `rows` or `cols` 0: all from the first on, of which there must be some. Columns may begin and end anywhere, but are
 * cheapest at multiples of 512, and in v2a and v2c of the group size: up to there, others are multiplied by zero (so
 * that a weight among them that is not finite spoils the row). */
struct xfp_slice {
	uint64_t first_row, rows, first_col, cols;
};

/* `slice` NULL: all. XFP_USAGE when there is no such unit, tensor or slice, or the tensor has no weights of two
 * dimensions, as one matrix (see the units of that name); XFP_FAILED without memory. So a word embedding, and an output
 * head, is opened by its tensor, whatever became of it. */
enum xfp_status xfp_linear_open(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				struct xfp_linear **out, struct xfp_error *err);
enum xfp_status xfp_linear_open_tensor(const struct xfp_bundle *bundle, uint32_t tensor, const struct xfp_slice *slice,
				       struct xfp_linear **out, struct xfp_error *err);
void xfp_linear_close(struct xfp_linear *linear); /* NULL is fine */

struct xfp_linear_info {
	uint32_t experts;    /* 1 of a tensor */
	uint64_t rows, cols; /* of the slice */
};
void xfp_linear_info(const struct xfp_linear *linear, struct xfp_linear_info *info);

/* Vectors, `stride` elements from one to the next. Those of an input have the slice's columns as elements, those of an
 * output its rows. */
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

/* y[m] = W x[m] of one expert (0 where there is one), for m below `count`. XFP_USAGE when there is no such expert or
 * vector, XFP_BAD_INPUT when outliers point outside the matrix or a group names a codebook that is not there,
 * XFP_FAILED without memory. On failure y is undefined. `team` NULL: this thread alone, with a team of its own for the
 * call. */
enum xfp_status xfp_multiply(struct xfp_team *team, const struct xfp_linear *linear, uint32_t expert, size_t count,
			     const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err);

/* Chosen experts of a stack, in one call: each product is weight * W[expert] x[.x], and goes to y[.y]. Products of
 * the same y are added up in f32, in the order of the list; what was in y before does not count, and a y that no
 * product names stays as it is. Products of the same expert are done together, some thousands at a time. One token's
 * gate, up and down projections are, for example,
 *
 *     { expert[i], 0, i, 1 }  for i = 0, 1 ...      y[i] of its own for every expert
 *     { expert[i], i, 0, weight[i] }                one y, the weighted sum
 */
struct xfp_product {
	uint32_t expert;
	uint32_t x, y;
	float weight;
};
enum xfp_status xfp_multiply_experts(struct xfp_team *team, const struct xfp_linear *linear,
				     const struct xfp_product *products, size_t count, const struct xfp_input *x,
				     const struct xfp_output *y, struct xfp_error *err);

/* Rows of W, which is what a token embedding is for: row ids[i] becomes y[i], for i below `count`, in any order and as
 * often as it is named. Rows are the slice's, and those of a stack are counted through its experts. They are those of
 * xfp_bundle_dequantize, and a row costs what its columns do; nothing is allocated, and any number of threads may call
 * this at once. XFP_USAGE when there is no such row, or no room for so many; XFP_BAD_INPUT as of xfp_multiply. On
 * failure y is undefined. */
enum xfp_status xfp_rows(const struct xfp_linear *linear, const uint32_t *ids, size_t count, const struct xfp_output *y,
			 struct xfp_error *err);

/* Which instructions products are made of: "plain", and "avx2", "avx512", "vbmi" on x86 and "neon" on Arm, the best
 * that the processor has unless another is chosen. Choosing returns false where there is no such set or it cannot
 * run, or for NULL; do not choose while threads multiply. This is the library's only global state. */
const char *xfp_instructions(void);
bool xfp_use_instructions(const char *name);

/* ---- integrity --------------------------------------------------------------------------------- */

/* Check every byte that opening did not: headers, digests and padding of all small files and data
 * members. XFP_BAD_INPUT names the first that is wrong. `progress`, when not NULL, is told the number of bytes
 * done as it goes; it returns false to stop (XFP_FAILED). */
enum xfp_status xfp_bundle_check(const struct xfp_bundle *bundle,
				 bool (*progress)(void *context, uint64_t done, uint64_t total), void *context,
				 struct xfp_error *err);

/* The same in pieces, for callers with threads of their own: all members, in any order. */
uint32_t xfp_bundle_members(const struct xfp_bundle *bundle);
enum xfp_status xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t member, struct xfp_error *err);

/* Check the bytes that no digest covers: tar headers and padding of all small files and data members. Reads a page or
 * two per member. Together with the digests of all members (xfp_bundle_member) this equals xfp_bundle_check.
 * XFP_BAD_INPUT names the first member that is wrong. */
enum xfp_status xfp_bundle_check_frames(const struct xfp_bundle *bundle, struct xfp_error *err);

/* For callers who check what they use before they use it, as they read it: what a member holds, and the digest that
 * its bytes must have. Of what it is a part of one number is given; the other two are XFP_NOT_FOUND. */
struct xfp_member_info {
	uint32_t file, unit, tensor;
	const void *data;
	uint64_t bytes;
	const uint8_t *sha256;
};
bool xfp_bundle_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_member_info *info);

#ifdef __cplusplus
}
#endif
#endif
