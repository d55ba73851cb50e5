/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_END_TOKENS_H
#define XFP_END_TOKENS_H

#include "model/model.h"

/* Append the ids of eos_token_id in the model's generation_config.json, or else in its config.json. */
enum xfp_status xfp_end_tokens_read(const struct xfp_model *model, struct xfp_token_ids *ends, struct xfp_error *err);

#endif
