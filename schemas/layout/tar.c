/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - names and headers of a bundle's members, identical byte for byte to those of libarchive's restricted pax
 * writer: the writer's output is checked against them, and readers accept nothing else.
 *
 * A header is a ustar header with octal numbers. A size of 8 GiB or more does not fit its 11 digits: a pax extended
 * header states it first, and the size field holds 12 digits, or from 64 GiB on a byte 0x80 and the number itself,
 * big-endian.
 */
#include "base/bytes.h"
#include "schemas/layout/bundle_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OCTAL_11 ((uint64_t)1 << 33)
#define OCTAL_12 ((uint64_t)1 << 36)

size_t xfp_tar_header_bytes(uint64_t size)
{
	return size < OCTAL_11 ? XFP_TAR_BLOCK : 3 * XFP_TAR_BLOCK;
}

static void octal(uint8_t *field, int digits, uint64_t value)
{
	while (digits--) {
		field[digits] = (uint8_t)('0' + (value & 7));
		value >>= 3;
	}
}

static void put_size(uint8_t field[12], uint64_t size)
{
	if (size < OCTAL_11) {
		octal(field, 11, size);
		field[11] = ' ';
	} else if (size < OCTAL_12) {
		octal(field, 12, size);
	} else {
		field[0] = 0x80;
		for (int i = 11; i > 3; i--, size >>= 8)
			field[i] = (uint8_t)size;
	}
}

static void ustar(const char *name, char type, uint64_t size, uint8_t block[XFP_TAR_BLOCK])
{
	unsigned sum = 0;

	memset(block, 0, XFP_TAR_BLOCK);
	memcpy(block, name, strnlen(name, 100));
	memcpy(block + 100, "000644 ", 8);
	memcpy(block + 108, "000000 ", 8);
	memcpy(block + 116, "000000 ", 8);
	put_size(block + 124, size);
	memcpy(block + 136, "00000000000 ", 12);
	memcpy(block + 148, "        ", 8); /* the checksum counts as blanks */
	block[156] = (uint8_t)type;
	memcpy(block + 257, "ustar", 6);
	memcpy(block + 263, "00", 2);
	memcpy(block + 329, "000000 ", 8);
	memcpy(block + 337, "000000 ", 8);
	for (unsigned i = 0; i < XFP_TAR_BLOCK; i++)
		sum += block[i];
	octal(block + 148, 6, sum);
	block[154] = 0;
}

void xfp_tar_header(const char *name, uint64_t size, uint8_t *block)
{
	const char *slash = strrchr(name, '/');
	int folder = slash ? (int)(slash - name) + 1 : 0;
	char pax_name[128], record[40];
	int length;

	if (size >= OCTAL_11) {
		/* "LENGTH size=SIZE\n": the length includes its own two digits. */
		length = snprintf(record, sizeof record, "00 size=%" PRIu64 "\n", size);
		record[0] = (char)('0' + length / 10);
		record[1] = (char)('0' + length % 10);
		snprintf(pax_name, sizeof pax_name, "%.*sPaxHeader/%s", folder, name, name + folder);
		ustar(pax_name, 'x', (uint64_t)length, block);
		memset(block + XFP_TAR_BLOCK, 0, XFP_TAR_BLOCK);
		memcpy(block + XFP_TAR_BLOCK, record, (size_t)length);
		block += 2 * (size_t)XFP_TAR_BLOCK;
	}
	ustar(name, '0', size, block);
}

void xfp_part_member(uint32_t number, unsigned kind, char name[24])
{
	static const char *const extension[XFP_PARTS] = XFP_PART_EXTENSIONS;

	if (kind < XFP_PARTS)
		snprintf(name, 24, "u/%06" PRIu32 ".%s", number, extension[kind]);
	else
		snprintf(name, 24, "t/%06" PRIu32 ".raw", number);
}

void xfp_file_member(uint32_t number, const char *file, char name[XFP_FILE_MEMBER_BYTES])
{
	size_t plain = strspn(file, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/");

	if (plain <= 80 && !file[plain])
		snprintf(name, XFP_FILE_MEMBER_BYTES, "files/%s", file);
	else
		snprintf(name, XFP_FILE_MEMBER_BYTES, "files/+%06" PRIu32, number);
}

void xfp_sum_text(const uint8_t json[32], const uint8_t idx[32], char text[XFP_SUM_BYTES + 1])
{
	char json_hex[65], idx_hex[65];

	xfp_hex(json, 32, json_hex);
	xfp_hex(idx, 32, idx_hex);
	snprintf(text, XFP_SUM_BYTES + 1, "%s  " XFP_MEMBER_JSON "\n%s  " XFP_MEMBER_IDX "\n", json_hex, idx_hex);
}
