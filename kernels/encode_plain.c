/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes_plain.h"

#include "encode_rows.h"
#include "scaled_groups_rows.h"

#include "compact_rows.h"

const struct xfp_encoder xfp_encoder_plain = XFP_ENCODER("plain");
