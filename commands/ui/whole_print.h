/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_print.h - the first lines about a bundle: its size, its bits per weight, and what takes them.
 */
#ifndef XFP_WHOLE_PRINT_H
#define XFP_WHOLE_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "conversion/whole.h"

/* Two lines; another where the source is packed, with a warning where it has fewer bits than the bundle; and another
 * where kept tensors are much of the file and something would make them smaller. `what` begins the first line:
 * "OUT.xfp: ". */
void xfp_whole_print(FILE *out, const char *what, const struct xfp_whole *whole);
/* The same figures as an object; NULL without memory. */
json_t *xfp_whole_json(const struct xfp_whole *whole);

#endif
