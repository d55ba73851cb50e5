/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/lanes_plain.h"

#include "kernels/encode/encode_rows.h"
#include "kernels/encode/scaled_groups_rows.h"

#include "kernels/encode/compact_rows.h"

const struct xfp_encoder xfp_encoder_plain = XFP_ENCODER("plain");
