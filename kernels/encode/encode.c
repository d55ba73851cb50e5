/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/encode.h"

#include <string.h>

/* Best first. */
static const struct xfp_encoder *const encoders[] = {
#ifdef XFP_X86
	&xfp_encoder_avx512,
	&xfp_encoder_avx2,
#endif
#ifdef XFP_AARCH64
	&xfp_encoder_neon,
#endif
	&xfp_encoder_plain,
};

static bool runs_here(const struct xfp_encoder *encoder)
{
#ifdef XFP_X86
	__builtin_cpu_init();
	if (encoder == &xfp_encoder_avx512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	if (encoder == &xfp_encoder_avx2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#ifdef XFP_AARCH64
	if (encoder == &xfp_encoder_neon) /* every AArch64 processor has NEON */
		return true;
#endif
	return encoder == &xfp_encoder_plain;
}

static const struct xfp_encoder *in_use;

const struct xfp_encoder *xfp_encoder(void)
{
	const struct xfp_encoder *encoder = __atomic_load_n(&in_use, __ATOMIC_RELAXED);

	if (encoder)
		return encoder;
	for (size_t i = 0; !encoder; i++)
		if (runs_here(encoders[i]))
			encoder = encoders[i];
	__atomic_store_n(&in_use, encoder, __ATOMIC_RELAXED);
	return encoder;
}

bool xfp_encoder_use(const char *name)
{
	for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++) {
		if (strcmp(encoders[i]->name, name) || !runs_here(encoders[i]))
			continue;
		__atomic_store_n(&in_use, encoders[i], __ATOMIC_RELAXED);
		return true;
	}
	return false;
}
