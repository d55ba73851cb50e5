/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/packed/ggml.h"

#include <stddef.h>

/* The members after name, elements and bytes. */
#define BLOCKS XFP_GGML_BLOCKS, XFP_F16
#define FLOATS XFP_GGML_BLOCKS, XFP_BF16
#define LISTED XFP_GGML_LISTED, XFP_F16
#define GONE 0, 0, XFP_GGML_REMOVED, XFP_F16

static const struct xfp_ggml_type types[XFP_GGML_NUMBERS] = {
	[XFP_GGML_F32] = { "F32", 1, 4, XFP_GGML_DTYPE, XFP_F32 },
	[XFP_GGML_F16] = { "F16", 1, 2, XFP_GGML_DTYPE, XFP_F16 },
	[XFP_GGML_Q4_0] = { "Q4_0", 32, 18, BLOCKS },
	[XFP_GGML_Q4_1] = { "Q4_1", 32, 20, BLOCKS },
	[4] = { "Q4_2", GONE },
	[5] = { "Q4_3", GONE },
	[XFP_GGML_Q5_0] = { "Q5_0", 32, 22, BLOCKS },
	[XFP_GGML_Q5_1] = { "Q5_1", 32, 24, BLOCKS },
	[XFP_GGML_Q8_0] = { "Q8_0", 32, 34, BLOCKS },
	[9] = { "Q8_1", 32, 36, LISTED },
	[XFP_GGML_Q2_K] = { "Q2_K", 256, 84, BLOCKS },
	[XFP_GGML_Q3_K] = { "Q3_K", 256, 110, BLOCKS },
	[XFP_GGML_Q4_K] = { "Q4_K", 256, 144, BLOCKS },
	[XFP_GGML_Q5_K] = { "Q5_K", 256, 176, BLOCKS },
	[XFP_GGML_Q6_K] = { "Q6_K", 256, 210, BLOCKS },
	[15] = { "Q8_K", 256, 292, LISTED },
	[16] = { "IQ2_XXS", 256, 66, LISTED },
	[17] = { "IQ2_XS", 256, 74, LISTED },
	[18] = { "IQ3_XXS", 256, 98, LISTED },
	[19] = { "IQ1_S", 256, 50, LISTED },
	[XFP_GGML_IQ4_NL] = { "IQ4_NL", 32, 18, BLOCKS },
	[21] = { "IQ3_S", 256, 110, LISTED },
	[22] = { "IQ2_S", 256, 82, LISTED },
	[XFP_GGML_IQ4_XS] = { "IQ4_XS", 256, 136, BLOCKS },
	[XFP_GGML_I8] = { "I8", 1, 1, XFP_GGML_DTYPE, XFP_I8 },
	[XFP_GGML_I16] = { "I16", 1, 2, XFP_GGML_DTYPE, XFP_I16 },
	[XFP_GGML_I32] = { "I32", 1, 4, XFP_GGML_DTYPE, XFP_I32 },
	[XFP_GGML_I64] = { "I64", 1, 8, XFP_GGML_DTYPE, XFP_I64 },
	[XFP_GGML_F64] = { "F64", 1, 8, XFP_GGML_DTYPE, XFP_F64 },
	[29] = { "IQ1_M", 256, 56, LISTED },
	[XFP_GGML_BF16] = { "BF16", 1, 2, XFP_GGML_DTYPE, XFP_BF16 },
	[31] = { "Q4_0_4_4", GONE },
	[32] = { "Q4_0_4_8", GONE },
	[33] = { "Q4_0_8_8", GONE },
	[34] = { "TQ1_0", 256, 54, LISTED },
	[35] = { "TQ2_0", 256, 66, LISTED },
	[36] = { "IQ4_NL_4_4", GONE },
	[37] = { "IQ4_NL_4_8", GONE },
	[38] = { "IQ4_NL_8_8", GONE },
	[XFP_GGML_MXFP4] = { "MXFP4", 32, 17, FLOATS },
	[XFP_GGML_NVFP4] = { "NVFP4", 64, 36, FLOATS },
	[41] = { "Q1_0", 128, 18, LISTED },
	[42] = { "Q2_0", 64, 18, LISTED },
};

const struct xfp_ggml_type *xfp_ggml_type(uint64_t number)
{
	return number < XFP_GGML_NUMBERS ? &types[number] : NULL;
}
