/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_file.h - a bundle with one unit, or one tensor that was kept, from parts that are there already: what
 * libxfp-cuda takes matrices from.
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
	bool tensor;   /* mode keep: not as a unit */
	int *exponent; /* of each expert, */
	uint64_t *outliers;
	uint8_t *part[XFP_PARTS]; /* NULL: none */
	uint64_t bytes[XFP_PARTS];
};

/* Rooms for `experts`, and for parts: of the sizes that the layout says. Those of outliers follow `outliers`, which has
 * to be filled in between. All are zero at first. XFP_FAILED without memory, or where there is no such unit. */
enum xfp_status xfp_unit_file_experts(struct xfp_unit_file *unit, struct xfp_error *err);
enum xfp_status xfp_unit_file_parts(struct xfp_unit_file *unit, bool balanced, struct xfp_error *err);
void xfp_unit_file_free(struct xfp_unit_file *unit);

/* Where expert e's bytes are in a part. */
uint64_t xfp_unit_file_offset(const struct xfp_unit_file *unit, enum xfp_part part, uint32_t expert);

/* Into an empty file. */
enum xfp_status xfp_unit_file_write(const struct xfp_unit_file *unit, int file, struct xfp_error *err);

#endif
