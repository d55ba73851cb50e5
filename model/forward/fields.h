/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - validated members of a config.json. Private to model/forward/.
 */
#ifndef XFP_FORWARD_FIELDS_H
#define XFP_FORWARD_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* A config that is being read. After the first error, the functions return safe values. */
struct xfp_fields {
	json_t *root;  /* of the text model: the config, or its text_config */
	json_t *outer; /* the complete config */
	const char *where;
	enum xfp_status status;
	struct xfp_error *err;
};

void xfp_field_wrong(struct xfp_fields *f, const char *key, const char *what);

/* NULL if the member is missing or null, or `object` is not an object. */
json_t *xfp_field(json_t *object, const char *key);

/* A count of at least 1. `otherwise` is the default; if it is 0, the member is required. */
uint32_t xfp_field_count(struct xfp_fields *f, const char *key, uint32_t otherwise);

/* The same, but 0 is valid; so is a default of 0. */
uint32_t xfp_field_count_or_zero(struct xfp_fields *f, const char *key, uint32_t otherwise);

/* null is false, whatever the default is. */
bool xfp_field_flag(struct xfp_fields *f, const char *key, bool otherwise);

/* A finite number above 0. `otherwise` is the default; if it is 0, the member is required. */
double xfp_field_number(struct xfp_fields *f, json_t *object, const char *key, double otherwise);

/* Any number; 0 if the member is missing. */
double xfp_field_any_number(struct xfp_fields *f, json_t *object, const char *key);

/* Ends messages on members that contradict one another. */
#define XFP_OWN_CONFIG "; use the config that belongs to the model"

#endif
