/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/fits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "stages/work/work.h"

const char *xfp_fits_text(const struct xfp_parameters *parameters)
{
	bool fit = xfp_fit_wanted(parameters, XFP_FIT_BASE), library = xfp_fit_wanted(parameters, XFP_FIT_LIBRARY);

	if (parameters->outlier_sigma == XFP_SIGMA_AUTO)
		return "SURVEY = survey\n";
	return !library ? "FITS = fit\n" : fit ? "FITS = fit library\n" : "FITS = library\n";
}

static char *path_of(const char *work, uint32_t unit)
{
	return unit == XFP_NO_UNIT ? xfp_path(work, XFP_FITS_FILE)
				   : xfp_formatted("%s/u%06" PRIu32 "-%s", work, unit, XFP_FITS_FILE);
}

enum xfp_status xfp_fits_write(const char *work, uint32_t unit, const struct xfp_parameters *parameters,
			       struct xfp_error *err)
{
	const char *text = xfp_fits_text(parameters);
	char *path = path_of(work, unit);
	enum xfp_status status = path ? xfp_write_file(path, text, strlen(text), false, err) : xfp_no_memory(err);

	free(path);
	return status;
}

void xfp_fits_remove(const char *work, uint32_t unit)
{
	char *path = path_of(work, unit);

	if (path)
		unlink(path);
	free(path);
}
