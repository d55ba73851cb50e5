/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32, and members of archives checked while a file is read in blocks of any size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "checkpoints/crc32.h"
#include "checkpoints/crcs.h"
#include "tests/unit/scratch.h"

#define MEMBER 1000 /* bytes of the largest */

static struct xfp_crc32_tables tables;
static struct xfp_error err;

static void known_values(void **state)
{
	unsigned char zeros[32] = { 0 };

	(void)state;
	assert_int_equal(xfp_crc32_update(&tables, 0, "", 0), 0);
	assert_int_equal(xfp_crc32_update(&tables, 0, "123456789", 9), 0xcbf43926);
	assert_int_equal(xfp_crc32_update(&tables, 0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
	assert_int_equal(xfp_crc32_update(&tables, 0, zeros, sizeof zeros), 0x190a55ad);
}

/* Bit by bit, as the standard defines it. */
static uint32_t slow(const unsigned char *data, size_t size)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < size; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}

static void pieces_are_the_whole(void **state)
{
	unsigned char data[100];
	uint64_t random = 1;

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)test_random(&random);
	for (size_t size = 0; size <= sizeof data; size++)
		for (size_t cut = 0; cut <= size; cut++)
			assert_int_equal(xfp_crc32_update(&tables, xfp_crc32_update(&tables, 0, data, cut), data + cut,
							  size - cut),
					 slow(data, size));
}

/* ---- archives ---------------------------------------------------------------------------------- */

struct image {
	unsigned char *bytes;
	size_t size;
};

/* An archive of three members: "a" with bytes, "empty", and "none" without a CRC-32. Returns the offset of "a". */
static size_t make_archive(struct image *out, const unsigned char *data, size_t size)
{
	static const char *const names[] = { "a", "empty", "none" };
	unsigned char local[3][30] = { { 0 } }, entry[3][46] = { { 0 } }, end[22] = "PK\5\6";
	size_t at[3], begin = 0, directory;
	FILE *file = open_memstream((char **)&out->bytes, &out->size);

	assert_non_null(file);
	for (int i = 0; i < 3; i++) {
		size_t bytes = i == 0 ? size : i == 1 ? 0 : 10;

		fflush(file);
		at[i] = out->size;
		memcpy(local[i], "PK\3\4", 4);
		xfp_store32(local[i] + 14, i ? 0 : slow(data, size));
		xfp_store32(local[i] + 18, (uint32_t)bytes);
		xfp_store32(local[i] + 22, (uint32_t)bytes);
		xfp_store16(local[i] + 26, (uint16_t)strlen(names[i]));
		fwrite(local[i], 1, 30, file);
		fputs(names[i], file);
		if (!i) {
			fflush(file);
			begin = out->size;
		}
		fwrite(i ? (const unsigned char *)"0123456789" : data, 1, bytes, file);
	}
	fflush(file);
	directory = out->size;
	for (int i = 0; i < 3; i++) {
		memcpy(entry[i], "PK\1\2", 4);
		memcpy(entry[i] + 16, local[i] + 14, 14);
		xfp_store32(entry[i] + 42, (uint32_t)at[i]);
		fwrite(entry[i], 1, 46, file);
		fputs(names[i], file);
	}
	fflush(file);
	xfp_store16(end + 8, 3);
	xfp_store16(end + 10, 3);
	xfp_store32(end + 12, (uint32_t)(out->size - directory));
	xfp_store32(end + 16, (uint32_t)directory);
	fwrite(end, 1, sizeof end, file);
	assert_int_equal(fclose(file), 0);
	return begin;
}

static enum xfp_status check(const char *path, const struct image *image, size_t block, struct xfp_crc_counts *counts)
{
	struct xfp_crcs *crcs;
	enum xfp_status status = xfp_crcs_open(path, &crcs, &err);

	if (status)
		return status;
	assert_non_null(crcs);
	for (size_t at = 0; at < image->size; at += block)
		xfp_crcs_update(crcs, image->bytes + at, image->size - at < block ? image->size - at : block);
	status = xfp_crcs_end(crcs, counts, &err);
	xfp_crcs_close(crcs);
	return status;
}

static void members_are_compared(void **state)
{
	unsigned char data[MEMBER];
	struct image inner, outer;
	struct xfp_crc_counts counts;
	struct xfp_crcs *crcs;
	size_t a, in_inner;
	uint64_t random = 2;
	char *path = scratch_path(state, "x.bin");

	for (size_t i = 0; i < MEMBER; i++)
		data[i] = (unsigned char)test_random(&random);
	in_inner = make_archive(&inner, data, MEMBER);
	a = make_archive(&outer, inner.bytes, inner.size);
	scratch_write(state, "x.bin", outer.bytes, outer.size);
	for (size_t block = 1; block < 2000; block = block * 3 + 1) {
		assert_int_equal(check(path, &outer, block, &counts), XFP_OK);
		assert_int_equal(counts.checked, 2); /* "a", and the "a" in it */
		assert_int_equal(counts.absent, 2);
	}
	for (size_t i = 0; i < MEMBER; i += 37) {
		outer.bytes[a + in_inner + i] ^= (unsigned char)(1u << i % 8);
		assert_int_equal(check(path, &outer, 64, &counts), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "x.bin: a: its CRC-32 is "));
		outer.bytes[a + in_inner + i] ^= (unsigned char)(1u << i % 8);
	}
	/* A file that ends early lacks some of its members. */
	outer.size = a + in_inner + 10;
	assert_int_equal(check(path, &outer, 64, &counts), XFP_BAD_INPUT);
	scratch_write(state, "x.bin", "no archive, but a file", 22);
	assert_int_equal(xfp_crcs_open(path, &crcs, &err), XFP_OK);
	assert_null(crcs);
	assert_true(xfp_crcs_in("pytorch") && xfp_crcs_in("gguf in a zip") && !xfp_crcs_in("safetensors"));
	free(inner.bytes);
	free(outer.bytes);
	free(path);
}

PROGRAM("test_crcs")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values),
		cmocka_unit_test(pieces_are_the_whole),
		scratch_test(members_are_compared),
	};

	xfp_crc32_init(&tables);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
