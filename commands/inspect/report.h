/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - print a checkpoint: a summary, lists, JSON and CSV.
 */
#ifndef XFP_INSPECT_REPORT_H
#define XFP_INSPECT_REPORT_H

#include <jansson.h>

#include "checkpoints/header.h"
#include "commands/inspect/inspection.h"
#include "commands/inspect/list.h"

/* Print "PROGRAM: KIND: text" to stderr, after flushing stdout, with control characters escaped. */
void xfp_inspection_message(const char *program, const char *kind, const char *text);

enum xfp_inspection_detail {
	XFP_DETAIL_WARNINGS, /* only warnings that affect the list, none about rules */
	XFP_DETAIL_NEWS,
	XFP_DETAIL_ALL, /* also each guess about an unknown model, name by name */
};
/* Print notes and warnings to stderr. */
enum xfp_status xfp_inspection_notes(const char *program, const struct xfp_inspection *inspection,
				     enum xfp_inspection_detail detail, struct xfp_error *err);

/* ---- for people, on stdout --------------------------------------------------------------------- */

/* Print the model, its format and family. */
void xfp_inspection_title(const struct xfp_inspection *inspection);
/* Print the summary; with `verbose` also names, rules and all units. */
enum xfp_status xfp_inspection_print(const struct xfp_inspection *inspection, bool verbose, struct xfp_error *err);
/* Print the metadata of the files. */
void xfp_inspection_print_header(const struct xfp_inspection *inspection, const struct xfp_header *header);
/* Print the lines of a list with their totals; print the distribution of weights, by line and by role. */
enum xfp_status xfp_inspection_print_tensors(const struct xfp_list *list, const struct xfp_listed *lines,
					     uint32_t count, struct xfp_error *err);
enum xfp_status xfp_inspection_print_moments(const struct xfp_inspection *inspection, const struct xfp_listed *lines,
					     uint32_t count, struct xfp_error *err);
enum xfp_status xfp_inspection_print_roles(const struct xfp_listed_role *roles, uint32_t count, struct xfp_error *err);

/* "quantize" and so on. */
const char *xfp_rule_action_name(enum xfp_rule_action action);
/* Whether the name is not a tensor file, but the config that describes packed weights. */
bool xfp_inspection_is_config(const char *name);

/* ---- for programs, on stdout; xfp-inspect(1) describes both ------------------------------------ */

/* Print one JSON object. `header` is NULL unless --header was given. */
enum xfp_status xfp_inspection_json(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
				    const struct xfp_header *header, struct xfp_error *err);
enum xfp_status xfp_inspection_csv_header(const struct xfp_inspection *inspection, const struct xfp_header *header,
					  struct xfp_error *err);
/* Print a row for each line and, if weights were measured, one for each role. */
enum xfp_status xfp_inspection_csv(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
				   const struct xfp_listed_role *roles, uint32_t role_count, struct xfp_error *err);

/* The records that text, JSON and CSV print (commands/ui/record.h); NULL if out of memory. A tensor's has "stats" if
 * weights were measured. */
json_t *xfp_record_of_tensor(const struct xfp_list *list, const struct xfp_listed *line);
json_t *xfp_record_of_role(const struct xfp_listed_role *role);
json_t *xfp_record_of_moments(const struct xfp_distribution *m);
json_t *xfp_record_of_entry(const struct xfp_header_entry *entry);
json_t *xfp_record_of_unit(const struct xfp_ledger_unit *unit);

#endif
