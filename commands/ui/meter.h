/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.h - a progress line on standard error, redrawn in place if that is a terminal.
 */
#ifndef XFP_METER_H
#define XFP_METER_H

#include <stdbool.h>

#include "base/xfp_error.h"

struct xfp_meter {
	bool terminal; /* false: nothing is drawn; the command reports in its own way */
	bool shown;
};

void xfp_meter_begin(struct xfp_meter *meter);
/* Replace the line. */
void xfp_meter_draw(struct xfp_meter *meter, const char *format, ...) XFP_PRINTF(2, 3);
/* Remove the line, before other output or at the end. */
void xfp_meter_clear(struct xfp_meter *meter);

#endif
