/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - tensor names of llama.cpp and Hugging Face by architecture, and what else a converter changed. Private to
 * checkpoints/gguf/.
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
	XFP_GGUF_ARCHITECTURES /* count; also any other architecture */
};

/* Return the architecture of the metadata; `name` is llama.cpp's name, the prefix of keys, or "" if missing. */
enum xfp_gguf_architecture xfp_gguf_architecture(const struct xfp_gguf_metadata *metadata, const char **name);

/* Names of the known architectures, for messages. */
#define XFP_GGUF_KNOWN                                                                                                \
	"llama (with experts: mixtral), qwen2, qwen3, qwen3moe, qwen3next, gemma, gemma2, gemma3, phi3, gpt-oss and " \
	"glm4moe"

enum xfp_gguf_transform {
	XFP_GGUF_AS_IS,
	XFP_GGUF_NORM,        /* 1 was added, in some architectures */
	XFP_GGUF_QUERY,       /* rows of each head are interleaved, in some architectures */
	XFP_GGUF_KEY,         /* the same for key heads */
	XFP_GGUF_QKV,         /* rows of q, k and v, one tensor each: {p} of the name */
	XFP_GGUF_EXPERTS,     /* a stack: one tensor per expert, {e} of the name */
	XFP_GGUF_GATE_UP,     /* a stack of both: one tensor per expert and projection, {e} and {p} */
	XFP_GGUF_ROW,         /* a matrix with one row */
	XFP_GGUF_CONV,        /* with a dimension of 1 inserted */
	XFP_GGUF_DECAY,       /* stored as its negative exponential */
	XFP_GGUF_INTERLEAVED, /* gates, interleaved with the rows of "up" and transposed */
	XFP_GGUF_BIASES,      /* the same for biases */
	XFP_GGUF_TRANSPOSED,  /* experts, transposed */
	XFP_GGUF_LINEAR,      /* rows of q, k and v, joined with those of z by key head */
	XFP_GGUF_CONSUMED,    /* part of another tensor, or of config.json */
	XFP_GGUF_UNKNOWN      /* keeps its name */
};

/* The logical place of a GGUF tensor; layer and expert are UINT64_MAX if the name has none. */
struct xfp_gguf_place {
	enum xfp_gguf_transform transform;
	uint64_t layer, expert;
	char name[XFP_MAX_NAME]; /* Hugging Face name; {e} stands for an expert's number, {p} for a projection */
};

/* Find the place of a tensor. `layers` excludes multi-token prediction layers, which follow. */
struct xfp_gguf_place xfp_gguf_place(enum xfp_gguf_architecture architecture, uint64_t layers, const char *name);

#endif
