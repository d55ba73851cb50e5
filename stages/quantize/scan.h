/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what all weights of a unit say before any is looked at closely: digests, balance, exponents.
 */
#ifndef XFP_SCAN_H
#define XFP_SCAN_H

#include "schemas/ledger.h"
#include "schemas/outliers.h"
#include "schemas/parameters.h"

/* The rows of a unit that hold its largest weights, by falling |w|, ties by row: those that a sample would miss. */
#define XFP_PEAKS 16
struct xfp_peaks {
	uint32_t count;
	uint64_t row[XFP_PEAKS]; /* of matrices * rows */
	float largest[XFP_PEAKS];
	uint64_t print[XFP_PEAKS]; /* xfp_rows_print */
	/* The prints of as many rows as will be sampled: the caller's, set before; NULL: not wanted. */
	uint64_t samples, *sample;
	/* The largest |w| of each tile, [matrices][tiles of the rows][tiles of the columns]: the caller's, zeros
	 * before; NULL: not wanted. */
	float *tile;
};
/* A square of a matrix; those at its right and lower edges may be smaller. */
#define XFP_TILE 128
static inline uint64_t xfp_tiles(uint64_t count)
{
	return (count + XFP_TILE - 1) / XFP_TILE;
}
/* Row number i of a sample of so many out of all. */
static inline uint64_t xfp_sampled_row(uint64_t i, uint64_t all, uint64_t samples)
{
	return i * all / samples;
}

/* One pass over the unit's rows: shape, `source`, `balance` and `exponent` of *known, which is to be freed either way.
 * Weights that are no numbers fail, or, where the parameters keep them, every sigma is -1 and nothing else is told.
 * `peaks` may be NULL. */
enum xfp_status xfp_scan_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
			      const struct xfp_parameters *parameters, struct xfp_outliers *known,
			      struct xfp_peaks *peaks, struct xfp_error *err);

/* What a stage says of weights that are no numbers, where they are not to be kept. */
enum xfp_status xfp_fail_nonfinite(struct xfp_error *err, const char *tensor, uint64_t count);

#endif
