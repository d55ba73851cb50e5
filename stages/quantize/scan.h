/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - the first pass over a unit's weights: digests, balance, exponents.
 */
#ifndef XFP_SCAN_H
#define XFP_SCAN_H

#include "schemas/ledger.h"
#include "schemas/outliers.h"
#include "schemas/parameters.h"

/* The rows of a unit that hold its largest weights, by falling |w|, ties by row: a sample would miss them. */
#define XFP_PEAKS 16
struct xfp_peaks {
	uint32_t count;
	uint64_t row[XFP_PEAKS]; /* row numbers, out of matrices * rows */
	float largest[XFP_PEAKS];
	uint64_t print[XFP_PEAKS]; /* fingerprints of these rows, xfp_rows_print */
	/* Fingerprints of the rows that will be sampled: allocated and set by the caller; NULL: not needed. */
	uint64_t samples, *sample;
	/* The largest |w| of each tile, [matrices][tiles of the rows][tiles of the columns]: allocated and zeroed by
	 * the caller; NULL: not needed. */
	float *tile;
};
/* A tile is a square of a matrix; tiles at the right and lower edges may be smaller. */
#define XFP_TILE 128
static inline uint64_t xfp_tiles(uint64_t count)
{
	return (count + XFP_TILE - 1) / XFP_TILE;
}
/* The number of row i in a sample of `samples` out of `all` rows. */
static inline uint64_t xfp_sampled_row(uint64_t i, uint64_t all, uint64_t samples)
{
	return i * all / samples;
}

/* Scan the unit's rows once: shape, `source`, `balance` and `exponent` of *known, which the caller frees even after a
 * failure. NaN or infinite weights are a failure; if the parameters keep them, every sigma is -1 and no other result is
 * valid. `peaks` may be NULL. */
enum xfp_status xfp_scan_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
			      const struct xfp_parameters *parameters, struct xfp_outliers *known,
			      struct xfp_peaks *peaks, struct xfp_error *err);

/* Report NaN or infinite weights that the parameters do not keep. */
enum xfp_status xfp_fail_nonfinite(struct xfp_error *err, const char *tensor, uint64_t count);

#endif
