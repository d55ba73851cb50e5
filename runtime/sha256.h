/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), so that libxfp needs no library. Private to runtime/.
 */
#ifndef XFP_SHA256_H
#define XFP_SHA256_H

#include <stddef.h>
#include <stdint.h>

void xfp_sha256(const void *data, size_t size, uint8_t digest[32]);

#endif
