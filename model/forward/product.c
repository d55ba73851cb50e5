/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/product.h"

#include <string.h>

#include "model/forward/lane_set.h"
#include "runtime/xfp.h"

size_t xfp_panels_size(size_t count, size_t cols)
{
	return (count + XFP_PANEL - 1) / XFP_PANEL * XFP_PANEL * cols;
}

void xfp_panels(const float *x, size_t stride, size_t count, size_t cols, float *panels)
{
	for (size_t first = 0; first < count; first += XFP_PANEL) {
		for (size_t c = 0; c < cols; c++) {
			for (size_t i = 0; i < XFP_PANEL; i++)
				*panels++ = first + i < count ? x[(first + i) * stride + c] : 0;
		}
	}
}

const struct xfp_lane_set *xfp_lane_set(void)
{
#ifdef XFP_X86
	const char *name = xfp_instructions();

	if (!strcmp(name, "avx2"))
		return &xfp_lane_set_avx2;
	if (!strcmp(name, "avx512") || !strcmp(name, "vbmi"))
		return &xfp_lane_set_avx512;
#endif
	return &xfp_lane_set_plain;
}

void xfp_product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *scratch,
		      float *y, size_t stride)
{
	xfp_lane_set()->product_rows(w, rows, cols, panels, count, scratch, y, stride);
}
