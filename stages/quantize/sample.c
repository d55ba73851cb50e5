/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/sample.h"

#include <stdlib.h>

#include "kernels/encode/cosine.h"

bool xfp_sample_decides(const struct xfp_parameters *parameters, const struct xfp_policy *policy,
			const struct xfp_ledger_unit *unit)
{
	return !policy->fixed && !policy->assigned && xfp_sample_experts(&parameters->moe_sample, unit->experts);
}

enum xfp_status xfp_sample_fit(struct xfp_artifact *artifact, const struct xfp_fit *fit,
			       const struct xfp_moe_sample *sample, struct xfp_sampled sampled[XFP_MAX_CANDIDATES],
			       struct xfp_error *err)
{
	uint32_t count = xfp_sample_experts(sample, fit->matrices);
	double *cosine = malloc((count * fit->rows + 1) * sizeof *cosine);
	enum xfp_status status = cosine ? XFP_OK : xfp_no_memory(err);

	for (uint32_t c = 0; !status && c < fit->candidate_count; c++) {
		for (uint32_t i = 0; !status && i < count; i++)
			status = xfp_fit_read_rows(artifact, &fit->candidates[c],
						   xfp_sample_expert(sample, fit->matrices, i) * fit->rows, fit->rows,
						   NULL, cosine + i * fit->rows, err);
		if (!status)
			xfp_cosine_summary(cosine, count * fit->rows, &sampled[c].median, &sampled[c].p5);
	}
	free(cosine);
	return status;
}
