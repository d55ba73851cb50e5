/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a report as JSON: the data of the page.
 */
#ifndef XFP_REPORT_JSON_H
#define XFP_REPORT_JSON_H

#include <jansson.h>

#include "conversion/report/report.h"

/* One object; a section whose input was not given is null. NULL: out of memory. */
json_t *xfp_report_json(const struct xfp_report *report);

#endif
