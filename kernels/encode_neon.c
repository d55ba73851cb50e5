/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes_neon.h"

#include "encode_rows.h"
#include "scaled_groups_rows.h"

#include "compact_rows.h"

const struct xfp_encoder xfp_encoder_neon = XFP_ENCODER("neon");
