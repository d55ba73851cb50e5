/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_CALIBRATE_BEGIN_H
#define XFP_CALIBRATE_BEGIN_H

#include "base/xfp_error.h"
#include "stages/calibrate/options.h"

/* Write WORK/calibration.h5 for a model, and print what it contains. XFP_BAD_INPUT: the model has no forward pass or no
 * tokenizer, or the text or the tokens are unusable. */
enum xfp_status xfp_calibrate_begin(const struct xfp_calibrate_options *options, const char *work, const char *model,
				    struct xfp_error *err);

#endif
