/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sets.c - the instruction sets, and which of them this machine can run.
 */
#include <string.h>

#include "kernel-verify/trial/trial.h"
#include "kernels/common/instructions.h"

static const struct {
	const char *name, *title;
} sets[XFP_KERNEL_SETS] = {
	{ "plain", "plain C" },  { "avx2", "AVX2" },
	{ "avx512", "AVX-512" }, { "vbmi", "AVX-512 VBMI and VNNI" },
	{ "neon", "NEON" },      { "dotprod", "NEON with dot products" },
	{ "cuda", "GPU" },
};

const char *xfp_kernel_set_name(enum xfp_kernel_set set)
{
	return sets[set].name;
}

const char *xfp_kernel_set_title(enum xfp_kernel_set set)
{
	return sets[set].title;
}

unsigned xfp_kernel_sets_built(void)
{
#ifdef XFP_X86
	return XFP_MATVEC_SETS & ~(1u << XFP_SET_NEON | 1u << XFP_SET_DOTPROD);
#elif defined XFP_AARCH64
	return 1u << XFP_SET_PLAIN | 1u << XFP_SET_NEON | 1u << XFP_SET_DOTPROD | 1u << XFP_SET_CUDA;
#else
	return 1u << XFP_SET_PLAIN | 1u << XFP_SET_CUDA;
#endif
}

/* Uses the kernels' own dispatch. */
unsigned xfp_kernel_sets_here(void)
{
	unsigned here = 0;

	for (unsigned set = 0; set < XFP_SET_CUDA; set++) {
		bool encodes = XFP_ENCODER_SETS >> set & 1;

		if (xfp_instruction_set_use(sets[set].name) && (!encodes || xfp_encoder_use(sets[set].name)))
			here |= 1u << set;
	}
	xfp_encoder_use("plain");
	return here;
}

void xfp_kernel_use(enum xfp_kernel_set set)
{
	xfp_instruction_set_use(sets[set].name);
}

bool xfp_kernel_sets_parse(const char *text, unsigned *found)
{
	*found = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		unsigned set = 0;

		while (set < XFP_SET_CUDA && (strlen(sets[set].name) != length || memcmp(sets[set].name, text, length)))
			set++;
		if (set == XFP_SET_CUDA)
			return false;
		*found |= 1u << set;
		if (!text[length])
			return true;
		text += length + 1;
	}
}
