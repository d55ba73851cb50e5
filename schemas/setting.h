/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setting.h - the table of settings that affect the output. A row has the option, the recorded parameter, and the
 * values that are allowed.
 *
 * Options, environment variables, lines of profiles and --help (stages/settings/settings.h), and parameters.json and
 * xfp.json (parameters_json.c) are loops over this table. Which parameters an artifact depends on is in cache/key.c.
 */
#ifndef XFP_SETTING_H
#define XFP_SETTING_H

#include <stddef.h>

#include "schemas/parameters.h"

/* In the order of --help: settings that affect the size most come first. */
enum xfp_setting_number {
	XFP_SETTING_TARGET_SIZE,
	XFP_SETTING_TARGET_BPW,
	XFP_SETTING_ENVELOPE,
	XFP_SETTING_RESERVE,
	XFP_SETTING_WEIGHT,
	XFP_SETTING_STRICT,
	XFP_SETTING_LAZY,
	XFP_SETTING_FLOOR,
	XFP_SETTING_FORMAT,
	XFP_SETTING_OVERRIDE,
	XFP_SETTING_BITS,
	XFP_SETTING_SIGMA,
	XFP_SETTING_CAP,
	XFP_SETTING_BALANCE,
	XFP_SETTING_ITERATIONS,
	XFP_SETTING_MOE_ITERATIONS,
	XFP_SETTING_MODE,
	XFP_SETTING_GROUP,
	XFP_SETTING_LIBRARY,
	XFP_SETTING_LIBFIT,
	XFP_SETTING_FIT,
	XFP_SETTING_START,
	XFP_SETTING_LM_HEAD,
	XFP_SETTING_ON_MISS,
	XFP_SETTING_ON_NONFINITE,
	XFP_SETTING_SAMPLE,
	XFP_SETTING_OPTIONS, /* number of options; those below are recorded only */
	XFP_SETTING_EMBEDDINGS = XFP_SETTING_OPTIONS,
	XFP_SETTING_CALIBRATION,
	XFP_SETTING_ASSIGNED,
	XFP_SETTINGS
};

enum xfp_setting_kind {
	XFP_SETTING_CUSTOM,   /* functions of this setting parse, write and read it */
	XFP_SETTING_NAMED,    /* the index of one of `names` */
	XFP_SETTING_FRACTION, /* from 0 to 1, in billionths */
	XFP_SETTING_COUNT,    /* a whole number from `min` to `max` */
	XFP_SETTING_POWER,    /* a power of two from `min` to `max` */
	XFP_SETTING_MODE_SET,
	XFP_SETTING_BIT_SET,
	XFP_SETTING_THRESHOLD, /* of outliers */
	XFP_SETTING_EXPERTS,   /* a struct xfp_moe_sample */
};

struct xfp_setting {
	const char *name;     /* of the option, without its dashes */
	const char *value;    /* name of the value in --help */
	const char *text;     /* for --help */
	const char *expected; /* the allowed values, for messages, which add `min` and `max` */
	const char *recorded; /* name of the parameter; NULL: not recorded */
	enum xfp_setting_kind kind;
	size_t offset;            /* in struct xfp_parameters; its type is uint32_t, or an enum, unless EXPERTS */
	uint32_t min, max;        /* COUNT, POWER */
	const char *const *names; /* NAMED: ended by NULL */
	bool optional;            /* not recorded if 0, the default */
	const char *complete;     /* for shells (base/system/command_line.h); NULL: `names`, or nothing */
};

extern const struct xfp_setting xfp_settings_table[XFP_SETTINGS];

/* The address of a setting's value; NULL if it is CUSTOM. */
static inline const void *xfp_setting_address(const struct xfp_setting *setting,
					      const struct xfp_parameters *parameters)
{
	return setting->kind == XFP_SETTING_CUSTOM ? NULL : (const char *)parameters + setting->offset;
}

/* Parse or format the value of a setting that is not CUSTOM. Parsing returns false, and changes nothing, if the value
 * is not allowed. */
bool xfp_setting_parse(const struct xfp_setting *setting, const char *text, struct xfp_parameters *parameters);
const char *xfp_setting_text(const struct xfp_setting *setting, const struct xfp_parameters *parameters, char buf[24]);

/* The name of a value of a NAMED setting. */
static inline const char *xfp_setting_name(enum xfp_setting_number setting, uint32_t value)
{
	return xfp_settings_table[setting].names[value];
}

/* Whether the modes support groups of this many columns, or a library of this many entries; 0 is the default. */
bool xfp_group_size_fits(uint32_t columns, uint32_t modes);
bool xfp_library_size_fits(uint32_t entries);

#endif
