/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.c - mutate a recipe: add, remove, move or change items.
 */
#include <string.h>

#include "tests/fuzz/recipe.h"

/* A valid item of that kind. */
static void new_item(uint8_t item[FUZZ_ITEM], uint64_t *random)
{
	for (int i = 0; i < FUZZ_ITEM; i++)
		item[i] = (uint8_t)(fuzz_random(random) >> 24);
	switch (item[0] % FUZZ_KINDS) {
	case FUZZ_UNIT:
		((struct fuzz_unit *)item)->rows %= 16;
		((struct fuzz_unit *)item)->rows_shift %= 192;
		((struct fuzz_unit *)item)->cols[1] %= 2;
		((struct fuzz_unit *)item)->cols_shift %= 192;
		break;
	case FUZZ_TENSOR:
		((struct fuzz_tensor *)item)->rank %= 4;
		((struct fuzz_tensor *)item)->shift %= 192;
		break;
	case FUZZ_FILE:
		((struct fuzz_file *)item)->shift %= 192;
		break;
	default:
		((struct fuzz_patch *)item)->at[1] = 0;
	}
}

size_t fuzz_mutate(uint8_t *recipe, size_t size, size_t capacity, uint64_t seed)
{
	uint64_t random = seed;
	size_t items = size > FUZZ_ITEM ? (size - 1) / FUZZ_ITEM : 0; /* without the head */

	if (size > capacity || capacity < FUZZ_ITEM)
		return size;
	if (size < (items + 1) * FUZZ_ITEM && (items + 1) * FUZZ_ITEM <= capacity) {
		memset(recipe + size, 0, (items + 1) * FUZZ_ITEM - size);
		size = (items + 1) * FUZZ_ITEM;
	}
	items = size / FUZZ_ITEM - 1;
	for (unsigned changes = 1 + fuzz_random(&random) % 3; changes; changes--) {
		uint8_t *item = recipe + FUZZ_ITEM * (1 + (items ? fuzz_random(&random) % items : 0));
		uint8_t *other = recipe + FUZZ_ITEM * (1 + (items ? fuzz_random(&random) % items : 0));
		uint8_t *end = recipe + FUZZ_ITEM * (items + 1), swap[FUZZ_ITEM];
		unsigned what = fuzz_random(&random) % 16;

		if (what < 3 && (size_t)(end - recipe) + FUZZ_ITEM <= capacity) {
			new_item(end, &random);
			items++;
		} else if (what < 4 && items && (size_t)(end - recipe) + FUZZ_ITEM <= capacity) {
			memcpy(end, item, FUZZ_ITEM);
			items++;
		} else if (what < 6 && items) {
			memmove(item, item + FUZZ_ITEM, (size_t)(end - item) - FUZZ_ITEM);
			items--;
		} else if (what < 7 && items) {
			memcpy(swap, item, FUZZ_ITEM);
			memmove(item, other, FUZZ_ITEM);
			memcpy(other, swap, FUZZ_ITEM);
		} else if (what < 8 && items) {
			new_item(item, &random);
		} else if (what < 9) {
			recipe[1 + fuzz_random(&random) % 10] = (uint8_t)fuzz_random(&random);
		} else if (items) {
			uint8_t *byte = &item[1 + fuzz_random(&random) % (FUZZ_ITEM - 1)];

			if (what < 12)
				*byte = (uint8_t)fuzz_random(&random);
			else if (what < 14)
				*byte += (uint8_t)(fuzz_random(&random) % 9 - 4);
			else
				*byte ^= (uint8_t)(1u << fuzz_random(&random) % 8);
		}
	}
	return FUZZ_ITEM * (items + 1);
}
