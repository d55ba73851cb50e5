/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_CALIBRATE_SELF_H
#define XFP_CALIBRATE_SELF_H

#include "model/model.h"
#include "model/tokens.h"

#define XFP_SELF_SEED 0x78667063616c /* "xfpcal" */

struct xfp_self_request {
	/* Tokens that begin a text, fewer than `length`, and those that end one; may be empty. */
	struct xfp_token_ids prefix, ends;
	size_t windows, length;
	uint64_t memory; /* limit of windows that are generated together */
	unsigned threads;
};

/* Generate windows with the model itself, at temperature 1 with a fixed seed and reproducible arithmetic. Each begins
 * with `prefix`, and continues with it after the end of a text; without it, it begins with a random token. The caller
 * frees `ids`, which depend on neither memory nor threads. XFP_FAILED: the weights do not fit into memory, and reading
 * them for each token would take too long. */
enum xfp_status xfp_windows_of_model(const struct xfp_model *model, const struct xfp_self_request *request,
				     struct xfp_tokens *windows, struct xfp_error *err);

#endif
