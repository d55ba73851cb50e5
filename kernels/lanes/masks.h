/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masks.h - truth values of lanes as vectors of 0 and -1, for the sets that have no registers for masks: all but
 * AVX-512. The including header defines reg_m, the type of comparisons of the set's intrinsics.
 */
#ifndef XFP_LANES_MASKS_H
#define XFP_LANES_MASKS_H

#include "kernels/lanes/registers.h"

typedef struct {
	reg_m of[LANES_REGISTERS];
} vm;

LANES_INLINE vm vf_above(vf a, vf b)
{
	vm m;

	EACH_REGISTER m.of[i] = (reg_m)(a.of[i] > b.of[i]);
	return m;
}

LANES_INLINE vm vi_above(vi a, vi b)
{
	vm m;

	EACH_REGISTER m.of[i] = (reg_m)((i32_reg)a.of[i] > (i32_reg)b.of[i]);
	return m;
}

/* Return a if m is false, a + b if it is true. */
LANES_INLINE vi vi_add_where(vi a, vm m, vi b)
{
	EACH_REGISTER a.of[i] = (reg_i)((u32_reg)a.of[i] + ((u32_reg)b.of[i] & (u32_reg)m.of[i]));
	return a;
}

LANES_INLINE vm vm_or(vm a, vm b)
{
	EACH_REGISTER a.of[i] |= b.of[i];
	return a;
}

LANES_INLINE vm vm_and(vm a, vm b)
{
	EACH_REGISTER a.of[i] &= b.of[i];
	return a;
}

/* The first `count` lanes; zero in the others. */
LANES_INLINE vi vi_load_first(const void *from, unsigned count)
{
	int32_t lanes[XFP_LANES] = { 0 };

	memcpy(lanes, from, count * sizeof *lanes);
	return vi_load(lanes);
}

/* Return the bits of a where the mask is one, of b elsewhere. */
LANES_INLINE vi vi_merge(vi a, vi b, uint32_t mask)
{
	const vi m = vi_all((int32_t)mask);

	EACH_REGISTER a.of[i] = (a.of[i] & m.of[i]) | (b.of[i] & ~m.of[i]);
	return a;
}

#endif
