/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer of bundles without libFuzzer: its seeds, inputs it found, and some thousand recipes derived from them,
 * always the same. A fault ends the test with a message.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/recipe.h"

#define MAX_RECIPES 1024
#define CAPACITY 512
#define MUTATIONS 3000

static struct {
	uint8_t bytes[CAPACITY];
	size_t size;
} recipes[MAX_RECIPES];
static size_t recipe_count;

static bool try_recipe(const uint8_t *bytes, size_t size)
{
	struct fuzz_file_made made;

	if (!fuzz_make(bytes, size, &made))
		return false;
	fuzz_walk(&made);
	return true;
}

static void keep(const uint8_t *bytes, size_t size)
{
	assert_true(recipe_count < MAX_RECIPES && size <= CAPACITY);
	memcpy(recipes[recipe_count].bytes, bytes, size);
	recipes[recipe_count++].size = size;
}

static void seeds_are_read(void **state)
{
	uint8_t seed[FUZZ_SEED];
	size_t size;

	(void)state;
	for (unsigned n = 0; (size = fuzz_seed(n, seed)); n++) {
		assert_true(try_recipe(seed, size));
		keep(seed, size);
	}
}

static void the_corpus_is_read(void **state)
{
	const char *folder = getenv("srcdir");
	char path[4096], line[2 * CAPACITY + 2];
	FILE *file;

	(void)state;
	snprintf(path, sizeof path, "%s/tests/fuzz/corpus.hex", folder ? folder : ".");
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		uint8_t bytes[CAPACITY];
		size_t size = 0;
		unsigned byte;

		if (*line == '#')
			continue;
		while (sscanf(line + 2 * size, "%2x", &byte) == 1)
			bytes[size++] = (uint8_t)byte;
		assert_true(try_recipe(bytes, size));
		keep(bytes, size);
	}
	fclose(file);
}

static void recipes_made_of_them_are_read(void **state)
{
	uint64_t random = 1;
	unsigned made = 0;

	(void)state;
	for (unsigned n = 0; n < MUTATIONS; n++) {
		size_t from = fuzz_random(&random) % recipe_count;
		uint8_t bytes[CAPACITY];
		size_t size = recipes[from].size;

		memcpy(bytes, recipes[from].bytes, size);
		for (unsigned steps = 1 + fuzz_random(&random) % 4; steps; steps--)
			size = fuzz_mutate(bytes, size, CAPACITY, fuzz_random(&random));
		made += try_recipe(bytes, size);
	}
	assert_true(made > MUTATIONS / 2);
}

/* Files that no recipe builds: arbitrary bytes, with correct digests or not. */
static void files_as_they_are_are_read(void **state)
{
	static uint8_t bytes[FUZZ_ITEM + 10000];
	uint64_t random = 2;

	(void)state;
	for (size_t size = FUZZ_ITEM + 1; size < sizeof bytes; size += size < 6000 ? 97 : 1) {
		bytes[0] = FUZZ_AS_IS | (size % 2 ? FUZZ_DIGESTS : 0);
		if (size % 64 == 0)
			for (size_t i = FUZZ_ITEM; i < size; i++)
				bytes[i] = (uint8_t)fuzz_random(&random);
		xfp_tar_header(XFP_MEMBER_JSON, size % 700, bytes + FUZZ_ITEM);
		assert_true(try_recipe(bytes, size));
	}
}

PROGRAM("test_recipes")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_are_read),
		cmocka_unit_test(the_corpus_is_read),
		cmocka_unit_test(recipes_made_of_them_are_read),
		cmocka_unit_test(files_as_they_are_are_read),
	};

	return cmocka_run_group_tests_name("recipes", tests, NULL, NULL);
}
