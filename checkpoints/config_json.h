/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_json.h - parse config.json.
 */
#ifndef XFP_CONFIG_JSON_H
#define XFP_CONFIG_JSON_H

#include <jansson.h>

#include "base/xfp_error.h"

/* Parse an object, which the caller releases with json_decref. NaN and Infinity, which Python writes although they are
 * not JSON, become zeros. `where` names the text in messages. */
enum xfp_status xfp_config_json(const char *text, const char *where, json_t **root, struct xfp_error *err);

#endif
