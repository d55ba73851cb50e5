/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.c - selects the instruction set of the multiplication kernels.
 */
#include "kernels/multiply/matvec.h"
#include "runtime/xfp.h"

const char *xfp_instructions(void)
{
	return xfp_matvec_set()->name;
}

bool xfp_use_instructions(const char *name)
{
	return name && xfp_matvec_use(name);
}
