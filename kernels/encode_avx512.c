/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes_avx512.h"

#include "encode_rows.h"
#include "scaled_groups_rows.h"

#include "compact_rows.h"

const struct xfp_encoder xfp_encoder_avx512 = XFP_ENCODER("avx512");
