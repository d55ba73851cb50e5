/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h - compares the parts that a bundle stores unchanged, kept tensors and small files, with the checkpoint.
 */
#ifndef XFP_KEPT_H
#define XFP_KEPT_H

#include <stdbool.h>

#include "base/system/signals.h"
#include "schemas/ledger.h"

/* Check whether the kept tensors and small files of the bundle at `path` equal the checkpoint's current files, reading
 * all of them. `signals` (NULL: none) are polled. Units are not compared: their weights are digested when they are
 * converted. */
enum xfp_status xfp_kept_is_same(const struct xfp_ledger *ledger, const char *path, struct xfp_signals *signals,
				 bool *same, struct xfp_error *err);

#endif
