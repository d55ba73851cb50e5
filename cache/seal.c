/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/seal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "schemas/surveyed.h"

#define CANDIDATE_BYTES 56
#define OUTPUT_BYTES 24

/* XXH3-128 in canonical byte order. */
static void hash(const void *data, size_t size, uint8_t out[16])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
	memcpy(out, canonical.digest, 16);
}

/* Serialize a candidate: the struct's layout in memory depends on the compiler. */
static void store_candidate(const struct xfp_candidate *c, uint8_t bytes[CANDIDATE_BYTES])
{
	const double real[] = { c->cos_median, c->cos_p5, c->error };

	xfp_store32(bytes, c->mode);
	xfp_store32(bytes + 4, c->k);
	xfp_store32(bytes + 8, c->sigma_milli);
	xfp_store16(bytes + 12, c->group);
	xfp_store16(bytes + 14, c->library);
	xfp_store64(bytes + 16, c->bytes);
	xfp_store64(bytes + 24, c->outliers);
	memcpy(bytes + 32, real, sizeof real);
}

void xfp_seal_candidates(const struct xfp_fit_set *set, uint8_t seal[16])
{
	uint8_t bytes[20 + XFP_MAX_SURVEYED * (CANDIDATE_BYTES + OUTPUT_BYTES)], *at = bytes + 20;
	uint32_t count = set->count < XFP_MAX_SURVEYED ? set->count : XFP_MAX_SURVEYED;

	hash(set->key, strlen(set->key), bytes);
	xfp_store32(bytes + 16, count);
	for (uint32_t i = 0; i < count; i++, at += CANDIDATE_BYTES)
		store_candidate(&set->candidates[i], at);
	for (uint32_t i = 0; set->outputs && i < count; i++, at += OUTPUT_BYTES) {
		const struct xfp_output_measure *o = &set->outputs[i];
		const double real[] = { o->median, o->p5, o->error };

		memcpy(at, real, sizeof real);
	}
	hash(bytes, (size_t)(at - bytes), seal);
}

void xfp_seal_source(const char *path, const struct xfp_identity *identity, const char *region,
		     const uint8_t digest[16], uint8_t seal[16])
{
	uint8_t bytes[88];

	hash(path, strlen(path), bytes);
	hash(region, strlen(region), bytes + 16);
	xfp_store64(bytes + 32, identity->device);
	xfp_store64(bytes + 40, identity->inode);
	xfp_store64(bytes + 48, identity->size);
	xfp_store64(bytes + 56, (uint64_t)identity->mtime_ns);
	xfp_store64(bytes + 64, (uint64_t)identity->ctime_ns);
	memcpy(bytes + 72, digest, 16);
	hash(bytes, sizeof bytes, seal);
}

void xfp_seal_line(const char *text, size_t size, char seal[17])
{
	snprintf(seal, 17, "%016" PRIx64, (uint64_t)XXH3_64bits(text, size));
}
