/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_read.h - rotary positions, from config.json. Private to model/forward/.
 */
#ifndef XFP_ROPE_READ_H
#define XFP_ROPE_READ_H

#include "model/forward/description.h"
#include "model/forward/fields.h"

/* `object` holds all of it (rope_parameters), or its scaling alone (rope_scaling), and then the base is a member of the
 * config, `theta_key`; NULL: positions are not scaled. Where there is none, `theta` is the base, and `turning` the part
 * of a head that turns. What `rope` then holds is freed with the description. */
void xfp_rope_read(struct xfp_fields *f, const struct xfp_description *description, json_t *object,
		   const char *theta_key, double theta, double turning, struct xfp_rope *rope);

#endif
