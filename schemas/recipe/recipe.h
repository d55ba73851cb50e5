/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - how a tensor comes about that is not stored as it is: which bytes of which files, and what decodes them.
 *
 * A *logical tensor* has the name, the shape and the plain dtype by which everything here knows it. Where a checkpoint
 * stores it packed, its elements are those of a matrix of *stored rows*, which a codec decodes from *components*:
 * codes, scales and so on. A recipe says where these are, and how stored rows lie in the logical tensor:
 *
 *   as they are   element n of the tensor is in stored row n / cols, at n % cols
 *   turned        the tensor is [.., cols, turned], and its stored rows are [.., turned, cols]: the last two dimensions
 *                 change places. Experts that are published by output have the shape of their unpacked form so.
 *   permuted      row h * inner * outer + i * inner + j of the tensor is stored row h * inner * outer + j * outer + i;
 *                 outer 0: rows are in order
 *
 * Stored rows are those of all parts, one below the other or side by side; most tensors have one part.
 *
 * This is data only: checkpoints/open/ makes recipes, checkpoints/packed/ follows them, ledgers carry them.
 */
#ifndef XFP_RECIPE_H
#define XFP_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "schemas/recipe/source_file.h"

/* The numbers of codecs and of components are stored in ledgers, and in nothing that outlives a version of xfp. */
enum xfp_codec {
	XFP_CODEC_PLAIN,         /* elements of the tensor's own dtype, for what is joined or permuted */
	XFP_CODEC_FP8,           /* 8-bit floats with a scale for each block of rows and columns */
	XFP_CODEC_MXFP4,         /* 4-bit floats with a power of two for each 32 of a row */
	XFP_CODEC_GPTQ,          /* integers of 2, 3, 4 or 8 bits, by columns, groups of which have scales and zeros */
	XFP_CODEC_AWQ,           /* the same of 4 bits, eight outputs to a word */
	XFP_CODEC_AWQ_GEMV,      /* and by outputs */
	XFP_CODEC_AWQ_GEMV_FAST, /* by four outputs at once, with zeros that are scaled */
	XFP_CODEC_NVFP4,         /* 4-bit floats with an 8-bit one for each 16 of a row, and a scale for all */
	XFP_CODEC_INT,           /* integers of 1 to 8 bits with a scale for each block of rows and columns */
	XFP_CODEC_EXL2,          /* integers by columns, groups of which have bits and a largest scale of their own */
	XFP_CODEC_GGUF,          /* rows of ggml's blocks, of any of its types that are decoded */
	XFP_CODEC_REVERSED,      /* floats that a converter changed, changed back */
	XFP_CODECS
};

/* What was done to them, the first parameter of the last. */
enum xfp_reversed { XFP_REVERSED_ONE, XFP_REVERSED_DECAY };

enum xfp_component_role {
	XFP_COMPONENT_CODES,
	XFP_COMPONENT_SCALES,
	XFP_COMPONENT_ZEROS,  /* codes that stand for 0 */
	XFP_COMPONENT_GROUPS, /* the group of each column, or where each group begins */
	XFP_COMPONENT_ORDER,  /* where each column is stored */
	XFP_COMPONENT_GLOBAL, /* scales of scales */
	XFP_COMPONENT_CONFIG, /* where the parameters were read; nothing is decoded from it */
	XFP_COMPONENTS
};

/* A range of bytes of a file, whose length and dtype the codec checks against its parameters. */
struct xfp_component {
	enum xfp_component_role role;
	enum xfp_dtype dtype;
	uint32_t file;
	uint64_t offset, bytes;
};

#define XFP_CODEC_PARAMETERS 4
#define XFP_MOST_COMPONENTS 8

struct xfp_recipe_part {
	enum xfp_codec codec;
	uint32_t version; /* of the codec: another one decodes the same bytes to other elements */
	uint64_t rows, cols;
	uint64_t parameters[XFP_CODEC_PARAMETERS]; /* what each is, the codec's file says */
	struct xfp_component *components;          /* by role, no two alike */
	uint32_t component_count;
};

struct xfp_recipe {
	struct xfp_recipe_part *parts;
	uint32_t part_count;
	bool beside;         /* parts lie side by side, and not one below the other */
	uint64_t rows, cols; /* of all parts */
	uint64_t turned;     /* 0: as they are */
	uint64_t outer, inner;
};

/* "fp8" and so on; static storage. */
const char *xfp_codec_name(enum xfp_codec codec);
/* The version that this xfp decodes. Bump it when the same bytes would decode to other elements. */
uint32_t xfp_codec_version(enum xfp_codec codec);

/* One of a single part, with these components. NULL when out of memory. */
struct xfp_recipe *xfp_recipe_new(const struct xfp_recipe_part *part);
struct xfp_recipe *xfp_recipe_copy(const struct xfp_recipe *recipe);
void xfp_recipe_free(struct xfp_recipe *recipe); /* NULL is fine */

/* NULL: the part has none. */
const struct xfp_component *xfp_recipe_component(const struct xfp_recipe_part *part, enum xfp_component_role role);

/* What the components that are decoded take in their files. */
uint64_t xfp_recipe_bytes(const struct xfp_recipe *recipe);

/* Of all that decides what comes out of it: parts and components, and of each file its path and identity. */
void xfp_recipe_digest(const struct xfp_recipe *recipe, const struct xfp_source_file *files, uint8_t sha256[32]);

#endif
