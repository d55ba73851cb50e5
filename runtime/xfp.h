/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp.h - libxfp: reading .xfp bundles.
 *
 * A bundle holds the weights of a model, quantized matrix by matrix, and the small files that
 * belong to it (config, tokenizer). The library maps the file once and hands out what is in it: where
 * every part of every matrix is, ready to be used in place or uploaded, and weights decoded to f32.
 * It needs no other library.
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
 *             status = w ? xfp_bundle_dequantize(bundle, unit.first_matrix, 0, unit.rows, w, &err) : XFP_FAILED;
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
 * Whether the weights are what was written, only xfp_bundle_check can tell: it reads everything.
 * Whatever a file holds, no call reads or writes out of bounds; a file that someone truncates while
 * it is open ends the process with SIGBUS, as any mapped file does.
 *
 * A bundle may be used by several threads at once; nothing changes it after it was opened. Everything
 * that the functions point to is theirs and stays until xfp_bundle_close. Numbers called class, mode,
 * dtype and fate are those of xfp(5); their names are given beside them.
 */
#ifndef XFP_H
#define XFP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xfp_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xfp_bundle;

#define XFP_NOT_FOUND UINT32_MAX

/* XFP_BAD_INPUT when there is no such file, or it is no bundle, is damaged, or is of a version that this
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

/* Rows [first_row, first_row + rows) of a matrix as f32, row-major and contiguous, in the range of the
 * source weights. XFP_USAGE when there are no such rows, XFP_BAD_INPUT when its outliers point
 * outside the matrix, or are not in order, or a group names a codebook that is not there; `out` is then undefined. */
enum xfp_status xfp_bundle_dequantize(const struct xfp_bundle *bundle, uint32_t matrix, uint64_t first_row,
				      uint64_t rows, float *out, struct xfp_error *err);

/* ---- integrity --------------------------------------------------------------------------------- */

/* Check every byte that opening did not: headers, digests and padding of all small files and data
 * members. XFP_BAD_INPUT names the first that is wrong. `progress`, when not NULL, is told of bytes
 * done as it goes; it returns false to stop (XFP_FAILED). */
enum xfp_status xfp_bundle_check(const struct xfp_bundle *bundle,
				 bool (*progress)(void *context, uint64_t done, uint64_t total), void *context,
				 struct xfp_error *err);

/* The same in pieces, for callers with threads of their own: all members, in any order. */
uint32_t xfp_bundle_members(const struct xfp_bundle *bundle);
enum xfp_status xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t member, struct xfp_error *err);

#ifdef __cplusplus
}
#endif
#endif
