/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - streaming XXH3-128 of matrices, tensors and everything else that affects a bundle.
 */
#ifndef XFP_DIGEST_H
#define XFP_DIGEST_H

#include <stddef.h>
#include <stdint.h>

struct xfp_digest;                             /* opaque */
struct xfp_digest *xfp_digest_new(void);       /* NULL if memory runs out */
struct xfp_digest *xfp_digest_new_plain(void); /* without the instructions of newer processors, for tests */
void xfp_digest_update(struct xfp_digest *digest, const void *data, size_t size);
/* Finish the digest and free it; `out` may be NULL. */
void xfp_digest_final(struct xfp_digest *digest, uint8_t out[16]);

#endif
