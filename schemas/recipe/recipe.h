/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - how to reconstruct a tensor that the checkpoint stores in packed form.
 *
 * A *logical tensor* has the name, the shape and the plain dtype that the rest of xfp uses. If a checkpoint stores it
 * in packed form, its elements are those of a matrix of *stored rows*, which a codec decodes from *components*: codes,
 * scales and so on. A recipe lists the components, and defines the order of stored rows in the logical tensor:
 *
 *   in order      element n of the tensor is in stored row n / cols, at n % cols
 *   transposed    the tensor is [.., cols, transposed], and its stored rows are [.., transposed, cols]: the last two
 *                 dimensions are swapped. Experts that are published by output get the shape of their unpacked form.
 *   permuted      row h * inner * outer + i * inner + j of the tensor is stored row h * inner * outer + j * outer + i;
 *                 outer 0: rows are in order
 *
 * The stored rows of all parts are stacked vertically or side by side; most tensors have one part.
 *
 * Recipes are plain data: checkpoints/open/ creates them, checkpoints/packed/ decodes with them, ledgers store them.
 */
#ifndef XFP_RECIPE_H
#define XFP_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "schemas/recipe/source_file.h"

/* The numbers of codecs and components are stored in ledgers, but in nothing that outlives a version of xfp. */
enum xfp_codec {
	XFP_CODEC_PLAIN,         /* elements of the tensor's own dtype, for joined or permuted tensors */
	XFP_CODEC_FP8,           /* 8-bit floats with a scale for each block of rows and columns */
	XFP_CODEC_MXFP4,         /* 4-bit floats with a power of two per 32 elements of a row */
	XFP_CODEC_GPTQ,          /* integers of 2, 3, 4 or 8 bits, with scales and zero points per group of columns */
	XFP_CODEC_AWQ,           /* 4-bit integers like GPTQ, eight outputs per word */
	XFP_CODEC_AWQ_GEMV,      /* AWQ stored by outputs */
	XFP_CODEC_AWQ_GEMV_FAST, /* AWQ with four outputs at once, and scaled zero points */
	XFP_CODEC_NVFP4,         /* 4-bit floats with an 8-bit scale per 16 elements of a row, and a global scale */
	XFP_CODEC_INT,           /* integers of 1 to 8 bits with a scale for each block of rows and columns */
	XFP_CODEC_EXL2,          /* integers by columns, in groups with their own bits and a largest scale */
	XFP_CODEC_GGUF,          /* rows of ggml blocks, of any supported type */
	XFP_CODEC_REVERSED,      /* floats changed by a converter, changed back */
	XFP_CODECS
};

/* The change to undo, the first parameter of XFP_CODEC_REVERSED. */
enum xfp_reversed { XFP_REVERSED_ONE, XFP_REVERSED_DECAY };

enum xfp_component_role {
	XFP_COMPONENT_CODES,
	XFP_COMPONENT_SCALES,
	XFP_COMPONENT_ZEROS,  /* codes of zero points */
	XFP_COMPONENT_GROUPS, /* the group of each column, or the start of each group */
	XFP_COMPONENT_ORDER,  /* the position of each column */
	XFP_COMPONENT_GLOBAL, /* scales of scales */
	XFP_COMPONENT_CONFIG, /* the source of the parameters; nothing is decoded from it */
	XFP_COMPONENTS
};

/* A range of bytes of a file; the codec checks its length and dtype against its parameters. */
struct xfp_component {
	enum xfp_component_role role;
	enum xfp_dtype dtype;
	uint32_t file;
	uint64_t offset, bytes;
};

#define XFP_CODEC_PARAMETERS 4
#define XFP_MAX_COMPONENTS 8

struct xfp_recipe_part {
	enum xfp_codec codec;
	uint32_t version; /* version of the codec: another version decodes the same bytes to other elements */
	uint64_t rows, cols;
	uint64_t parameters[XFP_CODEC_PARAMETERS]; /* their meaning is defined in the codec's file */
	struct xfp_component *components;          /* sorted by role, each at most once */
	uint32_t component_count;
};

struct xfp_recipe {
	struct xfp_recipe_part *parts;
	uint32_t part_count;
	bool beside;         /* parts are side by side, not stacked */
	uint64_t rows, cols; /* shape of all parts together */
	uint64_t transposed; /* 0: not transposed */
	uint64_t outer, inner;
};

/* "fp8" and so on; static storage. */
const char *xfp_codec_name(enum xfp_codec codec);
/* The codec version that this xfp decodes. Bump it if the same bytes would decode to other elements. */
uint32_t xfp_codec_version(enum xfp_codec codec);

/* Create a recipe of a single part, with these components. NULL if memory runs out. */
struct xfp_recipe *xfp_recipe_new(const struct xfp_recipe_part *part);
struct xfp_recipe *xfp_recipe_copy(const struct xfp_recipe *recipe);
void xfp_recipe_free(struct xfp_recipe *recipe); /* NULL is accepted */

/* NULL: the part has none. */
const struct xfp_component *xfp_recipe_component(const struct xfp_recipe_part *part, enum xfp_component_role role);

/* The stored size of the components that are decoded. */
uint64_t xfp_recipe_bytes(const struct xfp_recipe *recipe);

/* A digest of everything that determines the result: parts and components, and the path and identity of each file. */
void xfp_recipe_digest(const struct xfp_recipe *recipe, const struct xfp_source_file *files, uint8_t sha256[32]);

#endif
