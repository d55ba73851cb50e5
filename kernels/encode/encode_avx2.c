/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/lanes_avx2.h"

#include "kernels/encode/encode_rows.h"
#include "kernels/encode/scaled_groups_rows.h"

#include "kernels/encode/compact_rows.h"

const struct xfp_encoder xfp_encoder_avx2 = XFP_ENCODER("avx2");
