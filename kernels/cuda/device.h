/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - wrappers of the instructions that the kernels use.
 */
#ifndef XFP_CUDA_DEVICE_H
#define XFP_CUDA_DEVICE_H

#include "kernels/cuda/abi.h"

#define XFP_DEVICE __device__ __forceinline__

/* Byte i of the result is byte (s >> 4 i & 7) of the eight bytes of b:a. If bit 3 of a field is set, the byte's highest
 * bit is replicated. CUDA's __byte_perm masks s first, which costs an instruction. */
XFP_DEVICE uint32_t prmt(uint32_t a, uint32_t b, uint32_t s)
{
	uint32_t d;

	asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(s));
	return d;
}

#define XFP_CUDA_NAN 0x7fffffffu /* bits of a float */

/* Return the bits of a where mask is 1, of b elsewhere. */
XFP_DEVICE uint32_t choose(uint32_t mask, uint32_t a, uint32_t b)
{
	uint32_t d;

	asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(d) : "r"(mask), "r"(a), "r"(b));
	return d;
}

/* Return a & b | c in one instruction; volatile, so that a shift of the result is not moved to `a`. */
XFP_DEVICE uint32_t and_or(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t d;

	asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
}

/* Load weights, which are read once and need no cache. */
XFP_DEVICE uint4 load_once(const uint8_t *p)
{
	uint4 v;

	asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "l"(p));
	return v;
}

/* Load words that are 16 bytes apart; other instructions of the warp load their neighbours. */
XFP_DEVICE uint32_t load_word(const uint8_t *p)
{
	uint32_t v;

	asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}

XFP_DEVICE uint4 load_four(const uint8_t *p)
{
	uint4 v;

	v.x = load_word(p);
	v.y = load_word(p + 16);
	v.z = load_word(p + 32);
	v.w = load_word(p + 48);
	return v;
}

/* Load at this point of the program, and not earlier: the loads of a whole chunk would not fit in registers. */
XFP_DEVICE uint2 load_here(const uint8_t *p)
{
	uint2 v;

	asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
	return v;
}

/* Keep an address in a register, which the compiler would otherwise recompute from parameters at each use. */
XFP_DEVICE const uint8_t *in_register(const uint8_t *p)
{
	asm("" : "+l"(p));
	return p;
}

XFP_DEVICE uint32_t in_register(uint32_t i)
{
	asm("" : "+r"(i));
	return i;
}

template <class T> XFP_DEVICE const T *at(uint64_t address)
{
	return reinterpret_cast<const T *>(address);
}

XFP_DEVICE float half_to_float(uint16_t half)
{
	float f;

	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half));
	return f;
}

XFP_DEVICE uint16_t float_to_half(float f)
{
	uint16_t half;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(f));
	return half;
}

/* Round to nearest, ties to even; NaN stays NaN. */
XFP_DEVICE uint16_t float_to_bfloat(float f)
{
	uint32_t bits = __float_as_uint(f);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return static_cast<uint16_t>(bits >> 16 | 0x40u);
	return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

XFP_DEVICE float bfloat_to_float(uint16_t half)
{
	return __uint_as_float(static_cast<uint32_t>(half) << 16);
}

/* Element types of vectors and kept weights, by dtype. */
struct number_f32 {
	typedef float type;
	static XFP_DEVICE float value(float f)
	{
		return f;
	}
};
struct number_f16 {
	typedef uint16_t type;
	static XFP_DEVICE float value(uint16_t h)
	{
		return half_to_float(h);
	}
};
struct number_bf16 {
	typedef uint16_t type;
	static XFP_DEVICE float value(uint16_t h)
	{
		return bfloat_to_float(h);
	}
};

/*
 * Sixteen columns of sixteen rows, fp16, times eight vectors, added to f32 sums.
 *
 * With g = lane / 4 and t = lane % 4, a thread has four columns each of rows g and g + 8, the same four columns of
 * vector g, and the sums of vectors 2 t and 2 t + 1 for both rows. The caller may choose any four columns if weights
 * and vectors agree; here they are 4 t ... 4 t + 3 of the sixteen.
 */
struct fragment {
	uint32_t first[2], second[2]; /* [row], columns 4 t and 4 t + 1, and the next two */
};

XFP_DEVICE void mma(float (&c)[4], const fragment &a, uint2 b)
{
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a.first[0]), "r"(a.first[1]), "r"(a.second[0]), "r"(a.second[1]), "r"(b.x), "r"(b.y));
}

/* Programmatic dependent launch, since 9.0: allows the next launch of the stream to begin. */
XFP_DEVICE void start_next_launch()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Waits until the previous launch has ended. Only after that its results may be read, and its inputs overwritten. */
XFP_DEVICE void wait_for_launch_before()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Returns the previous value. Relaxed: orders no other access. */
XFP_DEVICE int64_t add_atomic(int64_t *to, int64_t value)
{
	int64_t before;

	asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
		     : "=l"(before)
		     : "l"(to), "l"(value)
		     : "memory");
	return before;
}

/* Return the sum over a warp, the same in every lane, always in the same order. */
template <class T> XFP_DEVICE T warp_sum(T f)
{
#pragma unroll
	for (int distance = 16; distance; distance >>= 1)
		f += __shfl_xor_sync(0xffffffffu, f, distance);
	return f;
}

XFP_DEVICE uint32_t warp_max(uint32_t i)
{
#pragma unroll
	for (int distance = 16; distance; distance >>= 1)
		i = max(i, __shfl_xor_sync(0xffffffffu, i, distance));
	return i;
}

/* Return 2^e, if that is a normal number. */
XFP_DEVICE float power(int e)
{
	return __uint_as_float(static_cast<uint32_t>(e + 127) << 23);
}

XFP_DEVICE double power_double(int e)
{
	return __longlong_as_double(static_cast<int64_t>(e + 1023) << 52);
}

/* Return the e that puts a magnitude, given by its bits, between 2^15 and 2^16, as far as fp16 allows. */
XFP_DEVICE int exponent_for(uint32_t bits)
{
	int e = 15 + 127 - static_cast<int>((bits + 0x1000) >> 23);

	return e > 126 ? 126 : e;
}

#endif
