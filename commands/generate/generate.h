/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.h - what xfp generate is told, and what it makes.
 *
 * generate.c is told what to do, prompts.c reads prompts, written.c turns tokens into text and notices where it ends,
 * make.c takes sequences through the model, report.c says what came of it.
 */
#ifndef XFP_GENERATE_H
#define XFP_GENERATE_H

#include <stdbool.h>

#include "commands/generate/sample.h"
#include "model/forward/past.h"
#include "model/tokenizer/tokenizer.h"
#include "model/weights/weights.h"

/* Why a text ends. */
enum xfp_text_end { XFP_END_NONE, XFP_END_TOKEN, XFP_END_TEXT, XFP_END_LENGTH, XFP_END_CONTEXT, XFP_END_INTERRUPTED };

/* A prompt, and what was made of it. */
struct xfp_written {
	char *prompt;
	size_t prompt_size;
	struct xfp_token_ids ids;  /* of the prompt, then what was made, a token that ends it among that */
	size_t prompt_count, done; /* ids that are the prompt's, and that went through the model */
	char *text;                /* what was made, as far as it is certain, with a NUL behind it */
	size_t size, capacity;
	size_t shown;   /* bytes that no stop text can begin in */
	size_t printed; /* of these, if they are printed as they come */
	struct xfp_decoding *decoding;
	enum xfp_text_end end;
};

struct xfp_strings {
	const char **text;
	size_t count;
};

struct xfp_generate {
	/* As it was told: */
	const char *path; /* as it was given */
	const char *prompt, *batch;
	unsigned threads;   /* 0: one for each processor */
	uint32_t most;      /* tokens that are made of a prompt */
	uint32_t context;   /* 0: what the prompts need */
	uint32_t parallel;  /* sequences that go together */
	uint64_t memory;    /* 0: any */
	bool memory_binary; /* it was given in units of 1024 */
	struct xfp_sampling sampling;
	struct xfp_strings stops;
	bool json, raw;
	bool seeded; /* --seed was given */

	/* What was found: */
	struct xfp_weights *weights;
	struct xfp_description *description;
	struct xfp_tokenizer *tokenizer;
	struct xfp_token_ids ends; /* tokens that end a text */
	struct xfp_written *written;
	size_t count;
	uint64_t needed; /* bytes of keys, values and activations, */
	uint64_t cached; /* and of keys and values alone, with the states of linear attention */

	/* And how it went: */
	bool interrupted;
	bool lost; /* standard output could not be written to, which xfp_output_finish tells */
	size_t prompt_tokens, tokens, steps; /* tokens: made in steps, of one token for each sequence */
	double prompt_seconds, seconds;
	uint64_t bytes;   /* of weights that these steps have read */
	double bandwidth; /* bytes a second that can be read from memory; 0: not measured */
};

/* Reads g->prompt or g->batch. */
enum xfp_status xfp_prompts_read(struct xfp_generate *g, struct xfp_error *err);

/* Tokens that end a text, by the model's generation_config.json or config.json. */
enum xfp_status xfp_ends_read(struct xfp_generate *g, struct xfp_error *err);

enum xfp_status xfp_written_begin(const struct xfp_generate *g, struct xfp_written *w, struct xfp_error *err);
/* One more token. w->end is set where it ends the text. */
enum xfp_status xfp_written_add(const struct xfp_generate *g, struct xfp_written *w, uint32_t id,
				struct xfp_error *err);
/* No more comes. */
enum xfp_status xfp_written_end(const struct xfp_generate *g, struct xfp_written *w, struct xfp_error *err);
void xfp_written_free(struct xfp_written *w);

/* Makes all texts; `shown` is told whenever there is more of one, and returns false where that could not be written. A
 * signal ends them, and so does that. */
struct xfp_signals;
enum xfp_status xfp_make(struct xfp_generate *g, bool (*shown)(const struct xfp_generate *g, struct xfp_written *w),
			 struct xfp_signals *signals, struct xfp_error *err);

/* Bytes a second that a team reads from memory, of which this takes so much. XFP_FAILED without it. */
#define XFP_READ_RATE_BYTES ((size_t)256 << 20) /* more than caches hold */
struct xfp_team;
enum xfp_status xfp_read_rate(struct xfp_team *team, double *rate, struct xfp_error *err);

void xfp_generate_print(const struct xfp_generate *g);
enum xfp_status xfp_generate_print_json(const struct xfp_generate *g, struct xfp_error *err);
/* On stderr. */
void xfp_generate_report(const struct xfp_generate *g);

#endif
