/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/digest.h"

#include <stdlib.h>

#include "base/digest_set.h"

struct xfp_digest {
	const struct xfp_digest_set *set;
	void *state;
};

static const struct xfp_digest_set plain = XFP_DIGEST_SET;

static const struct xfp_digest_set *best_set(void)
{
#ifdef XFP_DIGEST_AVX2
	if (__builtin_cpu_supports("avx2"))
		return &xfp_digest_avx2;
#endif
	return &plain;
}

static struct xfp_digest *new_of(const struct xfp_digest_set *set)
{
	struct xfp_digest *digest = malloc(sizeof *digest);

	if (!digest)
		return NULL;
	*digest = (struct xfp_digest){ set, set->create() };
	if (!digest->state) {
		free(digest);
		return NULL;
	}
	return digest;
}

struct xfp_digest *xfp_digest_new(void)
{
	return new_of(best_set());
}

struct xfp_digest *xfp_digest_new_plain(void)
{
	return new_of(&plain);
}

void xfp_digest_update(struct xfp_digest *digest, const void *data, size_t size)
{
	digest->set->update(digest->state, data, size);
}

void xfp_digest_final(struct xfp_digest *digest, uint8_t out[16])
{
	if (out)
		digest->set->final(digest->state, out);
	digest->set->release(digest->state);
	free(digest);
}
