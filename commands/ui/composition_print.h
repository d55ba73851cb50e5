/* SPDX-License-Identifier: Apache-2.0 */
/*
 * composition_print.h - the first lines about a bundle: its size, its bits per weight, and their composition.
 */
#ifndef XFP_COMPOSITION_PRINT_H
#define XFP_COMPOSITION_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "conversion/composition.h"

/* Print two lines; a third if the source is packed, with a warning if it has fewer bits than the bundle; another if
 * kept tensors are a large share of the file and an option would make them smaller. `what` begins the first line:
 * "OUT.xfp: ". */
void xfp_composition_print(FILE *out, const char *what, const struct xfp_composition *composition);
/* The same figures as a JSON object; NULL if out of memory. */
json_t *xfp_composition_json(const struct xfp_composition *composition);

#endif
