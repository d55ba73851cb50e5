/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.h - the forward pass, layer by layer, with the same bits on every machine.
 *
 * Sequences of one length pass through a layer together, so that each matrix is read once. Memory holds activations and
 * a few rows of one matrix. The caller owns the activations x[token][hidden], sequence by sequence:
 *
 *     xfp_forward_embed(f, ids, x)
 *     xfp_forward_layer(f, 0, x), xfp_forward_layer(f, 1, x) ...
 *     xfp_forward_norm(f, x)
 *     xfp_forward_logits(f, x, 0, vocabulary, logits)
 *
 * With a KV cache, sequences continue by any number of tokens each:
 *
 *     xfp_forward_open_cached(d, weights, team, cache, &f)
 *     xfp_forward_begin(f, segments, count)
 *     xfp_forward_embed(f, ids, x) and so on, as above
 *     xfp_forward_commit(f)
 *
 * The results have the same bits however many tokens are computed at a time.
 *
 * Activations are f32. Within one operation (a product, a norm, a softmax, a weighted sum), all arithmetic is double
 * precision, in the order of columns, elements, positions or experts, and the result is rounded to f32 once; functions
 * are those of numbers.h. So results do not depend on the instruction set, the number of threads or the compiler. Of
 * experts with equal probabilities, the lower number is selected first.
 */
#ifndef XFP_FORWARD_H
#define XFP_FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include "model/forward/description.h"
#include "model/forward/kv_cache.h"
#include "model/weights/weights.h"
#include "runtime/xfp.h"

/* Prefix of tensor names, and the name of the output head. */
struct xfp_tensor_names {
	const char *body, *head;
	bool stacked; /* each layer has all its experts in one tensor */
	bool encoder; /* names of BERT: "encoder.layer.0", not "layers.0" */
	bool gamma;   /* norms of encoders have gamma and beta, not weight and bias */
};

/* A segment: `count` consecutive tokens of one sequence, from `position` on; in the activations they begin at token
 * `first`. `length` is the number of known tokens of the sequence, including those of later segments; it selects
 * longrope's factors. 0: the tokens up to the end of this segment. */
struct xfp_segment {
	size_t sequence, count, length;
	size_t first, position; /* set by xfp_forward_begin */
};

/* XFP_REPRODUCIBLE is described above. XFP_FAST computes the same in f32, in any order, with the kernels of libxfp: its
 * bits depend on the instruction set and on how many tokens are computed together, but not on threads. */
enum xfp_arithmetic { XFP_REPRODUCIBLE, XFP_FAST };

/* Names of the inputs of a layer's matrices, and of the output head. */
#define XFP_INPUT_ATTENTION "attention"               /* normalized; of attention or linear attention */
#define XFP_INPUT_QUERY_LATENT "query-latent"         /* compressed and normalized, of multi-head latent attention */
#define XFP_INPUT_KV_LATENT "kv-latent"               /* the same of keys and values */
#define XFP_INPUT_ATTENTION_OUTPUT "attention-output" /* of its output projection */
#define XFP_INPUT_MLP "mlp"                           /* normalized; of gate and up, all experts' too, and routers */
#define XFP_INPUT_DOWN "down"
#define XFP_INPUT_EXPERT_DOWN "expert-down"
#define XFP_INPUT_SHARED_DOWN "shared-down"
#define XFP_INPUT_HEAD "head"
#define XFP_NOT_AN_EXPERT UINT32_MAX

/* A product that the forward pass is about to compute: vectors x[count][cols], multiplied by a matrix in `tensor`. */
struct xfp_observed {
	const char *tensor, *input;
	uint32_t expert;        /* or XFP_NOT_AN_EXPERT */
	bool stacked;           /* the tensor has the matrices of all experts */
	const uint32_t *tokens; /* [count] the token of each vector, ascending; NULL: all tokens in order */
	size_t count, cols;
	const float *x;
};

/* Observes all products of XFP_REPRODUCIBLE, in this order: those of attention, its output, routers, experts by number,
 * the shared expert. An expert that no token selected is reported with count 0. A failure ends the forward pass. */
struct xfp_observer {
	enum xfp_status (*observe)(void *context, const struct xfp_observed *product, struct xfp_error *err);
	void *context;
};

struct xfp_forward {
	enum xfp_arithmetic arithmetic;      /* XFP_REPRODUCIBLE unless the caller sets it after opening */
	const struct xfp_observer *observer; /* NULL unless the caller sets it after opening */
	const struct xfp_description *description;
	const struct xfp_weights *weights;
	const struct xfp_tensor_names *names;
	struct xfp_team *team;
	size_t sequences, length, tokens; /* length 0: segments have lengths of their own */
	struct xfp_kv_cache *cache;       /* NULL: sequences start at position 0, and nothing is cached */
	struct xfp_segment *segments;     /* in the order of the activations */
	size_t segment_count;
	/* Cosines and sines of positions; [1] by longrope's factors for long texts, NULL if no sequence can be that
	 * long. */
	float *rope[XFP_ROPES][2];
};

/* Check the weights against the description, and compute tables of cosines and sines. XFP_BAD_INPUT if a tensor is
 * missing or has another shape, if there is a bias that the description does not have, or if `length` exceeds the
 * model's context. All arguments are borrowed until xfp_forward_close. */
enum xfp_status xfp_forward_open(const struct xfp_description *description, const struct xfp_weights *weights,
				 struct xfp_team *team, size_t sequences, size_t length, struct xfp_forward **out,
				 struct xfp_error *err);
void xfp_forward_close(struct xfp_forward *forward); /* no-op if NULL */
/* A view of the first `sequences` sequences of a forward without a KV cache. It borrows everything and must not be
 * closed. */
struct xfp_forward xfp_forward_view(const struct xfp_forward *forward, size_t sequences);

/* The check of xfp_forward_open, for callers that allocate by the description's sizes before they open. */
enum xfp_status xfp_forward_check(const struct xfp_description *description, const struct xfp_weights *weights,
				  struct xfp_error *err);

/* Open for the sequences of a KV cache, which is borrowed, too. */
enum xfp_status xfp_forward_open_cached(const struct xfp_description *description, const struct xfp_weights *weights,
					struct xfp_team *team, struct xfp_kv_cache *cache, struct xfp_forward **out,
					struct xfp_error *err);
/* Set the next tokens: `sequence`, `count` and `length` of each segment, at most one of each sequence. Without a KV
 * cache, segments are complete sequences. XFP_BAD_INPUT if a sequence would exceed the cache's or the model's context,
 * or its keys are stale (xfp_kv_cache_is_stale). */
enum xfp_status xfp_forward_begin(struct xfp_forward *forward, const struct xfp_segment *segments, size_t count,
				  struct xfp_error *err);
/* Commit the segments to the cache after they went through all layers. If a layer failed instead, reset the sequences
 * before the cache is used again. */
void xfp_forward_commit(struct xfp_forward *forward);

/* XFP_BAD_INPUT if an id is not in the vocabulary. */
enum xfp_status xfp_forward_embed(const struct xfp_forward *forward, const uint32_t *ids, float *x,
				  struct xfp_error *err);
enum xfp_status xfp_forward_layer(const struct xfp_forward *forward, uint32_t layer, float *x, struct xfp_error *err);
/* The final norm. Encoders have none. */
enum xfp_status xfp_forward_norm(const struct xfp_forward *forward, float *x, struct xfp_error *err);
/* Rows [first, first + count) of the output head: logits[token][count]. */
enum xfp_status xfp_forward_logits(const struct xfp_forward *forward, const float *x, uint32_t first, uint32_t count,
				   float *logits, struct xfp_error *err);

#endif
