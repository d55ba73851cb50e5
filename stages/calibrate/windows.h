/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.h - cut calibration tokens into windows: sequences of one length, which pass through the model independently.
 */
#ifndef XFP_CALIBRATE_WINDOWS_H
#define XFP_CALIBRATE_WINDOWS_H

#include "model/forward/description.h"
#include "model/text.h"
#include "model/tokens.h"

/* The length of windows of a text or of the model's own tokens: 512 tokens, of an encoder 64, or the context if that is
 * shorter. Encoders embed short texts: in longer windows, the tokens around a text count for too little, although all
 * others attend to them. */
uint64_t xfp_window_length(const struct xfp_description *description);

/* The number of tokens if none is given: 32,768, or as many as give each expert 1,024 on average. */
uint64_t xfp_default_tokens(const struct xfp_description *description);

/* Cut a text into windows of `length` tokens, at least `wanted` tokens if it has that many: spread evenly over the
 * text, in order, without overlap. Each has the tokens before and after a text, which count towards its length. A
 * shorter text gives as many windows as it has. The caller frees `ids`. */
enum xfp_status xfp_windows_of_text(const struct xfp_text_ids *text, uint64_t length, uint64_t wanted,
				    struct xfp_tokens *windows, struct xfp_error *err);

/* Keep as many of the sequences, spread evenly, as have `wanted` tokens. */
void xfp_windows_select(struct xfp_tokens *windows, uint64_t wanted);

#endif
