/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codecs int and nvfp4 compared with the definitions of their formats, in double: every packing, every number of
 * bits, zero points and column orders, read in all sorts of rectangles.
 */
#include <math.h>

#include "base/system/filesystem.h"
#include "checkpoints/packed/decoder.h"
#include "checkpoints/packed/int.h"
#include "checkpoints/packed/number.h"
#include "checkpoints/packed/nvfp4.h"
#include "tests/unit/scratch.h"

#define MAX_BYTES 65536u

static struct xfp_error err;

struct packed {
	struct xfp_component components[4];
	struct xfp_recipe_part part;
	struct xfp_recipe recipe;
	struct xfp_source_file file;
	unsigned char data[MAX_BYTES]; /* components, one after the other */
	uint64_t used;
	double *stored; /* values before rounding */
};

static void begin(struct packed *p, enum xfp_codec codec, uint64_t rows, uint64_t cols)
{
	*p = (struct packed){ .used = 3 };
	memset(p->data, 0xee, sizeof p->data);
	p->part = (struct xfp_recipe_part){
		.codec = codec, .version = 1, .rows = rows, .cols = cols, .components = p->components
	};
	p->stored = malloc(rows * cols * sizeof *p->stored);
}

/* Initially zeros. */
static unsigned char *put(struct packed *p, enum xfp_component_role role, enum xfp_dtype dtype, uint64_t bytes)
{
	unsigned char *at = p->data + p->used;

	assert_true(p->used + bytes + 16 <= MAX_BYTES);
	p->components[p->part.component_count++] = (struct xfp_component){ role, dtype, 0, p->used, bytes };
	p->used += bytes + 5;
	memset(at, 0, bytes);
	return at;
}

static void put_bits(unsigned char *line, uint64_t bit, unsigned bits, unsigned value)
{
	for (unsigned b = 0; b < bits; b++, bit++)
		line[bit / 8] = (unsigned char)(line[bit / 8] | (value >> b & 1) << bit % 8);
}

static uint64_t bit_of(int packing, unsigned bits, uint64_t n)
{
	return packing == XFP_INT_DENSE ? n * bits : n / (32 / bits) * 32 + n % (32 / bits) * bits;
}

static double put_scale(unsigned char *at, enum xfp_dtype dtype, uint64_t i)
{
	float value = ldexpf(1 + (float)(i * 37 % 128) / 128, (int)(i % 9) - 6);
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	if (dtype == XFP_F32)
		memcpy(at, &bits, 4);
	else if (dtype == XFP_BF16)
		memcpy(at, (char *)&bits + 2, 2);
	else /* f16 has these, too */
		memcpy(at, &(uint16_t){ (uint16_t)(((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3ff)) }, 2);
	return value;
}

struct shape {
	int packing;
	unsigned bits;
	uint64_t rows, cols, block_rows, block_cols;
	enum xfp_dtype scales;
	enum { NO_ZEROS, ZERO_BYTES, ZERO_WORDS } zeros;
	bool ordered;
};

static void make_int(struct packed *p, const struct shape *s)
{
	uint64_t up = (s->rows + s->block_rows - 1) / s->block_rows;
	uint64_t across = (s->cols + s->block_cols - 1) / s->block_cols, line = s->cols, words = 0,
		 seed = s->bits + s->cols;
	size_t size = xfp_dtype_bits(s->scales) / 8;
	unsigned char *codes, *scales, *zeros = NULL, *groups = NULL;
	int middle = 1 << (s->bits - 1);

	begin(p, XFP_CODEC_INT, s->rows, s->cols);
	if (s->packing != XFP_INT_BYTES) {
		assert_true(xfp_int_words((uint64_t)s->packing, s->bits, s->cols, &words));
		line = words * 4;
	}
	codes = put(p, XFP_COMPONENT_CODES, s->packing == XFP_INT_BYTES ? XFP_I8 : XFP_I32, s->rows * line);
	scales = put(p, XFP_COMPONENT_SCALES, s->scales, up * across * size);
	assert_true(xfp_int_words((uint64_t)s->packing, s->bits, s->rows, &words));
	if (s->zeros)
		zeros = put(p, XFP_COMPONENT_ZEROS, s->zeros == ZERO_BYTES ? XFP_I8 : XFP_I32,
			    s->zeros == ZERO_BYTES ? up * across : words * across * 4);
	if (s->ordered)
		groups = put(p, XFP_COMPONENT_GROUPS, XFP_I32, s->cols * 4);
	for (uint64_t c = 0; groups && c < s->cols; c++)
		groups[4 * c] = (unsigned char)(c * 7 % across);
	p->part.parameters[XFP_INT_BITS] = s->bits;
	p->part.parameters[XFP_INT_PACKING] = (uint64_t)s->packing;
	p->part.parameters[XFP_INT_BLOCK_ROWS] = s->block_rows;
	p->part.parameters[XFP_INT_BLOCK_COLS] = s->block_cols;
	for (uint64_t r = 0; r < s->rows; r++) {
		for (uint64_t c = 0; c < s->cols; c++) {
			uint64_t b = r / s->block_rows * across + (groups ? groups[4 * c] : c / s->block_cols);
			int code = (int)(test_random(&seed) % (2u * (unsigned)middle)) - middle;
			int zero = s->zeros ? (int)(b * 5 % (2u * (unsigned)middle)) - middle : 0;

			if (s->packing == XFP_INT_BYTES)
				codes[r * line + c] = (unsigned char)code;
			else
				put_bits(codes + r * line, bit_of(s->packing, s->bits, c), s->bits,
					 (unsigned)(code + middle));
			p->stored[r * s->cols + c] = (code - zero) * put_scale(scales + b * size, s->scales, b);
		}
		for (uint64_t g = 0; zeros && g < across; g++) {
			uint64_t b = r / s->block_rows * across + g, bit = bit_of(s->packing, s->bits, r);
			unsigned zero = (unsigned)(b * 5 % (2u * (unsigned)middle));

			if (s->zeros == ZERO_BYTES)
				zeros[b] = (unsigned char)((int)zero - middle);
			else
				for (unsigned k = 0; k < s->bits; k++, bit++)
					put_bits(zeros + (bit / 32 * across + g) * 4, bit % 32, 1, zero >> k & 1);
		}
	}
}

static void write_out(void **state, struct packed *p)
{
	struct stat st;

	scratch_write(state, "packed", p->data, p->used);
	p->file.path = scratch_path(state, "packed");
	assert_int_equal(stat(p->file.path, &st), 0);
	p->file.identity = xfp_identity_at(p->file.path, &st);
	p->recipe =
		(struct xfp_recipe){ .parts = &p->part, .part_count = 1, .rows = p->part.rows, .cols = p->part.cols };
}

static void finish(struct packed *p)
{
	free(p->file.path);
	free(p->stored);
}

static double of_16_bits(enum xfp_dtype dtype, uint16_t bits)
{
	int mantissa = dtype == XFP_F16 ? 10 : 7, e = bits >> mantissa & (dtype == XFP_F16 ? 31 : 255);
	double value = ldexp((bits & ((1 << mantissa) - 1)) + (e ? 1 << mantissa : 0),
			     (e ? e : 1) - (dtype == XFP_F16 ? 15 : 127) - mantissa);

	return bits & 0x8000 ? -value : value;
}

/* The result is the stored number nearest to the exact value; for ties, the even one. */
static bool is_nearest(enum xfp_dtype dtype, uint16_t got, double want)
{
	double off = fabs(of_16_bits(dtype, got) - want);
	double above = fabs(of_16_bits(dtype, (uint16_t)(got + 1)) - want);
	double below = fabs(of_16_bits(dtype, (uint16_t)(got - 1)) - want);

	if (isnan(want))
		return (got & 0x7fff) > 0x7f80;
	if (want == 0)
		return (got & 0x7fff) == 0;
	if (off >= above || off >= below)
		return (off == above || off == below) && !(got & 1) && signbit(want) == (got >> 15 != 0);
	return signbit(want) == (got >> 15 != 0);
}

static void check(void **state, struct packed *p, enum xfp_dtype dtype)
{
	struct xfp_packed_source source = {
		.recipe = &p->recipe, .files = &p->file, .identified = true, .dtype = dtype, .tensor = "the.tensor"
	};
	uint64_t rows = p->part.rows, cols = p->part.cols, seed = rows ^ cols;
	uint16_t *got = malloc(rows * cols * sizeof *got);
	struct xfp_decoder *decoder;

	write_out(state, p);
	if (xfp_decoder_open(&source, &decoder, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < 60; i++) {
		uint64_t first = i ? test_random(&seed) % rows : 0, step = i ? 1 + test_random(&seed) % 3 : 1;
		uint64_t count = i ? 1 + test_random(&seed) % ((rows - first - 1) / step + 1) : rows;
		uint64_t col = i ? test_random(&seed) % cols : 0, n = i ? 1 + test_random(&seed) % (cols - col) : cols;

		if (xfp_decoder_read(decoder, first, step, count, col, n, got, &err))
			fail_msg("%s", err.text);
		for (uint64_t r = 0; r < count; r++)
			for (uint64_t c = 0; c < n; c++) {
				double want = p->stored[(first + r * step) * cols + col + c];

				if (!is_nearest(dtype, got[r * n + c], want))
					fail_msg("(%d, %d): %04x, not %g", (int)(first + r * step), (int)(col + c),
						 got[r * n + c], want);
			}
	}
	xfp_decoder_close(decoder);
	free(got);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void in_bytes(void **state)
{
	static const struct shape shapes[] = {
		{ XFP_INT_BYTES, 8, 20, 33, 1, 33, XFP_BF16, NO_ZEROS, false },
		{ XFP_INT_BYTES, 8, 20, 33, 20, 33, XFP_F32, ZERO_BYTES, false },
		{ XFP_INT_BYTES, 8, 21, 50, 8, 16, XFP_F16, ZERO_BYTES, false },
		{ XFP_INT_BYTES, 6, 5, 600, 1, 600, XFP_F16, NO_ZEROS, false },
	};
	struct packed p;

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		make_int(&p, &shapes[i]);
		check(state, &p, shapes[i].scales == XFP_F16 ? XFP_F16 : XFP_BF16);
		finish(&p);
	}
}

static void in_words(void **state)
{
	struct packed p;

	for (unsigned bits = 1; bits <= 8; bits++)
		for (int packing = XFP_INT_WORDS; packing <= XFP_INT_DENSE; packing++)
			for (int kind = 0; kind < 5; kind++) {
				struct shape shape = { packing, bits, 37, 96, 1, 16, XFP_BF16, NO_ZEROS, false };

				if (kind == 1 || kind == 3)
					shape.zeros = ZERO_WORDS;
				if (kind == 2 || kind == 3)
					shape.ordered = true;
				if (kind == 4)
					shape = (struct shape){ packing, bits,    18,         43,   18,
								43,      XFP_F16, ZERO_BYTES, false };
				make_int(&p, &shape);
				check(state, &p, shape.scales == XFP_F16 ? XFP_F16 : XFP_BF16);
				finish(&p);
			}
}

/* Invalid groups: a fold would reject them, but files can change. */
static void no_such_group(void **state)
{
	const struct shape shape = { XFP_INT_DENSE, 4, 3, 32, 1, 8, XFP_BF16, ZERO_WORDS, true };
	struct packed p;

	make_int(&p, &shape);
	p.data[p.components[3].offset + 4 * 9] = 4;
	p.data[p.components[3].offset + 4 * 17 + 3] = 0xff;
	for (int r = 0; r < 3; r++)
		p.stored[r * 32 + 9] = p.stored[r * 32 + 17] = NAN;
	check(state, &p, XFP_BF16);
	finish(&p);
}

static double e4m3(unsigned code)
{
	double value = (code & 127) == 127 ? (double)NAN
		       : code & 120        ? ldexp(8 + (code & 7), (int)(code >> 3 & 15) - 10)
					   : ldexp(code & 7, -9);

	return code & 128 ? -value : value;
}

/* Components of the wrong size. */
static void refuse_other_sizes(struct packed *p)
{
	struct xfp_packed_source source = {
		.recipe = &p->recipe, .files = &p->file, .identified = true, .dtype = XFP_BF16, .tensor = "the.tensor"
	};
	struct xfp_decoder *decoder = NULL;

	for (uint32_t i = 0; i < p->part.component_count; i++)
		for (int more = 0; more < 2; more++) {
			uint64_t was = p->components[i].bytes;

			p->components[i].bytes += more ? 4 : (uint64_t)-4;
			assert_int_equal(xfp_decoder_open(&source, &decoder, &err), XFP_BAD_INPUT);
			p->components[i].bytes = was;
		}
}

static void nvfp4(void **state)
{
	static const double values[8] = { 0, .5, 1, 1.5, 2, 3, 4, 6 };
	/* 3 divided by the first scale is a tie in bf16; 3 times its inverse is not. */
	static const float globals[] = { 0x1.381382p-8f, 2688, 3e-5f };
	unsigned char *codes, *scales, *global;
	struct packed p;

	for (int divides = 0; divides < 2; divides++)
		for (int all = 0; all < 2; all++) {
			uint64_t rows = 24, cols = 176;

			begin(&p, XFP_CODEC_NVFP4, rows, cols);
			codes = put(&p, XFP_COMPONENT_CODES, XFP_U8, rows * cols / 2);
			scales = put(&p, XFP_COMPONENT_SCALES, XFP_F8_E4M3, rows * cols / 16);
			global = put(&p, XFP_COMPONENT_GLOBAL, XFP_F32, all ? 4 : 12);
			memcpy(global, globals, all ? 4 : 12);
			p.part.parameters[XFP_NVFP4_MATRIX_ROWS] = all ? 24 : 8;
			p.part.parameters[XFP_NVFP4_DIVIDES] = (uint64_t)divides;
			for (uint64_t i = 0; i < rows * cols; i++) {
				unsigned code = (unsigned)(i * 11 + i / 16) & 15;
				float g = globals[all ? 0 : i / cols / 8];
				float scale = (float)e4m3(scales[i / 16] = (unsigned char)(i / 16));

				put_bits(codes, i * 4, 4, code);
				scale = divides ? scale / g : scale * g;
				p.stored[i] = values[code & 7] * scale * (code & 8 ? -1 : 1);
			}
			check(state, &p, XFP_BF16);
			refuse_other_sizes(&p);
			finish(&p);
		}
}

/* Fast conversion equals conversion one by one, including the sign of 0: numbers around every rounding case, of every
 * exponent, and NaN. */
static void stored(void **state)
{
	static const uint32_t low[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xffff };
	enum { LOW = sizeof low / sizeof *low };
	float values[LOW];
	uint16_t halves[LOW], bf16s[LOW];

	(void)state;
	for (uint32_t high = 0; high < 65536; high++) {
		for (int i = 0; i < LOW; i++)
			values[i] = xfp_bits_to_float(high << 16 | low[i]);
		xfp_store_decoded(XFP_F16, values, LOW, (unsigned char *)halves);
		xfp_store_decoded(XFP_BF16, values, LOW, (unsigned char *)bf16s);
		for (int i = 0; i < LOW; i++) {
			assert_int_equal(halves[i], xfp_float_to_half(values[i]) | (high & 0x8000));
			assert_int_equal(bf16s[i], xfp_float_to_bf16(values[i]));
		}
	}
}

static void refused(void **state)
{
	const struct shape shape = { XFP_INT_WORDS, 3, 24, 40, 1, 8, XFP_BF16, ZERO_WORDS, true };
	struct xfp_packed_source source = { .identified = true, .dtype = XFP_BF16, .tensor = "the.tensor" };
	struct xfp_decoder *decoder = NULL;
	struct packed p;

	make_int(&p, &shape);
	write_out(state, &p);
	source.recipe = &p.recipe;
	source.files = &p.file;
	for (int i = 0; i < 12; i++) {
		struct xfp_recipe_part part = p.part;
		struct xfp_component was[4];

		memcpy(was, p.components, sizeof was);
		switch (i) {
		case 0:
			p.part.parameters[XFP_INT_BITS] = 0;
			break;
		case 1:
			p.part.parameters[XFP_INT_BITS] = 9;
			break;
		case 2:
			p.part.parameters[XFP_INT_PACKING] = XFP_INT_PACKINGS;
			break;
		case 3:
			p.part.parameters[XFP_INT_PACKING] = XFP_INT_BYTES;
			break;
		case 4:
			p.part.parameters[XFP_INT_BLOCK_COLS] = 0;
			break;
		case 5:
			p.part.parameters[XFP_INT_BLOCK_ROWS] = 24;
			break;
		case 6:
		case 7:
		case 8:
		case 9:
			p.components[i - 6].bytes -= 4;
			break;
		case 10:
			p.components[2].dtype = XFP_U8;
			break;
		case 11: /* packed zeros of blocks with more than one row */
			p.part.parameters[XFP_INT_BLOCK_ROWS] = 24;
			p.components[1].bytes /= 24;
			break;
		}
		if (xfp_decoder_open(&source, &decoder, &err) != XFP_BAD_INPUT || !strstr(err.text, "the.tensor"))
			fail_msg("%d: %s", i, err.text);
		p.part = part;
		memcpy(p.components, was, sizeof was);
	}
	source.dtype = XFP_F32;
	assert_int_equal(xfp_decoder_open(&source, &decoder, &err), XFP_BAD_INPUT);
	source.dtype = XFP_F16;
	assert_int_equal(xfp_decoder_open(&source, &decoder, &err), XFP_OK);
	xfp_decoder_close(decoder);
	finish(&p);
}

PROGRAM("test_packed_ints")
{
	const struct CMUnitTest tests[] = { scratch_test(in_bytes),      scratch_test(in_words),
					    scratch_test(no_such_group), cmocka_unit_test(stored),
					    scratch_test(nvfp4),         scratch_test(refused) };

	return cmocka_run_group_tests_name("packed_ints", tests, NULL, NULL);
}
