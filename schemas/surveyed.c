/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/surveyed.h"

#include "schemas/h5.h"

void xfp_surveyed_free(struct xfp_surveyed *surveyed)
{
	xfp_outliers_free(&surveyed->known);
}

enum xfp_status xfp_surveyed_write(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err)
{
	enum xfp_status status = xfp_outliers_begin(a, err);

	for (uint32_t m = 0; !status && m < surveyed->known.matrices; m++)
		status = xfp_outliers_append(a, &surveyed->known, m, NULL, 0, err);
	if (!status)
		status = xfp_outliers_end(a, &surveyed->known, err);
	return status ? status : xfp_candidates_write(a, surveyed->list, surveyed->count, err);
}

enum xfp_status xfp_surveyed_read(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err)
{
	enum xfp_status status = xfp_candidates_read(a, XFP_MAX_SURVEYED, surveyed->list, &surveyed->count, err);

	if (status)
		return status;
	if ((status = xfp_outliers_read(a, &surveyed->known, err)))
		return status;
	if (surveyed->known.first[surveyed->known.matrices]) {
		xfp_surveyed_free(surveyed);
		return xfp_h5_damaged(a, err, "a survey has no outliers");
	}
	return XFP_OK;
}
