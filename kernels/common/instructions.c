/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/instructions.h"

#include <string.h>

#ifdef XFP_X86
#include <cpuid.h>

/* Some compilers' __builtin_cpu_supports does not know f16c. */
static bool has_f16c(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

#ifdef XFP_AARCH64
#include <sys/auxv.h>

#define HAS_DOT_PRODUCTS (1ul << 20) /* HWCAP_ASIMDDP, which old headers lack */
#endif

static enum xfp_instruction_set find_best(void)
{
#ifdef XFP_X86
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
		return XFP_PLAIN;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
		return XFP_AVX2;
	if (!__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512vnni"))
		return XFP_AVX512;
	return XFP_VBMI;
#elif defined XFP_AARCH64
	return getauxval(AT_HWCAP) & HAS_DOT_PRODUCTS ? XFP_DOTPROD : XFP_NEON; /* every AArch64 processor has NEON */
#else
	return XFP_PLAIN;
#endif
}

const char *xfp_instruction_set_name(enum xfp_instruction_set set)
{
	static const char *const names[XFP_INSTRUCTION_SETS] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };

	return names[set];
}

/* One more than the set, or 0. Threads may race to set these: all of them compute the same value. */
static int best, in_use;

enum xfp_instruction_set xfp_best_instruction_set(void)
{
	int set = __atomic_load_n(&best, __ATOMIC_RELAXED);

	if (!set) {
		set = (int)find_best() + 1;
		__atomic_store_n(&best, set, __ATOMIC_RELAXED);
	}
	return (enum xfp_instruction_set)(set - 1);
}

enum xfp_instruction_set xfp_instruction_set(void)
{
	int set = __atomic_load_n(&in_use, __ATOMIC_RELAXED);

	return set ? (enum xfp_instruction_set)(set - 1) : xfp_best_instruction_set();
}

/* The set that a name denotes if this machine supports it; -1 otherwise. */
static int find_supported(const char *name)
{
	enum xfp_instruction_set max = xfp_best_instruction_set();

	for (int set = XFP_PLAIN; set < XFP_INSTRUCTION_SETS; set++)
		if (!strcmp(xfp_instruction_set_name((enum xfp_instruction_set)set), name))
			return set == XFP_PLAIN || (set <= (int)max && (set >= XFP_NEON) == (max >= XFP_NEON)) ? set
													       : -1;
	return -1;
}

bool xfp_instruction_set_supported(const char *name)
{
	return find_supported(name) >= 0;
}

bool xfp_instruction_set_use(const char *name)
{
	int set = find_supported(name);

	if (set >= 0)
		__atomic_store_n(&in_use, set + 1, __ATOMIC_RELAXED);
	return set >= 0;
}
