/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - the sample that libraries are trained on, and the rounds of training.
 */
#ifndef XFP_TRAINING_H
#define XFP_TRAINING_H

#define XFP_SAMPLE_ROWS 256     /* minimum */
#define XFP_SAMPLE_COMPACT 8192 /* groups of v2c at most, apart from rounding up per row */

#define XFP_COMPACT_ROUNDS 3
#define XFP_FEEDBACK_ROUNDS 3 /* and with error feedback, if the inputs are known */
#define XFP_FEEDBACK_PASSES 2 /* over the codes of a row, when it is fitted */

#endif
