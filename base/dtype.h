/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.h - element types of source tensors.
 *
 * The names are those of safetensors; the numbers are stored in ledgers and bundles and never change.
 */
#ifndef XFP_DTYPE_H
#define XFP_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum xfp_dtype {
	XFP_F64,
	XFP_F32,
	XFP_F16,
	XFP_BF16, /* these three can be quantized */
	XFP_BOOL,
	XFP_U8,
	XFP_I8,
	XFP_U16,
	XFP_I16,
	XFP_U32,
	XFP_I32,
	XFP_U64,
	XFP_I64,
	XFP_C64,
	XFP_F8_E4M3,
	XFP_F8_E5M2,
	XFP_F8_E8M0,
	XFP_F8_E4M3FNUZ,
	XFP_F8_E5M2FNUZ,
	XFP_F6_E2M3,
	XFP_F6_E3M2,
	XFP_F4,
	XFP_DTYPES
};

/* Bits of one element. */
unsigned xfp_dtype_bits(enum xfp_dtype dtype);
/* "BF16" and so on; static storage. */
const char *xfp_dtype_name(enum xfp_dtype dtype);
/* Look up a dtype by its exact, case-sensitive name; false if the name is unknown. */
bool xfp_dtype_parse(const char *name, enum xfp_dtype *dtype);
/* Whether weights of this dtype can be read as numbers (F64, F32, F16, BF16). */
static inline bool xfp_dtype_is_weight(enum xfp_dtype dtype)
{
	return dtype <= XFP_BF16;
}

#endif
