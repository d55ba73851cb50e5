/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skipped.h - parts of a checkpoint that a forward pass of the text model does not use.
 */
#ifndef XFP_SKIPPED_H
#define XFP_SKIPPED_H

#include "model/model.h"

/* Format a note on tensors of multi-token prediction and of vision or audio towers, for the caller to free. *note is
 * NULL if the model has none. */
enum xfp_status xfp_skipped_note(const struct xfp_model *model, char **note, struct xfp_error *err);

#endif
