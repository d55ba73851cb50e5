/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.c - selects the instruction set of the kernels.
 */
#include "kernels/common/instructions.h"
#include "runtime/xfp.h"

const char *xfp_instructions(void)
{
	return xfp_instruction_set_name(xfp_instruction_set());
}

bool xfp_use_instructions(const char *name)
{
	return name && xfp_instruction_set_use(name);
}
