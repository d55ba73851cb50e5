/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - what the manifest has to say, as rows of named values for a command to print.
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
	const char *text; /* borrowed until the next row */
};

/* Told a row; a status other than XFP_OK ends the rows. */
typedef enum xfp_status xfp_row_taker(const struct xfp_value *values, unsigned count, void *context,
				      struct xfp_error *err);

/* What an artifact of `kind` holds: shape and outliers, candidates (a row each), the choice, the parts. */
enum xfp_status xfp_manifest_content(struct xfp_manifest *manifest, const char *kind, const char *key,
				     xfp_row_taker *take, void *context, struct xfp_error *err);

/* Runs with what they made and found, run_summaries, the last `most` of them, ascending. */
enum xfp_status xfp_manifest_summaries(struct xfp_manifest *manifest, int64_t most, xfp_row_taker *take, void *context,
				       struct xfp_error *err);

/* Its ingredients, one per line; NULL when it is not there or there is no memory. The caller frees. */
char *xfp_manifest_key_text(struct xfp_manifest *manifest, const char *key);
/* Kind and unit, seconds; false when it is not there. Strings are the caller's to free. */
bool xfp_manifest_label(struct xfp_manifest *manifest, const char *key, char **kind, char **unit, double *seconds);

#endif
