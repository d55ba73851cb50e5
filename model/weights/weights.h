/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - the weights of a model, by the tensor names of its checkpoint: from a bundle or from the checkpoint
 * itself. Rows are read as f32, with the same bits on any machine.
 */
#ifndef XFP_WEIGHTS_H
#define XFP_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sha256.h"
#include "base/xfp_error.h"
#include "checkpoints/checkpoint.h"
#include "runtime/xfp.h"

struct xfp_weights;

/* Open a bundle, or anything that xfp_checkpoint_open accepts. Opening a bundle checks its tar headers, padding and
 * small files. */
enum xfp_status xfp_weights_open(const char *path, struct xfp_weights **out, struct xfp_error *err);
void xfp_weights_close(struct xfp_weights *weights); /* no-op if NULL */

const char *xfp_weights_path(const struct xfp_weights *weights);
/* The text of config.json; NULL if there is none. */
const char *xfp_weights_config(const struct xfp_weights *weights);
/* Copy a small file of the model, such as tokenizer.json, NUL-terminated, for the caller to free. *bytes is NULL if the
 * model has no such file. */
enum xfp_status xfp_weights_file(const struct xfp_weights *weights, const char *name, char **bytes, size_t *size,
				 struct xfp_error *err);
/* Whether it is a bundle rather than a checkpoint. */
bool xfp_weights_is_bundle(const struct xfp_weights *weights);
/* Whether the files have CRC-32s, which reading weights does not check: a checkpoint in archives. */
bool xfp_weights_has_crcs(const struct xfp_weights *weights);
/* SHA-256 of a bundle's index, in hex; "" for a checkpoint. */
void xfp_weights_index_digest(const struct xfp_weights *weights, char hex[65]);
/* Hash the identity of the files and the config. Different weights hash differently; so do identical weights in other
 * files. */
enum xfp_status xfp_weights_identify(const struct xfp_weights *weights, struct xfp_sha256 *sha, struct xfp_error *err);
/* Set a callback: the reading thread calls `watch` with the number of weights that it is about to read. When it returns
 * false, reading fails with XFP_FAILED. */
void xfp_weights_watch(struct xfp_weights *weights, bool (*watch)(void *context, uint64_t numbers), void *context);
/* From now on, release the pages of a mapped file after reading rows, so that memory does not fill up with them. They
 * stay in the page cache as long as there is room. */
void xfp_weights_release_pages(struct xfp_weights *weights);
/* Check all digests of a bundle at once, with all threads of the team; otherwise each is checked before the bytes are
 * first read or multiplied. XFP_BAD_INPUT names what is damaged. A checkpoint has no digests, and is not read. */
enum xfp_status xfp_weights_check(const struct xfp_weights *weights, struct xfp_team *team, struct xfp_error *err);
/* The name of a tensor; NULL if `number` is not below their count. */
const char *xfp_weights_name(const struct xfp_weights *weights, uint32_t number);
/* Whether the model has that tensor, and its shape. */
bool xfp_weights_shape(const struct xfp_weights *weights, const char *tensor, uint32_t *rank,
		       uint64_t shape[XFP_MAX_RANK]);

struct xfp_weight_rows; /* an open matrix; for one thread at a time */

/* Open a matrix W in a tensor. XFP_BAD_INPUT if a bundle stores its rows neither as rows of one matrix nor of several,
 * with the strides of `view`. */
enum xfp_status xfp_weight_rows_open(const struct xfp_weights *weights, const char *tensor, const struct xfp_view *view,
				     struct xfp_weight_rows **out, struct xfp_error *err);
void xfp_weight_rows_close(struct xfp_weight_rows *rows); /* no-op if NULL */

/* Read rows [first, first + count): count * cols numbers. */
enum xfp_status xfp_weight_rows_read(struct xfp_weight_rows *rows, uint64_t first, uint64_t count, float *out,
				     struct xfp_error *err);

/* ---- products ---------------------------------------------------------------------------------- */

/* y[t * stride + r] = row first + r of W times x[t], for `rows` rows and `count` vectors, which are view.cols apart. */
struct xfp_weight_product {
	const char *tensor;
	struct xfp_view view;
	uint64_t first, rows;
	const float *x;
	size_t count;
	float *y;
	size_t stride;
};

#define XFP_WEIGHT_PRODUCTS 4

/* Multiply with the kernels of libxfp, from the stored bytes, with the rounding of xfp_multiply (xfp.h). Up to
 * XFP_WEIGHT_PRODUCTS products with the same vectors are faster in one call, and have the same bits. One thread at a
 * time. */
enum xfp_status xfp_weights_multiply(const struct xfp_weights *weights, struct xfp_team *team,
				     const struct xfp_weight_product *products, size_t count, struct xfp_error *err);

/* Whether a bundle stores W in a stack (the experts of a layer): which stack, and which of its matrices. Products with
 * several of them are faster in one call. */
bool xfp_weights_stacked(const struct xfp_weights *weights, const char *tensor, const struct xfp_view *view,
			 uint32_t *stack, uint32_t *expert);

struct xfp_stack_products {
	uint32_t stack;
	const uint32_t *experts; /* the experts of all products, each of them once */
	size_t expert_count;
	const struct xfp_product *products;
	size_t count;
	struct xfp_input x; /* consecutive f32 vectors, and so is y */
	struct xfp_output y;
};

/* Multiply as xfp_multiply_experts does; otherwise like xfp_weights_multiply. */
enum xfp_status xfp_weights_multiply_experts(const struct xfp_weights *weights, struct xfp_team *team,
					     const struct xfp_stack_products *products, struct xfp_error *err);

/* Bytes of weights that products have read so far. */
uint64_t xfp_weights_bytes(const struct xfp_weights *weights);

/* ---- sources of weights ------------------------------------------------------------------------- */

/* A kind of source, with the functions above. `source` is what it opened, `matrix` one of its matrices. */
struct xfp_weights_source {
	void (*close)(void *source);
	const char *(*name)(const void *source, uint32_t number);
	bool (*shape)(const void *source, const char *tensor, uint32_t *rank, uint64_t shape[XFP_MAX_RANK]);
	enum xfp_status (*open_rows)(const void *source, const char *tensor, const struct xfp_view *view, void **matrix,
				     struct xfp_error *err);
	enum xfp_status (*read_rows)(void *matrix, uint64_t first, uint64_t count, float *out, struct xfp_error *err);
	void (*close_rows)(void *matrix);
	void (*release_pages)(void *source);                    /* NULL: no mapped file */
	bool (*has_crcs)(const void *source);                   /* NULL: false */
	void (*index_digest)(const void *source, char hex[65]); /* NULL: no index */
	enum xfp_status (*identify)(const void *source, struct xfp_sha256 *sha, struct xfp_error *err);
	enum xfp_status (*file)(const void *source, const char *name, char **bytes, size_t *size,
				struct xfp_error *err);
	/* Sets the `bytes` of each product to the number of bytes read; they stay 0 if it cannot multiply, so that rows
	 * must be read and multiplied. */
	enum xfp_status (*multiply)(void *source, struct xfp_team *team, const struct xfp_weight_product *products,
				    size_t count, uint64_t *bytes, struct xfp_error *err);
	/* NULL: no digests. `watch` may be NULL. */
	enum xfp_status (*check)(void *source, const char *tensor, bool (*watch)(void *context, uint64_t numbers),
				 void *context, struct xfp_error *err);
	enum xfp_status (*check_all)(void *source, struct xfp_team *team,
				     bool (*watch)(void *context, uint64_t numbers), void *context,
				     struct xfp_error *err);
	/* Both NULL: no stacks. multiply_experts checks digests. */
	bool (*stacked)(const void *source, const char *tensor, const struct xfp_view *view, uint32_t *stack,
			uint32_t *expert);
	enum xfp_status (*multiply_experts)(void *source, struct xfp_team *team,
					    const struct xfp_stack_products *products,
					    bool (*watch)(void *context, uint64_t numbers), void *context,
					    uint64_t *bytes, struct xfp_error *err);
};
/* `config` is a copy, for the caller to free; NULL if there is none. */
extern const struct xfp_weights_source xfp_weights_of_checkpoint, xfp_weights_of_bundle;
enum xfp_status xfp_weights_open_checkpoint(const char *path, void **source, char **config, struct xfp_error *err);
enum xfp_status xfp_weights_open_bundle(const char *path, void **source, char **config, struct xfp_error *err);

#endif
