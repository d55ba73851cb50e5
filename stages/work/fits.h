/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fits.h - make fragments that list the fits a choice depends on: fits.mk for all units, and u000012-fits.mk for one
 * unit.
 */
#ifndef XFP_FITS_H
#define XFP_FITS_H

#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/parameters.h"

/* "FITS = fit library", the targets of the fits that the parameters need; or "SURVEY = survey", if a unit's survey
 * determines them. */
const char *xfp_fits_text(const struct xfp_parameters *parameters);

/* Write the fragment of a unit, from its parameters after its survey has narrowed them, or of all units
 * (XFP_NO_UNIT). */
enum xfp_status xfp_fits_write(const char *work, uint32_t unit, const struct xfp_parameters *parameters,
			       struct xfp_error *err);
void xfp_fits_remove(const char *work, uint32_t unit);

#endif
