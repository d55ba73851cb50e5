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

#if defined __x86_64__ && defined XFP_X86
typedef float eight __attribute__((vector_size(32)));
typedef float sixteen __attribute__((vector_size(64)));

__attribute__((target("avx512f"))) static void multiply_sixteen(unsigned steps)
{
	sixteen sum[SUMS] = { { 0 } }, a = { 1 };

	for (unsigned i = 0; i < steps; i++)
#pragma GCC unroll 12
		for (int j = 0; j < SUMS; j++)
			__asm__ volatile("vfmadd231ps %1, %1, %0" : "+v"(sum[j]) : "v"(a));
}

__attribute__((target("avx2,fma"))) static void multiply_eight(unsigned steps)
{
	eight sum[SUMS] = { { 0 } }, a = { 1 };

	for (unsigned i = 0; i < steps; i++)
#pragma GCC unroll 12
		for (int j = 0; j < SUMS; j++)
			__asm__ volatile("vfmadd231ps %1, %1, %0" : "+x"(sum[j]) : "x"(a));
}

double xfp_ceiling_multiply(unsigned steps)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f")) {
		multiply_sixteen(steps);
		return 2.0 * 16 * SUMS * steps;
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		multiply_eight(steps);
		return 2.0 * 8 * SUMS * steps;
	}
	return 0;
}
#elif defined __aarch64__
typedef float four __attribute__((vector_size(16)));

double xfp_ceiling_multiply(unsigned steps)
{
	four sum[SUMS] = { { 0 } }, a = { 1 };

	for (unsigned i = 0; i < steps; i++)
#pragma GCC unroll 12
		for (int j = 0; j < SUMS; j++)
			__asm__ volatile("fmla %0.4s, %1.4s, %1.4s" : "+w"(sum[j]) : "w"(a));
	return 2.0 * 4 * SUMS * steps;
}
#else
double xfp_ceiling_multiply(unsigned steps)
{
	(void)steps;
	return 0;
}
#endif
