/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.h - bring a work folder up to date, so that make sees what is missing and nothing else.
 *
 * For every unit the keys of its current artifacts are computed as far as they can be: the first from
 * the digests that the manifest remembers by file identity, the choice by deciding it here, in this
 * process. A stamp is there afterwards exactly if its artifact is, under the current key. `todo.mk`
 * lists the units that are not finished; it is all that the top graph of make reads.
 */
#ifndef XFP_PREPARE_H
#define XFP_PREPARE_H

#include "conversion/state/conversion.h"

#define XFP_TODO_FILE "todo.mk"

/* Once a run: what is left of an earlier run's events goes into the manifest, inspect writes the
 * ledger, the parameters are written, the cache is opened, debris is swept. Floors below what models survive are
 * remarked on. */
enum xfp_status xfp_prepare_folder(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err);

/* As often as wanted: units, stamps and todo.mk. With `check`, every artifact in use is read and
 * compared with its digest, and the damaged ones are removed. */
enum xfp_status xfp_prepare_units(struct xfp_conversion *c, bool check, struct xfp_error *err);

/* Where only surveys are run: which units lack one, c->units.todo of them, and todo.mk for make to run those. */
enum xfp_status xfp_prepare_surveys(struct xfp_conversion *c, struct xfp_error *err);

#endif
