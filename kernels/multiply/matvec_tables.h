/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_tables.h - look-up tables of a unit's library; see xfp_matvec_tables.
 */
#ifndef XFP_MATVEC_TABLES_H
#define XFP_MATVEC_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XFP_TABLES_ALL 256 /* one per value of a group's byte */
#define XFP_MAX_NARROW_K 4
#define XFP_NARROW_BYTES 16

/* Header of the tables, 64 bytes. It is followed by f32 entries, [256][2^k]; then by 256 tables of bytes and 256 of
 * words. A table contains the high bytes of its entries, then the low bytes: 2^k of each, or 16 with repetitions if 2^k
 * is less. Up to k = 4, 256 tables of 8-bit entries follow, 16 entries each, with repetitions.
 *
 * 8-bit entries are used if rounding to them adds about 1 % to the quantization error, at most. The library alone
 * decides, so that a unit has the same arithmetic on every machine: the mean square of the rounding errors is compared
 * with the mean of gap^2 / 12 over the gaps between adjacent entries, of the median table. (The mean over tables is
 * several times too large: few groups have the largest tables.) */
struct xfp_tables_head {
	bool bytes_fit; /* all entries are finite */
	float step; /* an entry is step * (256 high + low - 32768); on AArch64 step * (256 high + low), both signed */
	uint32_t codebooks;
	float word_step;   /* as a word: word_step * (256 high + low), high signed: up to 2^14 */
	bool narrow_fit;   /* 8-bit entries are used for one or two vectors */
	float narrow_step; /* an entry is narrow_step * (256 byte - 32768), rounded */
	uint8_t fill[40];
};

/* Return 2^14 * xfp_balance_down(byte), the scale of a v2c row; inline, without a call. */
static inline float xfp_row_scale(uint8_t byte)
{
	static const float quarter[4] = { 1.0f, 0.84089641525371454303f, 0.70710678118654752440f,
					  0.59460355750136053335f };
	uint32_t bits = (uint32_t)(127 + 14 - (byte >> 2)) << 23;
	float power;

	memcpy(&power, &bits, sizeof power);
	return quarter[byte & 3] * power;
}

static inline const struct xfp_tables_head *xfp_tables_head(const void *tables)
{
	return tables;
}

static inline const float *xfp_tables_entry(const void *tables)
{
	return (const float *)(const void *)((const uint8_t *)tables + sizeof(struct xfp_tables_head));
}

/* Return the size of a table of bytes or words, and of its high bytes alone. */
static inline size_t xfp_table_bytes(unsigned k)
{
	return k > 4 ? (size_t)2 << k : 32;
}

static inline size_t xfp_table_half(unsigned k)
{
	return xfp_table_bytes(k) / 2;
}

static inline const uint8_t *xfp_tables_bytes(const void *tables, unsigned k)
{
	return (const uint8_t *)(const void *)(xfp_tables_entry(tables) + ((size_t)XFP_TABLES_ALL << k));
}

static inline const uint8_t *xfp_tables_words(const void *tables, unsigned k)
{
	return xfp_tables_bytes(tables, k) + XFP_TABLES_ALL * xfp_table_bytes(k);
}

/* Return the words for shuffles of 16 bytes: from k = 5 on, each 16 bytes after the first of a table's high and of its
 * low bytes are XORed with the 16 before. */
static inline const uint8_t *xfp_tables_shuffled(const void *tables, unsigned k)
{
	return xfp_tables_words(tables, k) + (k > 4 ? XFP_TABLES_ALL * xfp_table_bytes(k) : 0);
}

/* Up to k = 4. */
static inline const uint8_t *xfp_tables_narrow(const void *tables, unsigned k)
{
	return xfp_tables_words(tables, k) + XFP_TABLES_ALL * xfp_table_bytes(k);
}

#endif
