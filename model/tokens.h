/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_TOKENS_H
#define XFP_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* Token ids of sequences of one length. */
struct xfp_tokens {
	size_t sequences, length;
	uint32_t *ids;   /* [sequence][length]; the caller frees it */
	size_t left_out; /* tokens of a text after the last complete sequence */
};

#endif
