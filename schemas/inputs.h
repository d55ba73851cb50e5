/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.h - the artifact of calibrate: the inputs of all matrices of a layer for the calibration tokens, and the
 * residual stream after the layer. The step after the last layer, number `layers`, has the final norm's output alone.
 *
 * A window is a sequence of `length` tokens. A distinct input is stored once: q, k and v share one, gate and up share
 * one. `experts_per_token` is 0 if the layer has no experts.
 *   attributes      layer, hidden, tokens, length, experts_per_token, inputs, tensors
 *   /stream         float32 [tokens * hidden]; empty after the last layer
 *   /names          uint8: names of the inputs, then of the tensors, each followed by a newline
 *   /input          compound [inputs] rows, cols: one row a token, or experts_per_token rows a token
 *   /values-NAME    uint16 [rows * cols] of the input NAME: bf16, rounded to nearest even. If a token has
 *                   experts_per_token rows, row i belongs to its expert i; rows without an expert are zero
 *   /experts        uint32 [tokens * experts_per_token] experts of each token, ascending, then XFP_NO_EXPERT if it has
 *                   fewer
 *   /tensor         compound [tensors] input, expert: which rows multiply a tensor; by name, ascending bytewise.
 *                   expert XFP_NO_EXPERT: those of all tokens; XFP_EXPERT_OF_STACK: the tensor is a stack, and matrix m
 *                   of its units is that of expert m
 *   /read           uint8: names of the tensors that the layer was computed from, each followed by a newline
 *   /digest         uint8 [16 * their number]: XXH3-128 of dtype, shape and elements of each
 */
#ifndef XFP_INPUTS_H
#define XFP_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/artifact.h"

#define XFP_INPUTS_KIND "inputs"
#define XFP_INPUTS_VERSION 1
#define XFP_MAX_INPUTS 8
#define XFP_INPUT_NAME 24
#define XFP_NO_EXPERT UINT32_MAX
#define XFP_EXPERT_OF_STACK (UINT32_MAX - 1)
#define XFP_HELD_OUT_WINDOWS 8u /* one in eight is held out */

struct xfp_layer_input {
	char name[XFP_INPUT_NAME]; /* "attention", "expert-down": letters and hyphens */
	uint64_t rows, cols;
};

struct xfp_input_tensor {
	const char *name;
	uint32_t input; /* index into `input` */
	uint32_t expert;
};

/* A tensor that the layer was computed from. */
struct xfp_input_source {
	const char *name;
	uint8_t digest[16];
};

struct xfp_inputs {
	uint32_t layer, hidden, experts_per_token;
	uint64_t tokens, length;
	bool has_stream;
	uint32_t input_count;
	struct xfp_layer_input input[XFP_MAX_INPUTS];
	uint32_t *experts; /* [tokens][experts_per_token]; NULL if that is 0 */
	uint32_t tensor_count;
	struct xfp_input_tensor *tensors;
	uint32_t source_count;
	struct xfp_input_source *sources;

	/* Set by xfp_inputs_read, for xfp_inputs_values: */
	uint64_t offset[XFP_MAX_INPUTS]; /* of the values in the file */
	int file;                        /* the artifact's descriptor; borrowed */
	char *names, *source_names;      /* texts that contain the names above */
};

/* Whether a token is in a window that is held out: of fewer than eight windows the last. */
bool xfp_inputs_held_out(const struct xfp_inputs *inputs, uint64_t token);

/* Compute the digest that the key of a layer's inputs contains: XXH3-128 over name, NUL and digest of each source. */
enum xfp_status xfp_inputs_digest(const struct xfp_input_source *sources, uint32_t count, uint8_t digest[16],
				  struct xfp_error *err);

/* ---- writing ------------------------------------------------------------------------------------ */

/* Reserve stream and values, whose sizes `inputs` says; write values of some tokens or rows, in any order; then write
 * all tables. */
enum xfp_status xfp_inputs_begin(struct xfp_artifact *a, const struct xfp_inputs *inputs, struct xfp_error *err);
enum xfp_status xfp_inputs_write_stream(struct xfp_artifact *a, const struct xfp_inputs *inputs, uint64_t first,
					uint64_t tokens, const float *x, struct xfp_error *err);
enum xfp_status xfp_inputs_write_values(struct xfp_artifact *a, const struct xfp_layer_input *input, uint64_t first,
					uint64_t rows, const uint16_t *x, struct xfp_error *err);
enum xfp_status xfp_inputs_end(struct xfp_artifact *a, const struct xfp_inputs *inputs, struct xfp_error *err);

/* ---- reading ------------------------------------------------------------------------------------ */

/* Read all tables and check them: every index is within bounds afterwards. The caller frees them. */
enum xfp_status xfp_inputs_read(struct xfp_artifact *a, struct xfp_inputs *inputs, struct xfp_error *err);
void xfp_inputs_free(struct xfp_inputs *inputs); /* frees what xfp_inputs_read allocated; may be called twice */
/* Read the stream of tokens [first, first + tokens). */
enum xfp_status xfp_inputs_stream(struct xfp_artifact *a, const struct xfp_inputs *inputs, uint64_t first,
				  uint64_t tokens, float *x, struct xfp_error *err);

/* The rows of an input that a matrix multiplies. */
struct xfp_input_rows {
	uint32_t input, expert; /* expert XFP_NO_EXPERT: all */
};

/* Find the rows that matrix number `matrix` of a unit multiplies, which is in tensor `tensor`. False if the layer does
 * not multiply by the tensor. */
bool xfp_inputs_find(const struct xfp_inputs *inputs, const char *tensor, uint32_t matrix, struct xfp_input_rows *rows);
/* List the numbers of these rows, ascending: those for training, or those held out. Returns their count; `row` may be
 * NULL. With expert XFP_NO_EXPERT all rows are listed; of an input with several rows a token, only those that have an
 * expert. */
uint64_t xfp_inputs_list(const struct xfp_inputs *inputs, const struct xfp_input_rows *rows, bool held_out,
			 uint64_t *row);
/* Read rows by number from the open artifact: x[count][cols], bf16. Threads may call it at the same time. */
enum xfp_status xfp_inputs_values(const struct xfp_artifact *a, const struct xfp_inputs *inputs, uint32_t input,
				  const uint64_t *row, uint64_t count, uint16_t *x, struct xfp_error *err);

#endif
