/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what xfp-inspect prints of a ledger, for people and for programs.
 */
#ifndef XFP_INSPECT_REPORT_H
#define XFP_INSPECT_REPORT_H

#include "stages/inspect/classify.h"
#include "stages/inspect/family_choose.h"

struct xfp_inspection {
	const struct xfp_checkpoint *checkpoint;
	const struct xfp_family_choice *family;
	const struct xfp_ledger *ledger;
	const struct xfp_findings *findings;
};

/* A line on stderr, "xfp-inspect: KIND: text", with control characters made harmless. */
void xfp_inspection_say(const char *kind, const char *text);

/* Notes and warnings, on stderr; of a model that no family claims, what its tensors were taken for: in one line, or
 * with `verbose` name by name. */
enum xfp_status xfp_inspection_notes(const struct xfp_inspection *inspection, bool verbose, struct xfp_error *err);
/* The summary, on stdout; with `verbose` names, rules and every unit too. */
enum xfp_status xfp_inspection_print(const struct xfp_inspection *inspection, bool verbose, struct xfp_error *err);
/* One JSON object, on stdout; xfp-inspect(1) describes it. */
enum xfp_status xfp_inspection_json(const struct xfp_inspection *inspection, struct xfp_error *err);

#endif
