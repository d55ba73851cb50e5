/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_json.h - config.json as a tree.
 */
#ifndef XFP_CONFIG_JSON_H
#define XFP_CONFIG_JSON_H

#include <jansson.h>

#include "base/xfp_error.h"

/* An object, which the caller json_decrefs. NaN and Infinity, which Python writes and which are no JSON, become zeros.
 * `where` names the text in messages. */
enum xfp_status xfp_config_json(const char *text, const char *where, json_t **root, struct xfp_error *err);

#endif
