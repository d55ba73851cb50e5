/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), so that libxfp needs no library, and a stage that starts a thousand times
 * loads none. With the processor's own instructions where it has them, of x86-64 and of AArch64.
 */
#ifndef XFP_SHA256_H
#define XFP_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct xfp_sha256 {
	uint32_t state[8];
	uint64_t size;     /* bytes taken in */
	uint8_t block[64]; /* the last size % 64 of them */
};

void xfp_sha256_init(struct xfp_sha256 *sha);
void xfp_sha256_update(struct xfp_sha256 *sha, const void *data, size_t size);
void xfp_sha256_final(struct xfp_sha256 *sha, uint8_t digest[32]);

/* All of it at once. */
void xfp_sha256(const void *data, size_t size, uint8_t digest[32]);

/* The same in plain C, whatever the processor: what the tests hold the instructions against. */
void xfp_sha256_plain(const void *data, size_t size, uint8_t digest[32]);

#endif
