/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - little-endian loads and stores, overflow-checked sizes, alignment, hexadecimal digits.
 *
 * Every stored integer of xfp is little-endian; loads and stores work at any alignment.
 */
#ifndef XFP_BYTES_H
#define XFP_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "xfp maps little-endian records in place; a big-endian host is not supported"
#endif

static inline uint16_t xfp_load16(const void *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof v);
	return v;
}
static inline uint32_t xfp_load32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}
static inline uint64_t xfp_load64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}
static inline void xfp_store16(void *p, uint16_t v)
{
	memcpy(p, &v, sizeof v);
}
static inline void xfp_store32(void *p, uint32_t v)
{
	memcpy(p, &v, sizeof v);
}
static inline void xfp_store64(void *p, uint64_t v)
{
	memcpy(p, &v, sizeof v);
}

/* `*out = a op b`; false when the result does not fit in 64 bits. */
static inline bool xfp_mul(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}
static inline bool xfp_add(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

/* `a op b`, or UINT64_MAX if the result does not fit. */
static inline uint64_t xfp_mul_sat(uint64_t a, uint64_t b)
{
	uint64_t product;

	return xfp_mul(a, b, &product) ? product : UINT64_MAX;
}
static inline uint64_t xfp_add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return xfp_add(a, b, &sum) ? sum : UINT64_MAX;
}

/* Round `n` up to a multiple of `unit` (a power of two). */
static inline uint64_t xfp_align(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) & ~(unit - 1);
}

/* The number of units that cover `n`; the last one may be partial. */
static inline uint64_t xfp_divide_up(uint64_t n, uint64_t unit)
{
	return n / unit + (n % unit != 0);
}

/* Write two lower-case hexadecimal digits for each byte, and a terminating NUL. */
static inline void xfp_hex(const uint8_t *bytes, size_t size, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * size] = 0;
}

#endif
