/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_inputs.h - the inputs of a unit's layer, in a calibrated conversion.
 */
#ifndef XFP_LAYER_INPUTS_H
#define XFP_LAYER_INPUTS_H

#include "schemas/inputs.h"
#include "stages/stage.h"

struct xfp_layer_inputs {
	uint32_t layer;
	char key[33]; /* "": they do not exist yet */
};

/* Find the layer of the job's unit and the key of its inputs. *found is false if the conversion is not calibrated, or
 * the unit in no layer. XFP_DAMAGED: the work folder has no calibration, or another one. */
enum xfp_status xfp_layer_inputs_find(const struct xfp_job *job, struct xfp_layer_inputs *inputs, bool *found,
				      struct xfp_error *err);
/* Open and read the artifact. The caller closes it and frees `read`, even after a failure. */
enum xfp_status xfp_layer_inputs_open(const struct xfp_job *job, const struct xfp_layer_inputs *inputs,
				      struct xfp_artifact *artifact, struct xfp_inputs *read, struct xfp_error *err);

/* Replace the errors and cosines of a survey's candidates by those that its scales predict for outputs, if the unit has
 * inputs: floors apply to them. XFP_DAMAGED: there are no scales yet. */
enum xfp_status xfp_layer_inputs_predict(struct xfp_job *job, struct xfp_candidate *list, uint32_t count,
					 struct xfp_error *err);

#endif
