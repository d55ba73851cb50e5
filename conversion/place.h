/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - the folders of a conversion: the work folder with lock, log and run record, and the cache.
 */
#ifndef XFP_PLACE_H
#define XFP_PLACE_H

#include <sys/types.h>

#include "conversion/state/conversion.h"

/* Check that OUT is writable and replaces only a bundle, create the work folder, lock it, and start a log section. A
 * dry run only checks what would be replaced. */
enum xfp_status xfp_conversion_open(struct xfp_conversion *c, struct xfp_error *err);
/* Free everything but the request. */
void xfp_conversion_close(struct xfp_conversion *c);

/* Record the current phase of the run, or its end ("finished", "prepared"; failures and interruptions are evident), for
 * `xfp status`. Write errors are ignored. */
void xfp_conversion_phase(struct xfp_conversion *c, const char *phase);
void xfp_conversion_ended(struct xfp_conversion *c, const char *state, int status, const char *message);

/* Remove temporary files of killed processes from the work folder and next to the bundle. */
void xfp_conversion_sweep(const struct xfp_request *request);

/* Open the cache and its manifest, unless they are open. */
enum xfp_status xfp_conversion_open_cache(struct xfp_conversion *c, struct xfp_error *err);

/* Current size of the log. */
off_t xfp_log_size(const struct xfp_conversion_place *place);
/* Report messages of the tools ("xfp-bundle: ...") in the log after `offset`. Messages of xfp-inspect and
 * xfp-calibrate are reported as the command's own. */
void xfp_log_show(const struct xfp_conversion *c, off_t offset);
/* Store the last of these messages as the message of the run, for a run that has none of its own. */
void xfp_log_keep(struct xfp_conversion_place *place, off_t offset);

#endif
