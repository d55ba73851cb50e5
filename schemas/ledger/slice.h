/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.h - selected elements of a ledger's table in memory.
 */
#ifndef XFP_LEDGER_SLICE_H
#define XFP_LEDGER_SLICE_H

#include "schemas/artifact.h"
#include "schemas/ledger/tables.h"

struct xfp_range {
	uint64_t first, count;
};

/* The requested elements of a table. Ranges that are close together are read as one, since a call of libhdf5 costs more
 * than reading a few kilobytes. */
struct xfp_ledger_slice {
	struct xfp_range *range; /* ascending, disjoint */
	size_t *at;              /* index in `data` of the first element of each range */
	size_t ranges;
	char *data;
	size_t record;
};

/* Read the elements of `wanted` from a table of `total` elements. Takes ownership of `wanted` in any case. */
enum xfp_status xfp_slice_read(struct xfp_artifact *a, enum xfp_ledger_table table, uint64_t total,
			       struct xfp_range *wanted, size_t count, struct xfp_ledger_slice *out,
			       struct xfp_error *err);
/* Read one range of a table. */
enum xfp_status xfp_slice_range(struct xfp_artifact *a, enum xfp_ledger_table table, uint64_t total, uint64_t first,
				uint64_t count, struct xfp_ledger_slice *out, struct xfp_error *err);
void xfp_ledger_slice_free(struct xfp_ledger_slice *slice);

/* An element that was requested. */
const void *xfp_ledger_slice_at(const struct xfp_ledger_slice *slice, uint64_t element);

#endif
