/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_TENSOR_DIGEST_H
#define XFP_TENSOR_DIGEST_H

#include "schemas/ledger.h"

/* Compute the XXH3-128 of a tensor's dtype, rank, shape and elements, in order, unpacked: independent of where and how
 * they are stored.
 * XFP_FAILED: the file has changed since it was inspected. */
enum xfp_status xfp_tensor_digest(const struct xfp_ledger *ledger, uint32_t number, uint8_t digest[16],
				  struct xfp_error *err);

#endif
