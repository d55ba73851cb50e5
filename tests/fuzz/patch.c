/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.c - change numbers in the output of a recipe.
 */
#include <string.h>

#include "base/bytes.h"
#include "tests/fuzz/recipe.h"

static uint64_t changed(const struct fuzz_patch *patch, uint64_t before, uint64_t other)
{
	static const uint64_t absurd[] = {
		0,
		1,
		0x7f,
		0x80,
		0xff,
		0x7fff,
		0xffff,
		0x10000,
		0x7fffffff,
		0x80000000,
		0xfffffffe,
		0xffffffff,
		0x100000000,
		(uint64_t)1 << 47,
		((uint64_t)1 << 48) - 1,
		(uint64_t)1 << 48,
		(uint64_t)1 << 56,
		(uint64_t)1 << 62,
		(uint64_t)1 << 63,
		UINT64_MAX - 4095,
		UINT64_MAX - 511,
		UINT64_MAX - 1,
		UINT64_MAX,
		0x7ff0000000000000, /* infinite */
		0x7ff8000000000000,
	};
	uint64_t value = xfp_load64(patch->value);

	switch (patch->how % FUZZ_HOWS) {
	case FUZZ_SET:
		return value;
	case FUZZ_ADD:
		return before + (uint64_t)(int8_t)value * ((value >> 8 & 1) ? 512 : (value >> 8 & 2) ? 4096 : 1);
	case FUZZ_XOR:
		return before ^ value;
	case FUZZ_SHIFT:
		return value & 64 ? before >> (value & 63) : before << (value & 63);
	case FUZZ_ABSURD:
		return absurd[value % (sizeof absurd / sizeof *absurd)];
	default:
		return other;
	}
}

void fuzz_patch_bytes(const struct fuzz_patch *patch, uint8_t *bytes, uint64_t size)
{
	unsigned width = 1u << patch->width % 4;
	uint64_t before = 0, other = 0, value, at;

	while (width > size)
		width /= 2;
	if (!width)
		return;
	at = (uint64_t)xfp_load16(patch->at) * width % (size / width * width);
	memcpy(&before, bytes + at, width);
	if (patch->how % FUZZ_HOWS == FUZZ_COPY) /* copied from another number there */
		memcpy(&other, bytes + xfp_load16(patch->value) % (size - width + 1), width);
	value = changed(patch, before, other);
	memcpy(bytes + at, &value, width);
}

void fuzz_patch_tables(struct fuzz_bundle *b, enum fuzz_when when)
{
	for (unsigned i = 0; i < b->patch_count; i++) {
		struct fuzz_patch *patch = &b->patches[i];
		unsigned table = patch->table % FUZZ_PLACES;
		struct image_tables tables;
		size_t record;
		uint8_t *records;

		if (patch->when % FUZZ_TIMES != when)
			continue;
		if (table == FUZZ_HEADER)
			fuzz_patch_bytes(patch, (uint8_t *)&b->header, sizeof b->header);
		if (table >= XFP_TABLES || !b->count[table])
			continue;
		tables = fuzz_tables(b);
		records = image_table(&tables, (enum xfp_index_table)table, &record);
		if (table == XFP_TABLE_STRINGS)
			fuzz_patch_bytes(patch, records, b->count[table]);
		else if (patch->how % FUZZ_HOWS == FUZZ_COPY && patch->value[2] & 1) /* a field of another record */
			memcpy(records + record * (patch->record % b->count[table]) +
				       xfp_load16(patch->at) * 8u % (record / 8 * 8),
			       records + record * (patch->value[0] % b->count[table]) +
				       xfp_load16(patch->at) * 8u % (record / 8 * 8),
			       8);
		else
			fuzz_patch_bytes(patch, records + record * (patch->record % b->count[table]), record);
	}
}
