/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - from the projections found in tensors to the ledger's units and matrices.
 *
 * Units are numbered by layer (those of none first), class, role and name: the same numbers whether
 * experts are stored one by one, fused or transposed, and however the checkpoint is sharded.
 */
#ifndef XFP_UNITS_H
#define XFP_UNITS_H

#include "schemas/ledger.h"
#include "stages/inspect/projection.h"

/* One projection in one tensor. */
struct xfp_claim {
	uint32_t tensor; /* in the ledger */
	uint32_t part;   /* of the tensor's rule */
	int64_t layer;   /* -1: none */
	enum xfp_class class_;
	enum xfp_plan plan;
	const char *role; /* borrowed */
	char *unit;       /* name of its unit */
	bool numbered;    /* one of a stack: `expert` is its number, from the name */
	uint32_t expert;
	bool fault; /* cannot be quantized; the numbering of its stack is checked all the same */
	struct xfp_projection projection;
};

/* Sorts the claims and fills in units and matrices. A stack with an expert missing, there twice or
 * unlike the others is XFP_BAD_INPUT, and so are stacks of one layer that differ in number. */
enum xfp_status xfp_units_build(struct xfp_claim *claims, uint32_t count, struct xfp_ledger *ledger,
				struct xfp_error *err);

#endif
