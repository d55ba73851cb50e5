/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int.h - parameters of the codec int. Private to checkpoints/.
 */
#ifndef XFP_INT_H
#define XFP_INT_H

#include "base/bytes.h"

enum xfp_int_parameter { XFP_INT_BITS, XFP_INT_PACKING, XFP_INT_BLOCK_ROWS, XFP_INT_BLOCK_COLS };

enum xfp_int_packing {
	XFP_INT_BYTES, /* I8, one code each */
	XFP_INT_WORDS, /* 32-bit words, as many whole codes as fit */
	XFP_INT_DENSE, /* 32-bit words, codes adjacent and across word boundaries */
	XFP_INT_PACKINGS
};

/* Compute the words for `count` codes; returns false on overflow. */
static inline bool xfp_int_words(uint64_t packing, uint64_t bits, uint64_t count, uint64_t *words)
{
	uint64_t each = 32 / bits, all;

	if (packing == XFP_INT_WORDS) {
		*words = count / each + (count % each != 0);
		return true;
	}
	if (!xfp_mul(count, bits, &all))
		return false;
	*words = all / 32 + (all % 32 != 0);
	return true;
}

#endif
