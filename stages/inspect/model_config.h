/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_config.h - the fields of a checkpoint's config.json that inspect needs.
 *
 * Multimodal models nest the text model under `text_config`; a field there overrides the one of the same name at the
 * top. A null field counts as missing.
 */
#ifndef XFP_MODEL_CONFIG_H
#define XFP_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_model_config;

/* Parse the `text` of a config.json; NULL makes an empty configuration. `where` names it in messages. */
enum xfp_status xfp_model_config_parse(const char *text, const char *where, struct xfp_model_config **out,
				       struct xfp_error *err);
void xfp_model_config_free(struct xfp_model_config *config); /* NULL is accepted */

/* Whether there was a config.json at all. */
bool xfp_model_config_present(const struct xfp_model_config *config);

/* model_type at the top (which 0) or in text_config (which 1); NULL if missing. */
const char *xfp_model_config_type(const struct xfp_model_config *config, unsigned which);
/* The i-th of "architectures", or NULL past the last. */
const char *xfp_model_config_architecture(const struct xfp_model_config *config, size_t i);

/* The value of a field that is a whole number >= 0. head_dim and num_key_value_heads have their usual defaults. */
bool xfp_model_config_number(const struct xfp_model_config *config, const char *key, uint64_t *value);
/* Set a field that is missing. */
bool xfp_model_config_assume(struct xfp_model_config *config, const char *key, uint64_t value);
/* Evaluate a product of fields and whole numbers: "num_attention_heads*head_dim". */
bool xfp_model_config_product(const struct xfp_model_config *config, const char *product, uint64_t *value);
/* A field that is true or false; `missing` if it is neither. */
bool xfp_model_config_bool(const struct xfp_model_config *config, const char *key, bool missing);

/* The method by which the checkpoint is already quantized, or NULL if it is not. */
const char *xfp_model_config_quantized(const struct xfp_model_config *config);

#endif
