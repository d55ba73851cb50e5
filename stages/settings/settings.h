/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - the settings that decide bytes, by name: options on the command line, variables of the
 * environment, lines of a profile.
 *
 * They come in layers: the defaults, or a profile's, or those of a bundle; then what was given. Within a layer
 * --floor wins over --min-cos-strict and --min-cos-lazy, in whatever order they come; a later layer wins over
 * an earlier one.
 */
#ifndef XFP_SETTINGS_H
#define XFP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/misspelt.h"
#include "base/xfp_error.h"
#include "schemas/goal.h"
#include "schemas/parameters.h"

struct xfp_setting {
	const char *name;  /* as an option, without its dashes */
	const char *value; /* what --help calls it */
	const char *text;  /* for --help */
};

/* All of them, in the order of --help. */
extern const struct xfp_setting xfp_settings_table[];
extern const size_t xfp_settings_count;

struct xfp_settings {
	struct xfp_parameters parameters; /* floors as of the layers that are finished */
	/* The floors of this layer. */
	uint32_t strict, lazy, floor[XFP_CLASSES];
	bool has_strict, has_lazy, has_floor[XFP_CLASSES];
	/* Whether this layer asks for what only some modes have. */
	bool has_group, has_library, has_libfit, has_fit;
	bool asked_floor[XFP_CLASSES]; /* of any layer: whose floors were given */
	bool has_goal, has_reserve;    /* of this layer */
	bool reserve_by_environment;
	struct xfp_goal goal;              /* freed with xfp_goal_free */
	bool has_bits, has_sigma, has_cap; /* of any layer: what is not asked for follows from the mode */
	bool repeated; /* they are held to settings that are there: an override that they have is not added again */
};

/* Number of a setting, -1: no such name. */
int xfp_setting_find(const char *name);
/* Settings that a word may have been meant for; see misspelt.h. */
const char *xfp_setting_meant(const char *word, char text[XFP_DID_YOU_MEAN]);
bool xfp_setting_is_floor(int setting); /* it counts when its layer is finished */

/* `where` is the option, the variable or the line, for the message; what is wrong is XFP_USAGE. */
enum xfp_status xfp_setting_set(struct xfp_settings *settings, int setting, const char *where, const char *text,
				struct xfp_error *err);

/* The layer ends: its floors go into the parameters. XFP_USAGE when one of them can mean nothing. */
enum xfp_status xfp_settings_finish(struct xfp_settings *settings, struct xfp_error *err);

#endif
