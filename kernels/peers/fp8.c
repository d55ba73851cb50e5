/* SPDX-License-Identifier: Apache-2.0 */
/* Eight-bit floats, E4M3, times the f32 scale of their tile. A block is one weight. */
#include "kernels/peers/blocks.h"

void xfp_fp8_tile_encode(const float *x, float scale, uint8_t *block)
{
	*block = xfp_float_to_e4m3(scale > 0 ? *x / scale : 0);
}

void xfp_fp8_tile_decode(const uint8_t *block, float scale, float *x)
{
	*x = xfp_e4m3_to_float(*block) * scale;
}
