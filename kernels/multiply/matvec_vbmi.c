/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_vbmi.c - rows with codebooks times one or two vectors with 16-bit entries; and the choice of a kernel.
 */
#include "kernels/multiply/matvec_v2c.h"

#define COPY(k, tile)                          \
	static void v2_##k##_##tile(ARGUMENTS) \
	{                                      \
		v2_rows(k, tile, PASSED);      \
	}
#define COPY_V2C(k, tile)                         \
	static void v2c_##k##_##tile(ARGUMENTS)   \
	{                                         \
		v2c_rows(k, tile, false, PASSED); \
	}
#define COPY_V2A(k, tile)                         \
	static void v2a_##k##_##tile(ARGUMENTS)   \
	{                                         \
		v2a_rows(k, tile, false, PASSED); \
	}
#define COPIES(k, tile) COPY(k, tile) COPY_V2C(k, tile) COPY_V2A(k, tile)
#define COPIES_OF_K(k) COPIES(k, 1) COPIES(k, 2)
COPIES_OF_K(2)
COPIES_OF_K(3)
COPIES_OF_K(4)
COPIES_OF_K(5)
COPIES_OF_K(6)

#define BY_K(name)                                                                                  \
	{                                                                                           \
		{ name##_2_1, name##_2_2 }, { name##_3_1, name##_3_2 }, { name##_4_1, name##_4_2 }, \
			{ name##_5_1, name##_5_2 }, { name##_6_1, name##_6_2 },                     \
	}

static bool bytes_fit(const struct xfp_matvec *w, const struct xfp_matvec_x *x)
{
	switch (w->mode) {
	case XFP_MATVEC_V2:
		return x->bytes_fit;
	case XFP_MATVEC_V2C:
		return x->bytes_fit && w->group >= 5 && xfp_tables_head(w->tables)->bytes_fit;
	case XFP_MATVEC_V2A:
		return x->bytes_fit && x->groups && w->group == 7 && xfp_tables_head(w->tables)->bytes_fit;
	default:
		return false;
	}
}

static bool narrow_fit(const struct xfp_matvec *w)
{
	return w->mode != XFP_MATVEC_V2 && xfp_tables_head(w->tables)->narrow_fit;
}

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const in_bytes[3][5][2] = { BY_K(v2), BY_K(v2a), BY_K(v2c) };

	if (!bytes_fit(w, x))
		xfp_matvec_avx512.rows(PASSED);
	else if (x->tile > 2)
		xfp_matvec_words(PASSED);
	else if (narrow_fit(w))
		xfp_matvec_narrow(PASSED);
	else
		in_bytes[w->mode - XFP_MATVEC_V2][w->k - 2][x->tile - 1](PASSED);
}

const struct xfp_matvec_set xfp_matvec_vbmi = { multiply_rows, xfp_matvec_outliers_avx512, xfp_matvec_integers,
						xfp_panel_avx512, XFP_AVX512_PANEL_WIDTH };
