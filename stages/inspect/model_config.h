/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_config.h - what inspect asks of a checkpoint's config.json.
 *
 * Models with several towers keep the language model's fields in "text_config"; a field there
 * overrides the one of the same name at the top. A null field counts as missing.
 */
#ifndef XFP_MODEL_CONFIG_H
#define XFP_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_model_config;

/* `text` of a config.json; NULL makes an empty configuration. `where` names it in messages. */
enum xfp_status xfp_model_config_parse(const char *text, const char *where, struct xfp_model_config **out,
				       struct xfp_error *err);
void xfp_model_config_free(struct xfp_model_config *config); /* NULL is fine */

/* Whether there was a config.json at all. */
bool xfp_model_config_present(const struct xfp_model_config *config);

/* model_type at the top (which 0) or in text_config (which 1); NULL when missing. */
const char *xfp_model_config_type(const struct xfp_model_config *config, unsigned which);
/* The i-th of "architectures", or NULL past the last. */
const char *xfp_model_config_architecture(const struct xfp_model_config *config, size_t i);

/* The value of a field that is a whole number >= 0. head_dim and num_key_value_heads have the
 * defaults that every reader of config.json gives them. */
bool xfp_model_config_number(const struct xfp_model_config *config, const char *key, uint64_t *value);
/* Fill in a field that is missing. */
bool xfp_model_config_assume(struct xfp_model_config *config, const char *key, uint64_t value);
/* "num_attention_heads*head_dim": a product of fields and whole numbers. */
bool xfp_model_config_product(const struct xfp_model_config *config, const char *product, uint64_t *value);
/* A field that is true or false; `missing` when it is neither. */
bool xfp_model_config_bool(const struct xfp_model_config *config, const char *key, bool missing);

/* The method by which the checkpoint is quantized already, or NULL when it is not. */
const char *xfp_model_config_quantized(const struct xfp_model_config *config);

#endif
