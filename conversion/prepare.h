/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.h - updates a work folder so that make builds exactly what is missing.
 *
 * The keys of each unit's current artifacts are computed as far as possible: the first from the digests that the
 * manifest stores by file identity, the choice by computing it in this process. Afterwards, a stamp exists if and only
 * if its artifact exists under the current key. `todo.mk` lists the unfinished units; the top-level make reads nothing
 * else.
 */
#ifndef XFP_PREPARE_H
#define XFP_PREPARE_H

#include "conversion/state/conversion.h"

/* Call once per run. Ingests the remaining events of an earlier run, runs inspect to write the ledger, writes the
 * parameters, opens the cache, removes temporary files, and warns about floors that are too low. */
enum xfp_status xfp_prepare_folder(struct xfp_conversion *c, struct xfp_error *err);

/* Update units, stamps and todo.mk; may be called repeatedly. With `check`, every artifact in use is read and compared
 * with its digest, and damaged ones are removed. */
enum xfp_status xfp_prepare_units(struct xfp_conversion *c, bool check, struct xfp_error *err);

/* For runs that only survey: find the units without a survey (c->units.todo of them) and write todo.mk for these. */
enum xfp_status xfp_prepare_surveys(struct xfp_conversion *c, struct xfp_error *err);

#endif
