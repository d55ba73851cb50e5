/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_source.h - a bundle as a source of weights. Private to model/weights/.
 */
#ifndef XFP_WEIGHTS_BUNDLE_SOURCE_H
#define XFP_WEIGHTS_BUNDLE_SOURCE_H

#include "model/weights/digests.h"
#include "model/weights/weights.h"
#include "runtime/xfp.h"

#define XFP_MAX_OPEN 8 /* units, if pages are released */

/* A matrix, by its tensor and the element where it starts. */
struct xfp_bundle_place {
	uint32_t tensor, matrix;
	uint64_t base;
};

struct xfp_bundle_source {
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_digests *digests;
	bool *sound;                     /* [tensors]: the digests of its bytes match */
	struct xfp_bundle_place *places; /* sorted */
	struct xfp_linear **linears;     /* [units], opened by the first product */
	uint32_t open[XFP_MAX_OPEN];     /* open units if pages are released, newest first; XFP_NOT_FOUND: none */
	bool releases_pages;
};

/* Rows of a view that are rows of one matrix. */
struct xfp_bundle_part {
	uint32_t matrix;
	uint64_t first, count;
};

/* bundle_places.c: list all matrices, sorted by tensor and element. */
void xfp_bundle_places(const struct xfp_bundle *bundle, uint32_t matrices, struct xfp_bundle_place *places);
/* The first place of the tensor, or of a later one. */
uint32_t xfp_bundle_first_place(const struct xfp_bundle_source *source, uint32_t tensor);
bool xfp_bundle_find_part(const struct xfp_bundle_source *source, uint32_t tensor, const struct xfp_view *view,
			  uint64_t row, struct xfp_bundle_part *part);

/* False, and XFP_NOT_FOUND, if the bundle has no such tensor. */
bool xfp_bundle_source_find(const struct xfp_bundle_source *source, const char *name, uint32_t *number,
			    struct xfp_tensor_info *info);
/* Whether the view is within a tensor of that many elements. */
bool xfp_view_is_within(uint64_t elements, const struct xfp_view *view);

/* weights_bundle.c: release a matrix's pages, if the source releases pages. */
void xfp_bundle_release_pages(const struct xfp_bundle_source *source, uint32_t matrix);

/* bundle_products.c: members of struct xfp_weights_source. */
enum xfp_status xfp_bundle_multiply(void *source, struct xfp_team *team, const struct xfp_weight_product *products,
				    size_t count, uint64_t *bytes, struct xfp_error *err);
bool xfp_bundle_stacked(const void *source, const char *tensor, const struct xfp_view *view, uint32_t *stack,
			uint32_t *expert);
enum xfp_status xfp_bundle_multiply_experts(void *source, struct xfp_team *team, const struct xfp_stack_products *p,
					    bool (*watch)(void *context, uint64_t numbers), void *context,
					    uint64_t *bytes, struct xfp_error *err);

#endif
