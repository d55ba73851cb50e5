/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec.c - code that the instruction sets share: selection, and outliers.
 */
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"

#ifdef XFP_X86
#include <cpuid.h>
#endif
#include <string.h>

#ifdef XFP_X86
/* Some compilers' __builtin_cpu_supports does not know f16c. */
static bool has_f16c(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static const struct xfp_matvec_set *find_best(void)
{
#ifdef XFP_X86
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
		return &xfp_matvec_plain;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
		return &xfp_matvec_avx2;
	if (!__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512vnni"))
		return &xfp_matvec_avx512;
	return &xfp_matvec_vbmi;
#elif defined XFP_AARCH64
	return &xfp_matvec_neon; /* every AArch64 processor has NEON */
#else
	return &xfp_matvec_plain;
#endif
}

/* In ascending order: a processor that runs a set also runs those before it. */
static const struct xfp_matvec_set *const sets[] = {
	&xfp_matvec_plain,
#ifdef XFP_X86
	&xfp_matvec_avx2,  &xfp_matvec_avx512, &xfp_matvec_vbmi,
#endif
#ifdef XFP_AARCH64
	&xfp_matvec_neon,
#endif
};

/* Threads may race to set these: all of them compute the same value. */
static const struct xfp_matvec_set *best, *in_use;

const struct xfp_matvec_set *xfp_matvec_best(void)
{
	const struct xfp_matvec_set *set = __atomic_load_n(&best, __ATOMIC_RELAXED);

	if (!set) {
		set = find_best();
		__atomic_store_n(&best, set, __ATOMIC_RELAXED);
	}
	return set;
}

const struct xfp_matvec_set *xfp_matvec_set(void)
{
	const struct xfp_matvec_set *set = __atomic_load_n(&in_use, __ATOMIC_RELAXED);

	return set ? set : xfp_matvec_best();
}

bool xfp_matvec_use(const char *name)
{
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		if (!strcmp(sets[i]->name, name)) {
			__atomic_store_n(&in_use, sets[i], __ATOMIC_RELAXED);
			return true;
		}
		if (sets[i] == xfp_matvec_best())
			break;
	}
	return false;
}

bool xfp_matvec_codebooks_exist(const struct xfp_matvec *w, unsigned codebooks, size_t first, size_t rows)
{
	size_t groups = (w->cols + ((size_t)1 << w->group) - 1) >> w->group;
	uint64_t beyond = (256 - codebooks) * UINT64_C(0x0101010101010101), any = 0, eight;

	if (w->mode != XFP_MATVEC_V2A || codebooks == 256)
		return true;
	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *byte = w->byte + r * w->row_groups;
		size_t g = 0;

		for (; g + 8 <= groups; g += 8) {
			memcpy(&eight, byte + g, sizeof eight);
			any |= eight;
		}
		for (; g < groups; g++)
			any |= byte[g];
	}
	return !(any & beyond);
}

bool xfp_matvec_outliers(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, float *y,
			 size_t stride)
{
	struct xfp_outlier_row at;

	xfp_outlier_rows_begin(&w->outliers, first, &at);
	for (size_t r = first; r < first + rows; r++) {
		double sum[XFP_MAX_BATCH] = { 0 };

		if (!xfp_outlier_rows_next(&w->outliers, r, &at))
			return false;
		if (at.first == at.end)
			continue;
		if (!xfp_outlier_rows_dot(&w->outliers, &at, x->natural, x->count, w->first_column, w->cols, sum))
			return false;
		for (unsigned m = 0; m < x->count; m++)
			y[m * stride + r - first] += (float)(sum[m] * w->unit);
	}
	return xfp_outlier_rows_end(&w->outliers, first + rows, &at);
}

bool xfp_matvec_rows(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add,
		     float *y, size_t stride)
{
	const struct xfp_matvec_set *set = xfp_matvec_set();

	if (w->mode == XFP_MATVEC_V2A &&
	    !xfp_matvec_codebooks_exist(w, xfp_tables_head(w->tables)->codebooks, first, rows))
		return false;
	set->rows(w, x, first, rows, add, y, stride);
	return !w->outliers.count || !rows || set->outliers(w, x, first, rows, y, stride);
}
