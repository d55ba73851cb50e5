/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/plain.h"

#include "kernels/encode/encode_rows.h"

#include "kernels/encode/codebook_rows.h"
#include "kernels/encode/compact_rows.h"
#include "kernels/encode/scaled_rows.h"

const struct xfp_encoder xfp_encoder_plain = { "plain", &row_encoder, &codebook_encoder, &scaled_encoder,
					       &compact_encoder };
