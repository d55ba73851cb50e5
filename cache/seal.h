/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.h - checksums of data stored outside artifacts, so that damaged data never affects the output.
 *
 * SQLite does not checksum its pages, and text files have no checksums. Data that affects the output is therefore
 * sealed: rows of the manifest with an XXH3-128 over their values and the object that they describe, lines of the work
 * folder with an XXH3-64. If a seal does not match, the row or line is ignored, and the data is read again from its
 * origin.
 *
 * A row's seal covers fields of fixed size: integers are little-endian, strings are replaced by their XXH3-128
 * (canonical form).
 */
#ifndef XFP_SEAL_H
#define XFP_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/system/file.h"
#include "schemas/fit.h"

/* Seal the candidates that the fit or survey of this key measured, in their order: key, count (32 bits) and every field
 * of each; then those of their outputs, if it is calibrated. The count is at most XFP_MAX_SURVEYED. */
void xfp_seal_candidates(const struct xfp_fit_set *set, uint8_t seal[16]);

/* Seal the digest of a region of a file with this identity: path, region, the five fields of the identity as 64 bits
 * each, and the digest. */
void xfp_seal_source(const char *path, const struct xfp_identity *identity, const char *region,
		     const uint8_t digest[16], uint8_t seal[16]);

/* Seal a line of text: 16 lower-case hex digits and a NUL. */
void xfp_seal_line(const char *text, size_t size, char seal[17]);

#endif
