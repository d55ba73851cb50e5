/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), implemented here so that libxfp depends on no library and a stage that starts a
 * thousand times loads none. Uses the SHA instructions of x86-64 and AArch64 if the processor has them.
 */
#ifndef XFP_SHA256_H
#define XFP_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct xfp_sha256 {
	uint32_t state[8];
	uint64_t size;     /* bytes hashed so far */
	uint8_t block[64]; /* the last size % 64 bytes */
};

void xfp_sha256_init(struct xfp_sha256 *sha);
void xfp_sha256_update(struct xfp_sha256 *sha, const void *data, size_t size);
void xfp_sha256_final(struct xfp_sha256 *sha, uint8_t digest[32]);

/* Hash a whole buffer in one call. */
void xfp_sha256(const void *data, size_t size, uint8_t digest[32]);

/* xfp_sha256 in plain C on any processor; the tests compare the SHA instructions with it. */
void xfp_sha256_plain(const void *data, size_t size, uint8_t digest[32]);

#endif
