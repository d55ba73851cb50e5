/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - updates the manifest and the unit states from the output of stages.
 *
 * Events report which unit to examine, and when. The digests of its weights and its artifacts are read from its stamps
 * and from the artifacts themselves, after verifying each.
 */
#ifndef XFP_INGEST_H
#define XFP_INGEST_H

#include "conversion/state/conversion.h"

/* Read the events written since the last call, in one transaction. Each stage event is sent as a notice unless an
 * earlier run left it. A failed manifest write is reported once and ignored, since the manifest is only an index. */
enum xfp_status xfp_ingest(struct xfp_conversion *c, struct xfp_error *err);

/* The same for every unit with unknown weights, regardless of events, since an event line can be lost. */
void xfp_ingest_units(struct xfp_conversion *c);

/* Remove the events of all hosts, once all events are ingested. */
enum xfp_status xfp_ingest_restart(struct xfp_conversion *c, struct xfp_error *err);

#endif
