/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - the weights of a model, by the names that its checkpoint has for them: from a bundle or from the
 * checkpoint itself. Rows come as f32, the same ones on any machine.
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

/* A bundle, or whatever xfp_checkpoint_open takes. Opening a bundle checks its tar headers, padding and small files. */
enum xfp_status xfp_weights_open(const char *path, struct xfp_weights **out, struct xfp_error *err);
void xfp_weights_close(struct xfp_weights *weights); /* NULL is fine */

const char *xfp_weights_path(const struct xfp_weights *weights);
/* Text of config.json, NULL when there is none. */
const char *xfp_weights_config(const struct xfp_weights *weights);
/* A small file that goes with them, such as tokenizer.json, of which the caller frees a copy; *bytes NULL: there is
 * none. A NUL is behind it. */
enum xfp_status xfp_weights_file(const struct xfp_weights *weights, const char *name, char **bytes, size_t *size,
				 struct xfp_error *err);
/* Whether it is a bundle, and no checkpoint. */
bool xfp_weights_is_bundle(const struct xfp_weights *weights);
/* Whether its files have CRC-32s, which reading weights does not check: a checkpoint in archives. */
bool xfp_weights_has_crcs(const struct xfp_weights *weights);
/* Takes in who its files are, and its config: other weights give another digest, but so do the same in other files. */
enum xfp_status xfp_weights_identify(const struct xfp_weights *weights, struct xfp_sha256 *sha, struct xfp_error *err);
/* From here on `watch` is told, by the thread that reads, how many numbers are about to be read. Once it returns false,
 * reading is XFP_FAILED. */
void xfp_weights_watch(struct xfp_weights *weights, bool (*watch)(void *context, uint64_t numbers), void *context);
/* From here on pages of a mapped file are let go once rows were read of them, so that memory does not fill with all
 * that was read. They stay in the system's cache as long as there is room. */
void xfp_weights_release_pages(struct xfp_weights *weights);
/* A bundle has digests of all its bytes, and those of a tensor, or of a file, are held against theirs before they are
 * first read or multiplied by: XFP_BAD_INPUT names what is damaged. This does so for all of them at once, by all
 * threads of the team; a checkpoint has none, and nothing is read of it. */
enum xfp_status xfp_weights_check(const struct xfp_weights *weights, struct xfp_team *team, struct xfp_error *err);
/* Whether there is a tensor of that name, and its shape. */
bool xfp_weights_shape(const struct xfp_weights *weights, const char *tensor, uint32_t *rank,
		       uint64_t shape[XFP_MAX_RANK]);

struct xfp_weight_rows; /* an open matrix; one thread at a time */

/* A matrix W in a tensor. A bundle may have stored its rows as those of one matrix or of several, with the strides of
 * `view`; otherwise XFP_BAD_INPUT. */
enum xfp_status xfp_weight_rows_open(const struct xfp_weights *weights, const char *tensor, const struct xfp_view *view,
				     struct xfp_weight_rows **out, struct xfp_error *err);
void xfp_weight_rows_close(struct xfp_weight_rows *rows); /* NULL is fine */

/* Rows [first, first + count), count * cols numbers. */
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

/* By the kernels of libxfp, from the bytes as they are stored: as fast as there is, and with the rounding that xfp.h
 * tells of xfp_multiply. Only one thread at a time. */
enum xfp_status xfp_weights_multiply(const struct xfp_weights *weights, struct xfp_team *team,
				     const struct xfp_weight_product *product, struct xfp_error *err);

/* Whether W is one of the matrices that a bundle has as a stack, experts of a layer: which stack, and which of its
 * matrices. Products by several of them are faster in one call. */
bool xfp_weights_stacked(const struct xfp_weights *weights, const char *tensor, const struct xfp_view *view,
			 uint32_t *stack, uint32_t *expert);

struct xfp_stack_products {
	uint32_t stack;
	const uint32_t *experts; /* that products name, each of them once */
	size_t expert_count;
	const struct xfp_product *products;
	size_t count;
	struct xfp_input x; /* vectors of f32, and so are those of y; they follow one another */
	struct xfp_output y;
};

/* As xfp_multiply_experts does it, and otherwise as xfp_weights_multiply. */
enum xfp_status xfp_weights_multiply_experts(const struct xfp_weights *weights, struct xfp_team *team,
					     const struct xfp_stack_products *products, struct xfp_error *err);

/* Bytes that such products have read so far. */
uint64_t xfp_weights_bytes(const struct xfp_weights *weights);

/* ---- where weights come from -------------------------------------------------------------------- */

/* What a kind of source does; `source` is what it opened, `matrix` one of its matrices. As above otherwise. */
struct xfp_weights_source {
	void (*close)(void *source);
	bool (*shape)(const void *source, const char *tensor, uint32_t *rank, uint64_t shape[XFP_MAX_RANK]);
	enum xfp_status (*open_rows)(const void *source, const char *tensor, const struct xfp_view *view, void **matrix,
				     struct xfp_error *err);
	enum xfp_status (*read_rows)(void *matrix, uint64_t first, uint64_t count, float *out, struct xfp_error *err);
	void (*close_rows)(void *matrix);
	void (*release_pages)(void *source);  /* NULL: nothing is mapped */
	bool (*has_crcs)(const void *source); /* NULL: none */
	enum xfp_status (*identify)(const void *source, struct xfp_sha256 *sha, struct xfp_error *err);
	enum xfp_status (*file)(const void *source, const char *name, char **bytes, size_t *size,
				struct xfp_error *err);
	/* Sets `bytes` to those that were read; 0: it cannot, and its rows are to be multiplied. */
	enum xfp_status (*multiply)(void *source, struct xfp_team *team, const struct xfp_weight_product *product,
				    uint64_t *bytes, struct xfp_error *err);
	/* NULL: there are no digests. `watch` may be NULL. */
	enum xfp_status (*check)(void *source, const char *tensor, bool (*watch)(void *context, uint64_t numbers),
				 void *context, struct xfp_error *err);
	enum xfp_status (*check_all)(void *source, struct xfp_team *team,
				     bool (*watch)(void *context, uint64_t numbers), void *context,
				     struct xfp_error *err);
	/* Both NULL: it has no stacks. Digests are checked by the second. */
	bool (*stacked)(const void *source, const char *tensor, const struct xfp_view *view, uint32_t *stack,
			uint32_t *expert);
	enum xfp_status (*multiply_experts)(void *source, struct xfp_team *team,
					    const struct xfp_stack_products *products,
					    bool (*watch)(void *context, uint64_t numbers), void *context,
					    uint64_t *bytes, struct xfp_error *err);
};
/* `config` is a copy, which the caller frees; NULL where there is none. */
extern const struct xfp_weights_source xfp_weights_of_checkpoint, xfp_weights_of_bundle;
enum xfp_status xfp_weights_open_checkpoint(const char *path, void **source, char **config, struct xfp_error *err);
enum xfp_status xfp_weights_open_bundle(const char *path, void **source, char **config, struct xfp_error *err);

#endif
