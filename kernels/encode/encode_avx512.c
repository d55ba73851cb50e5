/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"

#include "kernels/encode/encode_rows.h"

#include "kernels/encode/codebook_rows.h"
#include "kernels/encode/compact_rows.h"
#include "kernels/encode/scaled_rows.h"

const struct xfp_encoder xfp_encoder_avx512 = { "avx512", &row_encoder, &codebook_encoder, &scaled_encoder,
						&compact_encoder };
