/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluation.h - an evaluation: what the caller asks for, its state while it runs, and its results.
 *
 * evaluate.c opens the models and runs the evaluation: text.c cuts token ids of a text, batching.c decides how many
 * sequences pass through a layer together, layers.c computes, single.c one token at a time, state.c saves finished
 * layers. Of an encoder, texts.c reads the texts, and embeddings.c computes.
 */
#ifndef XFP_EVALUATION_H
#define XFP_EVALUATION_H

#include "model/evaluate/streams.h"
#include "model/forward/loss.h"
#include "model/model.h"
#include "model/pooling.h"
#include "model/tokens.h"

/* What the caller asks for; strings are borrowed. */
struct xfp_evaluation_request {
	const char *model, *source;          /* names for xfp_model_open; source NULL: none */
	const char *tokens_path, *text_path; /* exactly one */
	uint32_t length; /* of the sequences that a text is cut into, or of an encoder's texts; 0: default */
	const char *embeddings_path; /* write an encoder's embeddings here, as .npy; NULL: nowhere */
	uint64_t memory;             /* limit in bytes; 0: default */
	bool memory_binary;          /* messages print it in units of 1024 */
	const char *state_path;      /* NULL: next to a bundle; none for a checkpoint */
	unsigned threads;            /* 0: one for each processor */
	bool fast;                   /* XFP_FAST instead of XFP_REPRODUCIBLE */
	bool single;                 /* with `fast`: the model, but not the source, one token at a time */
};

struct xfp_evaluation;

/* All are required. */
struct xfp_evaluation_callbacks {
	void *context;
	bool (*stop)(void *context); /* polled; true ends the evaluation with XFP_FAILED */
	/* Called when a layer begins, and while weights are read. */
	void (*progress)(void *context, const struct xfp_evaluation *evaluation);
	void (*warning)(void *context, const char *message);
};

struct xfp_evaluation_progress {
	double started, layer_started; /* xfp_now() */
	double layer_seconds;          /* of the layer before */
	uint32_t resumed;              /* layers finished before this run */
	uint32_t done, steps;      /* layers finished; all of them, and the output head. Encoders: texts, plus one */
	uint64_t read, layer_read; /* weights read in this layer, and in the one before */
};

/* One of the two models, while it is evaluated. */
struct xfp_evaluated {
	struct xfp_model model; /* its name is NULL if there is no source */
	struct xfp_forward *forward;
	struct xfp_stream *stream; /* activations between two layers */
	/* With `single`: a forward with a KV cache of one sequence. */
	struct xfp_forward *single;
	struct xfp_kv_cache *cache;
};

/* Means over all tokens of |difference|^2 / |source's activation|^2; until the last layer is done, sums over tokens. */
struct xfp_layer_errors {
	double stream; /* of the activations after the layer */
	double alone;  /* of the layer's output if its input is the source's */
};

/* Texts of an encoder: their tokens are consecutive in xfp_tokens, which has the count of texts as `sequences` and the
 * tokens of the longest as `length`. */
struct xfp_texts {
	size_t count;
	size_t *first; /* [count + 1] the first token of each, and the end */
};

/* Results of an encoder. */
struct xfp_embeddings {
	struct xfp_pooling pooling;
	float *evaluated, *source; /* [text][hidden]; source NULL: none */
	/* 1 - cosine of both, over all texts: the mean, the 95th percentile and the largest. */
	double mean, distance_95, worst;
	size_t worst_text;
};

/* The batch sizes of an evaluation. */
struct xfp_batching {
	size_t sequences;    /* through a layer */
	bool spilled;        /* activations between layers are in files */
	size_t logits_bytes; /* of each model */
};

/* The file that saves finished layers. */
struct xfp_evaluation_state {
	char *path;           /* NULL: nothing is saved */
	bool examined;        /* an existing file was loaded or rejected */
	bool unwritable;      /* writing it failed, and is not tried again */
	uint8_t key[32];      /* identifies the evaluation */
	uint32_t layers;      /* layers finished in the saved state; 0 if nothing is saved */
	double written_at;    /* xfp_now() */
	double write_seconds; /* estimated time of the next write */
};

struct xfp_evaluation {
	struct xfp_evaluation_request request;
	struct xfp_evaluation_callbacks callbacks;

	struct xfp_evaluated evaluated, source;
	struct xfp_team *team;
	struct xfp_batching batching;
	struct xfp_evaluation_progress progress;
	struct xfp_evaluation_state state;
	bool stopped;        /* callbacks.stop returned true */
	bool partly_written; /* some sequences are after a layer that others are before */

	/* Results: */
	struct xfp_tokens tokens;
	double embedding_error;          /* before the first layer; */
	struct xfp_layer_errors *layers; /* both only if there is a source */
	struct xfp_loss loss;
	/* Of an encoder, instead of `loss`: */
	struct xfp_texts texts;
	struct xfp_embeddings embeddings;
};

static inline bool xfp_evaluation_is_encoder(const struct xfp_evaluation *e)
{
	return e->evaluated.model.description->encoder;
}

static inline bool xfp_evaluation_has_source(const struct xfp_evaluation *e)
{
	return e->request.source;
}

static inline size_t xfp_evaluation_tokens(const struct xfp_evaluation *e)
{
	return e->tokens.sequences * e->tokens.length;
}

static inline bool xfp_evaluation_stops(struct xfp_evaluation *e)
{
	e->stopped = e->stopped || e->callbacks.stop(e->callbacks.context);
	return e->stopped;
}

void xfp_evaluation_warn(const struct xfp_evaluation *e, const char *format, ...) XFP_PRINTF(2, 3);

#endif
