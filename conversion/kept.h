/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - what a bundle holds of a checkpoint as it is: tensors that are kept whole, and small files.
 */
#ifndef XFP_KEPT_H
#define XFP_KEPT_H

#include <stdbool.h>

#include "base/system/signals.h"
#include "schemas/ledger.h"

/* Whether the bundle at `path` has the kept tensors and the small files of the ledger's checkpoint as their files hold
 * them now; all of those are read. `signals` (NULL: none) are asked on the way. Units are no concern of it: their
 * weights are digested where they are converted. */
enum xfp_status xfp_kept_is_same(const struct xfp_ledger *ledger, const char *path, struct xfp_signals *signals,
				 bool *same, struct xfp_error *err);

#endif
