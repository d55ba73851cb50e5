/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of ggml's types: each weight compared with its formula, all of them with digests of llama.cpp's results for
 * the same bytes, and rows read in all sorts of rectangles.
 */
#include <math.h>

#include "base/bytes.h"
#include "base/system/filesystem.h"
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/decoder.h"
#include "checkpoints/packed/ggml.h"
#include "checkpoints/packed/number.h"
#include "kernels/ggml/blocks.h"
#include "tests/unit/scratch.h"

#define MAX_ELEMENTS 256
#define MAX_BLOCK 210

static struct xfp_error err;

/* ---- one weight at a time, by the formulas ------------------------------------------------------- */

static float half_at(const uint8_t *b, unsigned at)
{
	unsigned bits = b[at] | (unsigned)b[at + 1] << 8, e = bits >> 10 & 31, m = bits & 1023;
	double value = e == 31 ? (m ? (double)NAN : (double)INFINITY)
		       : e     ? ldexp(1024 + m, (int)e - 25)
			       : ldexp(m, -24);

	return (float)(bits >> 15 ? -value : value);
}

/* Code of weight e of 2 n, in halves of n bytes. */
static unsigned nibble(const uint8_t *b, unsigned e, unsigned n)
{
	return e % (2 * n) < n ? b[e % n] & 15 : b[e % n] >> 4;
}

static const int iq4[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static const float e2m1[16] = { 0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6 };

static float q4_0(const uint8_t *b, unsigned e)
{
	return ((float)nibble(b + 2, e, 16) - 8) * half_at(b, 0);
}
static float q4_1(const uint8_t *b, unsigned e)
{
	return (float)nibble(b + 4, e, 16) * half_at(b, 0) + half_at(b, 2);
}
static float q5_0(const uint8_t *b, unsigned e)
{
	return ((float)(nibble(b + 6, e, 16) + 16 * (b[2 + e / 8] >> e % 8 & 1u)) - 16) * half_at(b, 0);
}
static float q5_1(const uint8_t *b, unsigned e)
{
	return (float)(nibble(b + 8, e, 16) + 16 * (b[4 + e / 8] >> e % 8 & 1u)) * half_at(b, 0) + half_at(b, 2);
}
static float q8_0(const uint8_t *b, unsigned e)
{
	return (float)(b[2 + e] - (b[2 + e] & 128 ? 256 : 0)) * half_at(b, 0);
}
static float iq4_nl(const uint8_t *b, unsigned e)
{
	return half_at(b, 0) * (float)iq4[nibble(b + 2, e, 16)];
}
static float mxfp4(const uint8_t *b, unsigned e)
{
	return (float)((double)e2m1[nibble(b + 1, e, 16)] * ldexp(1, b[0] - 127));
}
static float nvfp4(const uint8_t *b, unsigned e)
{
	unsigned s = b[e / 16];
	double scale = s == 127 ? 0 : s & 120 ? ldexp(8 + (s & 7), (int)(s >> 3 & 15) - 10) : ldexp(s & 7, -9);

	return (float)(e2m1[nibble(b + 4 + e / 16 * 8, e % 16, 8)] * scale);
}
static unsigned two_bits(const uint8_t *codes, unsigned e)
{
	return codes[e / 128 * 32 + e % 32] >> e % 128 / 32 * 2 & 3u;
}
static float q2_k(const uint8_t *b, unsigned e)
{
	float scale = half_at(b, 80) * (float)(b[e / 16] & 15), minimum = half_at(b, 82) * (float)(b[e / 16] >> 4);

	return scale * (float)two_bits(b + 16, e) - minimum;
}
static float q3_k(const uint8_t *b, unsigned e)
{
	const uint8_t *s = b + 96;
	unsigned k = e / 16, low = k < 8 ? s[k] & 15u : s[k - 8] >> 4, high = s[8 + k % 4] >> k / 4 * 2 & 3u;
	float scale = half_at(b, 108) * ((float)(low | high << 4) - 32);

	return scale * ((float)two_bits(b + 32, e) - (b[e % 32] >> e / 32 & 1 ? 0 : 4));
}
static float k_32(const uint8_t *b, unsigned e, unsigned q)
{
	const uint8_t *s = b + 4;
	unsigned j = e / 32, scale, minimum;

	scale = j < 4 ? s[j] & 63u : (s[j + 4] & 15u) | (unsigned)(s[j - 4] >> 6) << 4;
	minimum = j < 4 ? s[j + 4] & 63u : (unsigned)(s[j + 4] >> 4) | (unsigned)(s[j] >> 6) << 4;
	return half_at(b, 0) * (float)scale * (float)q - half_at(b, 2) * (float)minimum;
}
static float q4_k(const uint8_t *b, unsigned e)
{
	return k_32(b, e, nibble(b + 16 + e / 64 * 32, e % 64, 32));
}
static float q5_k(const uint8_t *b, unsigned e)
{
	return k_32(b, e, nibble(b + 48 + e / 64 * 32, e % 64, 32) + 16 * (b[16 + e % 32] >> e / 32 & 1u));
}
static float q6_k(const uint8_t *b, unsigned e)
{
	unsigned low = b[e / 128 * 64 + e % 64], number = b[192 + e / 16];
	unsigned q = (e % 128 < 64 ? low & 15 : low >> 4) | two_bits(b + 128, e) << 4;

	return half_at(b, 208) * ((float)number - (number & 128 ? 256 : 0)) * ((float)q - 32);
}
static float iq4_xs(const uint8_t *b, unsigned e)
{
	unsigned g = e / 32, number = (b[4 + g / 2] >> g % 2 * 4 & 15u) | ((b[2] | b[3] << 8u) >> 2 * g & 3u) << 4;

	return half_at(b, 0) * ((float)number - 32) * (float)iq4[nibble(b + 8 + 16 * g, e % 32, 16)];
}

/* Offsets of fp16 numbers in a block, the last one twice if there is only one; and digests, see
 * the_same_as_llama_cpp. */
static const struct known_type {
	uint64_t number;
	const char *name;
	unsigned elements, bytes;
	double bits;
	float (*weight)(const uint8_t *block, unsigned e);
	void (*decode)(const uint8_t *block, float *x);
	int halves[2];
	uint64_t digest;
} known[] = {
	{ 2, "Q4_0", 32, 18, 4.5, q4_0, xfp_ggml_q4_0, { 0, 0 }, 0x9ac5295a7ff1c3ea },
	{ 3, "Q4_1", 32, 20, 5, q4_1, xfp_ggml_q4_1, { 0, 2 }, 0xe82da37e874c57ed },
	{ 6, "Q5_0", 32, 22, 5.5, q5_0, xfp_ggml_q5_0, { 0, 0 }, 0xa9e4e8695b8c34c0 },
	{ 7, "Q5_1", 32, 24, 6, q5_1, xfp_ggml_q5_1, { 0, 2 }, 0xb97eb014176a2c72 },
	{ 8, "Q8_0", 32, 34, 8.5, q8_0, xfp_ggml_q8_0, { 0, 0 }, 0xc7d4819bfbda455e },
	{ 10, "Q2_K", 256, 84, 2.625, q2_k, xfp_ggml_q2_k, { 80, 82 }, 0x70a2160b69aaa4a0 },
	{ 11, "Q3_K", 256, 110, 3.4375, q3_k, xfp_ggml_q3_k, { 108, 108 }, 0xd6b982b49806891c },
	{ 12, "Q4_K", 256, 144, 4.5, q4_k, xfp_ggml_q4_k, { 0, 2 }, 0xa3aa0baa4aecd350 },
	{ 13, "Q5_K", 256, 176, 5.5, q5_k, xfp_ggml_q5_k, { 0, 2 }, 0x5390761f51668860 },
	{ 14, "Q6_K", 256, 210, 6.5625, q6_k, xfp_ggml_q6_k, { 208, 208 }, 0x3154db90a5ab8a50 },
	{ 20, "IQ4_NL", 32, 18, 4.5, iq4_nl, xfp_ggml_iq4_nl, { 0, 0 }, 0xa77b5b0a5bcaa775 },
	{ 23, "IQ4_XS", 256, 136, 4.25, iq4_xs, xfp_ggml_iq4_xs, { 0, 0 }, 0x878749faf0dbf588 },
	{ 39, "MXFP4", 32, 17, 4.25, mxfp4, xfp_ggml_mxfp4, { -1, -1 }, 0xb92191e838ae4108 },
	{ 40, "NVFP4", 64, 36, 4.5, nvfp4, xfp_ggml_nvfp4, { -1, -1 }, 0x3b6249d6088ea9b8 },
};
#define KNOWN (sizeof known / sizeof *known)

static void fill(uint8_t *bytes, uint64_t count, uint64_t *seed)
{
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(test_random(seed) >> 56);
}

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return isnan(value) ? 0x7fc00000 : bits;
}

/* Every fp16 value, and every byte for byte scales; everything else at random. */
static void weights_are_those_of_the_formulas(void **state)
{
	(void)state;
	for (size_t k = 0; k < KNOWN; k++) {
		const struct known_type *type = &known[k];
		uint64_t seed = k;

		for (unsigned n = 0; n < 65536; n += type->elements == 256 ? 3 : 1) {
			uint8_t block[MAX_BLOCK];
			float x[MAX_ELEMENTS];

			fill(block, type->bytes, &seed);
			if (type->halves[0] >= 0) {
				xfp_store16(block + type->halves[1], (uint16_t)(n * 40503u));
				xfp_store16(block + type->halves[0], (uint16_t)n);
			} else {
				block[0] = (uint8_t)n;
				n += 16;
			}
			type->decode(block, x);
			for (unsigned e = 0; e < type->elements; e++)
				if (bits_of(x[e]) != bits_of(type->weight(block, e)))
					fail_msg("%s, %04x, weight %u: %a, not %a", type->name, n, e, (double)x[e],
						 (double)type->weight(block, e));
		}
	}
}

/* FNV-1a of the floats that dequantize_row_* of llama.cpp's ggml-quants.c writes, with NaN as 7fc00000, for 500 blocks
 * whose bytes are the upper ones of splitmix64, seeded with the type's number. */
static void the_same_as_llama_cpp(void **state)
{
	(void)state;
	for (size_t k = 0; k < KNOWN; k++) {
		uint64_t seed = known[k].number, hash = 0xcbf29ce484222325;

		for (int n = 0; n < 500; n++) {
			uint8_t block[MAX_BLOCK];
			float x[MAX_ELEMENTS];

			fill(block, known[k].bytes, &seed);
			known[k].decode(block, x);
			for (unsigned e = 0; e < known[k].elements; e++)
				for (uint32_t i = 0, bits = bits_of(x[e]); i < 4; i++, bits >>= 8)
					hash = (hash ^ (bits & 255)) * 0x100000001b3;
		}
		if (hash != known[k].digest)
			fail_msg("%s: 0x%016llx", known[k].name, (unsigned long long)hash);
	}
}

/* ---- the table ----------------------------------------------------------------------------------- */

static void types_are_known_by_number(void **state)
{
	/* Bits per weight of types that can only be listed. */
	static const struct {
		uint64_t number;
		const char *name;
		double bits;
	} listed[] = {
		{ 9, "Q8_1", 9 },          { 15, "Q8_K", 9.125 },   { 16, "IQ2_XXS", 2.0625 }, { 17, "IQ2_XS", 2.3125 },
		{ 18, "IQ3_XXS", 3.0625 }, { 19, "IQ1_S", 1.5625 }, { 21, "IQ3_S", 3.4375 },   { 22, "IQ2_S", 2.5625 },
		{ 29, "IQ1_M", 1.75 },     { 34, "TQ1_0", 1.6875 }, { 35, "TQ2_0", 2.0625 },   { 41, "Q1_0", 1.125 },
		{ 42, "Q2_0", 2.25 },
	};
	static const char *const plain[][2] = { { "F32", "0" },  { "F16", "1" },  { "I8", "24" },  { "I16", "25" },
						{ "I32", "26" }, { "I64", "27" }, { "F64", "28" }, { "BF16", "30" } };
	uint64_t seen = 0, gone = 0;

	(void)state;
	for (size_t k = 0; k < KNOWN; k++, seen++) {
		const struct xfp_ggml_type *type = xfp_ggml_type(known[k].number);

		assert_string_equal(type->name, known[k].name);
		assert_int_equal(type->form, XFP_GGML_BLOCKS);
		assert_int_equal(type->elements, known[k].elements);
		assert_int_equal(type->bytes, known[k].bytes);
		assert_true(type->bytes * 8.0 / type->elements == known[k].bits);
	}
	for (size_t k = 0; k < sizeof listed / sizeof *listed; k++, seen++) {
		const struct xfp_ggml_type *type = xfp_ggml_type(listed[k].number);

		assert_string_equal(type->name, listed[k].name);
		assert_int_equal(type->form, XFP_GGML_LISTED);
		assert_true(type->bytes * 8.0 / type->elements == listed[k].bits);
	}
	for (size_t k = 0; k < sizeof plain / sizeof *plain; k++, seen++) {
		const struct xfp_ggml_type *type = xfp_ggml_type(strtoull(plain[k][1], NULL, 10));

		assert_string_equal(type->name, plain[k][0]);
		assert_string_equal(xfp_dtype_name(type->dtype), plain[k][0]);
		assert_int_equal(type->form, XFP_GGML_DTYPE);
		assert_int_equal(type->bytes * 8, xfp_dtype_bits(type->dtype));
		assert_int_equal(type->elements, 1);
	}
	for (uint64_t n = 0; n < XFP_GGML_NUMBERS; n++)
		gone += xfp_ggml_type(n)->form == XFP_GGML_REMOVED && xfp_ggml_type(n)->name;
	assert_int_equal(seen + gone, XFP_GGML_NUMBERS);
	assert_null(xfp_ggml_type(XFP_GGML_NUMBERS));
	assert_null(xfp_ggml_type(UINT64_MAX));
}

/* ---- rounding ------------------------------------------------------------------------------------ */

static double half_value(unsigned bits)
{
	const uint8_t bytes[2] = { (uint8_t)bits, (uint8_t)(bits >> 8) };

	return (double)half_at(bytes, 0);
}

static uint16_t nearest_half(float value)
{
	unsigned char out[2];

	xfp_store_decoded(XFP_F16, &value, 1, out);
	return xfp_load16(out);
}

/* At every fp16 number, at the midpoint to the next one, and at the floats next to these. */
static void halves_are_the_nearest(void **state)
{
	(void)state;
	for (unsigned h = 0; h < 0x7c00; h++) {
		double next = h == 0x7bff ? 65536 : half_value(h + 1);
		float middle = (float)((half_value(h) + next) / 2), at = (float)half_value(h);

		for (int sign = 0; sign < 2; sign++) {
			float to = sign ? -1.f : 1.f;
			unsigned bit = sign ? 0x8000 : 0;

			assert_int_equal(nearest_half(to * at), h | bit);
			assert_int_equal(nearest_half(to * middle), (h + (h & 1)) | bit);
			assert_int_equal(nearest_half(to * nextafterf(middle, 0)), h | bit);
			assert_int_equal(nearest_half(to * nextafterf(middle, INFINITY)), (h + 1) | bit);
		}
	}
	assert_int_equal(nearest_half(INFINITY), 0x7c00);
	assert_int_equal(nearest_half(-3.4e38f), 0xfc00);
	assert_int_equal(nearest_half(1e-45f), 0);
	assert_int_equal(nearest_half(-1e-45f), 0x8000);
	assert_int_equal(nearest_half(NAN) & 0x7fff, 0x7e00);
}

/* Any number of elements, also none. */
static void any_number_is_stored(void **state)
{
	unsigned char out[2 * 70 + 2];
	float x[70];

	(void)state;
	for (int i = 0; i < 70; i++)
		x[i] = (float)(i - 30) / 8;
	for (unsigned n = 0; n <= 70; n++) {
		memset(out, 0xee, sizeof out);
		xfp_store_decoded(XFP_F16, x, n, out);
		for (unsigned i = 0; i < n; i++)
			assert_true(half_value(xfp_load16(out + 2 * i)) == (double)x[i]);
		assert_int_equal(xfp_load16(out + 2 * n), 0xeeee);
	}
}

/* ---- rows ---------------------------------------------------------------------------------------- */

struct rows_of_blocks {
	struct xfp_component components[2];
	struct xfp_recipe_part part;
	struct xfp_recipe recipe;
	struct xfp_source_file file;
	uint8_t *data;
	uint64_t offset; /* of the codes in the file */
	enum xfp_dtype dtype;
};

static const float globals[3] = { 0.37f, 2688, -3e-5f };

static void make_rows(void **state, struct rows_of_blocks *b, const struct known_type *type, uint64_t rows,
		      uint64_t blocks, uint64_t matrix)
{
	uint64_t bytes = rows * blocks * type->bytes, seed = type->number, behind = 7 + bytes + 3;
	struct stat st;

	*b = (struct rows_of_blocks){ .offset = 7, .dtype = xfp_ggml_type(type->number)->dtype };
	b->data = malloc(behind + sizeof globals);
	fill(b->data, behind, &seed);
	for (uint64_t i = 0; type->halves[0] >= 0 && i < rows * blocks; i++)
		for (int h = 0; h < 2; h++) /* of the actual number of weights, and of fewer */
			b->data[7 + i * type->bytes + (uint64_t)type->halves[h] + 1] =
				(uint8_t)(0x04 + i % 31 + (i % 3 ? 0x80 : 0));
	memcpy(b->data + behind, globals, sizeof globals);
	b->components[0] = (struct xfp_component){ XFP_COMPONENT_CODES, XFP_U8, 0, 7, bytes };
	b->components[1] = (struct xfp_component){ XFP_COMPONENT_GLOBAL, XFP_F32, 0, behind, 0 };
	if (matrix)
		b->components[1].bytes = rows / matrix * sizeof(float);
	b->part = (struct xfp_recipe_part){ .codec = XFP_CODEC_GGUF,
					    .version = 1,
					    .rows = rows,
					    .cols = blocks * type->elements,
					    .parameters = { type->number, matrix },
					    .components = b->components,
					    .component_count = matrix ? 2 : 1 };
	b->recipe = (struct xfp_recipe){ .parts = &b->part, .part_count = 1, .rows = rows, .cols = b->part.cols };
	scratch_write(state, "rows", b->data, behind + sizeof globals);
	b->file.path = scratch_path(state, "rows");
	assert_int_equal(stat(b->file.path, &st), 0);
	b->file.identity = xfp_identity_at(b->file.path, &st);
}

static void drop_rows(struct rows_of_blocks *b)
{
	free(b->file.path);
	free(b->data);
}

static uint16_t expected(const struct rows_of_blocks *b, const struct known_type *type, uint64_t row, uint64_t col)
{
	uint64_t block = row * (b->part.cols / type->elements) + col / type->elements;
	uint64_t matrix = b->part.parameters[XFP_GGML_MATRIX_ROWS];
	float value = type->weight(b->data + 7 + block * type->bytes, (unsigned)(col % type->elements));

	if (matrix)
		value *= globals[row / matrix];
	if (b->dtype == XFP_BF16)
		return xfp_float_to_bf16(value);
	return (uint16_t)(xfp_float_to_half(value) | (signbit(value) ? 0x8000 : 0));
}

static void rows_are_read_in_any_rectangle(void **state)
{
	for (size_t k = 0; k < 2 * KNOWN; k++) {
		const struct known_type *type = &known[k / 2];
		uint64_t rows = 12, cols, seed = k, wrong = 0;
		struct rows_of_blocks b;
		struct xfp_packed_source source = { .identified = true, .tensor = "the.tensor" };
		struct xfp_decoder *decoder;
		uint16_t *got;

		make_rows(state, &b, type, rows, 1 + k % 5, k % 2 ? 4 : 0);
		cols = b.part.cols;
		got = malloc(rows * cols * sizeof *got);
		source.recipe = &b.recipe;
		source.files = &b.file;
		source.dtype = b.dtype;
		if (xfp_decoder_open(&source, &decoder, &err))
			fail_msg("%s: %s", type->name, err.text);
		for (int i = 0; i < 60; i++) {
			uint64_t first = i ? test_random(&seed) % rows : 0, step = i ? 1 + test_random(&seed) % 3 : 1;
			uint64_t count = i ? 1 + test_random(&seed) % ((rows - first - 1) / step + 1) : rows;
			uint64_t col = i ? test_random(&seed) % cols : 0;
			uint64_t n = i ? 1 + test_random(&seed) % (cols - col) : cols;

			if (xfp_decoder_read(decoder, first, step, count, col, n, got, &err))
				fail_msg("%s: %s", type->name, err.text);
			for (uint64_t r = 0; r < count; r++)
				for (uint64_t c = 0; c < n; c++)
					wrong += got[r * n + c] != expected(&b, type, first + r * step, col + c);
		}
		if (wrong)
			fail_msg("%s: %llu weights are wrong", type->name, (unsigned long long)wrong);
		xfp_decoder_close(decoder);
		free(got);
		drop_rows(&b);
	}
}

/* Contradictory recipes: 12 rows of two blocks of Q4_K, three matrices with a scale each, or none. */
static void what_does_not_fit_is_refused(void **state)
{
	struct xfp_packed_source source = { .identified = true, .tensor = "the.tensor" };
	const struct xfp_codec_methods *codec = xfp_codec_methods(XFP_CODEC_GGUF);
	struct xfp_decoder *decoder = NULL;
	struct rows_of_blocks b;

	make_rows(state, &b, &known[7], 12, 2, 4);
	source.recipe = &b.recipe;
	source.files = &b.file;
	for (int i = 0; i < 20; i++) {
		const struct rows_of_blocks was = b;
		const uint64_t codes[] = { 12 * 2 * 144 - 1, 12 * 2 * 144 + 1, 12 * 2 * 144 + 144 };

		source.dtype = i ? XFP_F16 : XFP_BF16;
		if (i < 12) {
			b.part.component_count = 1;
			b.part.parameters[XFP_GGML_MATRIX_ROWS] = 0;
		}
		if (i >= 1 && i < 4) { /* numbers that are not types, and a removed type */
			b.part.parameters[XFP_GGML_TYPE] = (uint64_t[]){ 43, UINT64_MAX, 4 }[i - 1];
		} else if (i == 4) { /* a type that can only be listed */
			b.part.parameters[XFP_GGML_TYPE] = 16;
			b.components[0].bytes = 12 * 2 * 66;
		} else if (i == 5) { /* a plain dtype */
			b.part.parameters[XFP_GGML_TYPE] = XFP_GGML_F16;
			b.components[0].bytes = 12 * 512 * 2;
		} else if (i == 6) { /* another block size */
			b.part.parameters[XFP_GGML_TYPE] = XFP_GGML_Q5_K;
		} else if (i >= 7 && i < 10) {
			b.components[0].bytes = codes[i - 7];
		} else if (i == 10) { /* incomplete blocks */
			b.part.cols = b.recipe.cols = 384;
			b.part.rows = b.recipe.rows = 16;
		} else if (i == 11) { /* the product wraps to that of 12 rows */
			b.part.rows = b.recipe.rows = 12 + (UINT64_C(1) << 55);
		} else if (i == 12) {
			b.components[0].dtype = XFP_I8;
		} else if (i >= 13 && i < 16) { /* numbers of scales that match no number of rows */
			b.part.parameters[XFP_GGML_MATRIX_ROWS] = (uint64_t[]){ 0, 3, 12 }[i - 13];
		} else if (i == 16) {
			b.part.rows = b.recipe.rows = 13;
			b.components[0].bytes += 288;
		} else if (i == 17) {
			b.part.component_count = 1;
		} else if (i == 18) {
			b.components[1].dtype = XFP_F16;
		} else if (i == 19) {
			b.components[1].bytes++;
		}
		if (codec->fits(&b.part, source.dtype))
			fail_msg("%d fits", i);
		if (xfp_decoder_open(&source, &decoder, &err) != XFP_BAD_INPUT || !strstr(err.text, "the.tensor"))
			fail_msg("%d: %s", i, err.text);
		b = was;
	}
	for (int i = 0; i < 2; i++) { /* unchanged, with scales and without */
		assert_int_equal(xfp_decoder_open(&source, &decoder, &err), XFP_OK);
		xfp_decoder_close(decoder);
		b.part.component_count = 1;
		b.part.parameters[XFP_GGML_MATRIX_ROWS] = 0;
	}
	drop_rows(&b);
}

PROGRAM("test_ggml")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_those_of_the_formulas),
		cmocka_unit_test(the_same_as_llama_cpp),
		cmocka_unit_test(types_are_known_by_number),
		cmocka_unit_test(halves_are_the_nearest),
		cmocka_unit_test(any_number_is_stored),
		scratch_test(rows_are_read_in_any_rectangle),
		scratch_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests_name("ggml", tests, NULL, NULL);
}
