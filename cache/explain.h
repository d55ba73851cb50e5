/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - contents of the manifest as rows of named values, for a command to print.
 *
 * The names are those of the columns in schemas/manifest.sql.
 */
#ifndef XFP_EXPLAIN_H
#define XFP_EXPLAIN_H

#include "cache/manifest.h"

struct xfp_value {
	const char *name;
	enum { XFP_VALUE_NULL, XFP_VALUE_INTEGER, XFP_VALUE_REAL, XFP_VALUE_TEXT } type;
	int64_t integer;
	double real;
	const char *text; /* valid until the next row */
};

/* Called for each row; a status other than XFP_OK ends the iteration. */
typedef enum xfp_status xfp_row_callback(const struct xfp_value *values, unsigned count, void *context,
					 struct xfp_error *err);

/* The content of an artifact of `kind`: shape and outliers, candidates (a row each), the choice, or the parts. */
enum xfp_status xfp_manifest_content(struct xfp_manifest *manifest, const char *kind, const char *key,
				     xfp_row_callback *callback, void *context, struct xfp_error *err);

/* The last `max` rows of run_summaries (runs with the artifacts that they made and found), ascending. */
enum xfp_status xfp_manifest_summaries(struct xfp_manifest *manifest, int64_t max, xfp_row_callback *callback,
				       void *context, struct xfp_error *err);

/* An artifact's key text, one ingredient a line; NULL if it is unknown or memory runs out. The caller frees it. */
char *xfp_manifest_key_text(struct xfp_manifest *manifest, const char *key);
/* An artifact's kind, unit and seconds; false if it is unknown. The caller frees the strings. */
bool xfp_manifest_label(struct xfp_manifest *manifest, const char *key, char **kind, char **unit, double *seconds);

#endif
