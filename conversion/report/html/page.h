/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - a report as one self-contained HTML page.
 */
#ifndef XFP_REPORT_PAGE_H
#define XFP_REPORT_PAGE_H

#include <stdio.h>

#include "conversion/report/report.h"

/* Write the page. It loads nothing, has no script, and is well-formed XML. The caller checks the stream. */
void xfp_report_page(FILE *out, const struct xfp_report *report);

/* ---- private to the folder ------------------------------------------------------------------------ */

/* Whether the units meet their floors, in the words of xfp verify. */
#define XFP_PAGE_FLOORS 80
const char *xfp_page_floors(const struct xfp_report *report, char text[XFP_PAGE_FLOORS]);

/* Write a command; each % stands for the name of the bundle. */
void xfp_page_command(FILE *out, const struct xfp_report *report, const char *command);
/* Whether every section has data. */
bool xfp_page_complete(const struct xfp_report *report);

/* ---- sections, private to the folder -------------------------------------------------------------- */

void xfp_page_summary(FILE *out, const struct xfp_report *report);
void xfp_page_weakest(FILE *out, const struct xfp_report *report);
void xfp_page_depth(FILE *out, const struct xfp_report *report);
void xfp_page_cosines(FILE *out, const struct xfp_report *report);
void xfp_page_rate(FILE *out, const struct xfp_report *report);
/* The walk's part of xfp_page_rate. */
void xfp_page_walk(FILE *out, const struct xfp_report *report);
void xfp_page_quality(FILE *out, const struct xfp_report *report);
void xfp_page_outliers(FILE *out, const struct xfp_report *report);
void xfp_page_tails(FILE *out, const struct xfp_report *report);
void xfp_page_samples(FILE *out, const struct xfp_report *report);
void xfp_page_times(FILE *out, const struct xfp_report *report);
void xfp_page_ledger(FILE *out, const struct xfp_report *report);
void xfp_page_missing(FILE *out, const struct xfp_report *report);
void xfp_page_units(FILE *out, const struct xfp_report *report);

#endif
