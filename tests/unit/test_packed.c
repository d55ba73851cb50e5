/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed tensors: codecs compared with the definitions of their formats, in double; and every way to read a matrix or a
 * whole tensor, compared with the elements that its recipe defines.
 */
#include <math.h>

#include "base/system/filesystem.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/packed/decoder.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

static void ok(enum xfp_status status)
{
	if (status)
		fail_msg("%d: %s", (int)status, err.text);
}

static void expect(enum xfp_status status, enum xfp_status expected, const char *part)
{
	if (status != expected || !strstr(err.text, part))
		fail_msg("status %d instead of %d, \"%s\" without \"%s\"", (int)status, (int)expected, err.text, part);
}

/* ---- numbers, by their definitions --------------------------------------------------------------- */

static double minifloat(unsigned code, int exponent_bits, int mantissa_bits, int bias)
{
	int e = code >> mantissa_bits & ((1 << exponent_bits) - 1), m = code & ((1 << mantissa_bits) - 1);
	double value = e ? ldexp(1 + ldexp(m, -mantissa_bits), e - bias) : ldexp(m, 1 - bias - mantissa_bits);

	return code >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

static double e4m3(unsigned code)
{
	return (code & 127) == 127 ? NAN : minifloat(code, 4, 3, 7);
}

static double e5m2(unsigned code)
{
	return (code & 124) != 124 ? minifloat(code, 5, 2, 15) : code & 3 ? NAN : code & 128 ? -INFINITY : INFINITY;
}

/* The bf16 nearest to a product in f32; ties to even. */
static uint16_t rounded(double product)
{
	float value = (float)product, down, up;
	double below, above;
	uint32_t bits;

	if (isnan(value))
		return 0x7fc0;
	memcpy(&bits, &value, sizeof bits);
	if (!(bits & 0xffff) || isinf(value))
		return (uint16_t)(bits >> 16);
	bits &= 0xffff0000;
	memcpy(&down, &bits, sizeof down);
	bits += 0x10000;
	memcpy(&up, &bits, sizeof up);
	if (isinf(up)) /* the position of infinity in the sequence of numbers */
		return (uint16_t)((fabs((double)value) < ldexp(511.0 / 256, 127) ? bits - 0x10000 : bits) >> 16);
	below = fabs((double)value - down);
	above = fabs((double)value - up);
	/* `bits` is the upper one; for ties, the even one counts. */
	if (below < above || (below == above && bits >> 16 & 1))
		bits -= 0x10000;
	return (uint16_t)(bits >> 16);
}

static bool same(uint16_t a, uint16_t b)
{
	bool nan = (a & 0x7fff) > 0x7f80 && (b & 0x7fff) > 0x7f80;

	return nan || a == b;
}

/* ---- a packed tensor in a file ------------------------------------------------------------------- */

struct packed {
	struct xfp_component components[2][2];
	struct xfp_recipe_part parts[2];
	struct xfp_recipe recipe;
	struct xfp_source_file files[2];
	struct xfp_identity identity;
	uint16_t *stored; /* [rows, cols] expected elements */
	uint64_t rows, cols;
};

static struct xfp_matrix_source source_of(struct packed *p)
{
	return (struct xfp_matrix_source){ .path = p->files[0].path,
					   .tensor = "the.tensor",
					   .dtype = XFP_BF16,
					   .bytes = p->rows * p->cols * 2,
					   .identity = &p->identity,
					   .recipe = &p->recipe,
					   .files = p->files };
}

static void finish(struct packed *p)
{
	free(p->stored);
	free(p->files[0].path);
	free(p->files[1].path);
}

/* Codes go to the first file after `skip` bytes, scales to the second after as many. */
static void put(void **state, struct packed *p, const void *codes, size_t code_bytes, const void *scales,
		size_t scale_bytes, enum xfp_dtype code_dtype, enum xfp_dtype scale_dtype)
{
	static const char *const names[2] = { "codes", "scales" };
	const void *from[2] = { codes, scales };
	size_t bytes[2] = { code_bytes, scale_bytes }, skip = 5;
	enum xfp_dtype dtypes[2] = { code_dtype, scale_dtype };

	for (int i = 0; i < 2; i++) {
		unsigned char *data = malloc(skip + bytes[i]);
		struct stat st;

		memset(data, 0xee, skip);
		memcpy(data + skip, from[i], bytes[i]);
		scratch_write(state, names[i], data, skip + bytes[i]);
		free(data);
		p->files[i] = (struct xfp_source_file){ .path = scratch_path(state, names[i]) };
		assert_int_equal(stat(p->files[i].path, &st), 0);
		p->files[i].identity = xfp_identity_at(p->files[i].path, &st);
		p->components[0][i] =
			(struct xfp_component){ XFP_COMPONENT_CODES + i, dtypes[i], (uint32_t)i, skip, bytes[i] };
	}
	p->identity = p->files[0].identity;
	p->parts[0].components = p->components[0];
	p->parts[0].component_count = 2;
	p->parts[0].version = 1;
	p->parts[0].rows = p->rows;
	p->parts[0].cols = p->cols;
	p->recipe = (struct xfp_recipe){ .parts = p->parts, .part_count = 1, .rows = p->rows, .cols = p->cols };
}

static uint64_t up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* A stack of matrices of fp8 in blocks. */
static void make_fp8(void **state, struct packed *p, uint64_t stack, uint64_t rows, uint64_t cols, uint64_t block_rows,
		     uint64_t block_cols, enum xfp_dtype codes_dtype, enum xfp_dtype scale_dtype)
{
	uint64_t seed = rows * 31 + cols, lines = up(rows, block_rows), across = up(cols, block_cols);
	size_t size = xfp_dtype_bits(scale_dtype) / 8;
	uint8_t *codes = malloc(stack * rows * cols), *scales = malloc(stack * lines * across * size);
	double *value = malloc(stack * lines * across * sizeof *value);

	*p = (struct packed){ .rows = stack * rows, .cols = cols };
	p->stored = malloc(p->rows * cols * sizeof *p->stored);
	for (uint64_t i = 0; i < stack * lines * across; i++) {
		float scale = ldexpf(1 + (float)(test_random(&seed) % 0x800000) / 0x800000, (int)(i % 40) - 30);
		uint32_t bits;
		uint8_t exponent = (uint8_t)(100 + i % 40);

		memcpy(&bits, &scale, sizeof bits);
		switch (scale_dtype) {
		case XFP_F32:
			memcpy(scales + i * 4, &bits, 4);
			break;
		case XFP_BF16:
			bits &= 0xffff0000;
			memcpy(scales + i * 2, (char *)&bits + 2, 2);
			memcpy(&scale, &bits, 4);
			break;
		case XFP_F16:
			scale = (float)minifloat(0x1234u + (unsigned)i, 5, 10, 15);
			memcpy(scales + i * 2, &(uint16_t){ (uint16_t)(0x1234u + i) }, 2);
			break;
		default:
			scales[i] = exponent;
			scale = ldexpf(1, exponent - 127);
		}
		value[i] = scale;
	}
	for (uint64_t r = 0; r < p->rows; r++)
		for (uint64_t c = 0; c < cols; c++) {
			unsigned code = (unsigned)(r * cols + c) % 256 ^ (unsigned)(test_random(&seed) % 4);
			uint64_t at = (r / rows * lines + r % rows / block_rows) * across + c / block_cols;

			codes[r * cols + c] = (uint8_t)code;
			p->stored[r * cols + c] =
				rounded((codes_dtype == XFP_F8_E4M3 ? e4m3(code) : e5m2(code)) * value[at]);
		}
	put(state, p, codes, stack * rows * cols, scales, stack * lines * across * size, codes_dtype, scale_dtype);
	p->parts[0].codec = XFP_CODEC_FP8;
	p->parts[0].parameters[0] = rows;
	p->parts[0].parameters[1] = block_rows;
	p->parts[0].parameters[2] = block_cols;
	free(codes);
	free(scales);
	free(value);
}

static void make_mxfp4(void **state, struct packed *p, uint64_t rows, uint64_t cols)
{
	static const double values[8] = { 0, .5, 1, 1.5, 2, 3, 4, 6 };
	uint8_t *codes = malloc(rows * cols / 2), *scales = malloc(rows * cols / 32);
	uint64_t seed = rows + cols;

	*p = (struct packed){ .rows = rows, .cols = cols };
	p->stored = malloc(rows * cols * sizeof *p->stored);
	/* All scales, those at both ends first. */
	for (uint64_t i = 0; i < rows * cols / 32; i++)
		scales[i] = (uint8_t)(i % 2 ? 255 - i / 2 : i / 2);
	for (uint64_t i = 0; i < rows * cols; i++) {
		unsigned code = (unsigned)(i ^ test_random(&seed) % 3) & 15;
		double value = values[code & 7] * ldexp(1, scales[i / 32] - 127);

		codes[i / 2] = (uint8_t)(i % 2 ? codes[i / 2] | code << 4 : code);
		p->stored[i] = rounded(scales[i / 32] == 255 ? NAN : code & 8 ? -value : value);
	}
	put(state, p, codes, rows * cols / 2, scales, rows * cols / 32, XFP_U8, XFP_U8);
	p->parts[0].codec = XFP_CODEC_MXFP4;
	free(codes);
	free(scales);
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* Element n of the tensor, according to the row order of the recipe. */
static uint16_t element(const struct packed *p, uint64_t n)
{
	const struct xfp_recipe *r = &p->recipe;
	uint64_t transposed = r->transposed, row, col;

	if (transposed) {
		row = n / (transposed * p->cols) * transposed + n % transposed;
		col = n / transposed % p->cols;
	} else {
		row = n / p->cols;
		col = n % p->cols;
	}
	if (r->outer) {
		uint64_t both = r->outer * r->inner, i = row % both / r->inner, j = row % r->inner;

		row = row / both * both + j * r->outer + i;
	}
	return p->stored[row * p->cols + col];
}

static void check_view(struct packed *p, struct xfp_view view)
{
	struct xfp_matrix_source source = source_of(p);
	struct xfp_matrix_reader *reader = NULL;
	uint16_t *got = malloc(view.rows * view.cols * sizeof *got + 1);
	uint64_t steps[] = { 1, 3, view.rows };

	source.view = view;
	ok(xfp_matrix_open(&source, &reader, &err));
	for (size_t s = 0; s < 3; s++) {
		for (uint64_t first = 0; first < view.rows; first += steps[s]) {
			uint64_t count = view.rows - first < steps[s] ? view.rows - first : steps[s];

			ok(xfp_matrix_read(reader, first, count, got + first * view.cols, &err));
		}
		for (uint64_t r = 0; r < view.rows; r++)
			for (uint64_t c = 0; c < view.cols; c++) {
				uint16_t want = element(p, view.base + r * view.row_stride + c * view.col_stride);

				if (!same(got[r * view.cols + c], want))
					fail_msg("steps of %d: (%d, %d) is %04x, not %04x", (int)steps[s], (int)r,
						 (int)c, got[r * view.cols + c], want);
			}
	}
	xfp_matrix_close(reader);
	free(got);
}

/* Compare the whole tensor, read in pieces of odd sizes. */
static void check_elements(struct packed *p)
{
	struct xfp_matrix_source source = source_of(p);
	struct xfp_element_reader *reader = NULL;
	uint16_t *got = malloc(source.bytes);
	uint64_t sizes[] = { source.bytes, 7, p->cols * 2, 1001 };

	ok(xfp_elements_open(&source, &reader, &err));
	for (size_t s = 0; s < 4; s++) {
		memset(got, 0xee, source.bytes);
		for (uint64_t at = 0; at < source.bytes; at += sizes[s])
			ok(xfp_elements_read(reader, at, source.bytes - at < sizes[s] ? source.bytes - at : sizes[s],
					     (char *)got + at, &err));
		for (uint64_t i = 0; i < p->rows * p->cols; i++)
			if (!same(got[i], element(p, i)))
				fail_msg("pieces of %d: %d", (int)sizes[s], (int)i);
	}
	assert_int_equal(xfp_elements_read(reader, source.bytes - 1, 2, got, &err), XFP_FAILED);
	xfp_elements_close(reader);
	free(got);
}

static void check_all(struct packed *p, uint64_t matrix_rows)
{
	uint64_t stack = p->rows / matrix_rows, cols = p->cols, size = matrix_rows * cols;

	check_elements(p);
	for (uint64_t e = 0; e < stack; e++) {
		if (p->recipe.transposed) {
			check_view(p, (struct xfp_view){ e * size, matrix_rows, cols, 1, matrix_rows });
			check_view(p, (struct xfp_view){ e * size, cols, matrix_rows, matrix_rows, 1 });
			check_view(p, (struct xfp_view){ e * size + 1, matrix_rows / 2, cols, 2, matrix_rows });
			continue;
		}
		check_view(p, (struct xfp_view){ e * size, matrix_rows, cols, cols, 1 });
		check_view(p, (struct xfp_view){ e * size, cols, matrix_rows, 1, cols });
		check_view(p, (struct xfp_view){ e * size + cols, matrix_rows / 2, cols, 2 * cols, 1 });
		check_view(p, (struct xfp_view){ e * size + 3, matrix_rows, cols / 3, cols, 1 });
		check_view(p, (struct xfp_view){ e * size + 1, matrix_rows, (cols - 1) / 2, cols, 2 });
		check_view(p, (struct xfp_view){ e * size + 1, (cols - 1) / 2, matrix_rows, 2, cols });
	}
	check_view(p, (struct xfp_view){ 0, 1, 1, 0, 0 });
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void fp8(void **state)
{
	static const struct {
		uint64_t stack, rows, cols, block_rows, block_cols;
		enum xfp_dtype codes, scales;
	} cases[] = {
		{ 1, 300, 260, 128, 128, XFP_F8_E4M3, XFP_F32 },   { 1, 130, 140, 128, 128, XFP_F8_E4M3, XFP_BF16 },
		{ 3, 20, 33, 8, 16, XFP_F8_E4M3, XFP_F32 },        { 2, 10, 257, 1, 257, XFP_F8_E4M3, XFP_F32 },
		{ 2, 10, 30, 10, 1, XFP_F8_E5M2, XFP_F16 },        { 1, 64, 48, 64, 48, XFP_F8_E5M2, XFP_F32 },
		{ 4, 6, 1000, 6, 1000, XFP_F8_E4M3, XFP_F8_E8M0 }, { 1, 3, 600, 1, 600, XFP_F8_E4M3, XFP_F32 },
	};
	struct packed p;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make_fp8(state, &p, cases[i].stack, cases[i].rows, cases[i].cols, cases[i].block_rows,
			 cases[i].block_cols, cases[i].codes, cases[i].scales);
		check_all(&p, cases[i].rows);
		finish(&p);
	}
}

static void mxfp4(void **state)
{
	struct packed p;

	make_mxfp4(state, &p, 24, 352);
	check_all(&p, 8);
	p.recipe.transposed = 8;
	check_all(&p, 8);
	p.recipe.transposed = 24;
	check_all(&p, 24);
	finish(&p);
}

/* More than a piece, so that rows are decoded in several pieces. */
static void large(void **state)
{
	struct packed p;

	make_fp8(state, &p, 1, 1500, 1100, 128, 128, XFP_F8_E4M3, XFP_F32);
	check_elements(&p);
	check_view(&p, (struct xfp_view){ 0, 1500, 1100, 1100, 1 });
	check_view(&p, (struct xfp_view){ 0, 1100, 1500, 1, 1100 });
	assert_in_range(xfp_decoder_bytes(&p.recipe), 1 << 20, (1 << 20) + 2000);
	finish(&p);
}

/* Joined and permuted parts, plain and packed. */
static void parts(void **state)
{
	struct xfp_matrix_source source;
	struct packed p;
	uint16_t *was;

	make_fp8(state, &p, 1, 24, 40, 8, 8, XFP_F8_E4M3, XFP_F32);
	p.recipe.outer = 2;
	p.recipe.inner = 6;
	check_all(&p, 24);
	finish(&p);

	/* Two halves, one below the other. */
	make_fp8(state, &p, 2, 24, 40, 8, 8, XFP_F8_E4M3, XFP_F32);
	p.parts[1] = p.parts[0];
	p.parts[0].rows = p.parts[1].rows = 24;
	memcpy(p.components[1], p.components[0], sizeof p.components[1]);
	p.parts[1].components = p.components[1];
	for (int i = 0; i < 2; i++) {
		p.components[0][i].bytes /= 2;
		p.components[1][i].bytes /= 2;
		p.components[1][i].offset += p.components[1][i].bytes;
	}
	p.recipe.part_count = 2;
	check_all(&p, 24);
	check_view(&p, (struct xfp_view){ 0, 48, 40, 40, 1 });
	check_view(&p, (struct xfp_view){ 0, 40, 48, 1, 40 });
	p.recipe.outer = 4;
	p.recipe.inner = 3;
	check_all(&p, 24);
	p.recipe.outer = 0;

	/* The same halves side by side: another matrix of the same bytes. */
	p.recipe.beside = true;
	p.recipe.rows = p.rows = 24;
	p.recipe.cols = p.cols = 80;
	was = malloc(48 * 40 * sizeof *was);
	memcpy(was, p.stored, 48 * 40 * sizeof *was);
	for (int r = 0; r < 24; r++)
		for (int c = 0; c < 80; c++)
			p.stored[r * 80 + c] = was[(c / 40 * 24 + r) * 40 + c % 40];
	free(was);
	check_all(&p, 24);
	source = source_of(&p);
	source.view = (struct xfp_view){ 0, 24, 80, 80, 1 };
	p.recipe.cols = 120;
	expect(xfp_matrix_open(&source, &(struct xfp_matrix_reader *){ NULL }, &err), XFP_BAD_INPUT, "the.tensor");
	finish(&p);
}

/* Plain parts of any dtype. */
/* Unchanged, in another order, and as parts of a matrix with more columns. */
static void plain(void **state)
{
	uint16_t wide[12 * 20] = { 0 };
	struct packed p;

	make_fp8(state, &p, 1, 12, 16, 1, 16, XFP_F8_E4M3, XFP_F32);
	finish(&p);
	p.stored = malloc(12 * 16 * 2);
	for (int i = 0; i < 12 * 16; i++)
		p.stored[i] = (uint16_t)(i * 191);
	put(state, &p, p.stored, 12 * 16 * 2, "", 0, XFP_BF16, XFP_U8);
	p.parts[0].codec = XFP_CODEC_PLAIN;
	p.parts[0].parameters[0] = 0;
	p.parts[0].component_count = 1;
	p.recipe.outer = 3;
	p.recipe.inner = 2;
	check_all(&p, 12);
	for (int i = 0; i < 2; i++)
		free(p.files[i].path);
	for (int row = 0; row < 12; row++)
		memcpy(wide + row * 20, p.stored + row * 16, 32);
	put(state, &p, wide, sizeof wide - 8, "", 0, XFP_BF16, XFP_U8);
	p.parts[0].parameters[0] = 20;
	check_all(&p, 12);
	finish(&p);
}

static void refused(void **state)
{
	/* Neither rows nor columns are contiguous in stored rows, or both are in the same direction; also by one
	 * element. */
	static const struct {
		struct xfp_view view;
		uint64_t transposed;
	} crossing[] = {
		{ { 0, 20, 30, 41, 1 }, 0 }, { { 1, 23, 40, 40, 1 }, 0 }, { { 0, 4, 5, 2, 1 }, 0 },
		{ { 0, 3, 4, 80, 40 }, 0 },  { { 1, 39, 8, 8, 1 }, 8 },   { { 8, 40, 8, 8, 1 }, 8 },
	};
	struct xfp_matrix_source source;
	struct xfp_matrix_reader *reader = NULL;
	struct packed p;

	make_fp8(state, &p, 1, 24, 40, 8, 8, XFP_F8_E4M3, XFP_F32);
	source = source_of(&p);
	source.view = (struct xfp_view){ 0, 24, 40, 40, 1 };
	for (int i = 0; i < 9; i++) {
		struct packed was = p;

		switch (i) {
		case 0:
			p.parts[0].version++;
			break;
		case 1:
			p.parts[0].parameters[1] = 0;
			break;
		case 2:
			p.parts[0].parameters[0] = 23;
			break;
		case 3:
			p.components[0][1].bytes -= 4;
			break;
		case 4:
			p.components[0][0].bytes--;
			break;
		case 5:
			p.parts[0].component_count = 1;
			break;
		case 6:
			p.components[0][1].dtype = XFP_I32;
			break;
		case 7:
			p.recipe.outer = 5;
			p.recipe.inner = 5;
			break;
		case 8:
			p.components[0][1].offset = UINT64_MAX - 3;
			break;
		}
		expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "the.tensor");
		p = was;
	}
	for (size_t i = 0; i < sizeof crossing / sizeof *crossing; i++) {
		source.view = crossing[i].view;
		p.recipe.transposed = crossing[i].transposed;
		expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "crosses packed rows");
	}
	/* Rows transposed in parts of five are not 24; and a part must be as wide as the whole. */
	p.recipe.transposed = 5;
	source.view = (struct xfp_view){ 0, 40, 5, 5, 1 };
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "do not make up its rows");
	p.recipe.transposed = 0;
	p.recipe.cols = 20;
	source.bytes /= 2;
	source.view = (struct xfp_view){ 0, 24, 20, 20, 1 };
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "do not fit together");
	p.recipe.cols = 40;
	source.bytes *= 2;
	source.view = (struct xfp_view){ 0, 24, 40, 40, 1 };
	source.bytes += 2;
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "the size of its stored rows");
	source.bytes -= 2;
	ok(xfp_matrix_open(&source, &reader, &err));
	xfp_matrix_close(reader);

	/* A change of either file is detected, and so is a short file. */
	p.files[1].identity.mtime_ns++;
	expect(xfp_matrix_open(&source, &reader, &err), XFP_FAILED, "scales: changed while it was being converted");
	source.identity = NULL;
	ok(xfp_matrix_open(&source, &reader, &err));
	assert_int_equal(truncate(p.files[1].path, 20), 0);
	expect(xfp_matrix_read(reader, 0, 24, (uint16_t[24 * 40]){ 0 }, &err), XFP_BAD_INPUT, "the.tensor");
	xfp_matrix_close(reader);
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT,
	       "scales: tensor the.tensor: the file has become");
	unlink(p.files[1].path);
	expect(xfp_matrix_open(&source, &reader, &err), XFP_FAILED, "scales");
	finish(&p);
}

PROGRAM("test_packed")
{
	const struct CMUnitTest tests[] = { scratch_test(fp8),   scratch_test(mxfp4), scratch_test(large),
					    scratch_test(parts), scratch_test(plain), scratch_test(refused) };

	return cmocka_run_group_tests_name("packed", tests, NULL, NULL);
}
