/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - select, sort and group the tensors to list.
 */
#ifndef XFP_INSPECT_LIST_H
#define XFP_INSPECT_LIST_H

#include "commands/inspect/inspection.h"
#include "stages/quantize/distribution.h"

enum xfp_list_order {
	XFP_LIST_BY_NAME, /* digits by value: layer 2 before layer 10 */
	XFP_LIST_BY_FILE, /* in file order */
	XFP_LIST_BY_SIZE, /* largest in the file first; descending, as the next ones */
	XFP_LIST_BY_BITS,
	XFP_LIST_BY_SIGMA, /* these need `moments` */
	XFP_LIST_BY_KURTOSIS,
	XFP_LIST_BY_BEYOND_3,
	XFP_LIST_BY_BEYOND_4,
	XFP_LIST_BY_LARGEST,
	XFP_LIST_ORDERS
};
/* "name" and so on, terminated by NULL. */
extern const char *const xfp_list_orders[XFP_LIST_ORDERS + 1];

struct xfp_list_request {
	char **patterns; /* names, globs, role:ROLE or class:CLASS; empty: all tensors */
	uint32_t pattern_count;
	unsigned order; /* enum xfp_list_order */
	bool reverse;
};

/* One line: a tensor, or all expert tensors of a stack that have the same shape and format. */
struct xfp_listed {
	const char *name; /* for a stack, with * for the expert's number */
	uint32_t first;   /* one of its tensors */
	uint32_t tensors;
	uint64_t weights, stored; /* totals; `stored`: bytes in the files */
	struct xfp_distribution moments;
};

/* A class, and the role or roles of its tensors. */
struct xfp_listed_role {
	const char *class_, *roles; /* "" if they are not projections */
	uint64_t weights;
	struct xfp_distribution_sum sum;
};

struct xfp_list {
	const struct xfp_inspection *inspection;
	char **roles;     /* [tensors] "gate, up" for a fused one, "" if not a projection */
	uint32_t *stack;  /* [tensors] the unit whose experts are separate tensors; UINT32_MAX: none */
	uint32_t *chosen; /* the tensors to list, sorted by name */
	uint32_t count;
	const struct xfp_distribution *moments; /* [tensors]; NULL if not measured */
};

/* Select tensors. XFP_USAGE, with a suggestion, if a pattern matches nothing. The caller frees `list` in any case. */
enum xfp_status xfp_list_choose(const struct xfp_inspection *inspection, const struct xfp_list_request *request,
				struct xfp_list *list, struct xfp_error *err);
void xfp_list_free(struct xfp_list *list);

/* The lines; with `each`, one per expert. Returns NULL if out of memory. The caller frees them. */
struct xfp_listed *xfp_list_lines(const struct xfp_list *list, const struct xfp_list_request *request, bool each,
				  uint32_t *count);
/* The lines by role, of measured tensors, in the order of classes. Returns NULL if out of memory. The caller frees
 * them. */
struct xfp_listed_role *xfp_list_roles(const struct xfp_list *list, uint32_t *count);

/* What a conversion does with a tensor; NULL if it refuses the model, or if this is unknown. */
const char *xfp_list_fate(const struct xfp_inspection *inspection, uint32_t tensor);
const char *xfp_list_class(const struct xfp_inspection *inspection, uint32_t tensor);

#endif
