/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fatbins.c - embeds the device code that nvcc compiled from kernels/cuda/NAME.cu. Paths are relative to the build
 * folder.
 */
#include "runtime/cuda/cuda.h"

#define FATBINS(F) F(fp8) F(kept) F(prepare) F(repack) F(v2) F(v2a) F(v2c)

#define EMBED(name)                                                                                \
	extern const unsigned char xfp_cuda_fatbin_##name[] __attribute__((visibility("hidden"))); \
	__asm__(".pushsection .rodata, \"a\"\n"                                                    \
		".balign 64\n"                                                                     \
		".globl xfp_cuda_fatbin_" #name "\n"                                               \
		".hidden xfp_cuda_fatbin_" #name "\n"                                              \
		"xfp_cuda_fatbin_" #name ":\n"                                                     \
		".incbin \"kernels/cuda/" #name ".fatbin\"\n"                                      \
		".popsection\n");
FATBINS(EMBED)

#define ROW(name) { #name ".cu", xfp_cuda_fatbin_##name },
const struct xfp_cuda_fatbin xfp_cuda_fatbins[] = { FATBINS(ROW){ NULL, NULL } };
_Static_assert(sizeof xfp_cuda_fatbins / sizeof *xfp_cuda_fatbins <= XFP_CUDA_MAX_FATBINS + 1,
	       "every fatbin has a slot");

const int xfp_cuda_toolkit = XFP_CUDA_TOOLKIT;
