/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - the settings recorded in a bundle, in its member xfp.json.
 */
#ifndef XFP_RECORDED_H
#define XFP_RECORDED_H

#include "cache/key.h"
#include "runtime/xfp.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"

struct xfp_recorded {
	struct xfp_parameters parameters;
	char *family;
	unsigned version[XFP_ALGORITHMS]; /* versions, indexed like xfp_algorithms */
	unsigned made[XFP_MAKERS];        /* versions, indexed like xfp_makers; 0: made nothing */
	char *unknown;                    /* an algorithm that this xfp lacks; NULL: none */
	/* [units] outputs of calibrated units; error below 0: not calibrated. NULL: no unit is. */
	struct xfp_output_measure *outputs;
};

/* Read the recorded settings. XFP_BAD_INPUT: this xfp would not have written the member; the message names it. On
 * failure there is nothing to free. `path` is for messages. */
enum xfp_status xfp_recorded_read(const struct xfp_bundle *bundle, const char *path, struct xfp_recorded *recorded,
				  struct xfp_error *err);
void xfp_recorded_free(struct xfp_recorded *recorded);

/* The outputs of a unit; NULL: not calibrated. `recorded` may be NULL. */
const struct xfp_output_measure *xfp_recorded_outputs(const struct xfp_recorded *recorded, uint32_t unit);
/* The policy of a unit of the bundle, from the recorded parameters. */
struct xfp_policy xfp_recorded_policy(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit);
/* The number of experts that decided for the unit; 0: all, or no decision was needed. */
uint32_t xfp_recorded_sample(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit);
/* Why a unit misses its request: below its floor, or at source precision because no candidate qualified. NULL if it
 * does not. `recorded` may be NULL. */
const char *xfp_unit_missed(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit);

#endif
