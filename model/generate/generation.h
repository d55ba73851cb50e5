/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generation.h - text generation: what the caller asks for, the texts, and measurements.
 *
 * prompts.c reads prompts, model/end_tokens.c the tokens that end a text, generate.c runs sequences through the model,
 * model/sample.c selects the next token, text.c decodes tokens and detects where the text ends.
 */
#ifndef XFP_GENERATION_H
#define XFP_GENERATION_H

#include "model/model.h"
#include "model/sample.h"

/* Why a text ends. */
enum xfp_text_end { XFP_END_NONE, XFP_END_TOKEN, XFP_END_TEXT, XFP_END_LENGTH, XFP_END_CONTEXT, XFP_END_INTERRUPTED };

/* A prompt and the text generated from it. */
struct xfp_generated_text {
	char *prompt;
	size_t prompt_size;
	struct xfp_token_ids ids; /* of the prompt, then the generated ones, an end token included */
	size_t prompt_count;      /* ids that are the prompt's */
	size_t done;              /* ids that went through the model */
	char *text;               /* generated, as far as it is certain; NUL-terminated */
	size_t size, capacity;
	size_t shown; /* bytes before which no stop text can begin */
	struct xfp_decoding *decoding;
	enum xfp_text_end end;
};

struct xfp_strings {
	const char **text;
	size_t count;
};

/* What the caller asks for; strings are borrowed. */
struct xfp_generation_request {
	const char *model;          /* a name for xfp_model_open */
	const char *prompt, *batch; /* a text, or the path of a file of prompts */
	unsigned threads;           /* 0: one for each processor */
	uint32_t max_tokens;        /* to generate for each prompt */
	uint32_t context;           /* in tokens; 0: what the prompts need */
	uint32_t parallel;          /* sequences that are generated together */
	uint64_t memory;            /* limit in bytes, besides the weights; 0: none */
	bool memory_binary;         /* messages print it in units of 1024 */
	struct xfp_sampling sampling;
	struct xfp_strings stops; /* texts that end a text, which they do not belong to */
};

struct xfp_generation;

/* All are required. */
struct xfp_generation_callbacks {
	void *context;
	bool (*stop)(void *context); /* polled; true ends all texts */
	/* Called whenever a text has grown or ended; false if it cannot be written, which ends the generation. */
	bool (*text)(void *context, const struct xfp_generated_text *text);
	void (*warning)(void *context, const char *message);
};

struct xfp_generation {
	struct xfp_generation_request request;
	struct xfp_generation_callbacks callbacks;

	struct xfp_model model;
	struct xfp_tokenizer *tokenizer;
	struct xfp_token_ids ends; /* tokens that end a text */
	struct xfp_generated_text *texts;
	size_t count;
	uint32_t context, parallel; /* as used */
	uint64_t memory;            /* bytes of KV cache, activations and logits; */
	uint64_t cache;             /* and of the KV cache alone, with the states of linear attention */

	bool interrupted;   /* callbacks.stop returned true */
	bool output_failed; /* callbacks.text returned false */

	/* Measurements. A step generates one token for each sequence. */
	size_t prompt_tokens, tokens, steps; /* tokens: generated in steps */
	double prompt_seconds, seconds;
	uint64_t bytes;   /* of weights that the steps have read */
	double bandwidth; /* of memory, in bytes per second; 0: not measured */
};

#endif
