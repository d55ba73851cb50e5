/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - the settings that affect the output, by name: options on the command line, environment variables, lines
 * of a profile.
 *
 * They come in layers: the defaults, a profile's or those of a bundle; then the settings given. Within a layer --floor
 * overrides --min-cos-strict and --min-cos-lazy, in any order; a later layer overrides an earlier one.
 */
#ifndef XFP_SETTINGS_H
#define XFP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/system/command_line.h"
#include "base/text/suggestion.h"
#include "base/xfp_error.h"
#include "schemas/goal.h"
#include "schemas/setting.h"

#define XFP_SETTING_BIT(name) (1u << XFP_SETTING_##name)
_Static_assert(XFP_SETTING_OPTIONS <= 32, "a bit of uint32_t each");

struct xfp_settings {
	struct xfp_parameters parameters;          /* floors are those of finished layers */
	uint32_t given, layer;                     /* bits of the settings given in any layer, and in this one */
	uint32_t strict, lazy, floor[XFP_CLASSES]; /* floors of this layer */
	bool has_floor[XFP_CLASSES];
	bool asked_floor[XFP_CLASSES]; /* in any layer: classes whose floors were given */
	bool reserve_by_environment;
	struct xfp_goal goal; /* freed with xfp_goal_free */
	bool calibrated;      /* a profile's floors for calibrated units apply */
	bool repeated;        /* settings are repeated from existing ones: an override that exists is not added again */
};

/* The number of a setting; -1: unknown name. */
int xfp_setting_find(const char *name);
/* Suggest settings for a misspelled word; see suggestion.h. */
const char *xfp_setting_suggestion(const char *word, char text[XFP_DID_YOU_MEAN]);
bool xfp_setting_is_floor(int setting); /* it takes effect when its layer is finished */

/* Set a setting. `where` names the option, variable or line in messages. XFP_USAGE: invalid value. */
enum xfp_status xfp_setting_set(struct xfp_settings *settings, int setting, const char *where, const char *text,
				struct xfp_error *err);

/* An option that sets a setting. NULL: the table's name of the value, or text. */
struct xfp_option xfp_setting_option(enum xfp_setting_number setting, const char *value, const char *text,
				     struct xfp_settings *settings);

/* End a layer: its floors are stored in the parameters. XFP_USAGE: one of them has no meaning. */
enum xfp_status xfp_settings_finish(struct xfp_settings *settings, struct xfp_error *err);

#endif
