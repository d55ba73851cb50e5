/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer of tokenizers with inputs that reach deep code, and mutations of them.
 */
#include "tests/fuzz/tokenizers.h"

#include <string.h>

#include "tests/unit/unit.h"

#define TEXT "ab \xc3\xa9 <x> a\xc3\xa9 12345\xe2\x82 \xff  aab"

/* The parts of tokenizers.c by number, from 1 to 0x1f and then from 0x80. */
static const char *const seeds[] = {
	/* byte-level: NFC, an expression, bytes, and their decoder; complete words first */
	"\x01\x07\x08\x11\x09\x0e\x1c\x82\x81,\x18\x10\x0a\x18}",
	"\x01\x05\x07\x09\x17\x0a\x17}",
	/* like Llama 2: bytes for unknown characters, and a template */
	"\x01\x02\x03\x04\x07\x08\x0d\x13,\x14\x10\x0a\x0f\x14,\x85,\x86,\x87\x10\x0b\x8a}",
	"\x01\x02\x07\x09\x1a\x0a\x19\x0c\x88,\x89]}",
	/* all treatments of an expression's matches */
	"\x01\x02\x07\x09\x1d\x83\x81\x0c\x88]}",
	"\x01\x06\x07\x09\x0e\x1e"
	"a\x81,\x1f"
	"b\x81,\x80 \x81,\x1b\x10}",
	"\x01\x02\x07\x08\x16\x09\x1c\x84\x81\x0a\x0f\x86,\x15,\x87\x10}",
	/* BERT, in lower case, and not; all normal forms; an intersection of sets */
	"\x8b\x08\x8c\x09\x8f\x0a\x90\x0b\x91}",
	"\x8b\x08\x8d\x09\x8f\x0c\x88]}",
	"\x01\x07\x08\x8e\x09\x1c\x92\x81}",
};
#define SEEDS (sizeof seeds / sizeof *seeds)

static size_t lay_out(size_t seed, uint8_t data[256])
{
	size_t size = strlen(seeds[seed]) + 1;

	memcpy(data, seeds[seed], size);
	memcpy(data + size, TEXT, sizeof TEXT - 1);
	return size + sizeof TEXT - 1;
}

static void known(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEEDS; i++) {
		uint8_t data[256];
		size_t size = lay_out(i, data);

		if (fuzz_tokenizer(data, size) < 1)
			fail_msg("seed %d", (int)i);
		assert_int_equal(fuzz_tokenizer(data, strlen(seeds[i]) - 1), -1);
	}
}

/* The same with some bytes of tokenizer and text changed. */
static void changed(void **state)
{
	int taken = 0, empty = 0, refused = 0;
	uint64_t seed = 19;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint8_t data[256];
		size_t size = lay_out((size_t)i % SEEDS, data);
		int result, changes = (int)(test_random(&seed) % 3);

		for (int b = 0; b < 6; b++)
			data[size - 1 - test_random(&seed) % (sizeof TEXT - 1)] = (uint8_t)(test_random(&seed) >> 24);
		while (changes--)
			data[test_random(&seed) % strlen(seeds[(size_t)i % SEEDS])] =
				(uint8_t)(test_random(&seed) >> 24);
		result = fuzz_tokenizer(data, size);
		taken += result > 0;
		empty += !result;
		refused += result < 0;
	}
	if (taken < 5000 || refused < 1000)
		fail_msg("%d taken, %d without ids, %d refused", taken, empty, refused);
}

PROGRAM("test_tokenizers")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(changed) };

	return cmocka_run_group_tests_name("tokenizers", tests, NULL, NULL);
}
