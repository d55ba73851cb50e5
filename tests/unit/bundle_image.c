/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/bundle_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sha256.h"

#define BLOCK ((uint64_t)XFP_TAR_BLOCK)
#define SUM_BYTES (2 * BLOCK)
#define END_BYTES (2 * BLOCK)

uint8_t *image_table(const struct image_tables *t, enum xfp_index_table table, size_t *record)
{
	const struct {
		void *records;
		size_t bytes;
	} all[XFP_TABLES] = {
		{ t->units, sizeof *t->units }, { t->matrices, sizeof *t->matrices },
		{ t->parts, sizeof *t->parts }, { t->tensors, sizeof *t->tensors },
		{ t->files, sizeof *t->files }, { t->strings, 1 },
	};

	*record = all[table].bytes;
	return all[table].records;
}

void image_make_header(const struct image_tables *t)
{
	uint64_t end = sizeof *t->header;

	memcpy(t->header->magic, XFP_IDX_MAGIC, sizeof t->header->magic);
	t->header->version = XFP_BUNDLE_VERSION;
	t->header->header_bytes = sizeof *t->header;
	for (int i = 0; i < XFP_TABLES; i++) {
		size_t record;

		image_table(t, (enum xfp_index_table)i, &record);
		t->header->table[i].offset = xfp_align(end, 8);
		t->header->table[i].count = t->count[i];
		t->header->table[i].record = (uint32_t)record;
		end = t->header->table[i].offset + (uint64_t)t->count[i] * record;
	}
	t->header->index_bytes = end;
}

/* ---- places ------------------------------------------------------------------------------------ */

/* The size of an index, from its tables, ignoring the header. */
static uint64_t index_bytes(const struct image_tables *t)
{
	uint64_t end = sizeof *t->header;

	for (int i = 0; i < XFP_TABLES; i++) {
		size_t record;

		image_table(t, (enum xfp_index_table)i, &record);
		end = xfp_align(end, 8) + (uint64_t)t->count[i] * record;
	}
	return end;
}

bool image_find_places(const struct image_tables *t, uint64_t max, struct image *image)
{
	uint32_t parts = t->count[XFP_TABLE_PARTS], files = t->count[XFP_TABLE_FILES];
	uint64_t header = BLOCK, files_bytes = 0, at;

	*image = (struct image){ .map = MAP_FAILED };
	for (uint32_t i = 0; i < parts; i++)
		if (t->parts[i].size > max)
			return false;
	for (uint32_t f = 0; f < files; f++)
		if (t->files[f].size > max)
			return false;
	image->file_at = calloc((size_t)files + 1, sizeof *image->file_at);
	image->part_at = calloc((size_t)parts + 1, sizeof *image->part_at);
	image->padded = calloc((size_t)parts + 1, sizeof *image->padded);
	if (!image->file_at || !image->part_at || !image->padded)
		abort();
	for (uint32_t i = parts; i-- > 0;) {
		image->padded[i] = xfp_padded_bytes(t->parts[i].size, header);
		header = xfp_tar_header_bytes(image->padded[i]);
	}
	for (uint32_t f = 0; f < files; f++)
		files_bytes += xfp_tar_header_bytes(t->files[f].size) + xfp_align(t->files[f].size, BLOCK);
	image->idx = BLOCK + xfp_align(t->json_bytes, BLOCK) + BLOCK;
	image->idx_bytes = xfp_idx_member_bytes(image->idx, index_bytes(t), files_bytes, parts ? header : 0);
	at = image->idx + image->idx_bytes;
	for (uint32_t f = 0; f < files; f++) {
		image->file_at[f] = at;
		t->files[f].offset = at + xfp_tar_header_bytes(t->files[f].size);
		at = t->files[f].offset + xfp_align(t->files[f].size, BLOCK);
	}
	for (uint32_t i = 0; i < parts; i++) {
		image->part_at[i] = at;
		t->parts[i].offset = at + xfp_tar_header_bytes(image->padded[i]);
		at = t->parts[i].offset + image->padded[i];
	}
	image->bytes = at + SUM_BYTES + END_BYTES;
	return true;
}

bool image_map(struct image *image, int file)
{
	if (ftruncate(file, 0) || ftruncate(file, (off_t)image->bytes))
		return false;
	image->map = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return image->map != MAP_FAILED;
}

void image_free(struct image *image)
{
	if (image->map != MAP_FAILED)
		munmap(image->map, image->bytes);
	free(image->file_at);
	free(image->part_at);
	free(image->padded);
}

/* ---- members ----------------------------------------------------------------------------------- */

void image_write_json(const struct image_tables *t, const struct image *image)
{
	xfp_tar_header(XFP_MEMBER_JSON, t->json_bytes, image->map);
	memset(image->map + BLOCK, ' ', t->json_bytes);
}

void image_write_member_headers(const struct image_tables *t, const struct image *image)
{
	char name[XFP_FILE_MEMBER_BYTES];

	for (uint32_t f = 0; f < t->count[XFP_TABLE_FILES]; f++) {
		uint32_t string = t->files[f].name.offset;

		xfp_file_member(f, string < t->count[XFP_TABLE_STRINGS] ? t->strings + string : "", name);
		xfp_tar_header(name, t->files[f].size, image->map + image->file_at[f]);
	}
	for (uint32_t i = 0; i < t->count[XFP_TABLE_PARTS]; i++) {
		xfp_part_member(t->parts[i].number, t->parts[i].kind, name);
		xfp_tar_header(name, image->padded[i], image->map + image->part_at[i]);
	}
}

void image_write_index(const struct image_tables *t, const struct image *image)
{
	uint8_t *index = image->map + image->idx;
	uint64_t at = sizeof *t->header;

	xfp_tar_header(XFP_MEMBER_IDX, image->idx_bytes, index - BLOCK);
	memcpy(index, t->header, sizeof *t->header);
	for (int i = 0; i < XFP_TABLES; i++) {
		size_t record;
		const uint8_t *records = image_table(t, (enum xfp_index_table)i, &record);

		at = xfp_align(at, 8);
		if (t->count[i])
			memcpy(index + at, records, t->count[i] * record);
		at += t->count[i] * record;
	}
}

void image_write_sum(uint8_t *map, uint64_t bytes, uint64_t json_bytes, uint64_t idx, uint64_t idx_bytes)
{
	uint8_t *sum = map + bytes - SUM_BYTES - END_BYTES, json_digest[32], idx_digest[32];
	char text[XFP_SUM_BYTES + 1];

	xfp_sha256(map + BLOCK, json_bytes, json_digest);
	xfp_sha256(map + idx, idx_bytes, idx_digest);
	xfp_sum_text(json_digest, idx_digest, text);
	xfp_tar_header(XFP_MEMBER_SUM, XFP_SUM_BYTES, sum);
	memcpy(sum + BLOCK, text, XFP_SUM_BYTES);
}
