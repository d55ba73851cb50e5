/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c - the verifier's own device code, embedded; no_code.c replaces it in a build without nvcc.
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
