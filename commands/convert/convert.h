/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - the shared main function of convert, prepare, plan and walk: the commands that accept a MODEL and
 * convert's options.
 */
#ifndef XFP_CONVERT_H
#define XFP_CONVERT_H

#include "commands/convert/options.h"
#include "conversion/state/conversion.h"

struct xfp_conversion_command {
	struct xfp_options_use options;
	bool resumes;     /* if interrupted, print how to resume */
	const char *done; /* state to record after success (run_record.h); NULL: no record */
	int (*run)(struct xfp_conversion *c, void *own, struct xfp_error *err);
	void *own; /* argument of `run` */
};

/* Parse the options, open the conversion, block signals, run the command and report errors. Returns the exit status. */
int xfp_run_command(int argc, char **argv, const struct xfp_conversion_command *command);

#endif
