/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/encode.h"

#include <string.h>

#include "kernels/common/instructions.h"

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

static const struct xfp_encoder *in_use;

const struct xfp_encoder *xfp_encoder(void)
{
	const struct xfp_encoder *encoder = __atomic_load_n(&in_use, __ATOMIC_RELAXED);

	if (encoder)
		return encoder;
	for (size_t i = 0; !encoder; i++)
		if (xfp_instruction_set_supported(encoders[i]->name))
			encoder = encoders[i];
	__atomic_store_n(&in_use, encoder, __ATOMIC_RELAXED);
	return encoder;
}

bool xfp_encoder_use(const char *name)
{
	for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++) {
		if (strcmp(encoders[i]->name, name) || !xfp_instruction_set_supported(encoders[i]->name))
			continue;
		__atomic_store_n(&in_use, encoders[i], __ATOMIC_RELAXED);
		return true;
	}
	return false;
}
