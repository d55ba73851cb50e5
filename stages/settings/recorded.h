/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - what a bundle says that it was made with: the xfp.json in it.
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
	unsigned version[XFP_ALGORITHMS]; /* of xfp_algorithms */
	unsigned made[XFP_MAKERS];        /* of xfp_makers; 0: it made nothing */
	char *unknown;                    /* an algorithm that this xfp does not have, NULL: none */
};

/* XFP_BAD_INPUT naming the member when it is not as this xfp would have written it. On failure there is nothing
 * to free. `path` is for messages. */
enum xfp_status xfp_recorded_read(const struct xfp_bundle *bundle, const char *path, struct xfp_recorded *recorded,
				  struct xfp_error *err);
void xfp_recorded_free(struct xfp_recorded *recorded);

/* What the parameters say of a unit of the bundle. */
struct xfp_policy xfp_recorded_policy(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit);
/* The experts that decided for the unit; 0: all, or there was nothing to decide. */
uint32_t xfp_recorded_sample(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit);

#endif
