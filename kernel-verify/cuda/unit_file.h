/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_file.h - write a bundle with one unit, or with one kept tensor, from existing parts, as input for libxfp-cuda.
 */
#ifndef XFP_KERNEL_VERIFY_UNIT_FILE_H
#define XFP_KERNEL_VERIFY_UNIT_FILE_H

#include "base/xfp_error.h"
#include "schemas/layout/bundle_layout.h"

struct xfp_unit_file {
	unsigned mode, dtype; /* of schemas/layout/classes.h and base/dtype.h */
	unsigned k, group, library;
	uint64_t rows, cols;
	uint32_t experts;
	bool tensor;   /* mode keep: a tensor, not a unit */
	int *exponent; /* [experts] */
	uint64_t *outliers;
	uint8_t *part[XFP_PARTS]; /* NULL: none */
	uint64_t bytes[XFP_PARTS];
};

/* Allocate `experts` or parts, zeroed, of the sizes in the layout. The sizes of outlier parts follow from `outliers`,
 * which the caller fills in between the two calls. XFP_FAILED if out of memory, or if such a unit is impossible. */
enum xfp_status xfp_unit_file_experts(struct xfp_unit_file *unit, struct xfp_error *err);
enum xfp_status xfp_unit_file_parts(struct xfp_unit_file *unit, bool balanced, struct xfp_error *err);
void xfp_unit_file_free(struct xfp_unit_file *unit);

/* Offset of expert e's bytes in a part. */
uint64_t xfp_unit_file_offset(const struct xfp_unit_file *unit, enum xfp_part part, uint32_t expert);

/* Write the bundle into an empty file. */
enum xfp_status xfp_unit_file_write(const struct xfp_unit_file *unit, int file, struct xfp_error *err);

#endif
