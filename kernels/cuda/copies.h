/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.h - asynchronous copies from global to shared memory.
 *
 * A thread's copies form groups, which complete in the order in which they were committed. A thread sees the bytes of
 * its own copies once it has waited for their group; other threads of the block see them after the next barrier.
 */
#ifndef XFP_CUDA_COPIES_H
#define XFP_CUDA_COPIES_H

#include "kernels/cuda/device.h"

XFP_DEVICE uint32_t shared_address(const void *p)
{
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

XFP_DEVICE uint4 load_shared(uint32_t address)
{
	uint4 v;

	asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "r"(address)
		     : "memory");
	return v;
}

XFP_DEVICE uint2 load_shared_pair(uint32_t address)
{
	uint2 v;

	asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
	return v;
}

/* Load one, two or four bytes. */
template <int BYTES> XFP_DEVICE uint32_t load_shared_bytes(uint32_t address)
{
	uint32_t v;

	if (BYTES == 1)
		asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
	else if (BYTES == 2)
		asm volatile("ld.shared.u16 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
	else
		asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
	return v;
}

/* Copies 16 bytes, bypassing L1. Both addresses are multiples of 16. */
XFP_DEVICE void copy_async(uint32_t to, const uint8_t *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* Copies 16 bytes through L1. */
XFP_DEVICE void copy_async_cached(uint32_t to, const uint8_t *from)
{
	asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* Copies 16 bytes, bypassing L1, or writes 16 zeros. */
XFP_DEVICE void copy_async(uint32_t to, const uint8_t *from, bool there)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
		     : "memory");
}

XFP_DEVICE void commit_copies()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most COUNT groups are in flight. */
template <int COUNT> XFP_DEVICE void wait_for_copies()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
}

#endif
