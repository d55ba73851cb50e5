/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/product.h"

#include <stdint.h>
#include <string.h>

typedef double panel_lanes __attribute__((vector_size(XFP_PANEL * sizeof(double))));
typedef float panel_floats __attribute__((vector_size(XFP_PANEL * sizeof(float))));

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

/* A row that is not there counts as zeros. */
static void interleave(const float *w, size_t rows, size_t cols, double *quad)
{
	for (size_t c = 0; c < cols; c++) {
		for (size_t r = 0; r < XFP_QUAD; r++)
			*quad++ = r < rows ? w[r * cols + c] : 0;
	}
}

void xfp_product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *quad,
		      float *y, size_t stride)
{
	interleave(w, rows, cols, quad);
	for (size_t first = 0; first < count; first += XFP_PANEL) {
		panel_lanes sum[XFP_QUAD] = { { 0 } };

		for (size_t c = 0; c < cols; c++) {
			panel_floats x;
			panel_lanes wide;

			memcpy(&x, panels, sizeof x);
			panels += XFP_PANEL;
			wide = __builtin_convertvector(x, panel_lanes);
			for (size_t r = 0; r < XFP_QUAD; r++)
				sum[r] += wide * quad[c * XFP_QUAD + r];
		}
		for (size_t r = 0; r < rows; r++) {
			for (size_t i = 0; i < XFP_PANEL && first + i < count; i++)
				y[(first + i) * stride + r] = (float)sum[r][i];
		}
	}
}
