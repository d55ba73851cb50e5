/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/stages.h"

#include <string.h>

#include "schemas/choice.h"
#include "schemas/inputs.h"
#include "schemas/outliers.h"
#include "schemas/packed.h"
#include "schemas/surveyed.h"

const struct xfp_step xfp_steps[XFP_STAMPS + 1] = {
	[XFP_STAMP_SURVEY] = { .stage = "survey",
			       .program = "xfp-survey",
			       .display_name = "survey",
			       .stamp = "survey",
			       /* A file for make, which the stage writes after its stamp. */
			       .target = "fits.mk",
			       .kind = XFP_SURVEY_KIND,
			       .version = XFP_SURVEY_VERSION,
			       .weights = true,
			       .digests = true },
	[XFP_STAMP_SCALES] = { .stage = "survey",
			       .program = "xfp-survey",
			       .display_name = "survey",
			       .stamp = "scales",
			       .kind = XFP_SCALES_KIND,
			       .version = XFP_SCALES_VERSION,
			       .weights = true },
	[XFP_STAMP_OUTLIERS] = { .stage = "outlier-extract",
				 .program = "xfp-outlier-extract",
				 .display_name = "outlier-extract",
				 .stamp = "outliers",
				 .target = "outliers",
				 .kind = XFP_OUTLIERS_KIND,
				 .version = XFP_OUTLIERS_VERSION,
				 .weights = true,
				 .digests = true },
	[XFP_STAMP_FIT] = { .stage = "lloyd-fit",
			    .program = "xfp-lloyd-fit",
			    .display_name = "lloyd-fit",
			    .stamp = "fit",
			    .target = "fit",
			    .kind = XFP_FIT_KIND,
			    .version = XFP_FIT_VERSION,
			    .fit = true,
			    .weights = true },
	[XFP_STAMP_LIBRARY] = { .stage = "libfit",
				.program = "xfp-libfit",
				.display_name = "libfit",
				.stamp = "library",
				.target = "library",
				.kind = XFP_FIT_KIND,
				.version = XFP_FIT_VERSION,
				.fit = true,
				.weights = true },
	[XFP_STAMP_EXTENDED] = { .stage = "lloyd-fit",
				 .program = "xfp-lloyd-fit",
				 .display_name = "lloyd-fit --extended",
				 .stamp = "extended",
				 .kind = XFP_FIT_KIND,
				 .version = XFP_FIT_VERSION,
				 .fit = true,
				 .extended = true,
				 .weights = true },
	[XFP_STAMP_EXTENDED_LIBRARY] = { .stage = "libfit",
					 .program = "xfp-libfit",
					 .display_name = "libfit --extended",
					 .stamp = "extended-library",
					 .kind = XFP_FIT_KIND,
					 .version = XFP_FIT_VERSION,
					 .fit = true,
					 .extended = true,
					 .weights = true },
	[XFP_STAMP_CHOICE] = { .stage = "autoselect",
			       .program = "xfp-autoselect",
			       .display_name = "autoselect",
			       .stamp = "choice",
			       .target = "choice",
			       .kind = XFP_CHOICE_KIND,
			       .version = XFP_CHOICE_VERSION },
	[XFP_STAMP_PACKED] = { .stage = "pack",
			       .program = "xfp-pack",
			       .display_name = "pack",
			       .stamp = "packed",
			       .target = "packed",
			       .kind = XFP_PACKED_KIND,
			       .version = XFP_PACKED_VERSION,
			       .weights = true },
	[XFP_STAMP_INPUTS] = { .stage = "calibrate",
			       .program = XFP_CALIBRATE_PROGRAM,
			       .display_name = "calibrate",
			       .stamp = "inputs",
			       .target = "inputs",
			       .kind = XFP_INPUTS_KIND,
			       .version = XFP_INPUTS_VERSION,
			       .weights = true },
};

static enum xfp_stamp find(const char *stage, bool extended)
{
	int s = 0;

	while (s < XFP_STAMPS && (strcmp(xfp_steps[s].stage, stage) || xfp_steps[s].extended != extended))
		s++;
	return (enum xfp_stamp)s;
}

enum xfp_stamp xfp_step_named(const char *stage)
{
	return find(stage, false);
}

enum xfp_stamp xfp_step_extended(enum xfp_stamp stamp)
{
	return find(xfp_steps[stamp].stage, true);
}

bool xfp_step_wanted(const struct xfp_parameters *parameters, enum xfp_stamp stamp, bool extended)
{
	if (stamp == XFP_STAMP_SURVEY)
		return parameters->outlier_sigma == XFP_SIGMA_AUTO;
	if (stamp == XFP_STAMP_SCALES)
		return false;
	return !xfp_steps[stamp].fit ||
	       (xfp_fit_wanted(parameters, xfp_step_fit(stamp)) && (extended || !xfp_steps[stamp].extended));
}

/* Steps whose artifacts have the same kind are adjacent. */
const char *xfp_kind_at(unsigned place)
{
	for (int s = 0; s <= XFP_STAMP_INPUTS; s++)
		if ((!s || strcmp(xfp_steps[s].kind, xfp_steps[s - 1].kind)) && !place--)
			return xfp_steps[s].kind;
	return NULL;
}

unsigned xfp_kind_place(const char *kind)
{
	unsigned place = 0;
	const char *name;

	while ((name = xfp_kind_at(place)) && strcmp(name, kind))
		place++;
	return place;
}
