/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.h - what a model computes, layer by layer, in a form that has the same bits on every machine.
 *
 * Sequences of one length go through a layer together, so that each of its matrices is read once; memory holds
 * activations and some rows of one matrix. Whoever calls keeps the activations, x[token][hidden], sequence by sequence:
 *
 *     xfp_forward_embed(f, ids, x)
 *     xfp_forward_layer(f, 0, x), xfp_forward_layer(f, 1, x) ...
 *     xfp_forward_norm(f, x)
 *     xfp_forward_logits(f, x, 0, vocabulary, logits)
 *
 * With a past, tokens go on from those that their sequences have had, any number of each:
 *
 *     xfp_forward_open_cached(d, weights, team, cache, &f)
 *     xfp_forward_begin(f, segments, count)
 *     xfp_forward_embed(f, ids, x) and so on, as above
 *     xfp_forward_commit(f)
 *
 * They are the same bits however many are taken at a time.
 *
 * Activations are f32. All within one operation (a product, a norm, a softmax, a weighted sum) is in double and in the
 * order of columns, elements, positions or experts, and rounded to f32 once at its end; functions are those of
 * numbers.h. So results depend on no instruction set, thread count or compiler. Of experts with equal probabilities the
 * one of the lower number is chosen first.
 */
#ifndef XFP_FORWARD_H
#define XFP_FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include "model/forward/description.h"
#include "model/forward/kv_cache.h"
#include "model/weights/weights.h"
#include "runtime/xfp.h"

/* What names of tensors begin with, and the name of the output head. */
struct xfp_tensor_names {
	const char *body, *head;
	bool stacked; /* all experts of a layer are in one tensor */
};

/* Tokens of one sequence, which lie together: `count` of them from `first` on, at `position` and those after it.
 * longrope's factors depend on how long the sequence is: `length` is the number of its tokens that are known, those of
 * later segments included; 0: those up to this segment. */
struct xfp_segment {
	size_t sequence, count, length;
	size_t first, position; /* set by xfp_forward_begin */
};

/* REPRODUCIBLE is as told above. FAST has the same meaning, computed in f32, in whatever order is fastest and by the
 * kernels of libxfp: its bits depend on the instruction set, and on how many tokens go together, but not on threads. */
enum xfp_arithmetic { XFP_REPRODUCIBLE, XFP_FAST };

struct xfp_forward {
	enum xfp_arithmetic arithmetic; /* XFP_REPRODUCIBLE, unless whoever opened it says otherwise */
	const struct xfp_description *description;
	const struct xfp_weights *weights;
	const struct xfp_tensor_names *names;
	struct xfp_team *team;
	size_t sequences, length, tokens; /* length 0: with a past, segments have lengths of their own */
	struct xfp_kv_cache *cache;       /* NULL: sequences begin at position 0, and nothing is kept */
	struct xfp_segment *segments;     /* all tokens, in order */
	size_t segment_count;
	/* Cosines and sines of positions; [1] by longrope's factors for long texts, NULL if none can be that long. */
	float *rope[XFP_ROPES][2];
};

/* Checks that the weights are those which the description speaks of: a tensor that is missing or of another shape, and
 * a bias of which it knows nothing, are XFP_BAD_INPUT, as is a length beyond the model's context. All is borrowed until
 * the end. */
enum xfp_status xfp_forward_open(const struct xfp_description *description, const struct xfp_weights *weights,
				 struct xfp_team *team, size_t sequences, size_t length, struct xfp_forward **out,
				 struct xfp_error *err);
void xfp_forward_close(struct xfp_forward *forward); /* NULL is fine */
/* The same without a past for the first `sequences`, which borrows all, and is not to be closed. */
struct xfp_forward xfp_forward_view(const struct xfp_forward *forward, size_t sequences);

/* XFP_BAD_INPUT when the tensors are not those that the description speaks of. What opens a forward asks this, too; who
 * makes room for one by the description's numbers asks before. */
enum xfp_status xfp_forward_check(const struct xfp_description *description, const struct xfp_weights *weights,
				  struct xfp_error *err);

/* Likewise, for the sequences of a past, which is borrowed too. */
enum xfp_status xfp_forward_open_cached(const struct xfp_description *description, const struct xfp_weights *weights,
					struct xfp_team *team, struct xfp_kv_cache *cache, struct xfp_forward **out,
					struct xfp_error *err);
/* What the next tokens are: `sequence`, `count` and `length` of each segment, no sequence twice. XFP_BAD_INPUT when one
 * would be longer than the past's context, or its past is stale (xfp_kv_cache_is_stale). */
enum xfp_status xfp_forward_begin(struct xfp_forward *forward, const struct xfp_segment *segments, size_t count,
				  struct xfp_error *err);
/* They went through all layers and belong to the past now. If one of them failed, the past is of no use until all these
 * sequences are forgotten. */
void xfp_forward_commit(struct xfp_forward *forward);

/* XFP_BAD_INPUT for an id beyond the vocabulary. */
enum xfp_status xfp_forward_embed(const struct xfp_forward *forward, const uint32_t *ids, float *x,
				  struct xfp_error *err);
enum xfp_status xfp_forward_layer(const struct xfp_forward *forward, uint32_t layer, float *x, struct xfp_error *err);
/* The norm after the last layer. */
enum xfp_status xfp_forward_norm(const struct xfp_forward *forward, float *x, struct xfp_error *err);
/* Rows [first, first + count) of the output head: logits[token][count]. */
enum xfp_status xfp_forward_logits(const struct xfp_forward *forward, const float *x, uint32_t first, uint32_t count,
				   float *logits, struct xfp_error *err);

#endif
