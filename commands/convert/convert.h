/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - what the commands that take a MODEL and convert's options have in common.
 */
#ifndef XFP_CONVERT_H
#define XFP_CONVERT_H

#include "conversion/state/conversion.h"

struct xfp_conversion_command {
	const char *usage;   /* what --help shows of it, from "xfp" on */
	const char *summary; /* one sentence */
	bool planning;       /* it changes nothing (options.h) and has nothing to go on with when interrupted */
	const char *done;    /* what the work folder says of a run that succeeded, run_record.h; NULL: it has none */
	int (*run)(struct xfp_conversion *c, struct xfp_error *err);
};

/* Parse, open, hold the signals, run, report. Returns the exit status. */
int xfp_run_command(int argc, char **argv, const struct xfp_conversion_command *command);

#endif
