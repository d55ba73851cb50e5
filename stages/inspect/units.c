/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* The order of roles within a class: in the direction of data flow. Others follow by name. */
static const char *const role_order[] = { "q", "q_a", "q_b", "k", "kv_a", "kv_b", "v", "o", "gate", "up", "down" };
#define ROLES (sizeof role_order / sizeof *role_order)

static size_t role_rank(const char *role)
{
	size_t i = 0;

	while (i < ROLES && strcmp(role_order[i], role))
		i++;
	return i;
}

static int compare_roles(const char *a, const char *b)
{
	size_t x, y;

	if (!strcmp(a, b)) /* true for most pairs compared */
		return 0;
	x = role_rank(a);
	y = role_rank(b);
	return x == y && x == ROLES ? strcmp(a, b) : COMPARE(x, y);
}

static int compare_units(const struct xfp_claim *a, const struct xfp_claim *b)
{
	int order = COMPARE(a->layer, b->layer);

	if (!order)
		order = COMPARE(a->class_, b->class_);
	if (!order)
		order = compare_roles(a->role, b->role);
	return order ? order : strcmp(a->unit, b->unit);
}

static int compare_claims(const void *a, const void *b)
{
	const struct xfp_claim *x = a, *y = b;
	int order = compare_units(x, y);

	if (!order)
		order = COMPARE(x->expert, y->expert);
	return order ? order : COMPARE(x->tensor, y->tensor);
}

static bool alike(const struct xfp_ledger_tensor *a, const struct xfp_ledger_tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

/* Check the claims of one unit: one tensor, or experts 0, 1, 2 ... of the same shape. */
static enum xfp_status check_unit(const struct xfp_claim *claims, uint32_t count, const struct xfp_ledger *ledger,
				  struct xfp_error *err)
{
	const struct xfp_ledger_tensor *first = &ledger->tensors[claims->tensor];

	for (uint32_t i = 0; claims->numbered && i < count; i++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[claims[i].tensor];

		if (i && claims[i].expert == claims[i - 1].expert)
			return xfp_fail(err, XFP_BAD_INPUT, "%s and %s are the same expert; the checkpoint is damaged",
					xfp_printable(ledger->tensors[claims[i - 1].tensor].name).text,
					xfp_printable(tensor->name).text);
		if (claims[i].expert != i)
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: expert %" PRIu32 " is missing, though there is an expert "
					"%" PRIu32 "; download the checkpoint again",
					xfp_printable(claims->unit).text, i, claims[count - 1].expert);
		if (!alike(first, tensor))
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s differs from %s in shape or dtype; the experts of a "
					"projection must be alike",
					xfp_printable(tensor->name).text, xfp_printable(first->name).text);
	}
	return XFP_OK;
}

/* Stacks of one layer and class must have the same number of experts. */
static enum xfp_status check_layer(const struct xfp_claim *before, uint32_t experts_before,
				   const struct xfp_claim *claims, uint32_t experts, struct xfp_error *err)
{
	const struct xfp_claim *few = experts < experts_before ? claims : before;
	const struct xfp_claim *many = few == claims ? before : claims;
	uint32_t missing = experts < experts_before ? experts : experts_before;

	if (experts == experts_before || before->layer != claims->layer || before->class_ != claims->class_)
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: expert %" PRIu32 " is missing, though %s has it; download the "
			"checkpoint again",
			xfp_printable(few->unit).text, missing, xfp_printable(many->unit).text);
}

static enum xfp_status emit(const struct xfp_claim *claims, uint32_t count, struct xfp_ledger *ledger,
			    struct xfp_error *err)
{
	struct xfp_ledger_unit *unit = &ledger->units[ledger->unit_count];

	*unit = (struct xfp_ledger_unit){
		.name = strdup(claims->unit),
		.role = strdup(claims->role),
		.class_ = claims->class_,
		.plan = claims->plan,
		.dtype = ledger->tensors[claims->tensor].dtype,
		.rows = claims->projection.view.rows,
		.cols = claims->projection.view.cols,
		.first_matrix = ledger->matrix_count,
	};
	ledger->unit_count++;
	if (!unit->name || !unit->role)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_projection *p = &claims[i].projection;

		for (uint32_t e = 0; e < p->experts; e++, unit->experts++)
			ledger->matrices[ledger->matrix_count++] = (struct xfp_ledger_matrix){
				.tensor = claims[i].tensor,
				.base = p->view.base + e * p->expert_stride,
				.rows = p->view.rows,
				.cols = p->view.cols,
				.row_stride = p->view.row_stride,
				.col_stride = p->view.col_stride,
			};
	}
	return XFP_OK;
}

enum xfp_status xfp_units_build(struct xfp_claim *claims, uint32_t count, struct xfp_ledger *ledger,
				struct xfp_error *err)
{
	const struct xfp_claim *before = NULL;
	enum xfp_status status = XFP_OK;
	uint32_t experts_before = 0;
	uint64_t matrices = 0;

	for (uint32_t i = 0; i < count; i++)
		matrices += claims[i].fault ? 0 : claims[i].projection.experts;
	if (matrices > UINT32_MAX)
		return xfp_fail(err, XFP_BAD_INPUT, "more than %" PRIu32 " matrices", UINT32_MAX);
	ledger->units = calloc((size_t)count + 1, sizeof *ledger->units);
	ledger->matrices = calloc((size_t)matrices + 1, sizeof *ledger->matrices);
	if (!ledger->units || !ledger->matrices)
		return xfp_no_memory(err);
	if (count)
		qsort(claims, count, sizeof *claims, compare_claims);
	for (uint32_t i = 0, end; !status && i < count; i = end) {
		bool stack = claims[i].numbered || claims[i].projection.expert_stride;
		uint32_t experts;

		for (end = i + 1; end < count && !compare_units(&claims[i], &claims[end]); end++)
			;
		if ((status = check_unit(&claims[i], end - i, ledger, err)) || claims[i].fault)
			continue;
		experts = claims[i].numbered ? end - i : claims[i].projection.experts;
		if (stack && before)
			status = check_layer(before, experts_before, &claims[i], experts, err);
		if (stack) {
			before = &claims[i];
			experts_before = experts;
		}
		if (!status)
			status = emit(&claims[i], end - i, ledger, err);
	}
	return status;
}
