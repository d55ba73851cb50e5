/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_words_avx2.h - layout of activations as words, which matvec_integers_avx2.c writes and matvec_words_avx2.c
 * reads.
 */
#ifndef XFP_MATVEC_WORDS_AVX2_H
#define XFP_MATVEC_WORDS_AVX2_H

#include "kernels/multiply/matvec.h"

#define BLOCK 64       /* columns that have one step */
#define BLOCK_WORDS 80 /* words of a block: 64, and the value of a step as f32, eight times */
#define MAX_X 16383    /* largest word of an activation: eight products are less than 2^31 */

bool xfp_matvec_integers_avx2(struct xfp_matvec_x *x);

/* Multiply in f32. */
xfp_matvec_fn xfp_matvec_floats_avx2;
xfp_matvec_outliers_fn xfp_matvec_outliers_avx2;

#endif
