/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.h - digests that go with what is kept outside an artifact, so that nothing damaged decides anything.
 *
 * SQLite does not checksum its pages, and a line of a text file has nobody to vouch for it. What decides bytes is
 * therefore sealed: rows of the manifest with an XXH3-128 over what they say and what they say it of, lines of the
 * work folder with an XXH3-64. Where a seal does not fit, the row or line is not believed, and what it said is read
 * from where it came from.
 *
 * A row's seal is over fields of fixed size, integers little-endian, strings as their XXH3-128 (canonical form).
 */
#ifndef XFP_SEAL_H
#define XFP_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/system/file.h"
#include "schemas/fit.h"

/* Of the candidates that the fit or survey of this key measured, in their order: over key, count (32 bits) and every
 * field of each. No more than XFP_MOST_SURVEYED are there to be sealed. */
void xfp_seal_candidates(const char *key, const struct xfp_candidate *candidates, uint32_t count, uint8_t seal[16]);

/* Of what a region of a file digests to, while the file is what it was: over path, region, the five fields of the
 * identity as 64 bits each, and the digest. */
void xfp_seal_source(const char *path, const struct xfp_identity *identity, const char *region,
		     const uint8_t digest[16], uint8_t seal[16]);

/* Of a line of text: 16 lower-case hex digits and a NUL. */
void xfp_seal_line(const char *text, size_t size, char seal[17]);

#endif
