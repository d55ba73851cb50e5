/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - members of a config.json, checked as they are read. Private to model/forward/.
 */
#ifndef XFP_FORWARD_FIELDS_H
#define XFP_FORWARD_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* A config that is being read. After the first error, reading gives what is safe. */
struct xfp_fields {
	json_t *root;  /* what the text part of the model is; */
	json_t *outer; /* the whole config, which is the same unless the model sees or hears, too */
	const char *where;
	enum xfp_status status;
	struct xfp_error *err;
};

void xfp_field_wrong(struct xfp_fields *f, const char *key, const char *what);

/* NULL when it is missing or null, or when `object` is none. */
json_t *xfp_field(json_t *object, const char *key);

/* A count from 1 on. `otherwise` 0: it must be there. */
uint32_t xfp_field_count(struct xfp_fields *f, const char *key, uint32_t otherwise);

bool xfp_field_flag(struct xfp_fields *f, const char *key, bool otherwise);

/* A finite number that is above 0. `otherwise` 0: it must be there. */
double xfp_field_number(struct xfp_fields *f, json_t *object, const char *key, double otherwise);

#endif
