/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode ROUNDS ROWS COLS - decode a matrix of this size from each packed form, in blocks as stages read them, and copy
 * the same decoded bytes. Each round measures all forms, each right before its copy. Prints one line per form: its
 * name, the median processor time of decoding and of copying, in seconds, and the median ratio of both. ROWS and COLS
 * are multiples of 1024.
 *
 * The files are in memory, so that reading costs a copy; codes are random, scales are similar.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/packed/exl2.h"
#include "checkpoints/packed/fp8.h"
#include "checkpoints/packed/grouped.h"
#include "checkpoints/packed/int.h"
#include "checkpoints/packed/nvfp4.h"
#include "tests/bench/bench.h"

#define BLOCK_BYTES (512u << 10) /* as stages/quantize/rows.c */
#define GROUP 128
#define ALL 0 /* rows or columns */

enum filling { RANDOM, SCALES, GROUPS, STARTS, ORDER };
#define MAX_HAS 6

/* The size of a component: this many bits for each `rows` and `cols`. */
struct has {
	enum xfp_component_role role;
	enum xfp_dtype dtype;
	unsigned bits, rows, cols;
	enum filling filling;
};

static const struct form {
	const char *name;
	enum xfp_codec codec;
	enum xfp_dtype dtype;
	uint64_t parameters[XFP_CODEC_PARAMETERS]; /* ALL: as many as there are rows, or columns */
	struct has components[MAX_HAS];
} forms[] = {
#define HAS(role, ...)                            \
	{                                         \
		XFP_COMPONENT_##role, __VA_ARGS__ \
	}
	{ "bf16", XFP_CODEC_PLAIN, XFP_BF16, { 0 }, { HAS(CODES, XFP_BF16, 16, 1, 1, SCALES) } },
	{ "FP8, blocks of 128",
	  XFP_CODEC_FP8,
	  XFP_BF16,
	  { [XFP_FP8_MATRIX_ROWS] = ALL, [XFP_FP8_BLOCK_ROWS] = 128, [XFP_FP8_BLOCK_COLS] = 128 },
	  { HAS(CODES, XFP_F8_E4M3, 8, 1, 1, RANDOM), HAS(SCALES, XFP_BF16, 16, 128, 128, SCALES) } },
	{ "FP8, rows",
	  XFP_CODEC_FP8,
	  XFP_BF16,
	  { [XFP_FP8_MATRIX_ROWS] = ALL, [XFP_FP8_BLOCK_ROWS] = 1, [XFP_FP8_BLOCK_COLS] = ALL },
	  { HAS(CODES, XFP_F8_E4M3, 8, 1, 1, RANDOM), HAS(SCALES, XFP_BF16, 16, 1, ALL, SCALES) } },
	{ "MXFP4",
	  XFP_CODEC_MXFP4,
	  XFP_BF16,
	  { 0 },
	  { HAS(CODES, XFP_U8, 4, 1, 1, RANDOM), HAS(SCALES, XFP_F8_E8M0, 8, 1, 32, SCALES) } },
	{ "NVFP4",
	  XFP_CODEC_NVFP4,
	  XFP_BF16,
	  { [XFP_NVFP4_MATRIX_ROWS] = ALL, [XFP_NVFP4_DIVIDES] = 1 },
	  { HAS(CODES, XFP_U8, 4, 1, 1, RANDOM), HAS(SCALES, XFP_F8_E4M3, 8, 1, 16, SCALES),
	    HAS(GLOBAL, XFP_F32, 32, ALL, ALL, SCALES) } },
#define INT(label, bits, packing, row_block, col_block, ...)                                         \
	{                                                                                            \
		label, XFP_CODEC_INT, XFP_BF16,                                                      \
			{ [XFP_INT_BITS] = bits,                                                     \
			  [XFP_INT_PACKING] = packing,                                               \
			  [XFP_INT_BLOCK_ROWS] = row_block,                                          \
			  [XFP_INT_BLOCK_COLS] = col_block },                                        \
		{                                                                                    \
			HAS(CODES, packing == XFP_INT_BYTES ? XFP_I8 : XFP_I32, bits, 1, 1, RANDOM), \
				HAS(SCALES, XFP_BF16, 16, row_block, col_block, SCALES), __VA_ARGS__ \
		}                                                                                    \
	}
	INT("int4, groups of 128", 4, XFP_INT_WORDS, 1, GROUP, { 0 }),
	INT("int4, groups of 32", 4, XFP_INT_WORDS, 1, 32, { 0 }),
	INT("int4, zeros", 4, XFP_INT_WORDS, 1, GROUP, HAS(ZEROS, XFP_I32, 4, 1, GROUP, RANDOM)),
	INT("int4, act-order", 4, XFP_INT_WORDS, 1, GROUP, HAS(GROUPS, XFP_I32, 32, ALL, 1, GROUPS)),
	INT("int8, rows", 8, XFP_INT_BYTES, 1, ALL, { 0 }),
#undef INT
#define AWQ(label, codec, codes, zeros, ...)                                                \
	{                                                                                   \
		label, codec, XFP_F16, { [XFP_AWQ_GROUP] = GROUP },                         \
		{                                                                           \
			HAS(CODES, codes, 4, 1, 1, RANDOM), HAS(ZEROS, zeros, __VA_ARGS__), \
				HAS(SCALES, XFP_F16, 16, 1, GROUP, SCALES)                  \
		}                                                                           \
	}
	AWQ("AWQ gemm", XFP_CODEC_AWQ, XFP_I32, XFP_I32, 4, 1, GROUP, RANDOM),
	AWQ("AWQ gemv", XFP_CODEC_AWQ_GEMV, XFP_I32, XFP_I32, 4, 1, GROUP, RANDOM),
	AWQ("AWQ gemv_fast", XFP_CODEC_AWQ_GEMV_FAST, XFP_I16, XFP_F16, 16, 1, GROUP, SCALES),
#undef AWQ
#define GPTQ(label, bits, ...)                                                                                \
	{                                                                                                     \
		label, XFP_CODEC_GPTQ, XFP_F16,                                                               \
			{ [XFP_GPTQ_BITS] = bits, [XFP_GPTQ_GROUP] = GROUP, [XFP_GPTQ_ZEROS_LESS_ONE] = 1 },  \
		{                                                                                             \
			HAS(CODES, XFP_I32, bits, 1, 1, RANDOM), HAS(ZEROS, XFP_I32, bits, 1, GROUP, RANDOM), \
				HAS(SCALES, XFP_F16, 16, 1, GROUP, SCALES), __VA_ARGS__                       \
		}                                                                                             \
	}
	GPTQ("GPTQ, 4 bits", 4, { 0 }),
	GPTQ("GPTQ, 4 bits, act-order", 4, HAS(GROUPS, XFP_I32, 32, ALL, 1, GROUPS)),
	GPTQ("GPTQ, 3 bits", 3, { 0 }),
	GPTQ("GPTQ, 3 bits, act-order", 3, HAS(GROUPS, XFP_I32, 32, ALL, 1, GROUPS)),
	GPTQ("GPTQ, 8 bits", 8, { 0 }),
#undef GPTQ
	{ "EXL2, 4 bits",
	  XFP_CODEC_EXL2,
	  XFP_F16,
	  { [XFP_EXL2_PADDED_ROWS] = ALL },
	  { HAS(CODES, XFP_I32, 4, 1, 1, RANDOM), HAS(SCALES, XFP_I32, 4, 1, GROUP, RANDOM),
	    HAS(GLOBAL, XFP_F16, 16, ALL, GROUP, SCALES), HAS(GROUPS, XFP_I16, 32, ALL, GROUP, STARTS),
	    HAS(ORDER, XFP_I32, 32, ALL, 1, ORDER) } },
#undef HAS
};
#define FORMS (sizeof forms / sizeof *forms)

struct matrix {
	struct xfp_component components[MAX_HAS];
	struct xfp_recipe_part part;
	struct xfp_recipe recipe;
	struct xfp_source_file file;
	struct xfp_matrix_source source;
	char path[40];
	double *decoding, *copying, *ratio;
};

/* ---- files --------------------------------------------------------------------------------------- */

/* Numbers between 2^-6 and 2^-5, or codes that are not NaN. */
static void put_scale(enum xfp_dtype dtype, unsigned char *at, uint32_t random)
{
	switch (dtype) {
	case XFP_F32:
		xfp_store32(at, 0x3c800000 | random >> 9);
		break;
	case XFP_BF16:
		xfp_store16(at, (uint16_t)(0x3c80 | random >> 25));
		break;
	case XFP_F16:
		xfp_store16(at, (uint16_t)(0x2400 | random >> 22));
		break;
	default:
		*at = (unsigned char)(0x78 | random >> 30);
	}
}

/* Each group as often as it has columns, or each column once where `group` is 1, in any order. */
static void put_groups(unsigned char *at, uint64_t cols, uint64_t group, uint64_t *state)
{
	for (uint64_t i = 0; i < cols; i++)
		xfp_store32(at + 4 * i, (uint32_t)(i / group));
	for (uint64_t i = cols; i > 1; i--) {
		uint64_t other = bench_random(state) % i;
		uint32_t group = xfp_load32(at + 4 * other);

		xfp_store32(at + 4 * other, xfp_load32(at + 4 * (i - 1)));
		xfp_store32(at + 4 * (i - 1), group);
	}
}

static void fill(const struct has *has, unsigned char *at, uint64_t bytes, uint64_t *state)
{
	uint64_t size = xfp_dtype_bits(has->dtype) / 8;

	if (has->filling == GROUPS || has->filling == ORDER) {
		put_groups(at, bytes / 4, has->filling == GROUPS ? GROUP : 1, state);
		return;
	}
	for (uint64_t i = 0; has->filling == STARTS && i < bytes / 4; i++) /* bits, and the first word */
		xfp_store32(at + 4 * i, (uint32_t)(4 | i * GROUP * 4 / 32 << 16));
	if (has->filling == STARTS)
		return;
	for (uint64_t i = 0; i + size <= bytes; i += size) {
		uint32_t random = (uint32_t)bench_random(state);

		if (has->filling == SCALES)
			put_scale(has->dtype, at + i, random);
		else
			memcpy(at + i, &random, size);
		/* Codes that are NaN do not occur in real files. */
		if (has->dtype == XFP_F8_E4M3 && (at[i] & 0x7f) == 0x7f)
			at[i] ^= 1;
	}
}

static uint64_t bytes_of(const struct has *has, uint64_t rows, uint64_t cols)
{
	return (has->rows ? rows / has->rows : 1) * (has->cols ? cols / has->cols : 1) * has->bits / 8;
}

static void make(const struct form *form, uint64_t rows, uint64_t cols, struct matrix *m)
{
	int file = memfd_create("decode", MFD_CLOEXEC);
	uint64_t at = 0, state = 1;

	snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", file);
	m->part = (struct xfp_recipe_part){
		.codec = form->codec,
		.version = xfp_codec_version(form->codec),
		.rows = rows,
		.cols = cols,
		.components = m->components,
	};
	memcpy(m->part.parameters, form->parameters, sizeof m->part.parameters);
	if (form->codec == XFP_CODEC_FP8 || form->codec == XFP_CODEC_NVFP4 || form->codec == XFP_CODEC_EXL2)
		m->part.parameters[0] = rows;
	if (form->codec == XFP_CODEC_FP8 && form->parameters[XFP_FP8_BLOCK_COLS] == ALL)
		m->part.parameters[XFP_FP8_BLOCK_COLS] = cols;
	if (form->codec == XFP_CODEC_INT && form->parameters[XFP_INT_BLOCK_COLS] == ALL)
		m->part.parameters[XFP_INT_BLOCK_COLS] = cols;
	for (const struct has *has = form->components; has < form->components + MAX_HAS && has->bits; has++) {
		uint64_t bytes = bytes_of(has, rows, cols);
		unsigned char *data = bench_need(calloc(bytes, 1));

		fill(has, data, bytes, &state);
		if (pwrite(file, data, bytes, (off_t)at) != (ssize_t)bytes)
			bench_die(form->name, "cannot write its file");
		free(data);
		m->components[m->part.component_count++] =
			(struct xfp_component){ has->role, has->dtype, 0, at, bytes };
		at += bytes;
	}
	m->recipe = (struct xfp_recipe){ .parts = &m->part, .part_count = 1, .rows = rows, .cols = cols };
	m->file = (struct xfp_source_file){ .name = m->path, .path = m->path };
	m->source = (struct xfp_matrix_source){
		.path = m->path,
		.tensor = form->name,
		.dtype = form->dtype,
		.bytes = rows * cols * 2,
		.view = { .rows = rows, .cols = cols, .row_stride = cols, .col_stride = 1 },
		.recipe = form->codec == XFP_CODEC_PLAIN ? NULL : &m->recipe,
		.files = &m->file,
	};
}

/* ---- a round ------------------------------------------------------------------------------------- */

/* Decode all rows, block by block; they are kept in `all`, a matrix in memory, unless that is NULL. */
static double decode(const struct matrix *m, unsigned char *block, uint64_t rows, unsigned char *all)
{
	uint64_t count, line = m->source.view.cols * 2;
	struct xfp_matrix_reader *reader;
	struct xfp_error err;
	double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);

	if (xfp_matrix_open(&m->source, &reader, &err))
		bench_die(m->source.tensor, err.text);
	for (uint64_t row = 0; row < m->source.view.rows; row += count) {
		count = m->source.view.rows - row < rows ? m->source.view.rows - row : rows;
		if (xfp_matrix_read(reader, row, count, all ? all + row * line : block, &err))
			bench_die(m->source.tensor, err.text);
	}
	xfp_matrix_close(reader);
	return bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
}

static double copy(const struct matrix *m, unsigned char *block, uint64_t rows, const unsigned char *all)
{
	uint64_t count, line = m->source.view.cols * 2;
	double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);

	for (uint64_t row = 0; row < m->source.view.rows; row += count) {
		count = m->source.view.rows - row < rows ? m->source.view.rows - row : rows;
		memcpy(block, all + row * line, count * line);
		__asm__ volatile("" : : "r"(block) : "memory"); /* unused, but copied all the same */
	}
	return bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
}

PROGRAM("decode")
{
	size_t rounds = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	uint64_t rows = argc == 4 ? strtoul(argv[2], NULL, 10) : 0, cols = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	static struct matrix m[FORMS]; /* until the program ends, like everything below */
	static unsigned char *all, *block;

	if (!rounds || !rows || !cols || rows % 1024 || cols % 1024) {
		fprintf(stderr, "usage: decode ROUNDS ROWS COLS, multiples of 1024\n");
		return 2;
	}
	all = bench_need(calloc(rows * cols * 2, 1));
	block = bench_need(calloc(rows * cols * 2, 1));
	for (size_t f = 0; f < FORMS; f++) {
		make(&forms[f], rows, cols, &m[f]);
		m[f].decoding = bench_need(calloc(rounds * sizeof(double), 1));
		m[f].copying = bench_need(calloc(rounds * sizeof(double), 1));
		m[f].ratio = bench_need(calloc(rounds * sizeof(double), 1));
	}
	for (size_t i = 0; i < rounds; i++)
		for (size_t f = 0; f < FORMS; f++) {
			uint64_t at_once = xfp_align(xfp_matrix_block_rows(&m[f].source, BLOCK_BYTES), 64);

			if (!i)
				decode(&m[f], block, at_once,
				       all); /* a first pass without timing allocates the memory */
			m[f].decoding[i] = decode(&m[f], block, at_once, NULL);
			m[f].copying[i] = copy(&m[f], block, at_once, all);
			m[f].ratio[i] = m[f].decoding[i] / m[f].copying[i];
		}
	for (size_t f = 0; f < FORMS; f++)
		printf("%s\t%.9f\t%.9f\t%.3f\n", forms[f].name, bench_median(m[f].decoding, rounds),
		       bench_median(m[f].copying, rounds), bench_median(m[f].ratio, rounds));
	return 0;
}
