/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceiling.c - the memory bandwidth and the multiply-add throughput of the machine.
 */
#include "kernel-verify/kernel_verify.h"

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define EVERY_PROCESSOR __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), optimize("O3")))
#else
#define EVERY_PROCESSOR
#endif

/* Reads page by page and prefetches the next. */
EVERY_PROCESSOR
uint64_t xfp_ceiling_read(const uint8_t *from, size_t bytes)
{
	uint64_t sum[64] = { 0 };

	for (size_t i = 0; i + 512 <= bytes; i += 512) {
		const uint64_t *word = (const uint64_t *)(const void *)(from + i);

		for (int line = 0; line < 8; line++)
			__builtin_prefetch(from + i + 4096 + 64 * line);
		for (int j = 0; j < 64; j++)
			sum[j] |= word[j];
	}
	for (int j = 1; j < 64; j++)
		sum[0] |= sum[j];
	return sum[0];
}

/* Twelve independent sums, all in registers. */
#define SUMS 12

/* Define a function that does `steps` multiply-adds per sum: `instruction` with the operands' constraint. */
#define MULTIPLY(name, features, type, instruction, constraint)                                   \
	features static void name(unsigned steps)                                                 \
	{                                                                                         \
		type sum[SUMS] = { { 0 } }, a = { 1 };                                            \
                                                                                                  \
		for (unsigned i = 0; i < steps; i++)                                              \
			_Pragma("GCC unroll 12") for (int j = 0; j < SUMS; j++) __asm__ volatile( \
				instruction : "+" constraint(sum[j]) : constraint(a));            \
	}

#if defined __x86_64__ && defined XFP_X86
typedef float f32_eight __attribute__((vector_size(32)));
typedef float f32_sixteen __attribute__((vector_size(64)));
typedef double f64_four __attribute__((vector_size(32)));
typedef double f64_eight __attribute__((vector_size(64)));
#define AVX512 __attribute__((target("avx512f")))
#define AVX2 __attribute__((target("avx2,fma")))

MULTIPLY(f32_avx512, AVX512, f32_sixteen, "vfmadd231ps %1, %1, %0", "v")
MULTIPLY(f64_avx512, AVX512, f64_eight, "vfmadd231pd %1, %1, %0", "v")
MULTIPLY(f32_avx2, AVX2, f32_eight, "vfmadd231ps %1, %1, %0", "x")
MULTIPLY(f64_avx2, AVX2, f64_four, "vfmadd231pd %1, %1, %0", "x")

/* Operations of the functions for one lane of 32 bits. */
static double multiply(unsigned steps, void (*avx512)(unsigned steps), void (*avx2)(unsigned steps))
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f")) {
		avx512(steps);
		return 2.0 * 16 * SUMS * steps;
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		avx2(steps);
		return 2.0 * 8 * SUMS * steps;
	}
	return 0;
}

double xfp_ceiling_multiply(unsigned steps)
{
	return multiply(steps, f32_avx512, f32_avx2);
}

double xfp_ceiling_multiply_f64(unsigned steps)
{
	return multiply(steps, f64_avx512, f64_avx2) / 2;
}
#elif defined __aarch64__
typedef float f32_four __attribute__((vector_size(16)));
typedef double f64_two __attribute__((vector_size(16)));

MULTIPLY(f32_neon, , f32_four, "fmla %0.4s, %1.4s, %1.4s", "w")
MULTIPLY(f64_neon, , f64_two, "fmla %0.2d, %1.2d, %1.2d", "w")

double xfp_ceiling_multiply(unsigned steps)
{
	f32_neon(steps);
	return 2.0 * 4 * SUMS * steps;
}

double xfp_ceiling_multiply_f64(unsigned steps)
{
	f64_neon(steps);
	return 2.0 * 2 * SUMS * steps;
}
#else
double xfp_ceiling_multiply(unsigned steps)
{
	(void)steps;
	return 0;
}

double xfp_ceiling_multiply_f64(unsigned steps)
{
	(void)steps;
	return 0;
}
#endif
