/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer of PyTorch files with inputs that reach deep code, and mutations of them.
 */
#include "tests/fuzz/torch.h"

#include <string.h>

#include "tests/unit/unit.h"

/* In the pieces of torch.c: a transposed tensor; a parameter that is a slice of doubles and has two names, by the memo;
 * a tensor of 8-bit floats; two names under "model". */
static const uint8_t transposed[] = { 0, 0, 1, 41, 64, 61, 25, 27, 28, 17, 26, 27, 17, 65, 2, 3 };
static const uint8_t parameter[] = { 0,  0,  1,  41, 57, 1, 64, 63, 26, 27, 27, 17, 29, 26,
				     17, 65, 14, 58, 4,  6, 5,  6,  19, 42, 22, 2,  3 };
static const uint8_t floats[] = { 0,  0,  1,  41, 56, 1,  1,  44, 51, 40, 45, 33, 5, 7,
				  25, 29, 16, 26, 16, 15, 58, 4,  6,  52, 5,  6,  2, 3 };
static const uint8_t wrapped[] = {
	0, 0, 43, 0, 1, 41, 64, 62, 25, 29, 16, 26, 16, 65, 42, 64, 61, 27, 4, 4, 65, 2, 8, 3
};

static const struct {
	const uint8_t *bytes;
	size_t size;
	int tensors;
} seeds[] = {
	{ transposed, sizeof transposed, 1 },
	{ parameter, sizeof parameter, 2 },
	{ floats, sizeof floats, -1 }, /* of 24 bytes, and there are 96 */
	{ wrapped, sizeof wrapped, 2 },
};
#define SEEDS (sizeof seeds / sizeof *seeds)

static void known(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEEDS; i++)
		assert_int_equal(fuzz_torch(seeds[i].bytes, seeds[i].size), seeds[i].tensors);
	assert_int_equal(fuzz_torch(transposed, sizeof transposed - 1), -1);
	/* An archive unchanged, and without the signature of its end. */
	assert_int_equal(fuzz_torch((const uint8_t[]){ 2 }, 1), 1);
	assert_int_equal(fuzz_torch((const uint8_t[]){ 2, 21, 0, 'x' }, 4), -1);
	assert_int_equal(fuzz_torch((const uint8_t[]){ 3, 'P', 'K' }, 3), -1);
}

/* The same with some bytes changed, followed by random ones; and changes near the end of an archive. */
static void changed(void **state)
{
	uint64_t seed = 18;
	int found = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const size_t from = (size_t)i % SEEDS;
		size_t changes = test_random(&seed) % 4, size = seeds[from].size;
		uint8_t data[64];
		int result;

		memcpy(data, seeds[from].bytes, size);
		while (changes--)
			data[1 + test_random(&seed) % (size - 1)] = (uint8_t)(test_random(&seed) >> 24);
		result = fuzz_torch(data, size);
		found += result > 0;
		refused += result < 0;
		if (i % 2)
			continue;
		*data = 2;
		for (size_t b = 1; b < 7; b += 3) {
			data[b] = (uint8_t)test_random(&seed);
			data[b + 1] = test_random(&seed) % 2;
			data[b + 2] = (uint8_t)test_random(&seed);
		}
		result = fuzz_torch(data, 7);
		found += result > 0;
		refused += result < 0;
	}
	if (found < 2000 || refused < 2000)
		fail_msg("%d read, %d refused", found, refused);
}

PROGRAM("test_torch")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(changed) };

	return cmocka_run_group_tests_name("torch", tests, NULL, NULL);
}
