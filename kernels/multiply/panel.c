/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/panel.h"

#include "kernels/common/number.h"

#define PIECE 64 /* columns that are transposed at once */

unsigned xfp_panel_vectors(size_t left)
{
	size_t width = (left + XFP_PANEL_LANES - 1) / XFP_PANEL_LANES, most = xfp_matvec_set()->panel_width;
	size_t panels = (width + most - 1) / most, vectors = (width + panels - 1) / panels * XFP_PANEL_LANES;

	return (unsigned)(vectors < left ? vectors : left);
}

/* Fetch a piece of sixteen vectors and its place in the panel: both are often in memory, and far apart. */
static void fetch(const uint8_t *source, size_t bytes, const float *panel, unsigned width, unsigned m)
{
	const unsigned lines = PIECE / XFP_PANEL_LANES;

	for (unsigned i = 0; i < lines; i++)
		__builtin_prefetch(panel + (size_t)XFP_PANEL_LANES * width * (lines * m + i), 1);
	for (size_t i = 0; i < bytes; i += 64)
		__builtin_prefetch(source + i);
}

void xfp_panel_pack(int dtype, const void *const *source, unsigned count, size_t cols, const float *down, float *panel,
		    unsigned width)
{
	size_t size = dtype == 1 ? 4 : 2; /* F32 of base/dtype.h */
	float piece[XFP_PANEL_LANES][PIECE] = { { 0 } };

	for (size_t c = 0, some; c < cols; c += some) {
		some = cols - c < PIECE ? cols - c : PIECE;
		for (unsigned m = 0; m < count; m++) {
			fetch((const uint8_t *)source[m] + (c + some) * size, PIECE * size, panel, width, m);
			xfp_to_float(dtype, (const uint8_t *)source[m] + c * size, some, piece[m]);
			for (size_t i = 0; down && i < some; i++)
				piece[m][i] *= down[c + i];
		}
		for (size_t i = 0; i < some; i++, panel += (size_t)XFP_PANEL_LANES * width)
			for (unsigned m = 0; m < XFP_PANEL_LANES; m++)
				panel[m] = piece[m][i];
	}
}
