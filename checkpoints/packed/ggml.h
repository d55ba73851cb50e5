/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml.h - tensor types of GGUF files, by number.
 *
 * A row is a run of blocks. Some types are plain dtypes; others are decoded by the codec gguf, whose first parameter is
 * the number; the rest have only a name and a size, so that their files can be listed.
 */
#ifndef XFP_GGML_H
#define XFP_GGML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Numbers that the code refers to. */
enum xfp_ggml_number {
	XFP_GGML_F32 = 0,
	XFP_GGML_F16 = 1,
	XFP_GGML_Q4_0 = 2,
	XFP_GGML_Q4_1 = 3,
	XFP_GGML_Q5_0 = 6,
	XFP_GGML_Q5_1 = 7,
	XFP_GGML_Q8_0 = 8,
	XFP_GGML_Q2_K = 10,
	XFP_GGML_Q3_K = 11,
	XFP_GGML_Q4_K = 12,
	XFP_GGML_Q5_K = 13,
	XFP_GGML_Q6_K = 14,
	XFP_GGML_IQ4_NL = 20,
	XFP_GGML_IQ4_XS = 23,
	XFP_GGML_I8 = 24,
	XFP_GGML_I16 = 25,
	XFP_GGML_I32 = 26,
	XFP_GGML_I64 = 27,
	XFP_GGML_F64 = 28,
	XFP_GGML_BF16 = 30,
	XFP_GGML_MXFP4 = 39,
	XFP_GGML_NVFP4 = 40,
	XFP_GGML_NUMBERS = 43 /* all numbers are below it */
};

enum xfp_ggml_form {
	XFP_GGML_REMOVED, /* removed from the format; without a size */
	XFP_GGML_LISTED,  /* can be listed, but not decoded */
	XFP_GGML_DTYPE,   /* elements of `dtype`, one after the other */
	XFP_GGML_BLOCKS,  /* decoded to `dtype`: f16, or bf16 if 8-bit scales exceed f16's range */
};

struct xfp_ggml_type {
	const char *name;         /* ggml's name: "Q4_K" */
	uint32_t elements, bytes; /* per block */
	enum xfp_ggml_form form;
	enum xfp_dtype dtype;
};

/* Parameters of the codec. */
enum xfp_ggml_parameter {
	XFP_GGML_TYPE,        /* number of the type */
	XFP_GGML_MATRIX_ROWS, /* rows with a common global scale; 0 without one */
};

/* Return a type by number, static storage; NULL if the number is unknown. */
const struct xfp_ggml_type *xfp_ggml_type(uint64_t number);

#endif
