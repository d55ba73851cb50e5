/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_calibrate.h - runs xfp-calibrate --begin, which chooses the token ids of a calibrated conversion.
 */
#ifndef XFP_RUN_CALIBRATE_H
#define XFP_RUN_CALIBRATE_H

#include "conversion/state/conversion.h"

/* Write calibration.h5 into the folder `work`, which has the ledger, and fill in the conversion's layers and its
 * parameter `calibration`. Without calibration, the file and the stamps of layers of earlier runs are removed instead.
 * The program's messages have been printed. Returns XFP_UNMET if the ids are not those of the bundle to repeat
 * (--like), or the exit status of the program. */
int xfp_run_calibrate(struct xfp_conversion *c, const char *work, struct xfp_error *err);
/* Write the file of the work folder again if it has been damaged since, or if a small file of the model changed. */
int xfp_run_calibrate_again(struct xfp_conversion *c, struct xfp_error *err);

#endif
