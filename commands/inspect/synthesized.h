/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthesized.h - files that a checkpoint lacks, synthesized from its other contents so that a bundle can include them.
 */
#ifndef XFP_INSPECTION_SYNTHESIZED_H
#define XFP_INSPECTION_SYNTHESIZED_H

#include "checkpoints/checkpoint.h"
#include "schemas/ledger.h"

/* Write them into the folder `synthesized` of a work folder, and their paths into the ledger, which must be the
 * checkpoint's. */
enum xfp_status xfp_inspection_write_synthesized(const char *work, const struct xfp_checkpoint *checkpoint,
						 struct xfp_ledger *ledger, struct xfp_error *err);

#endif
