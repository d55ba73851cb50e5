/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - from what the stages leave to the manifest and the state of the units.
 *
 * Events say which unit to look at, and when. What its weights digest to, and which artifacts there are of it, is read
 * from its stamps and from those artifacts, each of which is checked before it is believed.
 */
#ifndef XFP_INGEST_H
#define XFP_INGEST_H

#include "conversion/state/conversion.h"

/* Read the events written since the last call, in one transaction. Every event of a stage is a notice, unless an
 * earlier run left it. A manifest that cannot be written is reported once and stops nothing: it is an index. */
enum xfp_status xfp_ingest(struct xfp_conversion *c, struct xfp_error *err);

/* The same of every unit whose weights are not known, whatever the events say or do not say: a line may be lost. */
void xfp_ingest_units(struct xfp_conversion *c);

/* All events so far are taken in: start with none. */
enum xfp_status xfp_ingest_restart(struct xfp_conversion *c, struct xfp_error *err);

#endif
