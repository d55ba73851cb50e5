/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_bundle.c - the entry points of libFuzzer (`make fuzz`). test_recipes.c runs the same without libFuzzer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_file_made made;

	if (!fuzz_make(data, size, &made))
		return -1;
	fuzz_walk(&made);
	return 0;
}

/* libFuzzer's own mutations learn from comparisons, so use them as well. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
	return seed % 4 ? fuzz_mutate(data, size, capacity, seed) : LLVMFuzzerMutate(data, size, capacity);
}

/* `--write-seeds FOLDER` writes the seeds and exits. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t recipe[FUZZ_SEED];
	size_t size;

	if (*argc != 3 || strcmp((*argv)[1], "--write-seeds") != 0)
		return 0;
	for (unsigned n = 0; (size = fuzz_seed(n, recipe)); n++) {
		char path[4096];
		FILE *file;

		snprintf(path, sizeof path, "%s/seed-%02u", (*argv)[2], n);
		file = fopen(path, "wb");
		if (!file || fwrite(recipe, 1, size, file) != size || fclose(file)) {
			perror(path);
			exit(1);
		}
	}
	exit(0);
}
