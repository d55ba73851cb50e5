/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registers.h - sixteen lanes in one, two or four registers: the operations that compilers' vector types express, the
 * same for every instruction set. plain.h, avx2.h, avx512.h and neon.h include this header and add the other ones, with
 * the same results, bit for bit.
 *
 *   vf  16 f32      vi  16 int32      vd  16 f64      vm  16 booleans
 *
 * Before it, they define LANES_WIDTH, the number of 32-bit lanes in a register, and the types of the set's intrinsics:
 * reg_f, reg_i and reg_d.
 */
#ifndef XFP_LANES_REGISTERS_H
#define XFP_LANES_REGISTERS_H

#include <stdint.h>
#include <string.h>

#include "kernels/lanes/lanes.h"

#define LANES_REGISTERS (XFP_LANES / LANES_WIDTH)

#define LANES_INLINE static inline __attribute__((always_inline))
#define EACH_REGISTER _Pragma("GCC unroll 4") for (int i = 0; i < LANES_REGISTERS; i++)
#define EACH_DOUBLE _Pragma("GCC unroll 8") for (int i = 0; i < 2 * LANES_REGISTERS; i++)

typedef struct {
	reg_f of[LANES_REGISTERS];
} vf;
typedef struct {
	reg_i of[LANES_REGISTERS];
} vi;
typedef struct {
	reg_d of[2 * LANES_REGISTERS];
} vd;

/* One register as a vector of its elements, for operators. */
typedef float f32_reg __attribute__((vector_size(4 * LANES_WIDTH)));
typedef int32_t i32_reg __attribute__((vector_size(4 * LANES_WIDTH)));
typedef uint32_t u32_reg __attribute__((vector_size(4 * LANES_WIDTH)));
typedef double f64_reg __attribute__((vector_size(4 * LANES_WIDTH)));
/* The same at any address. */
typedef reg_f f32_at __attribute__((aligned(4), may_alias));
typedef reg_i i32_at __attribute__((aligned(1), may_alias));
typedef reg_d f64_at __attribute__((aligned(8), may_alias));

LANES_INLINE vf vf_load(const float *from)
{
	vf a;

	EACH_REGISTER a.of[i] = *(const f32_at *)(from + i * LANES_WIDTH);
	return a;
}

LANES_INLINE void vf_store(float *to, vf a)
{
	EACH_REGISTER *(f32_at *)(to + i * LANES_WIDTH) = a.of[i];
}

LANES_INLINE vf vf_all(float value)
{
	vf a;

	EACH_REGISTER a.of[i] = (reg_f)(value - (f32_reg){ 0 });
	return a;
}

LANES_INLINE vf vf_mul(vf a, vf b)
{
	EACH_REGISTER a.of[i] *= b.of[i];
	return a;
}

LANES_INLINE vf vf_add(vf a, vf b)
{
	EACH_REGISTER a.of[i] += b.of[i];
	return a;
}

LANES_INLINE vf vf_sub(vf a, vf b)
{
	EACH_REGISTER a.of[i] -= b.of[i];
	return a;
}

LANES_INLINE vf vf_div(vf a, vf b)
{
	EACH_REGISTER a.of[i] /= b.of[i];
	return a;
}

LANES_INLINE vi vf_bits(vf a)
{
	vi b;

	EACH_REGISTER b.of[i] = (reg_i)a.of[i];
	return b;
}

LANES_INLINE vf vf_from_bits(vi a)
{
	vf b;

	EACH_REGISTER b.of[i] = (reg_f)a.of[i];
	return b;
}

LANES_INLINE vf vf_from_i(vi a)
{
	vf b;

	EACH_REGISTER b.of[i] = (reg_f) __builtin_convertvector((i32_reg)a.of[i], f32_reg);
	return b;
}

LANES_INLINE vi vi_load(const void *from)
{
	vi a;

	EACH_REGISTER a.of[i] = ((const i32_at *)from)[i];
	return a;
}

LANES_INLINE void vi_store(void *to, vi a)
{
	EACH_REGISTER((i32_at *)to)[i] = a.of[i];
}

LANES_INLINE vi vi_all(int32_t value)
{
	vi a;

	EACH_REGISTER a.of[i] = (reg_i)(value | (i32_reg){ 0 });
	return a;
}

LANES_INLINE vi vi_add(vi a, vi b)
{
	EACH_REGISTER a.of[i] = (reg_i)((u32_reg)a.of[i] + (u32_reg)b.of[i]);
	return a;
}

LANES_INLINE vi vi_sub(vi a, vi b)
{
	EACH_REGISTER a.of[i] = (reg_i)((u32_reg)a.of[i] - (u32_reg)b.of[i]);
	return a;
}

LANES_INLINE vi vi_and(vi a, vi b)
{
	EACH_REGISTER a.of[i] &= b.of[i];
	return a;
}

LANES_INLINE vi vi_or(vi a, vi b)
{
	EACH_REGISTER a.of[i] |= b.of[i];
	return a;
}

LANES_INLINE vi vi_xor(vi a, vi b)
{
	EACH_REGISTER a.of[i] ^= b.of[i];
	return a;
}

/* Shifts of all lanes by one count: left, right with zeros; the sign everywhere. */
LANES_INLINE vi vi_left(vi a, int count)
{
	EACH_REGISTER a.of[i] = (reg_i)((u32_reg)a.of[i] << count);
	return a;
}

LANES_INLINE vi vi_right(vi a, int count)
{
	EACH_REGISTER a.of[i] = (reg_i)((u32_reg)a.of[i] >> count);
	return a;
}

LANES_INLINE vi vi_sign(vi a)
{
	EACH_REGISTER a.of[i] = (reg_i)((i32_reg)a.of[i] >> 31); /* cppcheck-suppress shiftTooManyBitsSigned */
	return a;
}

LANES_INLINE vd vd_all(double value)
{
	vd a;

	EACH_DOUBLE a.of[i] = (reg_d)(value - (f64_reg){ 0 });
	return a;
}

LANES_INLINE vd vd_zero(void)
{
	return vd_all(0);
}

LANES_INLINE vd vd_load(const double *from)
{
	vd a;

	EACH_DOUBLE a.of[i] = *(const f64_at *)(from + i * (LANES_WIDTH / 2));
	return a;
}

LANES_INLINE void vd_store(double *to, vd a)
{
	EACH_DOUBLE *(f64_at *)(to + i * (LANES_WIDTH / 2)) = a.of[i];
}

LANES_INLINE vd vd_add(vd a, vd b)
{
	EACH_DOUBLE a.of[i] += b.of[i];
	return a;
}

LANES_INLINE vd vd_sub(vd a, vd b)
{
	EACH_DOUBLE a.of[i] -= b.of[i];
	return a;
}

LANES_INLINE vd vd_mul(vd a, vd b)
{
	EACH_DOUBLE a.of[i] *= b.of[i];
	return a;
}

LANES_INLINE vd vd_div(vd a, vd b)
{
	EACH_DOUBLE a.of[i] /= b.of[i];
	return a;
}

#endif
