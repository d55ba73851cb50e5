/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWQ's and GPTQ's codecs: bits are placed one by one according to the formats, and results are compared with (code -
 * zero) * scale in double, rounded once.
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

/* ---- a matrix ------------------------------------------------------------------------------------ */

struct matrix {
	enum xfp_codec codec;
	unsigned bits;
	uint64_t rows, cols, group, groups, lines; /* lines: of groups, padded */
	bool less_one;
	enum xfp_dtype scale_dtype;
	uint32_t *of; /* [cols] groups */
	uint8_t *code, *zero;
	uint16_t *scale;
	uint16_t *expected; /* [rows, cols] */

	unsigned char *bytes[XFP_COMPONENTS];
	uint64_t size[XFP_COMPONENTS];
	struct xfp_component components[4];
	struct xfp_recipe_part part;
	struct xfp_recipe recipe;
	struct xfp_source_file file;
};

static double half_value(unsigned half)
{
	int e = half >> 10 & 31, m = half & 1023;
	double value = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return half & 0x8000 ? -value : value;
}

/* Round to 11 bits, or 8 for bf16; ties to even. */
static uint16_t rounded(double value, enum xfp_dtype dtype)
{
	int exponent, bits = dtype == XFP_F16 ? 11 : 8, min = dtype == XFP_F16 ? -14 : -126;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double m;

	frexp(value, &exponent);
	exponent = value == 0 || exponent - 1 < min ? min : exponent - 1;
	m = nearbyint(ldexp(fabs(value), bits - 1 - exponent));
	/* A mantissa that becomes one bit longer carries into the exponent. */
	return (uint16_t)(sign + ((exponent - min) << (bits - 1)) + (int)m);
}

static double scale_value(const struct matrix *m, uint16_t stored)
{
	float value;
	uint32_t bits = (uint32_t)stored << 16;

	if (m->scale_dtype == XFP_F16)
		return half_value(stored);
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Set bit number `bit` of a component, counted from the lowest of the first byte. */
static void set(struct matrix *m, enum xfp_component_role role, uint64_t bit, unsigned value)
{
	assert_true(bit / 8 < m->size[role]);
	m->bytes[role][bit / 8] = (unsigned char)(m->bytes[role][bit / 8] | (value & 1) << bit % 8);
}

static void set_bits(struct matrix *m, enum xfp_component_role role, uint64_t bit, unsigned bits, unsigned value)
{
	for (unsigned i = 0; i < bits; i++)
		set(m, role, bit + i, value >> i);
}

static void room(struct matrix *m, enum xfp_component_role role, uint64_t size)
{
	m->size[role] = size;
	m->bytes[role] = calloc(size, 1);
}

static void put_scale(struct matrix *m, enum xfp_component_role role, uint64_t at, uint16_t value)
{
	if (m->scale_dtype == XFP_F32) { /* a bf16 value, as f32 */
		memset(m->bytes[role] + at * 4, 0, 2);
		memcpy(m->bytes[role] + at * 4 + 2, &value, 2);
	} else {
		memcpy(m->bytes[role] + at * 2, &value, 2);
	}
}

/* GPTQ: streams of bits down columns of codes, and along rows of zeros. */
static void pack_gptq(struct matrix *m)
{
	for (uint64_t r = 0; r < m->rows; r++)
		for (uint64_t c = 0; c < m->cols; c++)
			for (unsigned b = 0; b < m->bits; b++) {
				uint64_t at = c * m->bits + b;

				set(m, XFP_COMPONENT_CODES, (at / 32 * m->rows + r) * 32 + at % 32,
				    m->code[r * m->cols + c] >> b);
			}
	for (uint64_t g = 0; g < m->groups; g++)
		for (uint64_t r = 0; r < m->rows; r++) {
			unsigned zero = m->zero[g * m->rows + r] + (m->less_one ? (1u << m->bits) - 1 : 0);

			set_bits(m, XFP_COMPONENT_ZEROS, (g * m->rows + r) * m->bits, m->bits, zero);
			put_scale(m, XFP_COMPONENT_SCALES, g * m->rows + r, m->scale[g * m->rows + r]);
		}
}

static void pack_awq(struct matrix *m)
{
	static const unsigned order[8] = { 0, 2, 4, 6, 1, 3, 5, 7 };

	for (unsigned i = 0; i < 8; i++)
		for (uint64_t w = 0; w < m->rows / 8; w++) {
			uint64_t r = w * 8 + order[i];

			for (uint64_t c = 0; c < m->cols; c++)
				set_bits(m, XFP_COMPONENT_CODES, (c * m->rows / 8 + w) * 32 + i * 4, 4,
					 m->code[r * m->cols + c]);
			for (uint64_t g = 0; g < m->groups; g++)
				set_bits(m, XFP_COMPONENT_ZEROS, (g * m->rows / 8 + w) * 32 + i * 4, 4,
					 m->zero[g * m->rows + r]);
		}
	for (uint64_t i = 0; i < m->groups * m->rows; i++)
		put_scale(m, XFP_COMPONENT_SCALES, i, m->scale[i]);
}

static void pack_gemv(struct matrix *m)
{
	for (uint64_t i = 0; i < m->rows * m->cols; i++)
		set_bits(m, XFP_COMPONENT_CODES, i * 4, 4, m->code[i]);
	for (uint64_t r = 0; r < m->rows; r++)
		for (uint64_t g = 0; g < m->lines; g++) {
			bool there = g < m->groups; /* missing groups contain values that must not be read */

			set_bits(m, XFP_COMPONENT_ZEROS, (r * m->lines + g) * 4, 4,
				 there ? m->zero[g * m->rows + r] : 9);
			put_scale(m, XFP_COMPONENT_SCALES, r * m->lines + g,
				  there ? m->scale[g * m->rows + r] : 0x7e00);
		}
}

/* AWQ's packer: combine pairs from each quarter of 32, even before odd, then four rows for each 64; scale zeros. */
static void pack_fast(struct matrix *m)
{
	for (uint64_t r = 0; r < m->rows; r++)
		for (uint64_t c = 0; c < m->cols; c++) {
			uint64_t in = c % 32, quarter = in / 8, pair = in % 8 / 2, half = in % 2;
			uint64_t first = pair * 8 + quarter * 2 + half;                  /* [4, 4, 2] turned */
			uint64_t second = first / 8 * 8 + first % 2 * 4 + first % 8 / 2; /* [4, 2] turned */
			uint64_t t = c % 64 / 32 * 32 + second;
			uint64_t line = r / 4 * m->cols / 64 + c / 64;

			set_bits(m, XFP_COMPONENT_CODES, ((line * 4 + r % 4) * 64 + t) * 4, 4,
				 m->code[r * m->cols + c]);
		}
	for (uint64_t i = 0; i < m->lines * m->rows; i++) {
		bool there = i < m->groups * m->rows;
		double value = there ? -m->zero[i] * scale_value(m, m->scale[i]) : 0;

		put_scale(m, XFP_COMPONENT_SCALES, i, there ? m->scale[i] : 0x7e00);
		put_scale(m, XFP_COMPONENT_ZEROS, i, there ? rounded(value, m->scale_dtype) : 0x7e00);
	}
}

static void expect_fast(struct matrix *m)
{
	for (uint64_t i = 0; i < m->rows * m->cols; i++) {
		uint64_t at = i % m->cols / m->group * m->rows + i / m->cols;
		double scale = scale_value(m, m->scale[at]);
		double zero = scale_value(m, rounded(-m->zero[at] * scale, m->scale_dtype));

		m->expected[i] = rounded(m->code[i] * scale + zero, m->scale_dtype);
	}
}

static void make_values(struct matrix *m)
{
	uint64_t seed = m->rows * 7 + m->cols + m->bits;
	unsigned max = (1u << m->bits) - 1;
	enum xfp_dtype dtype = m->scale_dtype == XFP_F16 ? XFP_F16 : XFP_BF16;

	m->code = malloc(m->rows * m->cols);
	m->expected = malloc(m->rows * m->cols * 2);
	m->zero = malloc(m->groups * m->rows);
	m->scale = malloc(m->groups * m->rows * 2);
	for (uint64_t i = 0; i < m->groups * m->rows; i++) {
		m->zero[i] = (uint8_t)(test_random(&seed) >> 20 & max);
		/* From subnormals to magnitudes of weights; one in eight is negative, one is 0. */
		m->scale[i] = (uint16_t)((m->scale_dtype == XFP_F16 ? 0 : 0x3800) + test_random(&seed) % 0x800 +
					 (i % 8 == 3 ? 0x8000 : 0));
		m->scale[i] = i % 64 == 5 ? 0 : m->scale[i];
	}
	for (uint64_t i = 0; i < m->rows * m->cols; i++) {
		uint64_t at = m->of[i % m->cols] * m->rows + i / m->cols;

		m->code[i] = (uint8_t)(test_random(&seed) >> 20 & max);
		m->expected[i] = rounded((m->code[i] - m->zero[at]) * scale_value(m, m->scale[at]), dtype);
	}
}

/* Each group as often as if in order, the columns shuffled. */
static void shuffle(struct matrix *m)
{
	uint64_t seed = m->cols;

	for (uint64_t i = m->cols - 1; i; i--) {
		uint64_t j = test_random(&seed) % (i + 1);
		uint32_t was = m->of[i];

		m->of[i] = m->of[j];
		m->of[j] = was;
	}
}

static void finish(struct matrix *m)
{
	for (int i = 0; i < XFP_COMPONENTS; i++)
		free(m->bytes[i]);
	free(m->of);
	free(m->code);
	free(m->zero);
	free(m->scale);
	free(m->expected);
	free(m->file.path);
}

/* Write all components to a file, after unrelated bytes. */
static void store(void **state, struct matrix *m)
{
	static const enum xfp_component_role roles[] = { XFP_COMPONENT_CODES, XFP_COMPONENT_SCALES, XFP_COMPONENT_ZEROS,
							 XFP_COMPONENT_GROUPS };
	bool fast = m->codec == XFP_CODEC_AWQ_GEMV_FAST;
	unsigned char *data = calloc(1, 1 << 24);
	uint64_t at = 3;
	struct stat st;

	free(m->file.path);
	m->part.component_count = 0;
	for (size_t i = 0; i < 4; i++) {
		enum xfp_dtype words = fast ? XFP_I16 : XFP_I32;

		if (!m->bytes[roles[i]])
			continue;
		words = roles[i] == XFP_COMPONENT_SCALES || (fast && roles[i] == XFP_COMPONENT_ZEROS) ? m->scale_dtype
												      : words;
		m->components[m->part.component_count++] =
			(struct xfp_component){ roles[i], words, 0, at, m->size[roles[i]] };
		memcpy(data + at, m->bytes[roles[i]], m->size[roles[i]]);
		at += m->size[roles[i]];
	}
	assert_true(at < 1 << 24);
	scratch_write(state, "packed", data, at);
	free(data);
	m->file = (struct xfp_source_file){ .path = scratch_path(state, "packed") };
	assert_int_equal(stat(m->file.path, &st), 0);
	m->file.identity = xfp_identity_at(m->file.path, &st);
	m->part.components = m->components;
	m->part.codec = m->codec;
	m->part.version = 1;
	m->part.rows = m->rows;
	m->part.cols = m->cols;
	m->recipe = (struct xfp_recipe){ .parts = &m->part, .part_count = 1, .rows = m->rows, .cols = m->cols };
}

static void make(void **state, struct matrix *m, bool shuffled)
{
	bool gptq = m->codec == XFP_CODEC_GPTQ;
	uint64_t scale = m->scale_dtype == XFP_F32 ? 4 : 2;

	m->groups = (m->cols + m->group - 1) / m->group;
	m->lines = m->lines ? m->lines : m->groups;
	m->of = malloc(m->cols * sizeof *m->of);
	for (uint64_t i = 0; i < m->cols; i++)
		m->of[i] = (uint32_t)(i / m->group);
	if (shuffled) {
		shuffle(m);
		room(m, XFP_COMPONENT_GROUPS, m->cols * 4);
		memcpy(m->bytes[XFP_COMPONENT_GROUPS], m->of, m->cols * 4);
	}
	make_values(m);
	room(m, XFP_COMPONENT_CODES, m->rows * m->cols * m->bits / 8);
	room(m, XFP_COMPONENT_SCALES, m->lines * m->rows * scale);
	room(m, XFP_COMPONENT_ZEROS,
	     m->codec == XFP_CODEC_AWQ_GEMV_FAST ? m->lines * m->rows * scale : m->lines * m->rows * m->bits / 8);
	m->part.parameters[0] = gptq ? m->bits : m->group;
	m->part.parameters[1] = gptq ? m->group : 0;
	m->part.parameters[2] = m->less_one;
	switch (m->codec) {
	case XFP_CODEC_GPTQ:
		pack_gptq(m);
		break;
	case XFP_CODEC_AWQ:
		pack_awq(m);
		break;
	case XFP_CODEC_AWQ_GEMV:
		pack_gemv(m);
		break;
	default:
		pack_fast(m);
		expect_fast(m);
	}
	store(state, m);
}

/* ---- reading ------------------------------------------------------------------------------------- */

static struct xfp_matrix_source source_of(const struct matrix *m)
{
	return (struct xfp_matrix_source){ .path = m->file.path,
					   .tensor = "the.tensor",
					   .dtype = m->scale_dtype == XFP_F16 ? XFP_F16 : XFP_BF16,
					   .bytes = m->rows * m->cols * 2,
					   .identity = &m->file.identity,
					   .recipe = &m->recipe,
					   .files = &m->file };
}

static void check_view(const struct matrix *m, struct xfp_view view, uint64_t some)
{
	struct xfp_matrix_source source = source_of(m);
	uint16_t *got = malloc(view.rows * view.cols * sizeof *got);
	struct xfp_matrix_reader *reader;

	source.view = view;
	ok(xfp_matrix_open(&source, &reader, &err));
	for (uint64_t first = 0; first < view.rows; first += some) {
		uint64_t count = view.rows - first < some ? view.rows - first : some;

		ok(xfp_matrix_read(reader, first, count, got + first * view.cols, &err));
	}
	for (uint64_t r = 0; r < view.rows; r++)
		for (uint64_t c = 0; c < view.cols; c++) {
			uint16_t want = m->expected[view.base + r * view.row_stride + c * view.col_stride];

			if (got[r * view.cols + c] != want)
				fail_msg("%s of %u bits, %d rows at a time: (%d, %d) is %04x, not %04x",
					 xfp_codec_name(m->codec), m->bits, (int)some, (int)r, (int)c,
					 got[r * view.cols + c], want);
		}
	xfp_matrix_close(reader);
	free(got);
}

static void check_all(const struct matrix *m)
{
	uint64_t rows = m->rows, cols = m->cols;

	check_view(m, (struct xfp_view){ 0, rows, cols, cols, 1 }, rows);
	check_view(m, (struct xfp_view){ 0, rows, cols, cols, 1 }, 7);
	check_view(m, (struct xfp_view){ 0, cols, rows, 1, cols }, 5);
	check_view(m, (struct xfp_view){ cols, rows / 3, cols, 3 * cols, 1 }, 4);
	check_view(m, (struct xfp_view){ 3, rows, cols - 5, cols, 1 }, 50);
	check_view(m, (struct xfp_view){ 1, rows, (cols - 1) / 2, cols, 2 }, 64);
	check_view(m, (struct xfp_view){ (rows - 1) * cols, 1, cols, cols, 1 }, 1);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void gptq(void **state)
{
	static const struct {
		unsigned bits;
		uint64_t rows, cols, group;
		enum xfp_dtype scales;
	} cases[] = {
		{ 4, 64, 96, 32, XFP_F16 },   { 4, 32, 96, 96, XFP_F16 },  { 4, 40, 72, 1, XFP_F16 },
		{ 4, 1096, 64, 24, XFP_F16 }, { 3, 64, 96, 32, XFP_F16 },  { 3, 1088, 64, 40, XFP_F32 },
		{ 2, 48, 112, 64, XFP_F16 },  { 2, 32, 320, 5, XFP_BF16 }, { 8, 36, 96, 16, XFP_F16 },
		{ 8, 2052, 44, 44, XFP_F16 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int how = 0; how < 4; how++) {
			struct matrix m = { .codec = XFP_CODEC_GPTQ,
					    .bits = cases[i].bits,
					    .rows = cases[i].rows,
					    .cols = cases[i].cols,
					    .group = cases[i].group,
					    .scale_dtype = cases[i].scales,
					    .less_one = how & 1 };

			make(state, &m, how & 2);
			check_all(&m);
			finish(&m);
		}
}

/* Too many groups for a table of code values, and too many for any. */
static void many_groups(void **state)
{
	for (uint64_t cols = 1200; cols <= 4096; cols += 2896) {
		struct matrix m = {
			.codec = XFP_CODEC_GPTQ, .bits = 4, .rows = 16, .cols = cols, .group = 3, .scale_dtype = XFP_F16
		};

		make(state, &m, true);
		check_all(&m);
		finish(&m);
	}
}

static void awq(void **state)
{
	static const struct {
		enum xfp_codec codec;
		uint64_t rows, cols, group, lines;
		enum xfp_dtype scales;
	} cases[] = {
		{ XFP_CODEC_AWQ, 64, 96, 32, 0, XFP_F16 },
		{ XFP_CODEC_AWQ, 1160, 60, 20, 0, XFP_F16 },
		{ XFP_CODEC_AWQ, 2056, 37, 37, 0, XFP_BF16 },
		{ XFP_CODEC_AWQ, 8, 640, 128, 0, XFP_F32 },
		/* zeros padded to whole words, and to two or four of them */
		{ XFP_CODEC_AWQ_GEMV, 24, 640, 128, 8, XFP_F16 },
		{ XFP_CODEC_AWQ_GEMV, 21, 1280, 128, 16, XFP_BF16 },
		{ XFP_CODEC_AWQ_GEMV, 24, 640, 64, 16, XFP_F16 },
		{ XFP_CODEC_AWQ_GEMV, 9, 320, 32, 32, XFP_F16 },
		{ XFP_CODEC_AWQ_GEMV, 9, 520, 520, 8, XFP_F32 },
		{ XFP_CODEC_AWQ_GEMV_FAST, 24, 640, 128, 8, XFP_F16 },
		{ XFP_CODEC_AWQ_GEMV_FAST, 260, 1152, 64, 32, XFP_F16 },
		{ XFP_CODEC_AWQ_GEMV_FAST, 12, 64, 32, 32, XFP_BF16 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct matrix m = { .codec = cases[i].codec,
				    .bits = 4,
				    .rows = cases[i].rows,
				    .cols = cases[i].cols,
				    .group = cases[i].group,
				    .lines = cases[i].lines,
				    .scale_dtype = cases[i].scales };

		make(state, &m, false);
		check_all(&m);
		finish(&m);
	}
}

/* A stored zero of 0, minus one, has all bits set and means 0, not one more than all codes. */
static void wraps(void **state)
{
	struct matrix m = { .codec = XFP_CODEC_GPTQ,
			    .bits = 4,
			    .rows = 8,
			    .cols = 32,
			    .group = 32,
			    .less_one = true,
			    .scale_dtype = XFP_F16 };

	make(state, &m, false);
	memset(m.bytes[XFP_COMPONENT_ZEROS], 0xff, m.size[XFP_COMPONENT_ZEROS]);
	store(state, &m);
	for (int i = 0; i < 8 * 32; i++)
		m.expected[i] = rounded(m.code[i] * half_value(m.scale[i / 32]), XFP_F16);
	check_all(&m);
	finish(&m);
}

/* Bytes read by this process so far; 0 if unknown. */
static uint64_t bytes_read(void)
{
	FILE *file = fopen("/proc/self/io", "r");
	unsigned long long bytes = 0;

	if (file) {
		if (fscanf(file, "rchar: %llu", &bytes) != 1)
			bytes = 0;
		fclose(file);
	}
	return bytes;
}

/* Reading all rows in order, a few at a time, reads each byte of codes once, and holds one block of them. */
static void memory(void **state)
{
	struct matrix m = {
		.codec = XFP_CODEC_AWQ, .bits = 4, .rows = 4096, .cols = 512, .group = 128, .scale_dtype = XFP_F16
	};
	struct xfp_matrix_source source;
	uint64_t before, after, block = 1024 * 512 / 2 + 4 * (1024 * 2 + 512);

	make(state, &m, false);
	assert_int_equal(xfp_decoder_bytes(&m.recipe), block > 1 << 20 ? block : 1 << 20);
	source = source_of(&m);
	source.view = (struct xfp_view){ 0, 4096, 512, 512, 1 };
	assert_int_equal(xfp_matrix_reader_bytes(&source), xfp_decoder_bytes(&m.recipe));
	assert_int_equal(xfp_matrix_block_rows(&source, 1 << 16), 256);
	assert_int_equal(xfp_matrix_block_rows(&source, 1 << 20), 1024);

	before = bytes_read();
	check_view(&m, source.view, 100);
	after = bytes_read();
	if (!before)
		print_message("no /proc/self/io: bytes that are read are not counted\n");
	else
		assert_in_range(after - before, xfp_recipe_bytes(&m.recipe), xfp_recipe_bytes(&m.recipe) + 1000);
	finish(&m);
}

static void refused(void **state)
{
	static const struct {
		uint32_t size, of, group; /* the first input of group `of` goes to `group` */
		const char *words;
	} cases[] = {
		{ 32, 0, 3, "contains a group without a scale" },
		{ 32, 2, UINT32_MAX, "contains a group without a scale" },
		{ 32, 1, 0, "has more inputs in a group than group_size" },
		{ 36, 0, 2, "has more inputs in a group than group_size" }, /* the last is smaller */
	};
	struct xfp_matrix_reader *reader;
	uint16_t row[96];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct matrix m = { .codec = XFP_CODEC_GPTQ,
				    .bits = 4,
				    .rows = 32,
				    .cols = 96,
				    .group = cases[i].size,
				    .scale_dtype = XFP_F16 };
		struct xfp_matrix_source source;
		uint64_t at = 0;

		make(state, &m, true);
		while (m.of[at] != cases[i].of)
			at++;
		memcpy(m.bytes[XFP_COMPONENT_GROUPS] + 4 * at, &cases[i].group, 4);
		store(state, &m);
		source = source_of(&m);
		source.view = (struct xfp_view){ 0, 32, 96, 96, 1 };
		ok(xfp_matrix_open(&source, &reader, &err));
		for (int twice = 0; twice < 2; twice++) {
			assert_int_equal(xfp_matrix_read(reader, 0, 1, row, &err), XFP_BAD_INPUT);
			assert_non_null(strstr(err.text, "packed: tensor the.tensor: its g_idx "));
			assert_non_null(strstr(err.text, cases[i].words));
		}
		xfp_matrix_close(reader);
		finish(&m);
	}
}

static void parameters(void **state)
{
	static const struct {
		int at;
		uint64_t value;
	} changes[] = { { 0, 4 }, { 0, 5 }, { 1, 0 }, { 1, 31 }, { 2, 2 } };
	struct matrix m = {
		.codec = XFP_CODEC_GPTQ, .bits = 3, .rows = 32, .cols = 96, .group = 32, .scale_dtype = XFP_F16
	};
	struct xfp_matrix_source source;
	struct xfp_matrix_reader *reader;

	make(state, &m, true);
	source = source_of(&m);
	source.view = (struct xfp_view){ 0, 32, 96, 96, 1 };
	for (int i = 0; i < 9; i++) {
		struct matrix was = m;

		if (i < 5)
			m.part.parameters[changes[i].at] = changes[i].value;
		else if (i == 5)
			m.components[3].bytes -= 4;
		else if (i == 6)
			m.components[2].dtype = XFP_I16;
		else if (i == 7)
			m.part.component_count = 2;
		else
			source.dtype = XFP_BF16;
		assert_int_equal(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT);
		m = was;
	}
	finish(&m);
}

PROGRAM("test_grouped")
{
	const struct CMUnitTest tests[] = { scratch_test(gptq),      scratch_test(many_groups), scratch_test(awq),
					    scratch_test(wraps),     scratch_test(memory),      scratch_test(refused),
					    scratch_test(parameters) };

	return cmocka_run_group_tests_name("grouped", tests, NULL, NULL);
}
