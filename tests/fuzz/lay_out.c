/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lay_out.c - build a file in memory from a recipe.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "tests/fuzz/recipe.h"

#define TAIL_BYTES ((uint64_t)4 * XFP_TAR_BLOCK)

/* The only file. */
static int memory = -1;

/* ---- contents ---------------------------------------------------------------------------------- */

static uint64_t written(uint64_t size)
{
	return size < FUZZ_WRITTEN ? size : FUZZ_WRITTEN;
}

static bool is_patch_of(const struct fuzz_patch *patch, enum fuzz_place place)
{
	return patch->when % FUZZ_TIMES != FUZZ_SPOIL && patch->table % FUZZ_PLACES == (unsigned)place;
}

static void patch_json(const struct fuzz_bundle *b, const struct image *image)
{
	for (unsigned i = 0; i < b->patch_count; i++)
		if (is_patch_of(&b->patches[i], FUZZ_JSON))
			fuzz_patch_bytes(&b->patches[i], image->map + XFP_TAR_BLOCK, b->json_bytes);
}

/* `right`: before anything is patched. */
static void write_contents(struct fuzz_bundle *b, const struct fuzz_bundle *right, const struct image *image)
{
	uint32_t parts = b->count[XFP_TABLE_PARTS];
	uint64_t random = b->seed;

	for (uint32_t f = 0; f < b->count[XFP_TABLE_FILES]; f++) {
		struct xfp_idx_file *file = &b->files[f];

		memset(image->map + file->offset, (int)(fuzz_random(&random) & 0xff), written(file->size));
		xfp_sha256(image->map + file->offset, written(file->size), file->sha256);
	}
	for (uint32_t i = 0; i < parts; i++) {
		uint8_t *content = image->map + b->parts[i].offset;
		uint64_t size = written(b->parts[i].size);

		fuzz_fill_part(right, i, content, size);
		for (unsigned p = 0; p < b->patch_count; p++)
			if (is_patch_of(&b->patches[p], FUZZ_CONTENT) && b->patches[p].record % parts == i)
				fuzz_patch_bytes(&b->patches[p], content, size);
		xfp_sha256(content, size, b->parts[i].sha256);
	}
}

/* ---- damage ------------------------------------------------------------------------------------ */

/* The origin of the offsets of a FUZZ_SPOIL patch. */
static void find_region(const struct fuzz_bundle *b, const struct fuzz_patch *patch, const struct image *image,
			uint64_t *from, uint64_t *size)
{
	uint32_t parts = b->count[XFP_TABLE_PARTS];

	*from = 0;
	if (patch->table % FUZZ_SPOILS == FUZZ_MEMBER && parts)
		*from = image->part_at[patch->record % parts];
	if (patch->table % FUZZ_SPOILS == FUZZ_BACK)
		*from = image->bytes - TAIL_BYTES - XFP_TAR_BLOCK;
	*size = written(image->bytes - *from);
}

/* Change a number of at most 8 bytes; returns whether it differs now. */
static bool spoil_bytes(const struct fuzz_patch *patch, uint8_t *bytes, uint64_t size)
{
	uint8_t *before = malloc(size);
	bool changed;

	if (!before)
		abort();
	memcpy(before, bytes, size);
	fuzz_patch_bytes(patch, bytes, size);
	changed = memcmp(before, bytes, size) != 0;
	free(before);
	return changed;
}

/* Return whether the file certainly differs; one of several changes may undo another. */
static bool spoil(const struct fuzz_bundle *b, struct image *image)
{
	uint64_t length = image->bytes, from, size;
	unsigned changes = 0;

	for (unsigned i = 0; i < b->patch_count; i++) {
		const struct fuzz_patch *patch = &b->patches[i];

		if (patch->when % FUZZ_TIMES != FUZZ_SPOIL)
			continue;
		if (patch->table % FUZZ_SPOILS == FUZZ_LENGTH) {
			length += 512 * (uint64_t)((int64_t)patch->value[0] - 128) +
				  (uint64_t)((int64_t)patch->value[1] - 128);
			if (length > image->bytes + FUZZ_WRITTEN) /* below zero */
				length = patch->value[2] * (uint64_t)64;
		} else {
			find_region(b, patch, image, &from, &size);
			changes += spoil_bytes(patch, image->map + from, size);
		}
	}
	if (length == image->bytes)
		return changes == 1;
	munmap(image->map, image->bytes);
	image->map = MAP_FAILED;
	image->bytes = length;
	return !ftruncate(memory, (off_t)length);
}

/* ---- recipes ----------------------------------------------------------------------------------- */

static uint64_t octal(const uint8_t *header)
{
	uint64_t size = 0;

	for (int i = 124; i < 135; i++)
		size = size * 8 + (header[i] & 7);
	return size;
}

static bool make_as_is(const uint8_t *data, size_t size, bool digests, struct image *image)
{
	uint64_t json, idx, at;

	*image = (struct image){ .map = MAP_FAILED, .bytes = size };
	if (!image_map(image, memory))
		return false;
	memcpy(image->map, data, size);
	if (!digests || size < 4 * XFP_TAR_BLOCK + TAIL_BYTES)
		return true;
	json = octal(data);
	at = XFP_TAR_BLOCK + xfp_align(json, XFP_TAR_BLOCK);
	if (json > size || at > size - XFP_TAR_BLOCK)
		return true;
	idx = octal(data + at);
	if (idx <= size - at - XFP_TAR_BLOCK)
		image_write_sum(image->map, size, json, at + XFP_TAR_BLOCK, idx);
	return true;
}

static bool make_bundle(const uint8_t *recipe, size_t size, struct image *image, struct fuzz_file_made *made)
{
	struct fuzz_bundle b, right;
	struct image_tables tables;

	fuzz_read_recipe(recipe, size, &b);
	made->whole = !b.patch_count && !b.huge && !b.wrong;
	made->wrong = b.wrong && !b.patch_count;
	made->huge = b.huge;
	right = b;
	fuzz_patch_tables(&b, FUZZ_EARLY);
	tables = fuzz_tables(&b);
	if (!image_find_places(&tables, FUZZ_MAX_BYTES, image) || !image_map(image, memory))
		return false;
	image_write_json(&tables, image);
	patch_json(&b, image);
	image_write_member_headers(&tables, image);
	write_contents(&b, &right, image);
	fuzz_patch_tables(&b, FUZZ_LATE);
	image_write_index(&tables, image);
	image_write_sum(image->map, image->bytes, b.json_bytes, image->idx, image->idx_bytes);
	made->spoiled = spoil(&b, image);
	return true;
}

bool fuzz_make(const uint8_t *recipe, size_t size, struct fuzz_file_made *made)
{
	struct image image = { .map = MAP_FAILED };
	bool good;

	if (memory < 0 && (memory = memfd_create("fuzz", MFD_CLOEXEC)) < 0)
		return false;
	*made = (struct fuzz_file_made){ 0 };
	if (size > FUZZ_ITEM && recipe[0] & FUZZ_AS_IS)
		good = make_as_is(recipe + FUZZ_ITEM, size - FUZZ_ITEM, recipe[0] & FUZZ_DIGESTS, &image);
	else
		good = make_bundle(recipe, size, &image, made);
	for (size_t i = 0; i < size; i++)
		made->random = (made->random ^ recipe[i]) * 0x100000001b3;
	made->bytes = image.bytes;
	made->huge = made->huge || image.bytes > (uint64_t)1 << 22;
	snprintf(made->path, sizeof made->path, "/proc/self/fd/%d", memory);
	image_free(&image);
	return good;
}
