/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_fixture_parts.h - random parts of a matrix and their decoded values, for bundle_fixture.c.
 */
#ifndef XFP_TEST_BUNDLE_FIXTURE_PARTS_H
#define XFP_TEST_BUNDLE_FIXTURE_PARTS_H

#include "schemas/layout/classes.h"
#include "tests/unit/bundle_fixture.h"

struct fixture_buffer {
	uint8_t *data;
	size_t size;
};

void fixture_append(struct fixture_buffer *b, const void *data, size_t size);
void fixture_append_zeros(struct fixture_buffer *b, size_t unit);

/* Append one matrix to its unit's parts. `out` receives its weights, row by row. In the library modes,
 * fixture_make_library must be called first, once per unit. */
void fixture_make_v2(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		     struct fixture_buffer part[XFP_PARTS], int outliers, float *out);
void fixture_make_fp8(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		      struct fixture_buffer part[XFP_PARTS], float *out);
void fixture_make_library(struct fixture *f, const struct xfp_packed *packed, struct fixture_buffer part[XFP_PARTS]);
void fixture_make_groups(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
			 struct fixture_buffer part[XFP_PARTS], int outliers, float *out);

#endif
