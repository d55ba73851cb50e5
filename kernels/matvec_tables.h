/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_tables.h - the library of a unit as kernels look it up, see xfp_matvec_tables.
 */
#ifndef XFP_MATVEC_TABLES_H
#define XFP_MATVEC_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define XFP_TABLES_ALL 256 /* whatever a group's byte says is there */

/* 64 bytes; then, for k up to 4, 256 times 32 bytes: sixteen high bytes, repeated where 2^k is less, and sixteen low
 * ones; then f32, [256][2^k]. */
struct xfp_tables_head {
	bool bytes_fit; /* entries are finite */
	float step;     /* an entry is step * (256 high + low - 32768) */
	uint8_t fill[56];
};

#define XFP_TABLES_BYTES (sizeof(struct xfp_tables_head) + XFP_TABLES_ALL * 32)

/* 2^14 * xfp_balance_down(byte), the scale of a row of v2c, without a call. */
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

static inline const uint8_t *xfp_tables_bytes(const void *tables)
{
	return (const uint8_t *)tables + sizeof(struct xfp_tables_head);
}

static inline const float *xfp_tables_entry(const void *tables)
{
	return (const float *)(const void *)((const uint8_t *)tables + XFP_TABLES_BYTES);
}

#endif
