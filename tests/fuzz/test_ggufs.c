/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer of GGUF files with inputs that reach deep code, and mutations of them.
 */
#include "tests/fuzz/ggufs.h"

#include <string.h>

#include "tests/unit/unit.h"

#define NONE 128

/* In the order of ggufs.c: a built file: number of tensors minus 1; architecture, oddities, twelve numbers; of each
 * tensor name, type, rank and sizes, fastest dimension first. Llama: attn_q Q8_0 [8, 4 * 32] and attn_q.bias F32 [8],
 * of 2 heads. */
static const uint8_t heads[] = { 0,    1,    0,    0, 0, 0, 1, 0, NONE, NONE, NONE, NONE, NONE,
				 NONE, NONE, NONE, 6, 3, 2, 0, 4, 8,    0,    1,    4 };
/* Qwen3-MoE: down experts NVFP4 [3, 2, 64] with a scale for each, and gate and up in one, BF16 [2, 4, 8]. */
static const uint8_t experts[] = { 0,  2, 3, 0, 0, 0, 1,  0, 4, NONE, NONE, NONE, NONE, 0, NONE, 5,
				   14, 5, 3, 1, 2, 3, 18, 0, 1, 3,    17,   2,    3,    4, 0,    2 };
/* gpt-oss: gates BF16 and ups likewise [2, 3, 8], biases F32 [2, 3] of both, down F16 [2, 8, 3]. */
static const uint8_t taking_turns[] = { 0, 4,  9, 0,  0, 0, 1, 0,  2,  NONE, NONE, NONE, NONE, 0,  NONE,
					5, 12, 2, 3,  4, 3, 2, 13, 2,  3,    4,    3,    2,    15, 0,
					2, 3,  2, 16, 0, 2, 3, 2,  14, 1,    3,    3,    4,    2 };
/* Qwen3-Next: heads of keys 2, as wide as 4, 4 of values, 16 in all: qkv F16 [32, 4], z [16, 4]; a norm, a decay. */
static const uint8_t linear[] = { 0, 3, 4, 0, 0,  0, 1, 0, 2, 0,  2, 2, 6, 0,  2, 5, 9,
				  1, 2, 0, 6, 10, 1, 2, 0, 5, 27, 0, 1, 4, 21, 0, 1, 4 };

static const struct {
	const uint8_t *input;
	size_t size;
	int tensors;
} known_inputs[] = {
	{ heads, sizeof heads, 2 },
	{ experts, sizeof experts, 7 },
	{ taking_turns, sizeof taking_turns, 3 },
	{ linear, sizeof linear, 3 },
};
#define KNOWN (sizeof known_inputs / sizeof *known_inputs)

static void known(void **state)
{
	(void)state;
	for (size_t i = 0; i < KNOWN; i++)
		if (fuzz_gguf(known_inputs[i].input, known_inputs[i].size) != known_inputs[i].tensors)
			fail_msg("%zu: %d", i, fuzz_gguf(known_inputs[i].input, known_inputs[i].size));
	assert_int_equal(fuzz_gguf((const uint8_t *)"\200GGUF\3", 6), -1);
}

/* The same with some bytes changed, followed by random ones, which change the file. */
static void changed(void **state)
{
	uint64_t seed = 18;
	int opened = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const size_t which = test_random(&seed) % KNOWN, size = known_inputs[which].size;
		int changes = (int)(test_random(&seed) % 4), patches = (int)(test_random(&seed) % 3), tensors;
		uint8_t data[80];

		memcpy(data, known_inputs[which].input, size);
		while (changes--)
			data[test_random(&seed) % size] = (uint8_t)(test_random(&seed) >> 24) & 127;
		for (int b = 0; b < 3 * patches; b++)
			data[size + (size_t)b] = (uint8_t)(test_random(&seed) >> 24) & (b % 3 ? 255 : 3);
		tensors = fuzz_gguf(data, size + 3 * (size_t)patches);
		opened += tensors >= 0;
		refused += tensors < 0;
	}
	if (opened < 3000 || refused < 3000)
		fail_msg("%d opened, %d refused", opened, refused);
}

PROGRAM("test_ggufs")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(changed) };

	return cmocka_run_group_tests_name("ggufs", tests, NULL, NULL);
}
