/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - what convert prints once the bundle is complete.
 */
#ifndef XFP_SUMMARY_H
#define XFP_SUMMARY_H

#include "conversion/finish.h"

/* The table per class and what this run did, or both as JSON, on stdout. */
enum xfp_status xfp_print_summary(const struct xfp_conversion *c, const struct xfp_result *result, double seconds,
				  struct xfp_error *err);

#endif
