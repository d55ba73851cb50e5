/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.h - what xfp eval is told, and what it finds out.
 *
 * eval.c is told what to do, npy.c and text.c get token ids, evaluate.c takes them through the model, and through its
 * source beside it, layer by layer; print.c shows what came of it.
 */
#ifndef XFP_EVAL_H
#define XFP_EVAL_H

#include "commands/eval/tokens.h"
#include "model/forward/loss.h"
#include "model/forward/streams.h"

/* A bundle or a checkpoint. */
struct xfp_eval_model {
	const char *given; /* as the command line calls it; NULL: there is none */
	char *found;
	struct xfp_weights *weights;
	struct xfp_description *description;
	struct xfp_forward *forward;
	struct xfp_stream *stream; /* activations between two layers */
};

/* Of all tokens, the mean of |difference|^2 / |source's activation|^2. */
struct xfp_layer_errors {
	double stream; /* after the layer, of the model's stream */
	double alone;  /* of what the model's layer makes of the source's activations before it */
};

struct xfp_eval {
	const char *tokens_path, *text_path; /* one of them */
	size_t length;                       /* of the sequences that a text is cut into; 0: usual */
	unsigned threads;                    /* 0: one for each processor */
	bool json;
	struct xfp_eval_model judged, source;

	/* Once it is evaluated: */
	struct xfp_tokens tokens;
	double embedding;                /* error of the stream before the first layer; */
	struct xfp_layer_errors *layers; /* both only with a source */
	struct xfp_loss loss;
	double seconds;
};

enum xfp_status xfp_evaluate(struct xfp_eval *eval, struct xfp_error *err);

void xfp_eval_print(const struct xfp_eval *eval);
enum xfp_status xfp_eval_print_json(const struct xfp_eval *eval, struct xfp_error *err);

#endif
