/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fits.h - what make has a choice wait for: fits.mk, of all units, and u000012-fits.mk, which is a unit's own.
 */
#ifndef XFP_FITS_H
#define XFP_FITS_H

#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/parameters.h"

/* "FITS = fit library", the targets of the fits that the parameters want; or "SURVEY = survey", where a unit's survey
 * is to tell. */
const char *xfp_fits_text(const struct xfp_parameters *parameters);

/* A unit's, by its parameters once its survey has narrowed them, or all units' (XFP_NO_UNIT). */
enum xfp_status xfp_fits_write(const char *work, uint32_t unit, const struct xfp_parameters *parameters,
			       struct xfp_error *err);
void xfp_fits_remove(const char *work, uint32_t unit);

#endif
