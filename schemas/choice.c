/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/choice.h"

#include <stdlib.h>
#include <string.h>

#include "schemas/h5.h"

enum xfp_status xfp_choice_write(struct xfp_artifact *a, const struct xfp_choice *choice, struct xfp_error *err)
{
	const struct xfp_candidate *c = &choice->candidate;
	enum xfp_status status;

	(void)((status = xfp_h5_write_u64(a, "mode", c->mode, err)) || (status = xfp_h5_write_u64(a, "k", c->k, err)) ||
	       (status = xfp_h5_write_u64(a, "sigma_milli", c->sigma_milli, err)) ||
	       (status = xfp_h5_write_u64(a, "group", c->group, err)) ||
	       (status = xfp_h5_write_u64(a, "library", c->library, err)) ||
	       (status = xfp_h5_write_u64(a, "bytes", c->bytes, err)) ||
	       (status = xfp_h5_write_u64(a, "outliers", c->outliers, err)) ||
	       (status = xfp_h5_write_f64(a, "cos_median", c->cos_median, err)) ||
	       (status = xfp_h5_write_f64(a, "cos_p5", c->cos_p5, err)) ||
	       (status = xfp_h5_write_f64(a, "error", c->error, err)) ||
	       (status = xfp_h5_write_u64(a, "floor", choice->floor, err)) ||
	       (status = xfp_h5_write_u64(a, "met", choice->met, err)) ||
	       (status = xfp_h5_write_u64(a, "fixed", choice->fixed, err)) ||
	       (status = xfp_h5_write_u64(a, "sample", choice->sample, err)) ||
	       (status = xfp_h5_write_f64(a, "sample_median", choice->sample_median, err)) ||
	       (status = xfp_h5_write_f64(a, "sample_p5", choice->sample_p5, err)) ||
	       (status = xfp_h5_write_text(a, "fit", choice->fit, err)));
	return !status && choice->calibrated ? xfp_outputs_write(a, &choice->output, 1, err) : status;
}

enum xfp_status xfp_choice_read(struct xfp_artifact *a, struct xfp_choice *choice, struct xfp_error *err)
{
	struct xfp_choice read = { 0 };
	struct xfp_candidate *c = &read.candidate;
	uint64_t mode, k, sigma, group, library, floor, met, fixed, sample;
	enum xfp_status status;
	char *fit = NULL;

	if ((status = xfp_h5_read_u64(a, "mode", &mode, err)) || (status = xfp_h5_read_u64(a, "k", &k, err)) ||
	    (status = xfp_h5_read_u64(a, "sigma_milli", &sigma, err)) ||
	    (status = xfp_h5_read_u64(a, "group", &group, err)) ||
	    (status = xfp_h5_read_u64(a, "library", &library, err)) ||
	    (status = xfp_h5_read_u64(a, "bytes", &c->bytes, err)) ||
	    (status = xfp_h5_read_u64(a, "outliers", &c->outliers, err)) ||
	    (status = xfp_h5_read_f64(a, "cos_median", &c->cos_median, err)) ||
	    (status = xfp_h5_read_f64(a, "cos_p5", &c->cos_p5, err)) ||
	    (status = xfp_h5_read_f64(a, "error", &c->error, err)) ||
	    (status = xfp_h5_read_u64(a, "floor", &floor, err)) || (status = xfp_h5_read_u64(a, "met", &met, err)) ||
	    (status = xfp_h5_read_u64(a, "fixed", &fixed, err)) ||
	    (status = xfp_h5_read_u64(a, "sample", &sample, err)) ||
	    (status = xfp_h5_read_f64(a, "sample_median", &read.sample_median, err)) ||
	    (status = xfp_h5_read_f64(a, "sample_p5", &read.sample_p5, err)) ||
	    (status = xfp_outputs_read(a, 1, &read.output, &read.calibrated, err)) ||
	    (status = xfp_h5_read_text(a, "fit", &fit, err)))
		return status;
	/* The comparisons are false for NaN. */
	if (mode >= XFP_MODES || (mode >= XFP_MODE_V2 && (k < 2 || k > 6)) || k > 8 || sigma > UINT32_MAX ||
	    group > UINT16_MAX || library > UINT16_MAX || (mode > XFP_MODE_V2) != (group && library) ||
	    floor > UINT32_MAX || met > 1 || fixed > 1 || sample > UINT32_MAX ||
	    !(read.sample_median >= -2 && read.sample_median <= 2) || !(read.sample_p5 >= -2 && read.sample_p5 <= 2) ||
	    strlen(fit) != 32 || strspn(fit, "0123456789abcdef") != 32 ||
	    !(c->cos_median >= -2 && c->cos_median <= 2) || !(c->cos_p5 >= -2 && c->cos_p5 <= 2) || !(c->error >= 0)) {
		status = xfp_h5_damaged(a, err, "impossible choice");
	} else {
		c->mode = (uint32_t)mode;
		c->k = (uint32_t)k;
		c->sigma_milli = (uint32_t)sigma;
		c->group = (uint16_t)group;
		c->library = (uint16_t)library;
		read.floor = (uint32_t)floor;
		read.met = (uint32_t)met;
		read.fixed = (uint32_t)fixed;
		read.sample = (uint32_t)sample;
		memcpy(read.fit, fit, sizeof read.fit);
		*choice = read;
	}
	free(fit);
	return status;
}
