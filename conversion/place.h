/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where a conversion works: its work folder with lock, log and run record, and its cache.
 */
#ifndef XFP_PLACE_H
#define XFP_PLACE_H

#include <sys/types.h>

#include "conversion/state/conversion.h"

/* Check that the output can be written and replaces nothing but a bundle, make the work folder, take its lock, start a
 * chapter of the log. A dry run changes nothing: it only checks what would be replaced. */
enum xfp_status xfp_conversion_open(struct xfp_conversion *c, struct xfp_error *err);
/* Free everything but the request. */
void xfp_conversion_close(struct xfp_conversion *c);

/* For `xfp status`: what the run is doing now, and how it ended ("finished", "prepared"; a failure and an
 * interruption speak for themselves). Nothing depends on whether that could be written. */
void xfp_conversion_phase(struct xfp_conversion *c, const char *phase);
void xfp_conversion_ended(struct xfp_conversion *c, const char *state, int status, const char *message);

/* Remove what killed processes left half-written in the work folder and beside the bundle. */
void xfp_conversion_sweep(const struct xfp_request *request);

/* Open the cache and its manifest, unless they are open. */
enum xfp_status xfp_conversion_open_cache(struct xfp_conversion *c, struct xfp_error *err);

/* Where the log ends now. */
off_t xfp_log_size(const struct xfp_conversion_place *place);
/* Report the tools' messages ("xfp-bundle: ...") that the log holds from `offset` on, those of xfp-inspect as the
 * command's own. */
void xfp_log_show(const struct xfp_conversion *c, off_t offset);
/* Keep the last of those messages as that of the run, for where it has none of its own. */
void xfp_log_keep(struct xfp_conversion_place *place, off_t offset);

#endif
