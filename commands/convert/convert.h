/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - the shared main function of convert, prepare and plan: the commands that accept a MODEL and convert's
 * options.
 */
#ifndef XFP_CONVERT_H
#define XFP_CONVERT_H

#include "conversion/state/conversion.h"

struct xfp_conversion_command {
	const char *usage;   /* synopsis for --help, starting with "xfp" */
	const char *summary; /* one sentence */
	bool planning;       /* a dry run (options.h); an interrupted one cannot be resumed */
	const char *done;    /* state to record after success (run_record.h); NULL: no record */
	int (*run)(struct xfp_conversion *c, struct xfp_error *err);
};

/* Parse the options, open the conversion, block signals, run the command and report errors. Returns the exit status. */
int xfp_run_command(int argc, char **argv, const struct xfp_conversion_command *command);

#endif
