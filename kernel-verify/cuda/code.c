/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c - device code of the verifier's own, put in as it is; no_code.c stands for it where there is no nvcc.
 */
#include "kernel-verify/cuda/device.h"

extern const unsigned char xfp_measure_fatbin[] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata, \"a\"\n"
	".balign 64\n"
	".globl xfp_measure_fatbin\n"
	".hidden xfp_measure_fatbin\n"
	"xfp_measure_fatbin:\n"
	".incbin \"kernel-verify/cuda/measure.fatbin\"\n"
	".popsection\n");

const unsigned char *const xfp_device_code = xfp_measure_fatbin;
