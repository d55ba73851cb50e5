/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/ggml.h"

#define MAX_DECODED 65536u /* bytes of a rectangle's codes */

struct bytes_left {
	const uint8_t *at, *end;
};

static uint64_t take(struct bytes_left *in, unsigned count)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < count && in->at < in->end; i++)
		value |= (uint64_t)*in->at++ << 8 * i;
	return value;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* A small number or any number, also near the overflow of a product. */
static uint64_t read_number(struct bytes_left *in)
{
	uint8_t how = (uint8_t)take(in, 1);

	if (how < 192)
		return how;
	return take(in, 1 + how % 8) << take(in, 1) % 64;
}

static struct xfp_recipe_part read_part(struct bytes_left *in, struct xfp_component components[2])
{
	static const uint8_t decoded[14] = { 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 39, 40 };
	uint64_t number = take(in, 1), how = take(in, 1), elements = 1, bytes = 1, rows, cols, matrix;
	const struct xfp_ggml_type *type;

	number = number < 140 ? decoded[number % 14] : number < 250 ? number % 48 : take(in, 8);
	type = xfp_ggml_type(number);
	if (type && type->elements) {
		elements = type->elements;
		bytes = type->bytes;
	}
	rows = read_number(in);
	cols = read_number(in) * (how & 1 ? 1 : elements);
	matrix = how & 64 ? read_number(in) : 0;
	components[0] = (struct xfp_component){ XFP_COMPONENT_CODES, how & 2 ? XFP_I8 : XFP_U8, 0, take(in, 1), 0 };
	components[0].bytes = how & 4 ? read_number(in) : cols / elements * bytes * rows - (how & 8 ? bytes : 0);
	components[1] = (struct xfp_component){ XFP_COMPONENT_GLOBAL, how & 16 ? XFP_F16 : XFP_F32, 0, 0, 0 };
	components[1].bytes = how & 32 ? read_number(in) : sizeof(float) * (matrix ? rows / matrix : 1);
	return (struct xfp_recipe_part){ .codec = XFP_CODEC_GGUF,
					 .version = 1,
					 .rows = rows,
					 .cols = cols,
					 .parameters = { number, matrix },
					 .components = components,
					 .component_count = how & 128 ? 2 : 1 };
}

/* The bytes that the decoder would fetch for a rectangle, in memory that ends with them. */
static bool fetch_all(const struct xfp_recipe_part *part, struct xfp_fetched *from, unsigned char *memory[2])
{
	const struct xfp_codec_methods *codec = xfp_codec_methods(part->codec);
	bool fit = true;

	for (uint32_t k = 0; k < part->component_count; k++) {
		const struct xfp_component *component = &part->components[k];
		struct xfp_window w = codec->window(part, component->role, &from->of);
		uint64_t span = 0, last;

		memory[k] = NULL;
		if (!w.run || !w.lines)
			continue;
		must(xfp_mul(w.lines - 1, w.stride, &last) && xfp_add(last, w.run, &span) &&
		     xfp_add(span, w.offset, &last) && last <= component->bytes);
		if (span > MAX_DECODED) {
			fit = false;
			continue;
		}
		must((memory[k] = malloc(span)) != NULL);
		for (uint64_t i = 0; i < span; i++)
			memory[k][i] = (unsigned char)((w.offset + i) * 37 + ((w.offset + i) >> 7) * 11);
		from->bytes[component->role] = memory[k];
		from->pitch[component->role] = w.stride;
	}
	return fit;
}

/* A rectangle, and its first row from the first column to its last; NULL: too large to decode here. */
static unsigned char *decode_rows(const struct xfp_recipe_part *part, enum xfp_dtype dtype, struct xfp_rectangle of)
{
	const struct xfp_codec_methods *codec = xfp_codec_methods(part->codec);
	struct xfp_fetched from = { .of = of };
	unsigned char *memory[2] = { NULL, NULL }, *out = NULL;
	uint64_t rows, cols, end = of.col + of.cols;

	codec->grain(part, &rows, &cols);
	must(rows == 1 && cols && !(cols & (cols - 1)));
	from.of.col -= of.col % cols;
	end = end + (cols - 1 - (end - 1) % cols);
	must(end <= part->cols);
	from.of.cols = end - from.of.col;
	if (fetch_all(part, &from, memory)) {
		must((out = malloc(of.rows * of.cols * 2)) != NULL);
		for (uint64_t r = 0; r < of.rows; r++)
			codec->decode(part, dtype, &from, of.row + r, of.col, of.cols, out + r * of.cols * 2);
	}
	free(memory[0]);
	free(memory[1]);
	return out;
}

bool fuzz_blocks(const uint8_t *data, size_t size)
{
	struct bytes_left in = { data, data + size };
	struct xfp_component components[2];
	struct xfp_recipe_part part = read_part(&in, components);
	const struct xfp_ggml_type *type = xfp_ggml_type(part.parameters[XFP_GGML_TYPE]);
	enum xfp_dtype dtype = type && take(&in, 1) < 240 ? type->dtype : XFP_BF16;

	if (!xfp_codec_methods(part.codec)->fits(&part, dtype))
		return false;
	must(type && type->form == XFP_GGML_BLOCKS);
	for (int i = 0; i < 4; i++) {
		struct xfp_rectangle of = { .row = take(&in, 8) % part.rows, .col = take(&in, 8) % part.cols };
		struct xfp_rectangle line;
		unsigned char *some, *all;

		of.rows = 1 + take(&in, 1) % 8;
		of.rows = part.rows - of.row < of.rows ? part.rows - of.row : of.rows;
		of.cols = 1 + take(&in, 2);
		of.cols = part.cols - of.col < of.cols ? part.cols - of.col : of.cols;
		line = (struct xfp_rectangle){ of.row, of.rows, of.col - of.col % type->elements, 0 };
		line.cols = of.col + of.cols - line.col;
		some = decode_rows(&part, dtype, of);
		all = decode_rows(&part, dtype, line);
		for (uint64_t r = 0; some && all && r < of.rows; r++)
			must(!memcmp(some + r * of.cols * 2, all + (r * line.cols + of.col - line.col) * 2,
				     of.cols * 2));
		free(some);
		free(all);
	}
	return true;
}
