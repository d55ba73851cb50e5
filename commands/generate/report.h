/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_GENERATE_REPORT_H
#define XFP_GENERATE_REPORT_H

#include "model/generate/generation.h"

/* Print the texts of a batch. `raw`: write control characters to a terminal unchanged. */
void xfp_generate_print(const struct xfp_generation *g, bool raw);
enum xfp_status xfp_generate_print_json(const struct xfp_generation *g, struct xfp_error *err);
/* Print memory and speed to stderr. */
void xfp_generate_report(const struct xfp_generation *g);

#endif
