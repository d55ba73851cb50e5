/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes_neon.h"

#include "kernels/encode_rows.h"
#include "kernels/scaled_groups_rows.h"

#include "kernels/compact_rows.h"

const struct xfp_encoder xfp_encoder_neon = XFP_ENCODER("neon");
