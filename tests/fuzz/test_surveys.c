/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer of files of surveys with a good file and mutations of it.
 */
#include "tests/fuzz/surveys.h"

#include "tests/unit/unit.h"

static void known(void **state)
{
	(void)state;
	assert_int_equal(fuzz_surveys((const uint8_t[]){ 0 }, 1), 2);
	/* One survey more, one less, another magic, and a cut file. */
	assert_int_equal(fuzz_surveys((const uint8_t[]){ 0, 20, 0, 3 }, 4), -1);
	assert_int_equal(fuzz_surveys((const uint8_t[]){ 0, 20, 0, 1 }, 4), -1);
	assert_int_equal(fuzz_surveys((const uint8_t[]){ 0, 0, 0, 'x' }, 4), -1);
	for (unsigned length = 0; length < 400; length++)
		assert_int_equal(fuzz_surveys((const uint8_t[]){ 1, length & 255, length >> 8 }, 3), -1);
	assert_int_equal(fuzz_surveys((const uint8_t[]){ 2, 1, 2, 3 }, 4), -1);
}

static void changed(void **state)
{
	uint64_t seed = 34;
	int found = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		uint8_t data[1 + 3 * 4] = { 0 };
		size_t size = 1 + 3 * (1 + test_random(&seed) % 4);
		int result;

		for (size_t b = 1; b < size; b++)
			data[b] = (uint8_t)(test_random(&seed) >> 24);
		result = fuzz_surveys(data, size);
		found += result > 0;
		refused += result < 0;
	}
	if (found < 200 || refused < 200)
		fail_msg("%d read, %d refused", found, refused);
}

PROGRAM("test_surveys")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(changed) };

	return cmocka_run_group_tests_name("surveys", tests, NULL, NULL);
}
