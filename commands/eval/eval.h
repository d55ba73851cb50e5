/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.h - what xfp eval is told, and what it finds out.
 *
 * eval.c is told what to do, npy.c and text.c get token ids. evaluate.c opens what there is; room.c says how much goes
 * through the models at a time; layers.c takes it through the model, and through its source beside it, layer by layer;
 * progress.c shows the progress, state.c saves it, interrupted.c reports what a signal left; print.c shows the result.
 */
#ifndef XFP_EVAL_H
#define XFP_EVAL_H

#include "base/system/signals.h"
#include "commands/eval/tokens.h"
#include "commands/ui/meter.h"
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

/* Of all tokens, the mean of |difference|^2 / |source's activation|^2; while layers are gone through, the sum. */
struct xfp_layer_errors {
	double stream; /* after the layer, of the model's stream */
	double alone;  /* of what the model's layer makes of the source's activations before it */
};

/* What goes through the models at a time. */
struct xfp_eval_room {
	size_t sequences;    /* that go through a layer together */
	bool spilled;        /* activations between layers are in files */
	size_t logits_bytes; /* of a model's logits that are there at a time */
};

struct xfp_eval_progress {
	struct xfp_meter meter;
	double started, drawn, layer_started;
	uint32_t before, done, layers; /* done before this run, and now, of so many */
	uint64_t read, usual;          /* numbers of weights: in this layer, and in the one before */
};

struct xfp_eval {
	const char *tokens_path, *text_path; /* one of them */
	size_t length;                       /* of the sequences that a text is cut into; 0: usual */
	uint64_t memory;                     /* 0: usual */
	bool memory_binary;                  /* it was given in units of 1024 */
	const char *state_path;              /* NULL: beside the bundle */
	unsigned threads;                    /* 0: one for each processor */
	bool json, fast;
	struct xfp_eval_model judged, source;
	struct xfp_signals signals;

	struct xfp_team *team;
	struct xfp_eval_room room;
	struct xfp_eval_progress progress;
	char *kept_path;         /* where the state is kept; NULL: nowhere */
	bool state_begun;        /* a state saved before has been read, or found to be of no use */
	bool unkeepable;         /* the state could not be written once; it is not tried again */
	uint8_t kept_key[32];    /* of what it is the state of */
	uint32_t kept;           /* layers that it is behind; of none there is no state */
	double kept_at, keeping; /* when it was written, and for how long */
	bool mixed;              /* some activations are behind a layer that others are before */

	/* Once it is evaluated: */
	struct xfp_tokens tokens;
	double embedding;                /* error of the stream before the first layer; */
	struct xfp_layer_errors *layers; /* both only with a source */
	struct xfp_loss loss;
};

static inline bool xfp_eval_has_source(const struct xfp_eval *eval)
{
	return eval->source.given;
}

static inline size_t xfp_eval_tokens(const struct xfp_eval *eval)
{
	return eval->tokens.sequences * eval->tokens.length;
}

/* The models and the tokens. Then what they make of each other; xfp_signals_hold comes before. */
enum xfp_status xfp_eval_open(struct xfp_eval *eval, struct xfp_error *err);
enum xfp_status xfp_evaluate(struct xfp_eval *eval, struct xfp_error *err);

/* How much goes together within eval->memory. XFP_FAILED where not even one sequence can. */
enum xfp_status xfp_eval_find_room(struct xfp_eval *eval, struct xfp_error *err);

/* Everything between the first layer, or that behind the last one that is kept, and the result. */
enum xfp_status xfp_eval_layers(struct xfp_eval *eval, struct xfp_foretold *foretold, struct xfp_error *err);

/* From here on the weights that are read are counted, and a signal that came ends the reading. */
void xfp_eval_progress_begin(struct xfp_eval *eval);
void xfp_eval_progress_layer(struct xfp_eval *eval, uint32_t done);
void xfp_eval_progress_end(struct xfp_eval *eval);

/* A state of this very evaluation, if there is one: eval->kept layers are done. Whatever else is there is left alone or
 * written over, and said. */
enum xfp_status xfp_eval_state_begin(struct xfp_eval *eval, struct xfp_error *err);
enum xfp_status xfp_eval_state_take(struct xfp_eval *eval, struct xfp_error *err);
/* That so many layers are done, unless the last state is so young that it costs too much; `now`: even then. Where it
 * cannot be written there is none, which is said once. */
void xfp_eval_state_keep(struct xfp_eval *eval, uint32_t layers, bool now);
/* It is of no use any more. */
void xfp_eval_state_remove(struct xfp_eval *eval);

/* While the models are being opened, signals end the process, with a message. Called with true before that, and with
 * false once xfp_signals_hold blocks them. */
void xfp_eval_opening(bool opening);
/* Report on stderr what a signal left, and the command of `argv` if it resumes from there. */
void xfp_eval_say_interrupted(const struct xfp_eval *eval, char *const *argv);

void xfp_eval_print(const struct xfp_eval *eval);
enum xfp_status xfp_eval_print_json(const struct xfp_eval *eval, struct xfp_error *err);

#endif
