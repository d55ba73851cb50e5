/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - the line on a terminal's standard error that tells how far a command is, rewritten as it goes on.
 */
#ifndef XFP_METER_H
#define XFP_METER_H

#include <stdbool.h>

#include "base/xfp_error.h"

struct xfp_meter {
	bool terminal; /* elsewhere nothing is drawn; what is to be said there is the command's */
	bool shown;
};

void xfp_meter_begin(struct xfp_meter *meter);
/* Write the line in place of what it was. */
void xfp_meter_draw(struct xfp_meter *meter, const char *format, ...) XFP_PRINTF(2, 3);
/* Remove it, to print something else, or for good. */
void xfp_meter_clear(struct xfp_meter *meter);

#endif
