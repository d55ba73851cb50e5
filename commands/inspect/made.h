/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made.h - files that a checkpoint has not, made of what it says elsewhere, for a conversion to carry along.
 */
#ifndef XFP_INSPECTION_MADE_H
#define XFP_INSPECTION_MADE_H

#include "checkpoints/checkpoint.h"
#include "schemas/ledger.h"

/* Write them into the folder `made` of a work folder; the ledger, which is the checkpoint's, then has
 * their places. */
enum xfp_status xfp_inspection_write_made(const char *work, const struct xfp_checkpoint *checkpoint,
					  struct xfp_ledger *ledger, struct xfp_error *err);

#endif
