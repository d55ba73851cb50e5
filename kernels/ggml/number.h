/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - block scales of ggml's types as f32, and the sixteen levels that two types share.
 */
#ifndef XFP_GGML_NUMBER_H
#define XFP_GGML_NUMBER_H

#include <string.h>

#include "kernels/common/number.h"

/* Levels of IQ4_NL and IQ4_XS. */
extern const float xfp_ggml_iq4_levels[16];

static inline float xfp_ggml_half(const uint8_t *at)
{
	return xfp_half_to_float((uint16_t)(at[0] | at[1] << 8));
}

#endif
