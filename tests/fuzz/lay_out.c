/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lay_out.c - from the tables of an index to a file in memory.
 *
 * The file is of the sizes that its part and file tables say, terabytes even: what nobody writes are holes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytes.h"
#include "recipe.h"
#include "sha256.h"

#define BLOCK ((uint64_t)XFP_TAR_BLOCK)
#define SUM_BYTES (2 * BLOCK)
#define END_BYTES (2 * BLOCK)

/* The file, which there is only one of. */
static int memory = -1;

struct image {
	uint8_t *map;
	uint64_t bytes;
	uint64_t idx, idx_bytes;                               /* content of the member */
	uint64_t file_at[FUZZ_FILES], part_at[FUZZ_PARTS + 1]; /* of their headers */
	uint64_t padded[FUZZ_PARTS + 1];
};

static bool map_file(struct image *image)
{
	if (memory < 0)
		memory = memfd_create("fuzz", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, 0) || ftruncate(memory, (off_t)image->bytes))
		return false;
	image->map = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	return image->map != MAP_FAILED;
}

/* Where everything goes. */
static bool find_places(struct fuzz_bundle *b, struct image *image)
{
	uint32_t parts = b->count[XFP_TABLE_PARTS], files = b->count[XFP_TABLE_FILES];
	uint64_t header = BLOCK, files_bytes = 0, at;

	for (uint32_t i = parts; i-- > 0;) {
		if (b->parts[i].size > FUZZ_MOST_BYTES)
			return false;
		image->padded[i] = xfp_padded_bytes(b->parts[i].size, header);
		header = xfp_tar_header_bytes(image->padded[i]);
	}
	for (uint32_t f = 0; f < files; f++) {
		if (b->files[f].size > FUZZ_MOST_BYTES)
			return false;
		files_bytes += xfp_tar_header_bytes(b->files[f].size) + xfp_align(b->files[f].size, BLOCK);
	}
	image->idx = BLOCK + xfp_align(b->json_bytes, BLOCK) + BLOCK;
	at = sizeof b->header;
	for (int t = 0; t < XFP_TABLES; t++) {
		size_t record;

		fuzz_table(b, (enum xfp_table)t, &record);
		at = xfp_align(at, 8) + b->count[t] * record;
	}
	image->idx_bytes = xfp_idx_member_bytes(image->idx, at, files_bytes, parts ? header : 0);
	at = image->idx + image->idx_bytes;
	for (uint32_t f = 0; f < files; f++) {
		image->file_at[f] = at;
		b->files[f].offset = at + xfp_tar_header_bytes(b->files[f].size);
		at = b->files[f].offset + xfp_align(b->files[f].size, BLOCK);
	}
	for (uint32_t i = 0; i < parts; i++) {
		image->part_at[i] = at;
		b->parts[i].offset = at + xfp_tar_header_bytes(image->padded[i]);
		at = b->parts[i].offset + image->padded[i];
	}
	image->bytes = at + SUM_BYTES + END_BYTES;
	return true;
}

/* ---- members ----------------------------------------------------------------------------------- */

static void write_header(const struct image *image, const char *name, uint64_t at, uint64_t size)
{
	xfp_tar_header(name, size, image->map + at);
}

static void write_json(const struct fuzz_bundle *b, const struct image *image)
{
	uint8_t *json = image->map + BLOCK;

	write_header(image, XFP_MEMBER_JSON, 0, b->json_bytes);
	memset(json, ' ', b->json_bytes);
	for (unsigned i = 0; i < b->patch_count; i++)
		if (b->patches[i].when % FUZZ_TIMES != FUZZ_SPOIL && b->patches[i].table % FUZZ_PLACES == FUZZ_JSON)
			fuzz_patch_bytes(&b->patches[i], json, b->json_bytes);
}

/* `right`: before anything was patched. */
static void write_members(struct fuzz_bundle *b, const struct fuzz_bundle *right, const struct image *image)
{
	char name[XFP_FILE_MEMBER_BYTES];
	uint64_t random = b->seed;

	for (uint32_t f = 0; f < b->count[XFP_TABLE_FILES]; f++) {
		struct xfp_idx_file *file = &b->files[f];
		uint64_t size = file->size < FUZZ_WRITTEN ? file->size : FUZZ_WRITTEN;
		const char *string = file->name.offset < sizeof b->strings ? b->strings + file->name.offset : "";

		xfp_file_member(f, string, name);
		write_header(image, name, image->file_at[f], file->size);
		memset(image->map + file->offset, (int)(fuzz_random(&random) & 0xff), size);
		xfp_sha256(image->map + file->offset, size, file->sha256);
	}
	for (uint32_t i = 0; i < b->count[XFP_TABLE_PARTS]; i++) {
		struct xfp_idx_part *part = &b->parts[i];
		uint64_t size = part->size < FUZZ_WRITTEN ? part->size : FUZZ_WRITTEN;
		uint8_t *content = image->map + part->offset;

		xfp_part_member(part->number, part->kind, name);
		write_header(image, name, image->part_at[i], image->padded[i]);
		fuzz_fill_part(right, i, content, size);
		for (unsigned p = 0; p < b->patch_count; p++)
			if (b->patches[p].when % FUZZ_TIMES != FUZZ_SPOIL &&
			    b->patches[p].table % FUZZ_PLACES == FUZZ_CONTENT &&
			    b->patches[p].record % b->count[XFP_TABLE_PARTS] == i)
				fuzz_patch_bytes(&b->patches[p], content, size);
		xfp_sha256(content, size, part->sha256);
	}
}

static void write_index(struct fuzz_bundle *b, const struct image *image)
{
	uint8_t *index = image->map + image->idx;
	uint64_t at = sizeof b->header;

	write_header(image, XFP_MEMBER_IDX, image->idx - BLOCK, image->idx_bytes);
	memcpy(index, &b->header, sizeof b->header);
	for (int t = 0; t < XFP_TABLES; t++) {
		size_t record;
		const uint8_t *records = fuzz_table(b, (enum xfp_table)t, &record);

		at = xfp_align(at, 8);
		memcpy(index + at, records, b->count[t] * record);
		at += b->count[t] * record;
	}
}

static void write_sum(uint8_t *map, uint64_t bytes, uint64_t json_bytes, uint64_t idx, uint64_t idx_bytes)
{
	uint8_t *sum = map + bytes - SUM_BYTES - END_BYTES, json_digest[32], idx_digest[32];
	char text[XFP_SUM_BYTES + 1];

	xfp_sha256(map + BLOCK, json_bytes, json_digest);
	xfp_sha256(map + idx, idx_bytes, idx_digest);
	xfp_sum_text(json_digest, idx_digest, text);
	xfp_tar_header(XFP_MEMBER_SUM, XFP_SUM_BYTES, sum);
	memcpy(sum + BLOCK, text, XFP_SUM_BYTES);
}

/* ---- damage ------------------------------------------------------------------------------------ */

/* Whether the file is surely not what it was; of several changes, one may undo another. */
static bool spoil(const struct fuzz_bundle *b, struct image *image)
{
	uint64_t length = image->bytes;
	unsigned changes = 0;

	for (unsigned i = 0; i < b->patch_count; i++) {
		const struct fuzz_patch *patch = &b->patches[i];
		uint64_t from = 0, size = image->bytes < FUZZ_WRITTEN ? image->bytes : FUZZ_WRITTEN;
		uint8_t before[64];

		if (patch->when % FUZZ_TIMES != FUZZ_SPOIL)
			continue;
		switch (patch->table % FUZZ_SPOILS) {
		case FUZZ_LENGTH:
			length += 512 * (uint64_t)((int64_t)patch->value[0] - 128) +
				  (uint64_t)((int64_t)patch->value[1] - 128);
			if (length > image->bytes + FUZZ_WRITTEN)
				length = patch->value[2] * 64;
			continue;
		case FUZZ_BACK:
			size = size < SUM_BYTES + END_BYTES + 512 ? size : SUM_BYTES + END_BYTES + 512;
			from = image->bytes - size;
			break;
		case FUZZ_MEMBER:
			if (b->count[XFP_TABLE_PARTS])
				from = image->part_at[patch->record % b->count[XFP_TABLE_PARTS]];
			size = image->bytes - from < size ? image->bytes - from : size;
			break;
		default:
			break;
		}
		/* One number, so at most 8 bytes, at a place that fuzz_patch_bytes knows. */
		{
			uint64_t width = 1u << patch->width % 4,
				 at = from + (uint64_t)xfp_load16(patch->at) * width % (size / width * width);

			memcpy(before, image->map + at, width);
			fuzz_patch_bytes(patch, image->map + from, size);
			changes += memcmp(before, image->map + at, width) != 0;
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

static bool make_as_is(const uint8_t *data, size_t size, bool digests, struct image *image)
{
	uint64_t json = 0, idx = 0, at;

	*image = (struct image){ .bytes = size };
	if (!map_file(image))
		return false;
	memcpy(image->map, data, size);
	if (!digests || size < 10 * BLOCK)
		return true;
	for (int i = 124; i < 135; i++)
		json = json * 8 + (data[i] & 7);
	at = BLOCK + xfp_align(json, BLOCK);
	if (json > size || at > size - BLOCK)
		return true;
	for (int i = 124; i < 135; i++)
		idx = idx * 8 + (data[at + (unsigned)i] & 7);
	if (idx < size - at - BLOCK)
		write_sum(image->map, size, json, at + BLOCK, idx);
	return true;
}

bool fuzz_make(const uint8_t *recipe, size_t size, struct fuzz_file_made *made)
{
	struct image image = { 0 };
	struct fuzz_bundle b, right;
	bool good;

	*made = (struct fuzz_file_made){ 0 };
	if (size > FUZZ_ITEM && recipe[0] & FUZZ_AS_IS) {
		good = make_as_is(recipe + FUZZ_ITEM, size - FUZZ_ITEM, recipe[0] & FUZZ_DIGESTS, &image);
	} else {
		fuzz_read_recipe(recipe, size, &b);
		made->whole = !b.patch_count && !b.huge && !b.wrong;
		made->wrong = b.wrong && !b.patch_count;
		made->huge = b.huge;
		right = b;
		fuzz_patch_tables(&b, FUZZ_EARLY);
		if ((good = find_places(&b, &image) && map_file(&image))) {
			write_json(&b, &image);
			write_members(&b, &right, &image);
			fuzz_patch_tables(&b, FUZZ_LATE);
			write_index(&b, &image);
			write_sum(image.map, image.bytes, b.json_bytes, image.idx, image.idx_bytes);
			made->spoiled = spoil(&b, &image);
		}
	}
	for (size_t i = 0; i < size; i++)
		made->random = (made->random ^ recipe[i]) * 0x100000001b3;
	made->bytes = image.bytes;
	made->huge = made->huge || image.bytes > (uint64_t)1 << 22;
	if (image.map && image.map != MAP_FAILED)
		munmap(image.map, image.bytes);
	snprintf(made->path, sizeof made->path, "/proc/self/fd/%d", memory);
	return good;
}
