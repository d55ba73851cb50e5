/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - which tensors are listed, in what order, and which of them stand in one line.
 */
#ifndef XFP_INSPECT_LIST_H
#define XFP_INSPECT_LIST_H

#include "commands/inspect/look.h"
#include "stages/quantize/distribution.h"

enum xfp_list_order {
	XFP_LIST_BY_NAME, /* numbers in names by their value: layer 2 before layer 10 */
	XFP_LIST_BY_FILE, /* as files have them */
	XFP_LIST_BY_SIZE, /* the largest in its file first; so those that follow */
	XFP_LIST_BY_BITS,
	XFP_LIST_BY_SIGMA, /* these need `moments` */
	XFP_LIST_BY_KURTOSIS,
	XFP_LIST_BY_BEYOND_3,
	XFP_LIST_BY_BEYOND_4,
	XFP_LIST_BY_LARGEST,
	XFP_LIST_ORDERS
};
/* "name" and so on, ended by NULL. */
extern const char *const xfp_list_orders[XFP_LIST_ORDERS + 1];

struct xfp_list_wish {
	char **patterns; /* names or globs, role:ROLE, class:CLASS; none: all tensors */
	uint32_t pattern_count;
	unsigned order; /* enum xfp_list_order */
	bool reverse;
};

/* A tensor, or all of a stack of experts that are alike. */
struct xfp_listed {
	const char *name; /* of a stack with * for the expert's number */
	uint32_t first;   /* one of its tensors */
	uint32_t tensors;
	uint64_t weights, stored; /* of all of them; bytes in the files */
	struct xfp_distribution moments;
};

/* A class and the role or roles of tensors in it. */
struct xfp_listed_role {
	const char *class_, *roles; /* "": they are no projections */
	uint64_t weights;
	struct xfp_distribution_sum sum;
};

struct xfp_list {
	const struct xfp_look *look;
	char **roles;     /* [tensors] "gate, up" of a fused one, "" of what is no projection */
	uint32_t *stack;  /* [tensors] the unit whose experts are tensors of their own; UINT32_MAX: none */
	uint32_t *chosen; /* those that are listed, by name */
	uint32_t count;
	const struct xfp_distribution *moments; /* [tensors]; NULL: they were not measured */
};

/* A pattern that is nothing is XFP_USAGE, with what may have been meant. Freed either way. */
enum xfp_status xfp_list_choose(const struct xfp_look *look, const struct xfp_list_wish *wish, struct xfp_list *list,
				struct xfp_error *err);
void xfp_list_free(struct xfp_list *list);

/* The lines; `each`: experts one by one. NULL: out of memory. The caller frees them. */
struct xfp_listed *xfp_list_lines(const struct xfp_list *list, const struct xfp_list_wish *wish, bool each,
				  uint32_t *count);
/* Likewise, of what was measured, in the order of classes. */
struct xfp_listed_role *xfp_list_roles(const struct xfp_list *list, uint32_t *count);

/* What a conversion makes of a tensor; NULL: it makes nothing of the model, or nobody knows. */
const char *xfp_list_fate(const struct xfp_look *look, uint32_t tensor);
const char *xfp_list_class(const struct xfp_look *look, uint32_t tensor);

#endif
