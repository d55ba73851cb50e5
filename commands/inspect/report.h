/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what is printed of a checkpoint: a summary, lists, and the same for programs.
 */
#ifndef XFP_INSPECT_REPORT_H
#define XFP_INSPECT_REPORT_H

#include "checkpoints/header.h"
#include "commands/inspect/list.h"
#include "commands/inspect/look.h"

/* A line on stderr, behind what was printed so far: "PROGRAM: KIND: text", with control characters made harmless. */
void xfp_inspection_say(const char *program, const char *kind, const char *text);

enum xfp_telling {
	XFP_TELL_WARNINGS, /* what is listed may be wrong; rules are of no concern */
	XFP_TELL_NEWS,
	XFP_TELL_ALL, /* what a model that no family claims was taken for name by name, and not in one line */
};
/* Notes and warnings, on stderr. */
enum xfp_status xfp_inspection_notes(const char *program, const struct xfp_look *look, enum xfp_telling telling,
				     struct xfp_error *err);

/* ---- for people, on stdout --------------------------------------------------------------------- */

/* Which model, format and family. */
void xfp_inspection_title(const struct xfp_look *look);
/* The summary; with `verbose` names, rules and every unit too. */
enum xfp_status xfp_inspection_print(const struct xfp_look *look, bool verbose, struct xfp_error *err);
/* What files say of themselves. */
void xfp_inspection_print_header(const struct xfp_look *look, const struct xfp_header *header);
/* Lines of a list, and what they come to; the distribution of their weights, line by line and by role. */
void xfp_inspection_print_tensors(const struct xfp_look *look, const struct xfp_listed *lines, uint32_t count);
void xfp_inspection_print_moments(const struct xfp_look *look, const struct xfp_listed *lines, uint32_t count);
void xfp_inspection_print_roles(const struct xfp_listed_role *roles, uint32_t count);

/* "quantize" and so on. */
const char *xfp_rule_action_name(enum xfp_rule_action action);
/* Whether it is no file of tensors, but the one that says how these are packed. */
bool xfp_inspection_is_config(const char *name);

/* ---- for programs, on stdout; xfp-inspect(1) describes both ------------------------------------ */

/* One object. `header` NULL: it was not asked for. */
enum xfp_status xfp_inspection_json(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
				    const struct xfp_header *header, struct xfp_error *err);
void xfp_inspection_csv_header(const struct xfp_look *look, const struct xfp_header *header);
/* A row for each line, and where weights were measured one for each role. */
void xfp_inspection_csv(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
			const struct xfp_listed_role *roles, uint32_t role_count);

#endif
