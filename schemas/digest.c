/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/digest.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct xfp_digest {
	XXH3_state_t *state;
};

struct xfp_digest *xfp_digest_new(void)
{
	struct xfp_digest *digest = malloc(sizeof *digest);

	if (!digest)
		return NULL;
	/* The state needs stricter alignment than malloc guarantees. */
	digest->state = XXH3_createState();
	if (!digest->state || XXH3_128bits_reset(digest->state) != XXH_OK) {
		xfp_digest_final(digest, NULL);
		return NULL;
	}
	return digest;
}

void xfp_digest_update(struct xfp_digest *digest, const void *data, size_t size)
{
	XXH3_128bits_update(digest->state, data, size);
}

void xfp_digest_final(struct xfp_digest *digest, uint8_t out[16])
{
	XXH128_canonical_t canonical;

	if (out) {
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest->state));
		memcpy(out, canonical.digest, 16);
	}
	XXH3_freeState(digest->state);
	free(digest);
}
