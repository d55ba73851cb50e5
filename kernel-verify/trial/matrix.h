/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matrix.h - random matrices of every mode, as they are stored, in a trial's buffers.
 */
#ifndef XFP_KERNEL_VERIFY_MATRIX_H
#define XFP_KERNEL_VERIFY_MATRIX_H

#include "kernel-verify/trial/trial.h"

struct xfp_made_matrix {
	struct xfp_matvec w;     /* perhaps some columns alone: */
	struct xfp_matvec whole; /* of this */
	unsigned codebooks;      /* v2a, v2c: of the library, whose numbers are */
	const uint16_t *entry;   /* [codebooks << k] */
	uint16_t ratio[64];      /* v2c: [256 / codebooks] */
	char text[80];           /* what it is */
};

/* By the trial's op, whose `kind` is the mode, and number; with a codebook that is not finite, and some columns of some
 * trials, where that is asked for. What goes to a bundle has the groups and libraries that bundles have. */
void xfp_make_matrix(struct xfp_trial *trial, struct xfp_made_matrix *made, bool outliers, bool infinite);

/* Trials of the device beyond an op's others have matrices of the size that models have, or wider; the numbers are such
 * that they are whole, and have outliers where that mode has any. */
#define XFP_LARGE_TRIALS 2
#define XFP_LARGE_FIRST 51
#define XFP_LARGE_STEP 6

/* Another of the same shape and library. */
void xfp_make_expert(struct xfp_trial *trial, const struct xfp_made_matrix *first, struct xfp_made_matrix *made,
		     bool outliers);

#endif
