/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multiply.c - products of matrices and vectors: checks a call, and divides its list of products into rounds, which
 * bound the memory of prepared vectors.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/printable.h"
#include "runtime/round.h"
#include "runtime/team.h"

#define ROUND_PRODUCTS 256     /* minimum per round */
#define ROUND_BYTES (64 << 20) /* of prepared vectors per round, unless the minimum or one y needs more */
#define TOGETHER 64            /* products in rounds of several linears; fewer than the minimum */

static enum xfp_status check_vectors(const struct xfp_linear *linear, const char *what, const void *data,
				     enum xfp_float type, size_t count, size_t stride, uint64_t elements,
				     struct xfp_error *err)
{
	if (type < XFP_FLOAT32 || type > XFP_BFLOAT16)
		return xfp_fail(err, XFP_USAGE, "%s: %s have an unknown type, %d", xfp_printable(linear->name).text,
				what, (int)type);
	if (count && !data)
		return xfp_fail(err, XFP_USAGE, "%s: the address of %s is NULL", xfp_printable(linear->name).text,
				what);
	if (count > 1 && stride < elements)
		return xfp_fail(err, XFP_USAGE,
				"%s: %zu %s have a stride of %zu elements, but %" PRIu64 " elements each",
				xfp_printable(linear->name).text, count, what, stride, elements);
	return XFP_OK;
}

static enum xfp_status check_call(const struct xfp_multiplication *call, size_t number,
				  const struct xfp_product *products, size_t count)
{
	const struct xfp_linear *linear = call->linears[number];
	const struct xfp_input *x = call->x;
	const struct xfp_output *y = &call->y[number];
	struct xfp_error *err = call->err;
	enum xfp_status status;

	if ((status =
		     check_vectors(linear, "inputs", x->data, x->type, x->count, x->stride, linear->slice.cols, err)) ||
	    (status = check_vectors(linear, "outputs", y->data, y->type, y->count, y->stride, linear->slice.rows, err)))
		return status;
	for (size_t i = 0; i < count; i++)
		if (products[i].expert >= linear->experts || products[i].x >= x->count || products[i].y >= y->count)
			return xfp_fail(err, XFP_USAGE,
					"%s: product %zu names expert %" PRIu32 ", input %" PRIu32
					" and output %" PRIu32 "; there are %" PRIu32 ", %zu and %zu",
					xfp_printable(linear->name).text, i, products[i].expert, products[i].x,
					products[i].y, linear->experts, x->count, y->count);
	return XFP_OK;
}

/* Return the products of a round whose vectors fit into its memory. With many products per expert on average, those of
 * an expert should be in one round; experts with few of them may then take three times the memory. */
static size_t max_products(const struct xfp_linear *linear, size_t count)
{
	size_t many = linear->experts * xfp_decoded_products();
	size_t some = ROUND_BYTES / ((linear->slice.cols + 1024) * (count >= many ? 4 : 12));

	return some > ROUND_PRODUCTS ? some : ROUND_PRODUCTS;
}

/* Return the products of the next round: at most `max`, plus all others with the y of the last one. */
static size_t round_products(size_t max, const struct xfp_product *products, size_t count)
{
	size_t end = count < max ? count : max;

	while (end < count && products[end].y == products[end - 1].y)
		end++;
	return end;
}

static enum xfp_status run_rounds(const struct xfp_multiplication *call, const struct xfp_product *products,
				  size_t count)
{
	size_t max = max_products(call->linears[0], count);
	enum xfp_status status = XFP_OK;

	for (size_t done = 0, some; !status && done < count; done += some) {
		some = round_products(max, products + done, count - done);
		status = xfp_round_run(call, products + done, some);
	}
	return status;
}

/* Multiply all linears in one round, or one after the other if threads have work enough, to save memory for vectors. */
static enum xfp_status run_linears(const struct xfp_multiplication *call, const struct xfp_product *products,
				   size_t count)
{
	enum xfp_status status = XFP_OK;

	if (count * call->linear_count <= TOGETHER)
		return xfp_round_run(call, products, count);
	for (size_t i = 0; !status && i < call->linear_count; i++) {
		struct xfp_multiplication one = *call;

		one.linears += i;
		one.y += i;
		one.linear_count = 1;
		status = run_rounds(&one, products, count);
	}
	return status;
}

/* Sort the list by y; stable. Returns NULL if memory ran out. */
static struct xfp_product *order_by_y(const struct xfp_product *products, size_t count)
{
	struct xfp_product *ordered = malloc(count * sizeof *ordered);
	uint64_t *order = malloc(count * sizeof *order);

	for (size_t i = 0; order && i < count; i++)
		order[i] = (uint64_t)products[i].y << 32 | i;
	if (order)
		qsort(order, count, sizeof *order, xfp_compare_numbers);
	for (size_t i = 0; order && ordered && i < count; i++)
		ordered[i] = products[order[i] & UINT32_MAX];
	if (!order) {
		free(ordered);
		ordered = NULL;
	}
	free(order);
	return ordered;
}

static bool in_order(const struct xfp_product *products, size_t count)
{
	size_t i = 1;

	while (i < count && products[i].y >= products[i - 1].y)
		i++;
	return i >= count;
}

static enum xfp_status run_list(struct xfp_multiplication *call, const struct xfp_product *products, size_t count)
{
	struct xfp_product *ordered = NULL;
	bool alone = !call->team;
	enum xfp_status status = XFP_OK;

	if (!in_order(products, count) && !(ordered = order_by_y(products, count)))
		return xfp_no_memory(call->err);
	if (!alone || !(status = xfp_team_start(1, &call->team, call->err)))
		status = run_linears(call, ordered ? ordered : products, count);
	if (alone)
		xfp_team_end(call->team);
	free(ordered);
	return status;
}

/* Multiply by a copy of the list, which stays as checked, or by one expert if the list is NULL. */
static enum xfp_status run(struct xfp_multiplication *call, const struct xfp_product *products, uint32_t expert,
			   size_t count)
{
	struct xfp_product few[XFP_MAX_BATCH], *list = few;
	enum xfp_status status = XFP_OK;

	if (count > XFP_MAX_BATCH && !(list = malloc(count * sizeof *list)))
		return xfp_no_memory(call->err);
	for (size_t i = 0; i < count; i++)
		list[i] = products ? products[i] : (struct xfp_product){ expert, (uint32_t)i, (uint32_t)i, 1 };
	for (size_t i = 0; !status && i < call->linear_count; i++)
		status = check_call(call, i, list, count);
	if (!status && count && call->linear_count)
		status = run_list(call, list, count);
	if (list != few)
		free(list);
	return status;
}

static enum xfp_status check_list(const struct xfp_linear *linear, const struct xfp_product *products, size_t count,
				  struct xfp_error *err)
{
	if (count <= UINT32_MAX && (!count || products))
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE, "%s: the list of %zu products is too long, or NULL",
			xfp_printable(linear->name).text, count);
}

static enum xfp_status check_count(const struct xfp_linear *linear, size_t count, const struct xfp_input *x,
				   const struct xfp_output *y, struct xfp_error *err)
{
	if (count <= x->count && count <= y->count && count <= UINT32_MAX)
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE, "%s: cannot multiply %zu vectors; there are %zu inputs and %zu outputs",
			xfp_printable(linear->name).text, count, x->count, y->count);
}

enum xfp_status xfp_multiply_experts(struct xfp_team *team, const struct xfp_linear *linear,
				     const struct xfp_product *products, size_t count, const struct xfp_input *x,
				     const struct xfp_output *y, struct xfp_error *err)
{
	enum xfp_status status = check_list(linear, products, count, err);

	return status ? status : run(&(struct xfp_multiplication){ team, &linear, 1, x, y, err }, products, 0, count);
}

enum xfp_status xfp_multiply(struct xfp_team *team, const struct xfp_linear *linear, uint32_t expert, size_t count,
			     const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err)
{
	enum xfp_status status = check_count(linear, count, x, y, err);

	return status ? status : run(&(struct xfp_multiplication){ team, &linear, 1, x, y, err }, NULL, expert, count);
}

enum xfp_status xfp_multiply_linears(struct xfp_team *team, const struct xfp_linear *const *linears,
				     size_t linear_count, const struct xfp_product *products, size_t count,
				     const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (!linear_count)
		return XFP_OK;
	for (size_t i = 0; !status && i < linear_count; i++) {
		status = products ? check_list(linears[i], products, count, err)
				  : check_count(linears[i], count, x, &y[i], err);
		if (!status && linears[i]->slice.cols != linears[0]->slice.cols)
			status = xfp_fail(err, XFP_USAGE,
					  "%s: has %" PRIu64 " columns, but %s, in the same call, has %" PRIu64,
					  xfp_printable(linears[i]->name).text, linears[i]->slice.cols,
					  xfp_printable(linears[0]->name).text, linears[0]->slice.cols);
	}
	if (status)
		return status;
	return run(&(struct xfp_multiplication){ team, linears, linear_count, x, y, err }, products, 0, count);
}
