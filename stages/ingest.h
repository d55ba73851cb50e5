/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - from what the stages report to the manifest and the state of the units.
 */
#ifndef XFP_INGEST_H
#define XFP_INGEST_H

#include "conversion.h"

/* Take in the events written since the last call, in one transaction. `each`, which may be NULL, sees
 * every event. A manifest that cannot be written is said once and stops nothing: it is an index. */
enum xfp_status xfp_ingest(struct xfp_conversion *c, void (*each)(const struct xfp_event *event, void *context),
			   void *context, struct xfp_error *err);

/* All events so far are taken in: start with none. */
enum xfp_status xfp_ingest_restart(struct xfp_conversion *c, struct xfp_error *err);

#endif
