/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_row.h - rows of a unit against a library, in either of the modes that have one: what xfp-libfit measures and
 * xfp-pack stores.
 *
 *     xfp_grouping   how rows are cut into groups, the same for every k
 *     xfp_group_row  one row, cut: one a thread
 *     xfp_group_library  a candidate's library, ready for rows; they only read it
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
	bool fine;      /* of v2a, as its k needs it */
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
	uint16_t *mark; /* a bit for every column that is marked */
	uint8_t row;
	/* v2a */
	struct xfp_scaled_row scaled;
	void *buffer; /* what it points into */
};
/* False without memory; to be freed either way. */
bool xfp_group_row_init(struct xfp_group_row *row, const struct xfp_grouping *grouping);
void xfp_group_row_free(struct xfp_group_row *row);
/* Take in a padded row, with zeros where it is marked, and the marked columns, ascending: both must stay. */
void xfp_group_row_load(struct xfp_group_row *row, const float *x, const uint32_t *marked, uint64_t marks);

struct xfp_group_library {
	const struct xfp_candidate *candidate;
	unsigned published; /* rounds of the published recipe for groups of v2a; 0: they are searched */
	float *entries;     /* [L][2^k] for that */
	struct xfp_compact_book *compact;
	struct xfp_scaled_library *scaled;
};
bool xfp_library_init(struct xfp_group_library *library, const struct xfp_candidate *candidate, unsigned published);
/* Rounds of the recipe that the parameters ask for. */
unsigned xfp_library_published(const struct xfp_parameters *parameters);
void xfp_library_free(struct xfp_group_library *library);
/* A library as it is stored (part CODE of schemas/layout/bundle_layout.h), and its hints (schemas/fit.h). */
struct xfp_library_code {
	uint16_t *code;
	float *hints;
};
bool xfp_library_code_init(struct xfp_library_code *code, const struct xfp_candidate *candidate);
void xfp_library_code_free(struct xfp_library_code *code);
void xfp_library_open(struct xfp_group_library *library, const struct xfp_library_code *code);

/* What is stored of a row. */
struct xfp_group_codes {
	uint8_t *entry;             /* [groups] of v2c the byte of a group */
	uint16_t *scale, *midpoint; /* [groups] of v2a */
	uint8_t row;                /* of v2c */
	uint8_t *index;             /* [padded cols, and a group] */
	float *codebook;            /* [groups][2^k] of v2a, for the published recipe */
};
bool xfp_group_codes_init(struct xfp_group_codes *codes, const struct xfp_grouping *grouping);
void xfp_group_codes_free(struct xfp_group_codes *codes);

/* A loaded row against a library: its codes, and what they decode to (padded). */
void xfp_group_encode(const struct xfp_group_library *library, const struct xfp_group_row *row,
		      struct xfp_group_codes *codes, float *value);

#endif
