/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum.c - xfp compare: totals over all units, and our best candidate for each common format.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/compare/compare.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

double xfp_compared_bits(const struct xfp_compared_unit *unit, const struct xfp_compared *compared)
{
	return unit->weights ? (double)compared->candidate.bytes * 8 / (double)unit->weights : 0;
}

const char *xfp_compared_mode(const struct xfp_compared *compared, char text[32])
{
	const struct xfp_candidate *c = &compared->candidate;
	int length;

	if (compared->peer)
		return compared->peer->name;
	length = snprintf(text, 32, "%s", xfp_mode_name((enum xfp_mode)c->mode));
	if (c->group)
		length += snprintf(text + length, 32 - (size_t)length, ", %u", c->group);
	if (compared->published)
		snprintf(text + length, 32 - (size_t)length, " published");
	return text;
}

const char *xfp_compared_name(const struct xfp_compared *compared, char text[64])
{
	const struct xfp_candidate *c = &compared->candidate;
	char mode[32], sigma[24];
	int length;

	if (compared->peer)
		return compared->peer->name;
	length = snprintf(text, 64, "%s, k %u", xfp_compared_mode(compared, mode), (unsigned)c->k);
	if (c->sigma_milli)
		snprintf(text + length, 64 - (size_t)length, ", %s sigma", xfp_sigma_text(c->sigma_milli, sigma));
	return text;
}

/* "none" first, then descending. */
static int by_threshold(uint32_t a, uint32_t b)
{
	return a && b ? COMPARE(b, a) : COMPARE(a, b);
}

/* Order by the attributes of a plot line and, unless `mode`, by k. */
static int by_kind(const struct xfp_compared *x, const struct xfp_compared *y, bool mode)
{
	int order = COMPARE(x->candidate.mode, y->candidate.mode);

	if (!order)
		order = COMPARE(x->published, y->published);
	if (!order)
		order = COMPARE(x->candidate.group, y->candidate.group);
	if (!order && !mode)
		order = COMPARE(x->candidate.k, y->candidate.k);
	return order;
}

int xfp_compared_order(const void *a, const void *b)
{
	const struct xfp_compared *x = a, *y = b;
	int order = by_kind(x, y, false);

	return order ? order : by_threshold(x->candidate.sigma_milli, y->candidate.sigma_milli);
}

uint32_t xfp_compared_run_end(const struct xfp_compared_unit *unit, uint32_t first, bool mode)
{
	const struct xfp_compared *list = unit->list;
	uint32_t end = first + 1;

	while (!list[first].peer && end < unit->count && !list[end].peer && !by_kind(&list[first], &list[end], mode))
		end++;
	return end;
}

const struct xfp_compared *xfp_compared_best(const struct xfp_compared_unit *unit, uint32_t first, uint32_t end)
{
	const struct xfp_compared *best = &unit->list[first];
	double min = INFINITY;

	for (uint32_t i = first; i < end; i++) {
		const struct xfp_compared *c = &unit->list[i];
		double worth = c->candidate.error * exp2(2 * xfp_compared_bits(unit, c));

		if (c->candidate.cos_median >= 0 && worth < min) {
			best = c;
			min = worth;
		}
	}
	return best;
}

/* ---- all units --------------------------------------------------------------------------------- */

static void add(struct xfp_compared *all, const struct xfp_compared *one, double norm, uint32_t units)
{
	struct xfp_candidate *sum = &all->candidate;
	bool bad = sum->cos_median < 0 || one->candidate.cos_median < 0;

	sum->bytes += one->candidate.bytes;
	sum->outliers += one->candidate.outliers;
	sum->error += one->candidate.error * norm;
	sum->cos_median = bad ? -1 : sum->cos_median + one->candidate.cos_median / units;
	sum->cos_p5 = bad ? -1 : sum->cos_p5 + one->candidate.cos_p5 / units;
	all->shared += one->shared;
}

enum xfp_status xfp_compare_sum(struct xfp_comparison *comparison, struct xfp_error *err)
{
	struct xfp_compared_unit *all = &comparison->all;
	const struct xfp_compared_unit *units = comparison->units;

	if (!comparison->count)
		return XFP_OK;
	*all = (struct xfp_compared_unit){ .count = units->count };
	if (!(all->list = calloc(all->count, sizeof *all->list)))
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < all->count; i++) {
		const struct xfp_candidate *c = &units->list[i].candidate;

		all->list[i] = (struct xfp_compared){ .peer = units->list[i].peer,
						      .published = units->list[i].published,
						      .candidate = { .mode = c->mode,
								     .k = c->k,
								     .sigma_milli = c->sigma_milli,
								     .group = c->group,
								     .library = c->library } };
	}
	for (uint32_t u = 0; u < comparison->count; u++) {
		all->weights += units[u].weights;
		all->rows += units[u].rows;
		all->sampled += units[u].sampled;
		all->norm += units[u].norm;
		for (uint32_t i = 0; i < all->count; i++)
			add(&all->list[i], &units[u].list[i], units[u].norm, comparison->count);
	}
	for (uint32_t i = 0; i < all->count; i++)
		all->list[i].candidate.error = all->norm > 0 ? all->list[i].candidate.error / all->norm : 0;
	return XFP_OK;
}

/* ---- claims ------------------------------------------------------------------------------------ */

static bool is_rival(const struct xfp_compared *compared)
{
	return compared->peer || compared->published;
}

/* 4.25 bits: 4 bits and scales alone, as ours of 4.25 bits. */
static bool is_allowed(const struct xfp_compared *rival)
{
	return rival->peer && rival->peer->bytes * 8 * 4 == rival->peer->weights * 17;
}

/* Our candidate with the least error in no more bytes than entry `rival` of the list; NULL if none. */
static const struct xfp_compared *beside(const struct xfp_compared_unit *unit, uint32_t rival)
{
	const struct xfp_compared *wanted = &unit->list[rival], *best = NULL;
	bool allowed = is_allowed(wanted);

	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];

		if (is_rival(c) || c->candidate.cos_median < 0 ||
		    c->candidate.bytes - (allowed ? c->shared : 0) > wanted->candidate.bytes)
			continue;
		if (!best || c->candidate.error < best->candidate.error)
			best = c;
	}
	return best;
}

/* If both are exact, neither is better. */
static double ratio_of(double ours, double theirs)
{
	return theirs > 0 ? ours / theirs : ours > 0 ? INFINITY : 1;
}

/* The best candidate of every unit. */
static void each_unit(const struct xfp_comparison *comparison, uint32_t rival, struct xfp_claim_on *claim)
{
	double ours = 0, theirs = 0;

	claim->worst = -1;
	for (uint32_t u = 0; u < comparison->count; u++) {
		const struct xfp_compared_unit *unit = &comparison->units[u];
		const struct xfp_compared *best = beside(unit, rival);
		double error = unit->list[rival].candidate.error, ratio;

		if (!best) {
			claim->each = -1;
			return;
		}
		ratio = ratio_of(best->candidate.error, error);
		if (ratio > claim->worst) {
			claim->worst = ratio;
			claim->worst_unit = u;
		}
		ours += best->candidate.error * unit->norm;
		theirs += error * unit->norm;
	}
	claim->each = ratio_of(ours, theirs);
}

uint32_t xfp_compare_claims(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit,
			    struct xfp_claim_on claims[XFP_MAX_CLAIMS])
{
	uint32_t count = 0;

	/* Best-known formats first. */
	for (uint32_t n = 0; n < 2 * unit->count && count < XFP_MAX_CLAIMS; n++) {
		uint32_t i = n % unit->count;
		const struct xfp_compared *rival = &unit->list[i], *ours;

		if (!is_rival(rival) || (n < unit->count) != (rival->peer != NULL) || rival->candidate.cos_median < 0)
			continue;
		ours = beside(unit, i);
		claims[count] = (struct xfp_claim_on){ .peer = rival, .ours = ours, .allowed = is_allowed(rival) };
		if (ours)
			claims[count].ratio = ratio_of(ours->candidate.error, rival->candidate.error);
		if (comparison)
			each_unit(comparison, i, &claims[count]);
		count++;
	}
	return count;
}
