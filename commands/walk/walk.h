/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - the parts of xfp walk: its own options, the points that they list (points.c), and the output (print.c,
 * plot.c).
 */
#ifndef XFP_COMMANDS_WALK_H
#define XFP_COMMANDS_WALK_H

#include "base/system/command_line.h"
#include "conversion/walk/probe.h"

/* Floors from `first` to `last`, in billionths. */
struct xfp_walk_range {
	bool given;
	uint32_t first, last, step;
};

struct xfp_walk_command {
	const char *program;
	char **argv; /* as given, before options were reordered */
	struct xfp_walk_range lazy, strict;
	const char *points; /* "sizes", or names of profiles */
	const char *plot;
	bool csv, probe;
	bool usual; /* no points were given: the default range, and convert's own floors */
	struct xfp_walk_judge judge;

	/* Set while it runs: */
	char **words;          /* the command line of xfp convert without the options of a point; allocated */
	struct xfp_goal limit; /* the request's goal; borrowed */
	struct xfp_walk walk;
	struct xfp_walk_boundaries found;
};

/* Whether a range parses: "X", or "FIRST:LAST:STEP". */
bool xfp_walk_range_parse(const char *text, struct xfp_walk_range *range);

/* Remove the options that xfp convert lacks, and goals, from the command line: `w->words`. */
enum xfp_status xfp_walk_words(struct xfp_walk_command *w, const struct xfp_option *own, struct xfp_error *err);
void xfp_walk_words_free(struct xfp_walk_command *w);

/* Whether predictions follow from surveys: with a given outlier threshold, floors are met by fits of all rows. */
bool xfp_walk_uses_surveys(const struct xfp_walk_command *w, const struct xfp_conversion *c);

/* List the points, and predict their bundles. The conversion's folder is prepared for a dry run. */
enum xfp_status xfp_walk_list(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_error *err);

/* Predict a point again, now that its units may be measured. */
enum xfp_status xfp_walk_measure(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_walk_point *point,
				 struct xfp_error *err);

/* The command that makes a point's bundle, quoted for a shell, in lines of up to `width` columns joined by backslashes,
 * or in one line if it is 0. The caller frees it. NULL: out of memory. */
char *xfp_walk_convert_command(const struct xfp_walk_command *w, const struct xfp_conversion *c,
			       const struct xfp_walk_point *point, unsigned width);

/* A point's name: "0.93/0.96", a profile or a size; and in messages: "lazy 0.93, strict 0.96". */
const char *xfp_walk_name(const struct xfp_walk_point *point, char name[XFP_WALK_NAME]);
const char *xfp_walk_long_name(const struct xfp_walk_point *point, char name[XFP_WALK_NAME]);

/* Print the points as text, JSON or CSV. */
enum xfp_status xfp_walk_print(const struct xfp_walk_command *w, const struct xfp_conversion *c, struct xfp_error *err);
/* Write the points as a figure to w->plot. */
enum xfp_status xfp_walk_plot(const struct xfp_walk_command *w, struct xfp_error *err);

#endif
