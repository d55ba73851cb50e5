/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - which kernel multiplies what, by name, and the shared memory that it takes. tile.h of kernels/cuda lays
 * that out.
 */
#include <stdio.h>

#include "base/bytes.h"
#include "runtime/cuda/plan.h"

/* Sums of eight planes for each warp and row, and outliers' sums of eight vectors for each row. */
#define VECTOR_BYTES ((XFP_CUDA_WARPS * 8 + 8) * XFP_CUDA_TILE_ROWS * 4)

static const char *const method_names[XFP_CUDA_METHODS] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c", "v2c32" };
static const char *const form_names[XFP_CUDA_FORMS] = { "m1", "m4", "list", "each" };

bool xfp_cuda_has_form(enum xfp_cuda_method method, enum xfp_cuda_form form)
{
	return form == XFP_CUDA_LIST || (form == XFP_CUDA_EACH) == (method < XFP_CUDA_FP8);
}

enum xfp_cuda_form xfp_cuda_form_for(enum xfp_cuda_method method, size_t count, unsigned each, uint32_t *at_once)
{
	uint32_t most = method < XFP_CUDA_FP8 ? XFP_CUDA_EACH_VECTORS : XFP_CUDA_M4_PLANES / each;

	*at_once = count < most ? (uint32_t)count : most;
	if (method < XFP_CUDA_FP8)
		return XFP_CUDA_EACH;
	return count > XFP_CUDA_M1_PLANES / each ? XFP_CUDA_M4 : XFP_CUDA_M1;
}

void xfp_cuda_kernel_name(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form,
			  char name[XFP_CUDA_KERNEL_NAME])
{
	const char *of = method < XFP_CUDA_METHODS ? method_names[method] : "";

	if (method < XFP_CUDA_V2)
		snprintf(name, XFP_CUDA_KERNEL_NAME, "xfp_multiply_%s_%s", of, form_names[form]);
	else
		snprintf(name, XFP_CUDA_KERNEL_NAME, "xfp_multiply_%s_k%u_%s", of, k % 10, form_names[form]);
}

uint32_t xfp_cuda_shared_bytes(enum xfp_cuda_method method, unsigned k, unsigned codebooks, enum xfp_cuda_form form)
{
	uint32_t vectors = (form == XFP_CUDA_M4 ? 4 : 1) * VECTOR_BYTES, own = 0;

	if (method < XFP_CUDA_FP8)
		return 0;
	if (method == XFP_CUDA_V2)
		own = XFP_CUDA_TILE_ROWS * 2 << k;
	else if (method > XFP_CUDA_V2)
		own = (uint32_t)xfp_align((uint64_t)codebooks * 2 << k, 16);
	if (method == XFP_CUDA_V2C || method == XFP_CUDA_V2C32)
		own += (uint32_t)xfp_align(4 * 256 / codebooks, 16) +
		       (k <= 4 && form != XFP_CUDA_M4 ? UINT32_C(512) << k : 0);
	return own + vectors;
}

uint32_t xfp_cuda_shared_most(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form)
{
	uint32_t most = 0;

	for (unsigned codebooks = 1; codebooks <= 256; codebooks *= 2) {
		uint32_t bytes = xfp_cuda_shared_bytes(method, k, codebooks, form);

		most = bytes > most && (codebooks <= 16 || method == XFP_CUDA_V2A) ? bytes : most;
	}
	return most;
}
