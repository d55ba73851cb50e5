/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_lanes_plain.h - sixteen lanes in plain C, for any machine. matvec_lanes_avx2.h, matvec_lanes_avx512.h and
 * matvec_lanes_neon.h define the same names; matvec_rows.h is written on top of one of them.
 *
 *   mf  16 f32      mi  16 uint32      struct table  the 2^k entries that indices of 16 lanes are looked up in
 */
#ifndef XFP_MATVEC_LANES_PLAIN_H
#define XFP_MATVEC_LANES_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/multiply/matvec.h"

#define EACH for (int i = 0; i < 16; i++)

typedef struct {
	float v[16];
} mf;
typedef struct {
	uint32_t v[16];
} mi;

struct table {
	float entry[64];
};

/* What is read soon after `at`. */
#define m_prefetch(at) ((void)(at))

static inline mf mf_zero(void)
{
	return (mf){ { 0 } };
}

static inline mf mf_load(const float *from)
{
	mf a;

	memcpy(&a, from, sizeof a);
	return a;
}

static inline void mf_store(float *to, mf a)
{
	memcpy(to, &a, sizeof a);
}

static inline mf mf_mul(mf a, mf b)
{
	EACH a.v[i] *= b.v[i];
	return a;
}

/* a * b + c, rounded once or twice. */
static inline mf mf_fma(mf a, mf b, mf c)
{
	EACH c.v[i] += a.v[i] * b.v[i];
	return c;
}

static inline mf mf_add(mf a, mf b)
{
	EACH a.v[i] += b.v[i];
	return a;
}

/* Of all lanes, pairwise. */
static inline float mf_sum(mf a)
{
	for (int step = 8; step; step /= 2)
		for (int i = 0; i < step; i++)
			a.v[i] += a.v[i + step];
	return a.v[0];
}

/* b from the lane on, a before it. */
static inline mf mf_from(mf a, mf b, unsigned lane)
{
	EACH a.v[i] = (unsigned)i < lane ? a.v[i] : b.v[i];
	return a;
}

static inline mi mi_load(const uint8_t *from)
{
	mi a;

	memcpy(&a, from, sizeof a);
	return a;
}

/* The first lanes; the others are zero. */
static inline mi mi_load_part(const uint8_t *from, unsigned lanes)
{
	mi a = { { 0 } };

	memcpy(&a, from, (size_t)4 * lanes);
	return a;
}

static inline mi mi_shift(mi a, unsigned count)
{
	EACH a.v[i] >>= count;
	return a;
}

/* Bits of a where the mask has ones, of b elsewhere. */
static inline mi mi_merge(mi a, mi b, uint32_t mask)
{
	EACH a.v[i] = (a.v[i] & mask) | (b.v[i] & ~mask);
	return a;
}

/* By the low k bits. */
static inline mf mf_lookup(unsigned k, const struct table *t, mi index)
{
	mf a;

	EACH a.v[i] = t->entry[index.v[i] & ((1u << k) - 1)];
	return a;
}

/* 2^k entries, in fp16 anywhere or in f32 aligned to their size. */
static inline void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
{
	xfp_to_float(2, from, (size_t)1 << k, t->entry); /* F16 of base/dtype.h */
}

static inline void table_of_floats(unsigned k, const float *from, struct table *t)
{
	memcpy(t->entry, from, sizeof(float) << k);
}

/* Times an fp16 scale, plus the fp16 midpoint behind it. */
static inline void table_scale(unsigned k, struct table *t, const uint8_t *pair)
{
	float numbers[2];

	xfp_to_float(2, pair, 2, numbers);
	for (unsigned i = 0; i < 1u << k; i++)
		t->entry[i] = t->entry[i] * numbers[0] + numbers[1];
}

/* Sixteen stored numbers; fp8 as a 256th of them. */
static inline mf mf_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	mf a = { .v = { 0 } };

	if (mode == XFP_MATVEC_FP8)
		EACH a.v[i] = xfp_e4m3_to_float(from[i]) * 0x1p-8f;
	else
		xfp_to_float(mode == XFP_MATVEC_F32 ? 1 : mode == XFP_MATVEC_F16 ? 2 : 3, from, 16, a.v);
	return a;
}

#undef EACH

#endif
