/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/measured.h"

#include <string.h>

#include "conversion/state/present.h"
#include "stages/work/produce.h"

/* The candidates of an artifact, and for a fit their outputs if it is calibrated. */
struct candidate_list {
	struct xfp_candidate *list;
	uint32_t *count;
	struct xfp_output_measure *outputs;
	bool *calibrated;
};

/* Kinds of artifacts that hold candidates, and functions to read them. */
static enum xfp_status read_fit(void *own, struct xfp_artifact *artifact)
{
	const struct candidate_list *to = own;
	struct xfp_fit fit;
	enum xfp_status status = xfp_fit_read(artifact, &fit, NULL);

	if (!status) {
		memcpy(to->list, fit.candidates, (*to->count = fit.candidate_count) * sizeof *to->list);
		memcpy(to->outputs, fit.outputs, fit.candidate_count * sizeof *to->outputs);
		*to->calibrated = fit.calibrated;
	}
	return status;
}

static enum xfp_status read_survey(void *own, struct xfp_artifact *artifact)
{
	const struct candidate_list *to = own;

	return xfp_candidates_read(artifact, XFP_MAX_SURVEYED, to->list, to->count, NULL);
}

static const struct measuring {
	enum xfp_stamp stamp; /* stamp of the artifact */
	uint32_t max;
	enum xfp_status (*read)(void *own, struct xfp_artifact *artifact);
} of_fit = { XFP_STAMP_FIT, XFP_MAX_CANDIDATES, read_fit },
  of_survey = { XFP_STAMP_SURVEY, XFP_MAX_SURVEYED, read_survey };

/* Query the manifest first. If it lacks the candidates or cannot be trusted, read the artifact and correct the
 * manifest. */
static bool find_candidates(const struct xfp_conversion *c, const struct measuring *measuring, const char *key,
			    bool check, const struct candidate_list *to)
{
	const struct xfp_step *step = &xfp_steps[measuring->stamp];

	if (!xfp_is_present(c, key, check))
		return false;
	if (xfp_manifest_get_candidates(c->place.manifest, key, measuring->max, to->list, to->outputs, to->calibrated,
					to->count))
		return true;
	if (xfp_present_read(c, step->kind, step->version, key, measuring->read, (void *)to))
		return false;
	xfp_manifest_repair(c->place.manifest, &c->place.store, key, NULL);
	return true;
}

bool xfp_measured_fit(const struct xfp_conversion *c, const char *key, bool check, struct xfp_fit *fit)
{
	const struct candidate_list to = { fit->candidates, &fit->candidate_count, fit->outputs, &fit->calibrated };

	return find_candidates(c, &of_fit, key, check, &to);
}

bool xfp_measured_survey(const struct xfp_conversion *c, const char *key, bool check,
			 struct xfp_candidate list[XFP_MAX_SURVEYED], uint32_t *count)
{
	return find_candidates(c, &of_survey, key, check, &(struct candidate_list){ .list = list, .count = count });
}

static enum xfp_status read_scale(void *own, struct xfp_artifact *artifact)
{
	return xfp_scales_read(artifact, own, NULL);
}

bool xfp_measured_scale(const struct xfp_conversion *c, const char *key, bool check, struct xfp_output_scale *scale)
{
	const struct xfp_step *step = &xfp_steps[XFP_STAMP_SCALES];

	return xfp_is_present(c, key, check) && !xfp_present_read(c, step->kind, step->version, key, read_scale, scale);
}
