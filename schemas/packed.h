/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.h - the artifact of pack: a unit's parts, byte for byte as in the bundle.
 *
 *   attributes   mode, k, group, library, matrices, rows, cols, outliers, cos_median, cos_p5, error (squared
 *                error / squared norm)
 *   /matrix      compound [M], struct xfp_packed_matrix: one per matrix, by expert number
 *   /part-NAME   uint8, contiguous, one for each part that the mode has (see bundle_layout.h)
 *   /digest      uint8 [XFP_PARTS * 48], struct xfp_part_digest, zero for parts that are absent
 */
#ifndef XFP_PACKED_H
#define XFP_PACKED_H

#include "schemas/artifact.h"
#include "schemas/fit.h"
#include "schemas/layout/bundle_layout.h"

#define XFP_PACKED_KIND "packed"
#define XFP_PACKED_VERSION 3

struct xfp_packed_matrix {
	uint32_t mode, k;
	int32_t exponent;
	uint32_t reserved;
	uint64_t outliers;
	uint64_t offset[XFP_PARTS]; /* offset of this matrix's bytes in each part */
	uint8_t source[16];         /* XXH3-128 of its source rows */
};

/* The SHA-256 goes into the bundle; the XXH3-128 in canonical form checks, at a tenth of the cost, that the bytes
 * copied there are unchanged. */
struct xfp_part_digest {
	uint8_t sha256[32], xxh3[16];
};

struct xfp_packed {
	uint32_t mode, k;
	uint32_t group, library; /* log2, as in struct xfp_idx_unit; 0 except in v2a and v2c */
	uint32_t matrices;
	uint64_t rows, cols, outliers;
	double cos_median, cos_p5, error;
	uint64_t bytes[XFP_PARTS]; /* true size of each part; 0: absent */
	struct xfp_part_digest digest[XFP_PARTS];
	struct xfp_packed_matrix *matrix; /* [matrices], owned */
};

/* Writing: reserve the parts by packed->bytes; fill them in order or by range; end writes the tables (the caller fills
 * in packed->digest). */
enum xfp_status xfp_packed_begin(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err);
enum xfp_status xfp_packed_write(struct xfp_artifact *a, enum xfp_part part, uint64_t offset, uint64_t bytes,
				 const void *data, struct xfp_error *err);
enum xfp_status xfp_packed_end(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err);

/* Reading: the tables (allocates packed->matrix); the location of a part's bytes in the artifact's file. */
enum xfp_status xfp_packed_read(struct xfp_artifact *a, struct xfp_packed *packed, struct xfp_error *err);
enum xfp_status xfp_packed_extent(struct xfp_artifact *a, enum xfp_part part, uint64_t *offset, uint64_t *bytes,
				  struct xfp_error *err);
/* Write only the tables, with the parts' sizes in /bytes, uint64 [XFP_PARTS]: the form used in a receipt
 * (receipt.h). */
enum xfp_status xfp_packed_write_tables(struct xfp_artifact *a, const struct xfp_packed *packed, struct xfp_error *err);
enum xfp_status xfp_packed_read_tables(struct xfp_artifact *a, struct xfp_packed *packed, struct xfp_error *err);
void xfp_packed_free(struct xfp_packed *packed);

#endif
