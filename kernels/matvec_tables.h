/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_tables.h - the library of a unit as kernels look it up, see xfp_matvec_tables.
 */
#ifndef XFP_MATVEC_TABLES_H
#define XFP_MATVEC_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#define XFP_TABLES_ALL 256 /* whatever a group's byte says is there */

/* 64 bytes; then, for k up to 4, 256 times 32 bytes: sixteen high bytes, repeated where 2^k is less, and sixteen low
 * ones; then f32, [256][2^k]. */
struct xfp_tables_head {
	bool bytes_fit; /* entries are finite */
	float step;     /* an entry is step * (256 high + low - 32768) */
	uint8_t fill[56];
};

#define XFP_TABLES_BYTES (sizeof(struct xfp_tables_head) + XFP_TABLES_ALL * 32)

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
