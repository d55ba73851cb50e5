/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_set.h - XXH3-128, compiled from the header of libxxhash for the instruction set of the file that includes it.
 * Distributions build the library for the oldest processors. A state belongs to the set that created it. Tools without
 * the library do not use this.
 */
#ifndef XFP_DIGEST_SET_H
#define XFP_DIGEST_SET_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct xfp_digest_set {
	void *(*create)(void); /* NULL if memory runs out */
	void (*update)(void *state, const void *data, size_t size);
	void (*final)(void *state, uint8_t out[16]);
	void (*release)(void *state);
};

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define XFP_DIGEST_AVX2
extern const struct xfp_digest_set xfp_digest_avx2;
#endif

static void *create(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (state)
		XXH3_128bits_reset(state);
	return state;
}

static void update(void *state, const void *data, size_t size)
{
	XXH3_128bits_update(state, data, size);
}

static void final(void *state, uint8_t out[16])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	memcpy(out, canonical.digest, 16);
}

static void release(void *state)
{
	XXH3_freeState(state);
}

/* clang-format off */
#define XFP_DIGEST_SET { create, update, final, release }
/* clang-format on */

#endif
