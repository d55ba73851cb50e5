/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_model.h - the ledger of a model that is measured and not converted.
 */
#ifndef XFP_INSPECT_MODEL_H
#define XFP_INSPECT_MODEL_H

#include "base/system/signals.h"
#include "conversion/state/notice.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* Run inspect as for a new conversion, in a temporary folder, and read the ledger, which the caller frees. No cache is
 * read or written. `family` NULL: detected. `notify` receives messages of inspect; only the reason for a failure is
 * shown otherwise. */
enum xfp_status xfp_inspect_model(const char *program, char *model, char *family,
				  const struct xfp_parameters *parameters, struct xfp_signals *signals,
				  struct xfp_notify notify, struct xfp_ledger **ledger, struct xfp_error *err);

#endif
