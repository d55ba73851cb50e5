/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <string.h>

static const struct {
	const char *name;
	unsigned bits;
} dtypes[XFP_DTYPES] = {
	[XFP_F64] = { "F64", 64 },
	[XFP_F32] = { "F32", 32 },
	[XFP_F16] = { "F16", 16 },
	[XFP_BF16] = { "BF16", 16 },
	[XFP_BOOL] = { "BOOL", 8 },
	[XFP_U8] = { "U8", 8 },
	[XFP_I8] = { "I8", 8 },
	[XFP_U16] = { "U16", 16 },
	[XFP_I16] = { "I16", 16 },
	[XFP_U32] = { "U32", 32 },
	[XFP_I32] = { "I32", 32 },
	[XFP_U64] = { "U64", 64 },
	[XFP_I64] = { "I64", 64 },
	[XFP_C64] = { "C64", 64 },
	[XFP_F8_E4M3] = { "F8_E4M3", 8 },
	[XFP_F8_E5M2] = { "F8_E5M2", 8 },
	[XFP_F8_E8M0] = { "F8_E8M0", 8 },
	[XFP_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8 },
	[XFP_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8 },
	[XFP_F6_E2M3] = { "F6_E2M3", 6 },
	[XFP_F6_E3M2] = { "F6_E3M2", 6 },
	[XFP_F4] = { "F4", 4 },
};

unsigned xfp_dtype_bits(enum xfp_dtype dtype)
{
	return dtypes[dtype].bits;
}

const char *xfp_dtype_name(enum xfp_dtype dtype)
{
	return dtypes[dtype].name;
}

bool xfp_dtype_parse(const char *name, enum xfp_dtype *dtype)
{
	for (int i = 0; i < XFP_DTYPES; i++) {
		if (!strcmp(dtypes[i].name, name)) {
			*dtype = (enum xfp_dtype)i;
			return true;
		}
	}
	return false;
}
