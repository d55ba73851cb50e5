/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - predicts how long a fit with error feedback takes, from a short measurement of its kernels
 * (kernels/feedback/feedback.h) on random numbers.
 */
#ifndef XFP_FEEDBACK_PACE_H
#define XFP_FEEDBACK_PACE_H

#include "kernels/encode/lloyd.h" /* XFP_MAX_K */
#include "schemas/fit.h"
#include "schemas/ledger.h"

/* Seconds of one thread. */
struct xfp_feedback_pace {
	double moment;                /* per input and pair of columns */
	double factor;                /* per product of the factorization: cols^3 / 6 */
	double sum;                   /* per weight and column that its target sums over */
	double pass;                  /* per weight and pass, besides sums */
	double output;                /* per weight and held-out input */
	double encode[XFP_MAX_K + 1]; /* per weight, by bits, besides sums; 0: not measured */
};

/* Measure the candidates of v2c. */
enum xfp_status xfp_feedback_pace_measure(const struct xfp_candidate *candidates, uint32_t count,
					  struct xfp_feedback_pace *pace, struct xfp_error *err);

/* Predict the seconds of a fit of these candidates. `inputs` training rows multiply each matrix, about, and `stack` all
 * matrices of the unit together; `held_out` measure the outputs. */
double xfp_feedback_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit,
			    const struct xfp_candidate *candidates, uint32_t count, double inputs, double stack,
			    double held_out);

/* Predict the seconds of the scales of a survey (stages/quantize/output_scale.c) that samples this number of rows. */
double xfp_feedback_scales_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit,
				   double rows, double inputs, double stack);

#endif
