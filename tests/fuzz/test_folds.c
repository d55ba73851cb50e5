/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzzer of folds does, with inputs that are known to reach far, and what is near to them.
 */
#include "tests/fuzz/folds.h"

#include <string.h>

#include "tests/unit/unit.h"

/* In the order of folds.c: how many tensors, config.json; of each its name, dtype, file, rank and sizes. FP8 in blocks
 * of 16 x 16: q_proj.weight F8_E4M3 [17, 33], and its scales F32 [2, 3] in the other file. */
static const uint8_t blocks[] = { 1, 16, 3, 3, 0, 0, 0, 2, 4, 6, 4, 1, 1, 2, 1, 2 };
/* MXFP4: gate_up_proj_blocks U8 [3, 5, 2, 16], and its scales. */
static const uint8_t experts[] = { 1, 34, 1 + 5 * 4, 2, 0, 4, 2, 8, 1, 3, 1 + 6 * 4, 2, 1, 3, 2, 8, 1 };

/* GPTQ of 4 bits: q_proj.qweight I32 [4, 16], qzeros I32 [1, 2], scales F16 [1, 16] and g_idx [32], all of one group. */
static const uint8_t grouped[] = { 3, 10, 0,      2, 9 * 4, 8, 0, 2, 10,     3, 10 * 4, 8, 0, 2,
				   0, 1,  11 * 4, 5, 1,     2, 0, 3, 12 * 4, 8, 0,      1, 5 };
/* AWQ's gemv_fast: I16 [4, 64], zeros and scales F16 [32, 16] of groups of 32. */
static const uint8_t fast[] = {
	2, 10, 1 + 4 * 2, 1, 9 * 4, 9, 0, 2, 10, 7, 10 * 4, 5, 0, 2, 5, 3, 11 * 4, 5, 1, 2, 5, 3
};

static void known(void **state)
{
	(void)state;
	assert_int_equal(fuzz_fold(blocks, sizeof blocks), 1);
	assert_int_equal(fuzz_fold(experts, sizeof experts), 1);
	assert_int_equal(fuzz_fold(grouped, sizeof grouped), 1);
	assert_int_equal(fuzz_fold(fast, sizeof fast), 1);
	assert_int_equal(fuzz_fold(experts, sizeof experts - 1), -1);
}

/* The same with some bytes changed, and random ones behind them. */
static void changed(void **state)
{
	uint64_t seed = 17;
	static const uint8_t *const from[] = { blocks, experts, grouped, fast };
	static const size_t size[] = { sizeof blocks, sizeof experts, sizeof grouped, sizeof fast };
	int packed = 0, plain = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t data[64];
		int result, changes = (int)(test_random(&seed) % 4);

		for (size_t b = 0; b < sizeof data; b++)
			data[b] = (uint8_t)(test_random(&seed) >> 24);
		memcpy(data, from[i % 4], size[i % 4]);
		while (changes--)
			data[test_random(&seed) % size[i % 4]] = (uint8_t)(test_random(&seed) >> 24);
		result = fuzz_fold(data, sizeof data);
		packed += result > 0;
		plain += !result;
		refused += result < 0;
	}
	if (packed < 1000 || plain < 100 || refused < 1000)
		fail_msg("%d packed, %d plain, %d refused", packed, plain, refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(changed) };

	return cmocka_run_group_tests_name("folds", tests, NULL, NULL);
}
