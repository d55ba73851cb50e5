/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeds.c - initial recipes: every mode with every k, with and without optional parts; each kind of fault once.
 */
#include <string.h>

#include "base/dtype.h"
#include "schemas/layout/classes.h"
#include "tests/fuzz/recipe.h"

#define UNIT(...)                                                          \
	{                                                                  \
		.unit = {.kind = FUZZ_UNIT, .exponent = 130, __VA_ARGS__ } \
	}
#define SMALL .rows = 5, .cols = { 100 }
#define OUTLIERS(n) ((n) << 4)

union item {
	uint8_t bytes[FUZZ_ITEM];
	struct fuzz_unit unit;
	struct fuzz_tensor tensor;
	struct fuzz_file file;
	struct fuzz_patch patch;
};

_Static_assert(sizeof(union item) == FUZZ_ITEM, "an item");

static size_t put_items(uint8_t recipe[FUZZ_SEED], const union item *items, size_t count)
{
	memset(recipe, 0, FUZZ_SEED);
	recipe[1] = (uint8_t)count;
	recipe[9] = 30;
	memcpy(recipe + FUZZ_ITEM, items, count * FUZZ_ITEM);
	return (1 + count) * FUZZ_ITEM;
}

/* Complete bundles: each combination of mode and k once. */
static size_t whole(unsigned n, uint8_t recipe[FUZZ_SEED])
{
	const union item file = { .file = { FUZZ_FILE, .name = (uint8_t)n, .bytes = { (uint8_t)(n * 50), 1 } } };
	const union item tensor = { .tensor = { FUZZ_TENSOR, .dtype = (uint8_t)n, .rank = 2, .dim = { 3, 4 } } };
	union item items[3] = { UNIT(SMALL), tensor, file };
	struct fuzz_unit *unit = &items[0].unit;

	if (n < 15) {
		unit->mode = (uint8_t)(XFP_MODE_V2 + n / 5);
		unit->k = unit->group = unit->library = (uint8_t)(n % 5);
		unit->experts = (uint8_t)(n % 2);
		unit->flags = (uint8_t)((n & 3) | OUTLIERS(n % 5));
		unit->dtype = (uint8_t)(n % 4);
	} else {
		unit->mode = n < 19 ? XFP_MODE_KEEP : XFP_MODE_FP8;
		unit->dtype = (uint8_t)(n % 4);
		unit->experts = 1;
		unit->flags = (uint8_t)(n & FUZZ_TRANSPOSED);
	}
	return put_items(recipe, items, 3);
}

static size_t special(unsigned n, uint8_t recipe[FUZZ_SEED])
{
	const union item v2 = UNIT(SMALL, .mode = XFP_MODE_V2, .k = 2, .flags = OUTLIERS(1));
	const union item wide = UNIT(.mode = XFP_MODE_V2, .rows = 2, .cols = { 1, 2 }, .cols_shift = 199,
				     .flags = FUZZ_BALANCED | OUTLIERS(1));
	const union item large = UNIT(.mode = XFP_MODE_V2, .k = 4, .rows = 40, .cols = { 0, 3 });
	const union item terabyte = UNIT(.mode = XFP_MODE_FP8, .rows = 160, .rows_shift = 216, .cols = { 100 });
	const union item eight = UNIT(.mode = XFP_MODE_FP8, .rows = 100, .rows_shift = 212, .cols = { 100 });
	const union item nothing = UNIT(.mode = XFP_MODE_V2A, .rows = 255, .rows_shift = 222);
	const union item fused =
		UNIT(SMALL, .mode = XFP_MODE_V2C, .k = 1, .group = 2, .library = 1, .flags = FUZZ_FUSED);
	const union item kept = { .tensor = { FUZZ_TENSOR, .dtype = XFP_F4, .rank = 3, .dim = { 1, 2, 255 } } };
	const union item tied = { .tensor = { FUZZ_TENSOR, .fate = 2, .tied = 0 } };
	const union item dropped = { .tensor = { FUZZ_TENSOR, .fate = 1, .rank = 1, .dim = { 9 } } };
	const union item dropped_too = { .tensor = { FUZZ_TENSOR, .fate = 1, .name = FUZZ_NAME_SAME } };
	const union item unit_too = UNIT(SMALL, .mode = XFP_MODE_KEEP, .name = FUZZ_NAME_SAME);
	const union item late_unit = { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_UNITS, .how = FUZZ_ABSURD } };
	const union item sets[][4] = {
		{ v2, fused, tied, dropped },
		{ wide },
		{ terabyte, kept },
		{ eight },
		{ nothing },
		{ kept, tied, dropped },
		{ dropped, dropped_too },
		{ v2, unit_too, unit_too },
		{ v2, unit_too, unit_too, unit_too },
		{ { .file = { .kind = FUZZ_FILE } }, { .file = { FUZZ_FILE, .name = FUZZ_NAME_SAME } } },
		{ { .file = { FUZZ_FILE, .name = FUZZ_NAME_EMPTY } } },
		{ { .file = { FUZZ_FILE, .name = FUZZ_NAME_LONG } },
		  { .file = { FUZZ_FILE, .name = FUZZ_NAME_LONG + FUZZ_NAMES } } },
		{ { .file = { FUZZ_FILE, .name = FUZZ_NAME_CONTROL } },
		  { .file = { FUZZ_FILE, .name = FUZZ_NAME_SAME } } },
		{ { .file = { FUZZ_FILE, .name = FUZZ_NAME_LONG + 2 * FUZZ_NAMES } },
		  { .file = { FUZZ_FILE, .name = FUZZ_NAME_SAME } } },
		{ v2, late_unit },
		/* a part whose end overlaps the next one; a view beyond its tensor */
		{ large, { .patch = { FUZZ_PATCH, FUZZ_EARLY, XFP_TABLE_PARTS, 3, FUZZ_SET, 0, { 2 }, { 16 } } } },
		{ large, { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_MATRICES, 3, FUZZ_SET, 0, { 2 }, { 1 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_UNITS, 0, FUZZ_SET, 0, { 17 }, { 3 } } } },
		{ kept,
		  tied,
		  { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_TENSORS, 2, FUZZ_SET, 1, { 6 }, { 99 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_TENSORS, 0, FUZZ_SET, 0, { 18 }, { 3 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_MATRICES, 0, FUZZ_SET, 0, { 9 }, { 1 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_MATRICES, 3, FUZZ_ABSURD, 0, { 2 }, { 20 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_EARLY, XFP_TABLE_PARTS, 3, FUZZ_ADD, 1, { 2 }, { 16 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, FUZZ_HEADER, 2, FUZZ_ABSURD, 0, { 10 }, { 11 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, XFP_TABLE_STRINGS, 0, FUZZ_XOR, 0, { 7 }, { 128 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_LATE, FUZZ_CONTENT, 0, FUZZ_SET, 2, { 0 }, { 200 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_SPOIL, FUZZ_FRONT, 0, FUZZ_XOR, 0, { 100 }, { 1 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_SPOIL, FUZZ_BACK, 0, FUZZ_XOR, 0, { 100 }, { 1 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_SPOIL, FUZZ_MEMBER, 0, FUZZ_XOR, 1, { 5 }, { 1 } } } },
		{ v2, { .patch = { FUZZ_PATCH, FUZZ_SPOIL, FUZZ_LENGTH, .value = { 120, 128 } } } },
	};
	size_t count = 0;

	if (n >= sizeof sets / sizeof *sets)
		return 0;
	while (count < 4 && memcmp(&sets[n][count], (union item[]){ 0 }, FUZZ_ITEM))
		count++;
	return put_items(recipe, sets[n], count);
}

size_t fuzz_seed(unsigned n, uint8_t recipe[FUZZ_SEED])
{
	const unsigned wholes = 20, surpluses = 3;
	size_t size;

	if (n < wholes)
		return whole(n, recipe);
	if (n >= wholes + surpluses)
		return special(n - wholes - surpluses, recipe);
	size = whole(0, recipe);
	recipe[11] = (uint8_t)(1u << (n - wholes)); /* enum fuzz_more */
	return size;
}
