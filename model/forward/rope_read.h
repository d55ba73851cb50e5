/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_read.h - RoPE parameters from config.json. Private to model/forward/.
 */
#ifndef XFP_ROPE_READ_H
#define XFP_ROPE_READ_H

#include "model/forward/description.h"
#include "model/forward/fields.h"
#include "model/forward/model_family.h"

/* Read description->rope and ->ropes as transformers does. A rope_scaling that is not empty replaces rope_parameters,
 * its rope_theta included. In families whose window layers have a RoPE of their own, rope_parameters holds an object
 * for each kind of layer, and rope_scaling overrides members of the one for full attention. The description owns the
 * factors. */
void xfp_ropes_read(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *description);

#endif
