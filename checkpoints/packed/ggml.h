/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml.h - the types of tensors that GGUF files have, by their numbers there.
 *
 * A row is a run of blocks. Some types are ordinary dtypes, others the codec gguf decodes, whose first parameter is
 * the number; the rest are known by name and size, so that files that have them can be listed.
 */
#ifndef XFP_GGML_H
#define XFP_GGML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Those that the code names. */
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
	XFP_GGML_NUMBERS = 43 /* those that there are end before it */
};

enum xfp_ggml_form {
	XFP_GGML_GONE,   /* no file has it any more: it has no size */
	XFP_GGML_LISTED, /* not decoded */
	XFP_GGML_DTYPE,  /* elements of `dtype`, one after the other */
	XFP_GGML_BLOCKS, /* decoded to `dtype`: f16; bf16 where scales are floats of 8 bits, whose range f16 has not */
};

struct xfp_ggml_type {
	const char *name;         /* as ggml has it: "Q4_K" */
	uint32_t elements, bytes; /* of a block */
	enum xfp_ggml_form form;
	enum xfp_dtype dtype;
};

/* Of the codec. */
enum xfp_ggml_parameter {
	XFP_GGML_TYPE,        /* its number */
	XFP_GGML_MATRIX_ROWS, /* that have a global scale together; 0: there is none */
};

/* NULL: there is no type of that number, of which a file from elsewhere may have one. Static storage. */
const struct xfp_ggml_type *xfp_ggml_type(uint64_t number);

#endif
