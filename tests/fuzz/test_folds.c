/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer of folds with inputs that reach deep code, and mutations of them.
 */
#include "tests/fuzz/folds.h"

#include <string.h>

#include "tests/fuzz/blocks.h"
#include "tests/fuzz/tokens.h"
#include "tests/unit/unit.h"

/* In the order of folds.c: the number of tensors, config.json; of each tensor name, dtype, file, rank and sizes. FP8 in
 * blocks of 16 x 16: q_proj.weight F8_E4M3 [17, 33], and its scales F32 [2, 3] in the other file. */
static const uint8_t blocks[] = { 1, 16, 3, 3, 0, 0, 0, 2, 4, 6, 4, 1, 1, 2, 1, 2 };
/* MXFP4: gate_up_proj_blocks U8 [3, 5, 2, 16], and its scales. */
static const uint8_t experts[] = { 1, 34, 1 + 5 * 4, 2, 0, 4, 2, 8, 1, 3, 1 + 6 * 4, 2, 1, 3, 2, 8, 1 };
/* compressed-tensors, two groups: q_proj.weight_packed I32 [17, 16] with 8 bits, zero points, an order and a shape. */
static const uint8_t words[] = { 4,   23, 7, 3, 7, 3, 196, 8, 0, 2, 4, 3,  200, 1, 1, 2, 4, 1,
				 204, 8,  0, 2, 8, 1, 208, 7, 2, 1, 1, 59, 212, 8, 2, 1, 7, 185 };
/* The same of 4-bit floats: weight_packed U8 [17, 16], weight_scale, weight_global_scale. */
static const uint8_t floats[] = { 2, 23, 23, 2, 23, 2, 196, 2, 0, 2, 4, 3, 200, 0, 1, 2, 4, 1, 216, 1, 2, 1, 0, 217 };
/* modelopt: weight U8 [17, 16], weight_scale, weight_scale_2. */
static const uint8_t two_scales[] = { 2, 22, 0, 0, 2, 0, 2, 4, 3, 200, 0, 1, 2, 4, 1, 220, 1, 1, 0 };
/* And bytes: weight I8 [17, 33] with a scale for each row, and zero points; F8_E4M3 in blocks of 16. */
static const uint8_t bytes[] = { 2, 23, 7, 1, 7, 1, 0, 10, 0, 2, 4, 6, 200, 1, 1, 2, 4, 0, 204, 10, 1, 2, 4, 0 };
static const uint8_t in_blocks[] = { 1, 23, 57, 4, 57, 4, 0, 0, 0, 2, 4, 6, 200, 1, 1, 2, 1, 2 };

/* GPTQ of 4 bits: qweight I32 [4, 16], qzeros I32 [1, 2], scales F16 [1, 16] and g_idx [32], all of one group. */
static const uint8_t grouped[] = { 3, 10, 0,      2, 9 * 4, 8, 0, 2, 10,     3, 10 * 4, 8, 0, 2,
				   0, 1,  11 * 4, 5, 1,     2, 0, 3, 12 * 4, 8, 0,      1, 5 };
/* AWQ's gemv_fast: I16 [4, 64], zeros and scales F16 [32, 16] of groups of 32. */
static const uint8_t fast[] = {
	2, 10, 1 + 4 * 2, 1, 9 * 4, 9, 0, 2, 10, 7, 10 * 4, 5, 0, 2, 5, 3, 11 * 4, 5, 1, 2, 5, 3
};

/* EXL2: q_weight I32 [4, 32], q_scale I32 [1, 4], q_scale_max F16 [1], q_groups I16 [2], q_invperm I32 [32]. */
static const uint8_t ordered[] = { 4, 0, 52, 8,  0, 2, 10, 5, 56,  8,  1, 2, 0, 10, 60, 5,
				   1, 1, 0,  64, 9, 2, 1,  1, 229, 68, 8, 2, 1, 5,  221 };

static const struct {
	const uint8_t *data;
	size_t size;
} seeds[] = {
	{ blocks, sizeof blocks },       { experts, sizeof experts }, { words, sizeof words },
	{ floats, sizeof floats },       { bytes, sizeof bytes },     { two_scales, sizeof two_scales },
	{ in_blocks, sizeof in_blocks }, { grouped, sizeof grouped }, { fast, sizeof fast },
	{ ordered, sizeof ordered },
};
enum { SEEDS = sizeof seeds / sizeof *seeds };

static void known(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEEDS; i++)
		if (fuzz_fold(seeds[i].data, seeds[i].size) != 1)
			fail_msg("seed %d", (int)i);
	assert_int_equal(fuzz_fold(experts, sizeof experts - 1), -1);
}

/* The same with some bytes changed, followed by random ones. */
static void changed(void **state)
{
	uint64_t seed = 17;
	int packed = 0, plain = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t data[64];
		int result, changes = (int)(test_random(&seed) % 4);

		for (size_t b = 0; b < sizeof data; b++)
			data[b] = (uint8_t)(test_random(&seed) >> 24);
		memcpy(data, seeds[i % SEEDS].data, seeds[i % SEEDS].size);
		while (changes--)
			data[test_random(&seed) % seeds[i % SEEDS].size] = (uint8_t)(test_random(&seed) >> 24);
		result = fuzz_fold(data, sizeof data);
		packed += result > 0;
		plain += !result;
		refused += result < 0;
	}
	if (packed < 1000 || plain < 100 || refused < 1000)
		fail_msg("%d packed, %d plain, %d refused", packed, plain, refused);
}

/* Valid parts of ggml's blocks with some bytes changed. */
static void blocks_of_any_type(void **state)
{
	uint64_t seed = 23;
	int taken = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t data[96];

		for (size_t b = 0; b < sizeof data; b++)
			data[b] = (uint8_t)(test_random(&seed) >> 24);
		if (i % 2) /* type, fault, rows and blocks per row */
			data[1] &= i % 16 == 1 ? 0xff : i % 4 == 1 ? 192 : 0;
		if (fuzz_blocks(data, sizeof data))
			taken++;
		else
			refused++;
	}
	if (taken < 1000 || refused < 1000)
		fail_msg("%d taken, %d refused", taken, refused);
}

static void tokens_of_any_kind(void **state)
{
	uint64_t seed = 29;
	int merged = 0, none = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t data[200];
		int merges;

		for (size_t b = 0; b < sizeof data; b++)
			data[b] = (uint8_t)(test_random(&seed) >> 24);
		if (i % 4) { /* no merges are listed, and few tokens are often all different */
			data[0] &= 0x27;
			data[1] %= 10;
		}
		merges = fuzz_tokens(data, sizeof data);
		merged += merges > 0;
		none += merges < 0;
	}
	if (merged < 500 || none < 1000)
		fail_msg("%d with merges, %d with no file", merged, none);
}

PROGRAM("test_folds")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(changed),
					    cmocka_unit_test(blocks_of_any_type),
					    cmocka_unit_test(tokens_of_any_kind) };

	return cmocka_run_group_tests_name("folds", tests, NULL, NULL);
}
