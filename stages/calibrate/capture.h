/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - collects the inputs that the forward pass multiplies, as an observer, and writes them to an artifact.
 *
 * Tokens pass through the layer in portions. The artifact's bytes do not depend on them:
 *
 *     xfp_capture_open(&c, ...)
 *     for each portion: xfp_capture_begin(&c, first, tokens), then the layer, observed by c.observer, then
 *                       xfp_capture_write(&c, artifact, err)
 *     xfp_capture_end(&c, artifact, err)
 */
#ifndef XFP_CALIBRATE_CAPTURE_H
#define XFP_CALIBRATE_CAPTURE_H

#include "model/forward/forward.h"
#include "schemas/inputs.h"

struct xfp_capture {
	struct xfp_observer observer;
	struct xfp_inputs inputs; /* tables so far; the caller sets `sources` before the end */
	uint32_t tensor_capacity;
	uint64_t portion;                 /* tokens of the largest, which is the first */
	uint64_t first, tokens;           /* of this portion */
	uint16_t *values[XFP_MAX_INPUTS]; /* of this portion */
	bool filled[XFP_MAX_INPUTS];
	uint32_t *slots; /* [portion] experts of each token so far */
	bool begun;      /* the artifact has its datasets */
};

/* Begin with a layer; `shape` has its number and all sizes. */
enum xfp_status xfp_capture_open(struct xfp_capture *capture, const struct xfp_inputs *shape, uint64_t portion,
				 struct xfp_error *err);
void xfp_capture_begin(struct xfp_capture *capture, uint64_t first, uint64_t tokens);
/* XFP_BAD_INPUT: a value is not finite, or beyond the range of bf16. */
enum xfp_status xfp_capture_observe(void *capture, const struct xfp_observed *product, struct xfp_error *err);
enum xfp_status xfp_capture_write(struct xfp_capture *capture, struct xfp_artifact *artifact, struct xfp_error *err);
enum xfp_status xfp_capture_end(struct xfp_capture *capture, struct xfp_artifact *artifact, struct xfp_error *err);
void xfp_capture_close(struct xfp_capture *capture);

/* Bytes that it needs for a token of a layer. */
uint64_t xfp_capture_bytes(const struct xfp_description *description, uint32_t layer);

#endif
