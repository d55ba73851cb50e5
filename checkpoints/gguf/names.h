/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what llama.cpp calls the tensors of an architecture, what Hugging Face calls them, and what else a
 * converter did to them. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_NAMES_H
#define XFP_GGUF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/metadata.h"

enum xfp_gguf_architecture {
	XFP_GGUF_LLAMA,
	XFP_GGUF_MIXTRAL, /* llama with experts */
	XFP_GGUF_QWEN2,
	XFP_GGUF_QWEN3,
	XFP_GGUF_QWEN3MOE,
	XFP_GGUF_QWEN3NEXT,
	XFP_GGUF_GEMMA,
	XFP_GGUF_GEMMA2,
	XFP_GGUF_GEMMA3,
	XFP_GGUF_PHI3,
	XFP_GGUF_GPT_OSS,
	XFP_GGUF_GLM4MOE,
	XFP_GGUF_ARCHITECTURES /* any other */
};

/* That of the metadata; `name` is what llama.cpp calls it, by which keys begin, or "": there is none. */
enum xfp_gguf_architecture xfp_gguf_architecture(const struct xfp_gguf_metadata *metadata, const char **name);

/* Names of those that are known, for messages. */
#define XFP_GGUF_KNOWN                                                                                                \
	"llama (with experts: mixtral), qwen2, qwen3, qwen3moe, qwen3next, gemma, gemma2, gemma3, phi3, gpt-oss and " \
	"glm4moe"

enum xfp_gguf_how {
	XFP_GGUF_AS_IS,
	XFP_GGUF_NORM,        /* 1 was added, where the architecture has it so */
	XFP_GGUF_QUERY,       /* rows of each head take turns, where the architecture has it so */
	XFP_GGUF_KEY,         /* the same of heads of keys */
	XFP_GGUF_QKV,         /* rows of q, k and v, a tensor each: {p} of the name */
	XFP_GGUF_EXPERTS,     /* a stack: a tensor an expert, {e} of the name */
	XFP_GGUF_GATE_UP,     /* a stack of both: a tensor an expert and projection, {e} and {p} */
	XFP_GGUF_ROW,         /* a matrix of one row */
	XFP_GGUF_CONV,        /* a dimension of 1 between */
	XFP_GGUF_DECAY,       /* the negative exponential of it */
	XFP_GGUF_INTERLEAVED, /* gates, whose rows take turns with those of its neighbour "up", and all is turned */
	XFP_GGUF_BIASES,      /* the same of biases */
	XFP_GGUF_TURNED,      /* experts the other way round */
	XFP_GGUF_LINEAR,      /* rows of q, k and v, which are joined with those of z, head of keys by head of keys */
	XFP_GGUF_TAKEN,       /* part of another, or of config.json */
	XFP_GGUF_UNKNOWN      /* keeps its name */
};

/* A tensor of a GGUF by its place: layer and expert are UINT64_MAX where the name has none. */
struct xfp_gguf_place {
	enum xfp_gguf_how how;
	uint64_t layer, expert;
	char name[XFP_MAX_NAME]; /* as Hugging Face has it; {e} is to be an expert's number, {p} a projection */
};

/* `layers`: of the model, without those of multi-token prediction, which follow. */
struct xfp_gguf_place xfp_gguf_place(enum xfp_gguf_architecture architecture, uint64_t layers, const char *name);

#endif
