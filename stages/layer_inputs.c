/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/layer_inputs.h"

#include <string.h>

#include "schemas/calibration.h"
#include "schemas/surveyed.h"
#include "stages/quantize/survey.h"

enum xfp_status xfp_layer_inputs_find(const struct xfp_job *job, struct xfp_layer_inputs *inputs, bool *found,
				      struct xfp_error *err)
{
	struct xfp_calibration calibration = { 0 };
	enum xfp_status status;

	*found = false;
	*inputs = (struct xfp_layer_inputs){ .key = "" };
	if (!*job->parameters.calibration.sha256)
		return XFP_OK;
	status = xfp_calibration_read(job->work, &calibration, found, err);
	if (!status && (!*found || strcmp(calibration.sha256, job->parameters.calibration.sha256)))
		status = xfp_fail(err, XFP_DAMAGED, "%s is missing, or has other tokens; run xfp convert again",
				  XFP_CALIBRATION_FILE);
	if (!status && (*found = xfp_calibration_unit(&calibration, job->ledger, 0, &inputs->layer)))
		status = xfp_stamp_find(job->work, XFP_LAYER | inputs->layer, XFP_STAMP_INPUTS, inputs->key, err);
	xfp_calibration_free(&calibration);
	return status;
}

enum xfp_status xfp_layer_inputs_open(const struct xfp_job *job, const struct xfp_layer_inputs *inputs,
				      struct xfp_artifact *artifact, struct xfp_inputs *read, struct xfp_error *err)
{
	enum xfp_status status = xfp_stamped_open(&job->store, job->work, XFP_LAYER | inputs->layer, XFP_STAMP_INPUTS,
						  inputs->key, artifact, err);

	return status ? status : xfp_inputs_read(artifact, read, err);
}

enum xfp_status xfp_layer_inputs_predict(struct xfp_job *job, struct xfp_candidate *list, uint32_t count,
					 struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_layer_inputs layer;
	struct xfp_output_scale scale;
	bool found = false;
	char key[33];
	enum xfp_status status = XFP_OK;

	if (xfp_fit_wanted(&job->parameters, XFP_FIT_LIBRARY) && count)
		status = xfp_layer_inputs_find(job, &layer, &found, err);
	if (status || !found)
		return status;
	status = xfp_job_open(job, XFP_STAMP_SCALES, &artifact, key, err);
	if (!status)
		status = xfp_scales_read(&artifact, &scale, err);
	if (!status)
		xfp_survey_scale_apply(&scale, list, count);
	xfp_artifact_close(&artifact);
	return status;
}
