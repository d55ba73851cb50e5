/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - selects the kernel for a product, and computes its name and shared memory. tile.h in kernels/cuda defines
 * the layout of shared memory.
 */
#include <stdio.h>

#include "base/bytes.h"
#include "runtime/cuda/plan.h"

/* Per warp and row, sums of eight planes; per row, outlier sums of eight vectors. */
#define VECTOR_BYTES ((XFP_CUDA_WARPS * 8 + 8) * XFP_CUDA_TILE_ROWS * 4)

static const char *const method_names[XFP_CUDA_METHODS] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c", "v2c32" };
static const char *const form_names[XFP_CUDA_FORMS] = { "m1", "m4", "wide", "list", "each", "i1", "i2", "i4" };

/* The integer path needs groups of 32 columns or more, because a thread handles 32 columns of one group. */
static bool has_integers(enum xfp_cuda_method method, unsigned k)
{
	return k >= 2 && k <= 4 && (method == XFP_CUDA_V2 || method == XFP_CUDA_V2C32);
}

bool xfp_cuda_has_form(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form)
{
	if (xfp_cuda_of_integers(form))
		return has_integers(method, k);
	if (form == XFP_CUDA_WIDE)
		return method != XFP_CUDA_F32;
	return form == XFP_CUDA_LIST || (form == XFP_CUDA_EACH) == (method < XFP_CUDA_FP8);
}

/* ---- choice of the kernel ----------------------------------------------------------------------- */

#define KEPT_WIDE 8    /* from this many vectors on, tensor cores multiply kept tensors */
#define PROCESSORS 128 /* nominal, to choose the form: results must not depend on the device */

static uint64_t ceiling(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/*
 * Many blocks of sixteen rows read all vectors repeatedly; few blocks of 128 rows leave multiprocessors idle. The cost
 * per column, in half clocks, is an estimate from the instructions and data paths of an H200, not a measurement: a
 * block of m4 waits for its 64 bytes of planes, a block of `wide` for shared memory.
 */
static bool wide_is_faster(uint64_t rows, uint64_t planes)
{
	uint64_t blocks = ceiling(rows, XFP_CUDA_WIDE_ROWS) * ceiling(planes, XFP_CUDA_WIDE_PLANES);
	uint64_t wide = (planes <= XFP_CUDA_WIDE_PLANES / 2 ? 20 : 32) * ceiling(blocks, PROCESSORS);
	uint64_t small = ceiling(rows, XFP_CUDA_TILE_ROWS) * ceiling(planes, XFP_CUDA_M4_PLANES);
	uint64_t m4 = 3 * ceiling(small, PROCESSORS);

	return planes > XFP_CUDA_M4_PLANES && wide < m4;
}

struct xfp_cuda_launch_shape xfp_cuda_choose_launch(enum xfp_cuda_method method, uint32_t rows, size_t count,
						    unsigned each, unsigned integers)
{
	struct xfp_cuda_launch_shape way = { .form = XFP_CUDA_M1, .x = xfp_cuda_tiles(rows) };
	uint64_t planes = (uint64_t)count * each, at_once = XFP_CUDA_M1_PLANES / each;

	if (integers && count <= XFP_CUDA_INTEGER_VECTORS) {
		/* Integer sums are exact, so the number of vectors per launch does not change the bits of results. */
		count = count < integers ? count : integers;
		return (struct xfp_cuda_launch_shape){ count > 2    ? XFP_CUDA_I4
						       : count == 2 ? XFP_CUDA_I2
								    : XFP_CUDA_I1,
						       (uint32_t)count, way.x, 1 };
	}
	if (method < XFP_CUDA_FP8 && (method == XFP_CUDA_F32 || count < KEPT_WIDE)) {
		way.form = XFP_CUDA_EACH;
		at_once = XFP_CUDA_EACH_VECTORS;
	} else if (method < XFP_CUDA_FP8 || wide_is_faster(rows, planes)) {
		way.form = XFP_CUDA_WIDE;
		way.x = (uint32_t)ceiling(rows, XFP_CUDA_WIDE_ROWS);
		at_once = XFP_CUDA_WIDE_PLANES / each;
	} else if (planes > XFP_CUDA_M1_PLANES) {
		way.form = XFP_CUDA_M4;
		at_once = XFP_CUDA_M4_PLANES / each;
	}
	way.count = (uint32_t)(count < XFP_CUDA_MAX_Y * at_once ? count : XFP_CUDA_MAX_Y * at_once);
	way.y = (uint32_t)ceiling(way.count, at_once);
	return way;
}

/* ---- names and sizes ---------------------------------------------------------------------------- */

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
	uint32_t vectors = (form == XFP_CUDA_M4 ? 4 : 1) * VECTOR_BYTES, rows = XFP_CUDA_TILE_ROWS, own = 0;
	bool integers = form == XFP_CUDA_LIST && has_integers(method, k), names = method != XFP_CUDA_V2;
	uint32_t table = names ? UINT32_C(512) << k : 0;

	if (xfp_cuda_of_integers(form))
		return table + XFP_CUDA_RING_BYTES(k, xfp_cuda_integer_form_vectors(form), names) +
		       XFP_CUDA_WARPS * XFP_CUDA_SHARED_SUMS;
	if (form == XFP_CUDA_WIDE) {
		vectors = XFP_CUDA_WIDE_STAGES * XFP_CUDA_WIDE_STAGE_BYTES;
		rows = XFP_CUDA_WIDE_ROWS;
	} else if (method < XFP_CUDA_FP8) {
		return 0;
	}
	if (method == XFP_CUDA_V2)
		own = rows * 2 << k;
	else if (method > XFP_CUDA_V2)
		own = (uint32_t)xfp_align((uint64_t)codebooks * 2 << k, 16);
	if (method == XFP_CUDA_V2C || method == XFP_CUDA_V2C32)
		own += (uint32_t)xfp_align(4 * 256 / codebooks, 16) + (integers ? table : 0);
	return own + vectors + (integers ? XFP_CUDA_RING_BYTES(k, 1, names) : 0);
}

uint32_t xfp_cuda_max_shared_bytes(enum xfp_cuda_method method, unsigned k, enum xfp_cuda_form form)
{
	uint32_t most = 0;

	for (unsigned codebooks = 1; codebooks <= 256; codebooks *= 2) {
		uint32_t bytes = xfp_cuda_shared_bytes(method, k, codebooks, form);

		most = bytes > most && (codebooks <= 16 || method == XFP_CUDA_V2A) ? bytes : most;
	}
	return most;
}

unsigned xfp_cuda_integer_vectors(enum xfp_cuda_method method, unsigned k, uint32_t shared_bytes)
{
	unsigned vectors = 0;

	for (enum xfp_cuda_form form = XFP_CUDA_I1; form <= XFP_CUDA_I4; form++)
		if (xfp_cuda_has_form(method, k, form) && xfp_cuda_max_shared_bytes(method, k, form) <= shared_bytes)
			vectors = xfp_cuda_integer_form_vectors(form);
	return vectors;
}
