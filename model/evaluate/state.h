/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_STATE_H
#define XFP_EVALUATE_STATE_H

#include "model/evaluate/evaluation.h"

/* Determine the state's file and key. */
enum xfp_status xfp_evaluation_state_begin(struct xfp_evaluation *e, struct xfp_error *err);
/* Load the state saved by this evaluation: e->state.layers are finished. A damaged state, or one of another evaluation,
 * is overwritten later, with a warning; a file that is not a state is left alone. */
enum xfp_status xfp_evaluation_state_load(struct xfp_evaluation *e, struct xfp_error *err);
/* Save the state after `layers` layers. Unless `now`, do nothing if the last state is recent. If writing fails, warn
 * once. */
void xfp_evaluation_state_save(struct xfp_evaluation *e, uint32_t layers, bool now);
/* Delete the file once it is no longer needed. */
void xfp_evaluation_state_remove(struct xfp_evaluation *e);

#endif
