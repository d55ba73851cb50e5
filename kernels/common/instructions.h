/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.h - the instruction set of the runtime's kernels: the best that this machine supports, unless another is
 * selected.
 */
#ifndef XFP_INSTRUCTIONS_H
#define XFP_INSTRUCTIONS_H

#include <stdbool.h>

/* In ascending order: a processor that runs a set also runs those of its kind before it. */
enum xfp_instruction_set { XFP_PLAIN, XFP_AVX2, XFP_AVX512, XFP_VBMI, XFP_NEON, XFP_DOTPROD, XFP_INSTRUCTION_SETS };

/* "plain", "avx2", "avx512", "vbmi", "neon", "dotprod". */
const char *xfp_instruction_set_name(enum xfp_instruction_set set);

/* Return the best set that this machine supports, and the set in use, initially the best. */
enum xfp_instruction_set xfp_best_instruction_set(void);
enum xfp_instruction_set xfp_instruction_set(void);

/* Whether the name is that of a set that this machine supports. */
bool xfp_instruction_set_supported(const char *name);

/* Select a set by name; returns false if it is unknown or unsupported. Do not select while other threads compute. */
bool xfp_instruction_set_use(const char *name);

#endif
