/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_unroll.h - INLINE and UNROLL: kernels are written out for each k and number of vectors, unless MATVEC_SMALL
 * is defined.
 */
#ifndef XFP_MATVEC_UNROLL_H
#define XFP_MATVEC_UNROLL_H

#ifdef MATVEC_SMALL
#define WRITTEN_OUT false
#define INLINE static
#define UNROLL
#else
#define WRITTEN_OUT true
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
#endif

#endif
