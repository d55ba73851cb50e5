/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matrix.h - random matrices of every mode, in stored form, in a trial's buffers.
 */
#ifndef XFP_KERNEL_VERIFY_MATRIX_H
#define XFP_KERNEL_VERIFY_MATRIX_H

#include "kernel-verify/trial/trial.h"

struct xfp_trial_matrix {
	struct xfp_matvec w;     /* all or some columns */
	struct xfp_matvec whole; /* of this */
	unsigned codebooks;      /* v2a, v2c: number in the library, whose entries are */
	const uint16_t *entry;   /* [codebooks << k] */
	uint16_t ratio[64];      /* v2c: [256 / codebooks] */
	char text[80];           /* description */
};

/* Make the matrix for the trial's op, whose `kind` is the mode, and for its number. On request some trials have some
 * columns only, or a codebook that is not finite. Matrices for a bundle have the groups and libraries that bundles
 * have. */
void xfp_make_matrix(struct xfp_trial *trial, struct xfp_trial_matrix *matrix, bool outliers, bool infinite);

/* Device trials beyond the others of an op have matrices as large as a model's, or wider; their numbers select whole
 * matrices, with outliers if the mode has them. */
#define XFP_LARGE_TRIALS 2
#define XFP_LARGE_FIRST 51
#define XFP_LARGE_STEP 6

/* Make another matrix of the same shape and library. */
void xfp_make_expert(struct xfp_trial *trial, const struct xfp_trial_matrix *first, struct xfp_trial_matrix *matrix,
		     bool outliers);

#endif
