/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid recipes of grouped integers: each property of a valid part is changed, one at a time.
 */
#include "checkpoints/packed/decoder.h"
#include "checkpoints/packed/exl2.h"
#include "checkpoints/packed/grouped.h"
#include "tests/unit/scratch.h"

#define FILE_BYTES 4096
#define MAX_COMPONENTS 5

static struct xfp_error err;

struct sound {
	enum xfp_codec codec;
	enum xfp_dtype dtype;
	uint64_t rows, cols, parameters[2], parameter_count;
	struct xfp_component components[MAX_COMPONENTS];
	uint32_t component_count, optional; /* the last ones need not be there */
};

/* Two groups of 32 inputs, 32 outputs; of EXL2 two groups of 4 and 8 bits. */
static const struct sound sound[] = {
	{ XFP_CODEC_GPTQ,
	  XFP_F16,
	  32,
	  64,
	  { 4, 32 },
	  2,
	  { { XFP_COMPONENT_CODES, XFP_I32, 0, 0, 1024 },
	    { XFP_COMPONENT_SCALES, XFP_F16, 0, 0, 128 },
	    { XFP_COMPONENT_ZEROS, XFP_I32, 0, 0, 32 },
	    { XFP_COMPONENT_GROUPS, XFP_I32, 0, 3072, 256 } },
	  4,
	  1 },
	{ XFP_CODEC_AWQ,
	  XFP_F16,
	  32,
	  64,
	  { 32 },
	  1,
	  { { XFP_COMPONENT_CODES, XFP_I32, 0, 0, 1024 },
	    { XFP_COMPONENT_SCALES, XFP_F16, 0, 0, 128 },
	    { XFP_COMPONENT_ZEROS, XFP_I32, 0, 0, 32 } },
	  3,
	  0 },
	{ XFP_CODEC_AWQ_GEMV,
	  XFP_F16,
	  32,
	  64,
	  { 32 },
	  1,
	  { { XFP_COMPONENT_CODES, XFP_I32, 0, 0, 1024 },
	    { XFP_COMPONENT_SCALES, XFP_F16, 0, 0, 2048 },
	    { XFP_COMPONENT_ZEROS, XFP_I32, 0, 0, 512 } },
	  3,
	  0 },
	{ XFP_CODEC_EXL2,
	  XFP_F16,
	  32,
	  64,
	  { 32 },
	  1,
	  { { XFP_COMPONENT_CODES, XFP_I32, 0, 0, 1536 },
	    { XFP_COMPONENT_SCALES, XFP_I32, 0, 0, 32 },
	    { XFP_COMPONENT_GROUPS, XFP_I16, 0, 2048, 8 },
	    { XFP_COMPONENT_ORDER, XFP_I32, 0, 2304, 256 },
	    { XFP_COMPONENT_GLOBAL, XFP_F16, 0, 3400, 4 } },
	  5,
	  0 },
};

/* Bits and first word of each of EXL2's groups, the order of its inputs, and the g_idx of GPTQ. */
static void write_file(void **state, const uint16_t groups[4], uint32_t repeated, uint32_t last)
{
	unsigned char bytes[FILE_BYTES] = { 0 };

	memcpy(bytes + 2048, groups, 8);
	bytes[3401] = bytes[3403] = 0x5c; /* 256 in half precision */
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t place = i == 63 ? last : i == 5 ? repeated : 63 - i;

		memcpy(bytes + 2304 + 4 * (size_t)i, &place, 4);
		bytes[3072 + 4 * i] = i >= 32;
	}
	scratch_write(state, "f", bytes, sizeof bytes);
}

static const uint16_t groups[4] = { 4, 0, 8, 4 };

static uint16_t out[64]; /* the row that was read last */

static enum xfp_status read_part(void **state, const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	struct xfp_recipe_part copy = *part;
	struct xfp_recipe recipe = { .parts = &copy, .part_count = 1, .rows = part->rows, .cols = part->cols };
	char *path = scratch_path(state, "f");
	struct xfp_source_file file = { .name = (char *)"f", .path = path };
	const struct xfp_packed_source source = { &recipe, &file, false, dtype, "the.tensor" };
	struct xfp_decoder *decoder = NULL;
	enum xfp_status status = xfp_decoder_open(&source, &decoder, &err);

	if (!status)
		status = xfp_decoder_read(decoder, 0, 1, 1, 0, part->cols > 64 ? 64 : part->cols, out, &err);
	xfp_decoder_close(decoder);
	free(path);
	return status;
}

static struct xfp_recipe_part part_of(const struct sound *s, struct xfp_component components[MAX_COMPONENTS])
{
	struct xfp_recipe_part part = { .codec = s->codec,
					.version = xfp_codec_version(s->codec),
					.rows = s->rows,
					.cols = s->cols,
					.components = components,
					.component_count = s->component_count };

	memcpy(components, s->components, sizeof s->components);
	memcpy(part.parameters, s->parameters, sizeof s->parameters);
	return part;
}

static void expect_refused(void **state, const struct xfp_recipe_part *part, enum xfp_dtype dtype, const char *what,
			   uint32_t number)
{
	enum xfp_status status = read_part(state, part, dtype);

	if (status != XFP_BAD_INPUT || !strstr(err.text, "the.tensor"))
		fail_msg("%s, %s %u: status %d", xfp_codec_name(part->codec), what, (unsigned)number, (int)status);
}

static void each_property_counts(void **state)
{
	write_file(state, groups, 58, 0);
	for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
		const struct sound *s = &sound[i];
		struct xfp_component components[MAX_COMPONENTS];
		struct xfp_recipe_part part = part_of(s, components);

		if (read_part(state, &part, s->dtype))
			fail_msg("%s", err.text);
		expect_refused(state, &part, XFP_F32, "dtype", 0);
		expect_refused(state, &part, XFP_BF16, "dtype", 1);
		for (uint32_t k = 0; k < s->component_count; k++) {
			components[k].dtype = components[k].dtype == XFP_U8 ? XFP_I8 : XFP_U8;
			expect_refused(state, &part, s->dtype, "dtype of component", k);
			for (int more = -1; more <= 1; more += 2) {
				part = part_of(s, components);
				components[k].bytes += (uint64_t)(int64_t)(4 * more);
				expect_refused(state, &part, s->dtype, "bytes of component", k);
			}
			part = part_of(s, components);
			memmove(components + k, components + k + 1, (s->component_count - k - 1) * sizeof *components);
			part.component_count--;
			if (k + s->optional < s->component_count)
				expect_refused(state, &part, s->dtype, "without component", k);
			part = part_of(s, components);
		}
		for (uint32_t k = 0; k < s->parameter_count; k++) {
			part.parameters[k] = 0;
			expect_refused(state, &part, s->dtype, "parameter", k);
			part = part_of(s, components);
		}
		for (int k = 0; k < 4; k++) {
			part.rows = k == 0 ? 0 : k == 1 ? 33 : 32;
			part.cols = k == 2 ? 0 : k == 3 ? 65 : 64;
			expect_refused(state, &part, s->dtype, "rows or cols", (uint32_t)k);
		}
	}
}

/* 60 inputs of 4 bits end within a word, which no GPTQ matrix does. */
static void streams_end_with_a_word(void **state)
{
	struct xfp_component components[MAX_COMPONENTS];
	struct xfp_recipe_part part = part_of(&sound[0], components);

	write_file(state, groups, 58, 0);
	part.cols = 60;
	part.component_count = 3;
	components[0].bytes = 896;
	expect_refused(state, &part, XFP_F16, "codes of 60 inputs", 0);
	part = part_of(&sound[0], components);
	part.rows = 28;
	part.component_count = 3;
	components[0].bytes = 896;
	components[1].bytes = 112;
	components[2].bytes = 24;
	expect_refused(state, &part, XFP_F16, "zeros of 28 outputs", 0);
}

static void groups_and_order_of_exl2(void **state)
{
	static const uint16_t bad[][4] = {
		{ 1, 0, 8, 4 }, { 4, 0, 7, 4 }, { 4, 0, 9, 4 }, { 4, 1, 8, 4 }, { 4, 0, 8, 5 },
		{ 4, 4, 8, 4 }, { 8, 0, 8, 4 }, { 4, 0, 8, 0 }, { 3, 0, 8, 4 }, { 0, 0, 8, 4 },
	};
	struct xfp_component components[MAX_COMPONENTS];
	struct xfp_recipe_part part = part_of(&sound[3], components);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_file(state, bad[i], 58, 0);
		expect_refused(state, &part, XFP_F16, "q_groups", (uint32_t)i);
		assert_non_null(strstr(err.text, "q_groups"));
	}
	write_file(state, groups, 57, 0);
	expect_refused(state, &part, XFP_F16, "an input twice", 0);
	assert_non_null(strstr(err.text, "q_invperm"));
	write_file(state, groups, 58, 64);
	expect_refused(state, &part, XFP_F16, "an input too many", 0);
	/* Codes of 0 are -2^(bits - 1), and scales of 0 a 256th of the largest; inputs are stored backwards. */
	part = part_of(&sound[3], components);
	write_file(state, groups, 58, 0);
	assert_int_equal(read_part(state, &part, XFP_F16), XFP_OK);
	for (int i = 0; i < 64; i++)
		assert_int_equal(out[i], i < 32 ? 0xd800 : 0xc800);
	/* A group may have 8 bits. */
	part = part_of(&sound[3], components);
	components[0].bytes = 2048;
	write_file(state, (const uint16_t[4]){ 8, 0, 8, 8 }, 58, 0);
	assert_int_equal(read_part(state, &part, XFP_F16), XFP_OK);
}

PROGRAM("test_codecs")
{
	const struct CMUnitTest tests[] = {
		scratch_test(each_property_counts),
		scratch_test(streams_end_with_a_word),
		scratch_test(groups_and_order_of_exl2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
