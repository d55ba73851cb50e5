/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the options of `xfp convert` that a bundle was made with, from the parameters that it records.
 */
#ifndef XFP_REPORT_COMMAND_H
#define XFP_REPORT_COMMAND_H

#include <stdbool.h>

#include "schemas/parameters.h"

/* The options, quoted for a shell, each with a blank before it: "" for the defaults. The caller frees the text. NULL:
 * out of memory, or no options express them (calibrated, solved for a size, of an older version): use --like. */
char *xfp_report_options(const struct xfp_parameters *parameters);

#endif
