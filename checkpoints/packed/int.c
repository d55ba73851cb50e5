/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int.c - integers with one scale per block of rows and columns: w = (code - zero) * scale.
 *
 *   codes       I8 [rows, cols], or I32 [rows, words]: `bits` bits each, lowest first, with an offset of 2^(bits - 1)
 *   scales      F32, BF16, F16 or F8_E8M0 [blocks of rows, blocks of columns]; the last blocks may be smaller
 *   zeros       missing: 0. I8 [same shape as scales]; or, with packed codes and blocks of one row, I32 [words, blocks
 *               of columns]: packed like codes, but along rows
 *   groups      missing: columns are in order. I32 [cols]: the column block whose scale and zero each column has
 *   parameters  bits; packing of codes; rows and columns of a block
 *
 * Differences have at most 9 bits, so with 16-bit scales each product is exact in f32. A column with an invalid group
 * number decodes to NaN.
 */
#include "checkpoints/packed/int.h"

#include <math.h>

#include "base/bytes.h"
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/nibbles.h"
#include "checkpoints/packed/number.h"

#define CHUNK 256u
#define MAX_BLOCKS 1024u /* maximum column blocks, in any order, whose zeros and scales a row keeps */

static uint64_t scale_size(const struct xfp_recipe_part *part)
{
	return xfp_dtype_bits(xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype) / 8;
}

static bool are_packed(const struct xfp_component *zeros)
{
	return zeros && zeros->dtype == XFP_I32;
}

/* ---- layout -------------------------------------------------------------------------------------- */

/* Return the first bit of code n of a line of words. */
static uint64_t bit_of(const struct xfp_recipe_part *part, uint64_t n)
{
	uint64_t bits = part->parameters[XFP_INT_BITS], each = 32 / bits;

	return part->parameters[XFP_INT_PACKING] == XFP_INT_DENSE ? n * bits : n / each * 32 + n % each * bits;
}

/* Compute the bytes of `lines` lines of `count` codes. */
static bool code_bytes(const struct xfp_recipe_part *part, uint64_t lines, uint64_t count, uint64_t *bytes)
{
	const uint64_t *p = part->parameters;

	if (p[XFP_INT_PACKING] == XFP_INT_BYTES)
		return xfp_mul(lines, count, bytes);
	return xfp_int_words(p[XFP_INT_PACKING], p[XFP_INT_BITS], count, bytes) && xfp_mul(*bytes, lines, bytes) &&
	       xfp_mul(*bytes, 4, bytes);
}

static bool fits_zeros(const struct xfp_recipe_part *part, const struct xfp_component *zeros, uint64_t grid)
{
	uint64_t bytes;

	if (!zeros)
		return true;
	if (zeros->dtype == XFP_I8)
		return zeros->bytes == grid;
	return are_packed(zeros) && part->parameters[XFP_INT_PACKING] != XFP_INT_BYTES &&
	       part->parameters[XFP_INT_BLOCK_ROWS] == 1 &&
	       code_bytes(part, xfp_divide_up(part->cols, part->parameters[XFP_INT_BLOCK_COLS]), part->rows, &bytes) &&
	       bytes == zeros->bytes;
}

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	const struct xfp_component *groups = xfp_recipe_component(part, XFP_COMPONENT_GROUPS);
	const uint64_t *p = part->parameters;
	uint64_t bytes, grid;

	if ((dtype != XFP_BF16 && dtype != XFP_F16) || !codes || !scales || !xfp_dtype_is_scale(scales->dtype) ||
	    !part->rows || !part->cols || p[XFP_INT_PACKING] >= XFP_INT_PACKINGS || !p[XFP_INT_BITS] ||
	    p[XFP_INT_BITS] > 8 || !p[XFP_INT_BLOCK_ROWS] || !p[XFP_INT_BLOCK_COLS] ||
	    codes->dtype != (p[XFP_INT_PACKING] == XFP_INT_BYTES ? XFP_I8 : XFP_I32))
		return false;
	return code_bytes(part, part->rows, part->cols, &bytes) && bytes == codes->bytes &&
	       xfp_mul(xfp_divide_up(part->rows, p[XFP_INT_BLOCK_ROWS]),
		       xfp_divide_up(part->cols, p[XFP_INT_BLOCK_COLS]), &grid) &&
	       xfp_mul(grid, scale_size(part), &bytes) && bytes == scales->bytes &&
	       fits_zeros(part, xfp_recipe_component(part, XFP_COMPONENT_ZEROS), grid) &&
	       (!groups || (groups->dtype == XFP_I32 && xfp_mul(part->cols, 4, &bytes) && bytes == groups->bytes));
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = *cols = 1;
}

/* Return the window of lines that contain codes [first, first + count) of each. */
static struct xfp_window window_of_codes(const struct xfp_recipe_part *part, const struct xfp_rectangle *of)
{
	uint64_t begin, end, line = 0;

	if (part->parameters[XFP_INT_PACKING] == XFP_INT_BYTES)
		return xfp_window_of_rows(of, part->cols, 1, 1);
	xfp_int_words(part->parameters[XFP_INT_PACKING], part->parameters[XFP_INT_BITS], part->cols, &line);
	begin = bit_of(part, of->col) / 8;
	end = (bit_of(part, of->col + of->cols - 1) + part->parameters[XFP_INT_BITS] - 1) / 8 + 1;
	return (struct xfp_window){
		.offset = of->row * line * 4 + begin, .run = end - begin, .stride = line * 4, .lines = of->rows
	};
}

/* Return the columns of scales that a rectangle may need. */
static struct xfp_rectangle grid_of(const struct xfp_recipe_part *part, const struct xfp_rectangle *of)
{
	uint64_t rows = part->parameters[XFP_INT_BLOCK_ROWS], cols = part->parameters[XFP_INT_BLOCK_COLS];
	struct xfp_rectangle grid = { .row = of->row / rows };

	grid.rows = (of->row + of->rows - 1) / rows - grid.row + 1;
	if (xfp_recipe_component(part, XFP_COMPONENT_GROUPS)) {
		grid.cols = xfp_divide_up(part->cols, cols);
		return grid;
	}
	grid.col = of->col / cols;
	grid.cols = (of->col + of->cols - 1) / cols - grid.col + 1;
	return grid;
}

static struct xfp_window window_of_zeros(const struct xfp_recipe_part *part, const struct xfp_component *zeros,
					 const struct xfp_rectangle *of)
{
	uint64_t line = xfp_divide_up(part->cols, part->parameters[XFP_INT_BLOCK_COLS]);
	struct xfp_rectangle grid = grid_of(part, of);

	if (!zeros)
		return (struct xfp_window){ .run = 0 };
	if (!are_packed(zeros))
		return xfp_window_of_rows(&grid, line, 1, 1);
	grid.row = bit_of(part, of->row) / 32;
	grid.rows = (bit_of(part, of->row + of->rows - 1) + part->parameters[XFP_INT_BITS] - 1) / 32 - grid.row + 1;
	return xfp_window_of_rows(&grid, line * 4, 4, 1);
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	struct xfp_rectangle grid = grid_of(part, of);
	uint64_t size = scale_size(part);

	switch (role) {
	case XFP_COMPONENT_CODES:
		return window_of_codes(part, of);
	case XFP_COMPONENT_SCALES:
		return xfp_window_of_rows(&grid, xfp_divide_up(part->cols, part->parameters[XFP_INT_BLOCK_COLS]) * size,
					  size, 1);
	case XFP_COMPONENT_ZEROS:
		return window_of_zeros(part, xfp_recipe_component(part, role), of);
	case XFP_COMPONENT_GROUPS:
		if (xfp_recipe_component(part, role))
			return (struct xfp_window){
				.offset = of->col * 4, .run = of->cols * 4, .stride = of->cols * 4, .lines = 1
			};
		return (struct xfp_window){ .run = 0 };
	default:
		return (struct xfp_window){ .run = 0 };
	}
}

/* ---- decoding ------------------------------------------------------------------------------------ */

/* Sources of a row. Columns of codes and of groups are relative to the first one fetched, blocks of columns to the
 * first block. */
struct row {
	const struct xfp_recipe_part *part;
	const unsigned char *codes, *scales, *zeros, *groups; /* zeros: I8, or the line of words that contains it */
	const unsigned char *more_zeros;                      /* the next line of words, or NULL if not needed */
	enum xfp_dtype scale_dtype;
	uint64_t first_block, block_count;
	uint32_t zero_shift;
};

static struct row row_of(const struct xfp_recipe_part *part, const struct xfp_fetched *from, uint64_t row)
{
	const struct xfp_component *zeros = xfp_recipe_component(part, XFP_COMPONENT_ZEROS);
	uint64_t block_rows = part->parameters[XFP_INT_BLOCK_ROWS], line = row / block_rows - from->of.row / block_rows;
	struct xfp_rectangle grid = grid_of(part, &from->of);
	struct row r = {
		.part = part,
		.codes = from->bytes[XFP_COMPONENT_CODES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES],
		.scales = from->bytes[XFP_COMPONENT_SCALES] + line * from->pitch[XFP_COMPONENT_SCALES],
		.scale_dtype = xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype,
		.groups = xfp_recipe_component(part, XFP_COMPONENT_GROUPS) ? from->bytes[XFP_COMPONENT_GROUPS] : NULL,
		.first_block = grid.col,
		.block_count = grid.cols,
	};
	uint64_t bit, pitch = from->pitch[XFP_COMPONENT_ZEROS];

	if (zeros && !are_packed(zeros))
		r.zeros = from->bytes[XFP_COMPONENT_ZEROS] + line * pitch;
	else if (zeros) {
		bit = bit_of(part, row);
		r.zeros = from->bytes[XFP_COMPONENT_ZEROS] + (bit / 32 - bit_of(part, from->of.row) / 32) * pitch;
		r.zero_shift = (uint32_t)(bit % 32);
		if (r.zero_shift + part->parameters[XFP_INT_BITS] > 32)
			r.more_zeros = r.zeros + pitch;
	}
	return r;
}

/* Return the zero of a column block, in the representation of stored codes. */
static int zero_of(const struct row *r, uint64_t block)
{
	uint64_t bits = r->part->parameters[XFP_INT_BITS], word;
	int middle = r->part->parameters[XFP_INT_PACKING] == XFP_INT_BYTES ? 0 : 1 << (bits - 1);

	if (!r->zeros)
		return middle;
	if (!are_packed(xfp_recipe_component(r->part, XFP_COMPONENT_ZEROS)))
		return (int8_t)r->zeros[block] + middle;
	word = xfp_load32(r->zeros + 4 * block);
	if (r->more_zeros)
		word |= (uint64_t)xfp_load32(r->more_zeros + 4 * block) << 32;
	return (int)(word >> r->zero_shift & ((1u << bits) - 1));
}

/* Unpack codes of columns [col, col + count) to numbers; `first` is the first available column of the row. */
static void unpack(const struct row *r, uint64_t col, uint64_t count, uint64_t first, float *out)
{
	static const float pairs[256][2] = XFP_NIBBLE_PAIRS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	uint64_t bits = r->part->parameters[XFP_INT_BITS], skip = bit_of(r->part, first) / 8;
	unsigned mask = (1u << bits) - 1;

	if (r->part->parameters[XFP_INT_PACKING] == XFP_INT_BYTES) {
#pragma omp simd
		for (uint64_t i = 0; i < count; i++)
			out[i] = (float)(int8_t)r->codes[col - first + i];
		return;
	}
	if (bits == 8) {
#pragma omp simd
		for (uint64_t i = 0; i < count; i++)
			out[i] = (float)r->codes[col - skip + i];
		return;
	}
	if (bits == 4) { /* the most common case */
		xfp_nibble_values(pairs, r->codes, col - 2 * skip, count, out);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t bit = bit_of(r->part, col + i);
		const unsigned char *at = r->codes + (bit / 8 - skip);
		unsigned two = bit % 8 + bits > 8 ? at[0] | (unsigned)at[1] << 8 : at[0];

		out[i] = (float)(two >> bit % 8 & mask);
	}
}

/* Return the zero and the scale of a column block. */
static void zero_and_scale(const struct row *r, uint64_t block, float *zero, float *scale)
{
	*zero = 0;
	*scale = NAN;
	if (block >= r->block_count)
		return;
	*zero = (float)zero_of(r, block);
	*scale = xfp_scale_to_float(r->scale_dtype, r->scales + block * scale_size(r->part));
}

/* Decode columns of any blocks: look up zeros and scales first, if all of them fit. */
static void decode_unordered(const struct row *r, enum xfp_dtype dtype, uint64_t col, uint64_t cols, uint64_t first,
			     unsigned char *to)
{
	float zero[MAX_BLOCKS], scale[MAX_BLOCKS], values[CHUNK];
	bool all = r->block_count <= MAX_BLOCKS && cols >= r->block_count;

	for (uint64_t block = 0; all && block < r->block_count; block++)
		zero_and_scale(r, block, &zero[block], &scale[block]);
	for (uint64_t end = col + cols, count; col < end; col += count, to += count * sizeof(uint16_t)) {
		count = end - col < CHUNK ? end - col : CHUNK;
		unpack(r, col, count, first, values);
		for (uint64_t i = 0; i < count; i++) {
			uint32_t block = xfp_load32(r->groups + (col + i - first) * 4);
			float its_zero, its_scale;

			if (all && block < r->block_count) {
				its_zero = zero[block];
				its_scale = scale[block];
			} else {
				zero_and_scale(r, block, &its_zero, &its_scale);
			}
			values[i] = (values[i] - its_zero) * its_scale;
		}
		xfp_store_decoded(dtype, values, count, to);
	}
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	struct row r = row_of(part, from, row);
	uint64_t columns = part->parameters[XFP_INT_BLOCK_COLS], end = col + cols, count;
	unsigned char *to = out;
	float values[CHUNK];

	if (r.groups) {
		decode_unordered(&r, dtype, col, cols, from->of.col, out);
		return;
	}
	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		count = end - col < CHUNK ? end - col : CHUNK;
		unpack(&r, col, count, from->of.col, values);
		for (uint64_t i = 0, same; i < count; i += same) {
			uint64_t left = columns - (col + i) % columns;
			float zero, scale;

			same = count - i < left ? count - i : left;
			zero_and_scale(&r, (col + i) / columns - r.first_block, &zero, &scale);
#pragma omp simd
			for (uint64_t k = i; k < i + same; k++)
				values[k] = (values[k] - zero) * scale;
		}
		xfp_store_decoded(dtype, values, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_int = {
	.fits = fits,
	.grain = grain,
	.window = window,
	.decode = decode,
};
