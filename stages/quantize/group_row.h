/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_row.h - encode rows of a unit with a library, in either of the modes that have one: what xfp-libfit measures
 * and xfp-pack stores.
 *
 *     xfp_grouping       how rows are cut into groups, the same for every k
 *     xfp_group_row      one row, cut: one per thread
 *     xfp_group_library  a candidate's library, prepared for encoding rows; read-only
 */
#ifndef XFP_GROUP_ROW_H
#define XFP_GROUP_ROW_H

#include "kernels/encode/compact.h"
#include "kernels/encode/scaled.h"
#include "schemas/fit.h"
#include "schemas/parameters.h"

struct xfp_grouping {
	enum xfp_mode mode;
	unsigned group; /* columns */
	bool fine;      /* v2a: resolution as needed for its k */
	uint64_t cols, groups;
};
struct xfp_grouping xfp_grouping_of(const struct xfp_candidate *candidate, uint64_t cols);
bool xfp_grouping_same(const struct xfp_grouping *a, const struct xfp_grouping *b);

struct xfp_group_row {
	struct xfp_grouping grouping;
	const float *x;
	const uint32_t *marked;
	uint64_t marks;
	/* v2c */
	struct xfp_compact_groups compact;
	uint16_t *mark; /* one bit per marked column */
	uint8_t row;
	/* v2a */
	struct xfp_scaled_row scaled;
	void *buffer; /* memory that it points into */
};
/* False if memory runs out; the caller frees the row even then. */
bool xfp_group_row_init(struct xfp_group_row *row, const struct xfp_grouping *grouping);
void xfp_group_row_free(struct xfp_group_row *row);
/* Compute the byte d of a row of v2c (kernels/encode/compact.h) that has zeros at its marked columns. */
uint8_t xfp_group_row_byte(const float *x, uint64_t cols, uint64_t marks);
/* Load a padded row, with zeros at marked columns, and the marked columns, ascending; both are borrowed. */
void xfp_group_row_load(struct xfp_group_row *row, const float *x, const uint32_t *marked, uint64_t marks);

struct xfp_group_library {
	const struct xfp_candidate *candidate;
	unsigned published; /* rounds of the published recipe for groups of v2a; 0: search */
	float *entries;     /* [L][2^k] entries for that */
	struct xfp_compact_book *compact;
	struct xfp_scaled_library *scaled;
};
bool xfp_library_init(struct xfp_group_library *library, const struct xfp_candidate *candidate, unsigned published);
/* The rounds of the published recipe that the parameters request. */
unsigned xfp_library_published(const struct xfp_parameters *parameters);
void xfp_library_free(struct xfp_group_library *library);
/* A library as stored (part CODE of schemas/layout/bundle_layout.h), and its hints (schemas/fit.h). */
struct xfp_library_code {
	uint16_t *code;
	float *hints;
};
bool xfp_library_code_init(struct xfp_library_code *code, const struct xfp_candidate *candidate);
void xfp_library_code_free(struct xfp_library_code *code);
void xfp_library_open(struct xfp_group_library *library, const struct xfp_library_code *code);

/* The stored codes of a row. */
struct xfp_group_codes {
	uint8_t *entry;             /* [groups] v2c: the byte of a group */
	uint16_t *scale, *midpoint; /* [groups] v2a */
	uint8_t *index;             /* [padded cols + one group] */
	float *codebook;            /* [groups][2^k] v2a, for the published recipe */
};
bool xfp_group_codes_init(struct xfp_group_codes *codes, const struct xfp_grouping *grouping);
void xfp_group_codes_free(struct xfp_group_codes *codes);

/* Encode a loaded row with a library: its codes, and for v2a the values they decode to (padded). */
void xfp_group_encode(const struct xfp_group_library *library, const struct xfp_group_row *row,
		      struct xfp_group_codes *codes, float *value);

#endif
