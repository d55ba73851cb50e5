/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - build the ledger's units and matrices from the projections found in tensors.
 *
 * Units are numbered by layer (those without a layer first), class, role and name: the numbers do not depend on whether
 * experts are stored one by one, fused or transposed, nor on the sharding of the checkpoint.
 */
#ifndef XFP_UNITS_H
#define XFP_UNITS_H

#include "schemas/ledger.h"
#include "stages/inspect/projection.h"

/* One projection in one tensor. */
struct xfp_claim {
	uint32_t tensor; /* number of the tensor in the ledger */
	uint32_t part;   /* part of the tensor's rule */
	int64_t layer;   /* -1: none */
	enum xfp_class class_;
	enum xfp_plan plan;
	const char *role; /* borrowed */
	char *unit;       /* name of its unit */
	bool numbered;    /* one of a stack: `expert` is its number, from the name */
	uint32_t expert;
	bool fault; /* cannot be quantized; the numbering of its stack is still checked */
	struct xfp_projection projection;
};

/* Sort the claims and fill in units and matrices. XFP_BAD_INPUT: an expert of a stack is missing, repeated or differs
 * from the others, or stacks of one layer differ in number. */
enum xfp_status xfp_units_build(struct xfp_claim *claims, uint32_t count, struct xfp_ledger *ledger,
				struct xfp_error *err);

#endif
