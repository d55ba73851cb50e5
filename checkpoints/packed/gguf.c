/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf.c - decode rows of ggml's blocks to f32 like llama.cpp (kernels/ggml/blocks.h).
 *
 *   codes       U8 [rows, cols / elements of a block * its bytes]
 *   global      optional F32, one per matrix of that many rows: llama.cpp multiplies the product by it; here each
 *               weight is multiplied by it, in f32
 *   parameters  the type's number; rows of a matrix if there is a global scale, otherwise 0
 */
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/ggml.h"
#include "checkpoints/packed/number.h"
#include "kernels/ggml/blocks.h"

#define PIECE 256u /* elements decoded per step; a multiple of every block size */

typedef void decode_block(const uint8_t *block, float *x);

static decode_block *const decoders[XFP_GGML_NUMBERS] = {
	[XFP_GGML_Q4_0] = xfp_ggml_q4_0,   [XFP_GGML_Q4_1] = xfp_ggml_q4_1,     [XFP_GGML_Q5_0] = xfp_ggml_q5_0,
	[XFP_GGML_Q5_1] = xfp_ggml_q5_1,   [XFP_GGML_Q8_0] = xfp_ggml_q8_0,     [XFP_GGML_Q2_K] = xfp_ggml_q2_k,
	[XFP_GGML_Q3_K] = xfp_ggml_q3_k,   [XFP_GGML_Q4_K] = xfp_ggml_q4_k,     [XFP_GGML_Q5_K] = xfp_ggml_q5_k,
	[XFP_GGML_Q6_K] = xfp_ggml_q6_k,   [XFP_GGML_IQ4_NL] = xfp_ggml_iq4_nl, [XFP_GGML_IQ4_XS] = xfp_ggml_iq4_xs,
	[XFP_GGML_MXFP4] = xfp_ggml_mxfp4, [XFP_GGML_NVFP4] = xfp_ggml_nvfp4,
};

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *global = xfp_recipe_component(part, XFP_COMPONENT_GLOBAL);
	const struct xfp_ggml_type *type = xfp_ggml_type(part->parameters[XFP_GGML_TYPE]);
	uint64_t elements, matrix = part->parameters[XFP_GGML_MATRIX_ROWS];

	if (!type || type->form != XFP_GGML_BLOCKS || dtype != type->dtype || !part->rows || !part->cols ||
	    part->cols % type->elements || !xfp_mul(part->rows, part->cols, &elements) || (global ? !matrix : matrix))
		return false;
	if (global && (global->dtype != XFP_F32 || part->rows % matrix ||
		       global->bytes / sizeof(float) != part->rows / matrix || global->bytes % sizeof(float)))
		return false;
	return codes && codes->dtype == XFP_U8 && codes->bytes % type->bytes == 0 &&
	       codes->bytes / type->bytes == elements / type->elements;
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	*rows = 1;
	*cols = xfp_ggml_type(part->parameters[XFP_GGML_TYPE])->elements;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	const struct xfp_ggml_type *type = xfp_ggml_type(part->parameters[XFP_GGML_TYPE]);
	uint64_t matrix = part->parameters[XFP_GGML_MATRIX_ROWS], first;

	if (role == XFP_COMPONENT_CODES)
		return xfp_window_of_rows(of, part->cols / type->elements * type->bytes, type->bytes, type->elements);
	if (role != XFP_COMPONENT_GLOBAL || !matrix)
		return (struct xfp_window){ .run = 0 };
	first = of->row / matrix;
	return (struct xfp_window){ .offset = first * sizeof(float),
				    .run = sizeof(float),
				    .stride = sizeof(float),
				    .lines = (of->row + of->rows - 1) / matrix - first + 1 };
}

static void multiply(float *x, uint64_t count, float by)
{
	for (uint64_t i = 0; i < count; i++)
		x[i] *= by;
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	const struct xfp_ggml_type *type = xfp_ggml_type(part->parameters[XFP_GGML_TYPE]);
	decode_block *const decoder = decoders[part->parameters[XFP_GGML_TYPE]];
	const unsigned char *global = from->bytes[XFP_COMPONENT_GLOBAL];
	uint64_t matrix = part->parameters[XFP_GGML_MATRIX_ROWS];
	const unsigned char *line =
		from->bytes[XFP_COMPONENT_CODES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES];
	unsigned char *to = out;
	uint64_t end = col + cols, count;
	float piece[PIECE];

	if (matrix)
		global += (row / matrix - from->of.row / matrix) * sizeof(float);
	line += (col - from->of.col) / type->elements * type->bytes;
	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		uint64_t skip = col % type->elements, have = 0;

		for (; have < PIECE && have < skip + (end - col); have += type->elements, line += type->bytes)
			decoder(line, piece + have);
		if (matrix)
			multiply(piece, have, xfp_bits_to_float(xfp_load32(global)));
		count = have - skip < end - col ? have - skip : end - col;
		xfp_store_decoded(dtype, piece + skip, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_gguf = { fits, grain, window, decode, NULL, NULL };
