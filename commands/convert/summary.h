/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - the summary that convert prints once the bundle is complete.
 */
#ifndef XFP_SUMMARY_H
#define XFP_SUMMARY_H

#include "conversion/finish.h"

/* Print the table per class and the statistics of this run to stdout, as text or JSON. */
enum xfp_status xfp_print_summary(const struct xfp_conversion *c, const struct xfp_result *result, double seconds,
				  struct xfp_error *err);

#endif
