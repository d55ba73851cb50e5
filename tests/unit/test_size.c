/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes in the units that the user wrote: decimal, unless the given size is binary.
 */
#include "tests/unit/unit.h"

#include "base/text/size.h"

static void the_unit_that_was_given_decides(void **state)
{
	static const char *const binary[] = { "4GiB", "4gib", "14 KiB", "1TIB" }, *const decimal[] = {
		"4GB", "4G", "4", "", "iB", "B"
	};

	(void)state;
	for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
		assert_true(xfp_size_is_binary(binary[i]));
	for (size_t i = 0; i < sizeof decimal / sizeof *decimal; i++)
		assert_false(xfp_size_is_binary(decimal[i]));
}

static void sizes_are_printed(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(xfp_size_text(4000000, false, text), "4.00 MB");
	assert_string_equal(xfp_size_text(4 << 20, true, text), "4 MiB");
	assert_string_equal(xfp_size_exact(96ull << 30, text), "96GiB");
	assert_string_equal(xfp_size_exact(4500000, text), "4500kB");
	assert_string_equal(xfp_size_exact(1000000000000, text), "1TB");
	assert_string_equal(xfp_size_exact(4281857, text), "4281857");
	assert_string_equal(xfp_size_text(24, false, text), "24 B");
	assert_string_equal(xfp_size_text((uint64_t)3 << 29, true, text), "1.5 GiB");
}

/* A size printed as sufficient can be entered, and is at least the requested one. */
static void what_is_enough_can_be_given(void **state)
{
	uint64_t random = 1, size;
	char text[32];

	(void)state;
	assert_string_equal(xfp_size_text_rounded_up(1, false, text), "4 MB");
	assert_string_equal(xfp_size_text_rounded_up(1, true, text), "4 MiB");
	assert_string_equal(xfp_size_text_rounded_up(1048 << 20, true, text), "1052 MiB");
	for (int i = 0; i < 1000; i++) {
		uint64_t bytes = test_random(&random) >> (8 + i % 40);

		assert_true(xfp_size_parse(xfp_size_text_rounded_up(bytes, i & 1, text), &size));
		assert_true(size > bytes && size - bytes <= (4 << 20));
	}
}

PROGRAM("test_size")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_unit_that_was_given_decides),
		cmocka_unit_test(sizes_are_printed),
		cmocka_unit_test(what_is_enough_can_be_given),
	};

	return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
