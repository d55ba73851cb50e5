/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/solve.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS 30000000u /* limit of steps examined by branch and bound */
#define PASSES 64       /* passes over all units to use up the remaining budget */
#define NONE UINT32_MAX

/* An option that no other option of its unit dominates in both cost and error. Points ascend by cost. */
struct point {
	uint64_t cost;
	double error;
	uint32_t option; /* the caller's number of the option */
};

/* A step from one corner of a unit's hull to the next. */
struct step {
	uint64_t cost; /* increase */
	double error;  /* decrease */
	double worth;  /* error saved per byte */
	uint32_t unit, from, to;
};

struct problem {
	uint32_t count;
	uint64_t budget;
	struct point *points;
	uint32_t *first; /* [count + 1] of a unit's points */
	struct step *steps;
	uint32_t step_count;
	uint32_t *fixed; /* [count] point that a branch assigned to the unit, or NONE */
	uint32_t *at;    /* [count] the current solution: points */
	uint32_t *best;  /* [count] the best solution */
	double best_error;
	uint64_t looks;
	bool cut_short;
};

/* ---- points and steps -------------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	if (x->error < y->error || x->error > y->error)
		return x->error < y->error ? -1 : 1;
	return (x->option > y->option) - (x->option < y->option);
}

static double worth(const struct point *from, const struct point *to)
{
	return (from->error - to->error) / (double)(to->cost - from->cost);
}

/* Sort by error saved per byte, descending, then by unit and position, so that there are no ties. The same number per
 * step defines a hull's corners, so that no rounding can put a unit's second step before its first. */
static int by_worth(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->worth < y->worth || x->worth > y->worth)
		return x->worth > y->worth ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* Sort the points and remove the dominated ones. Returns the number of points left. */
static uint32_t prune(struct point *points, uint32_t count)
{
	uint32_t kept = 0;

	qsort(points, count, sizeof *points, by_cost);
	for (uint32_t i = 0; i < count; i++)
		if (!kept || points[i].error < points[kept - 1].error)
			points[kept++] = points[i];
	return kept;
}

/* Whether `b` is on or above the line from `a` to `c`. */
static bool is_dominated(const struct point *a, const struct point *b, const struct point *c)
{
	return worth(a, b) <= worth(b, c);
}

/* Add the steps of a unit's hull; its points are [first, end). `corner` has space for all of them. */
static void add_steps(struct problem *p, uint32_t unit, uint32_t *corner)
{
	const struct point *points = p->points;
	uint32_t corners = 0;

	for (uint32_t i = p->first[unit]; i < p->first[unit + 1]; i++) {
		while (corners > 1 &&
		       is_dominated(&points[corner[corners - 2]], &points[corner[corners - 1]], &points[i]))
			corners--;
		corner[corners++] = i;
	}
	for (uint32_t i = 1; i < corners; i++) {
		const struct point *from = &points[corner[i - 1]], *to = &points[corner[i]];

		p->steps[p->step_count++] = (struct step){
			to->cost - from->cost, from->error - to->error, worth(from, to), unit, corner[i - 1], corner[i],
		};
	}
}

static void problem_free(struct problem *p)
{
	free(p->points);
	free(p->first);
	free(p->steps);
	free(p->fixed);
	free(p->at);
	free(p->best);
}

static bool problem_begin(struct problem *p, const struct xfp_solve_unit *units)
{
	uint32_t total = 0, max = 0, *corner;

	for (uint32_t u = 0; u < p->count; u++) {
		total += units[u].count;
		max = units[u].count > max ? units[u].count : max;
	}
	p->points = malloc((total + (size_t)1) * sizeof *p->points);
	p->steps = malloc((total + (size_t)1) * sizeof *p->steps);
	p->first = calloc(p->count + (size_t)1, sizeof *p->first);
	p->fixed = malloc((p->count + (size_t)1) * sizeof *p->fixed);
	p->at = malloc((p->count + (size_t)1) * sizeof *p->at);
	p->best = malloc((p->count + (size_t)1) * sizeof *p->best);
	corner = malloc((max + (size_t)1) * sizeof *corner);
	if (!p->points || !p->steps || !p->first || !p->fixed || !p->at || !p->best || !corner) {
		free(corner);
		return false;
	}
	for (uint32_t u = 0; u < p->count; u++) {
		struct point *own = p->points + p->first[u];

		for (uint32_t i = 0; i < units[u].count; i++)
			own[i] = (struct point){ units[u].options[i].cost, units[u].options[i].error, i };
		p->first[u + 1] = p->first[u] + prune(own, units[u].count);
		p->fixed[u] = NONE;
		add_steps(p, u, corner);
	}
	qsort(p->steps, p->step_count, sizeof *p->steps, by_worth);
	free(corner);
	return true;
}

/* ---- the relaxed problem ----------------------------------------------------------------------- */

struct relaxed {
	uint64_t cost;    /* total cost of p->at */
	double bound;     /* optimum of the LP relaxation */
	uint32_t between; /* the unit that is split between two options; NONE: none, and p->at is optimal */
	bool feasible;
};

/* Solve the LP relaxation with the fixed units at their points. p->at is then the solution rounded down, plus later
 * steps that still fit. */
static struct relaxed relax(struct problem *p)
{
	struct relaxed r = { .between = NONE };
	double error = 0;

	for (uint32_t u = 0; u < p->count; u++) {
		p->at[u] = p->fixed[u] == NONE ? p->first[u] : p->fixed[u];
		r.cost += p->points[p->at[u]].cost;
		error += p->points[p->at[u]].error;
	}
	p->looks += p->count + (uint64_t)p->step_count;
	r.bound = error;
	r.feasible = r.cost <= p->budget;
	for (uint32_t i = 0; r.feasible && i < p->step_count; i++) {
		const struct step *step = &p->steps[i];

		if (p->fixed[step->unit] != NONE || p->at[step->unit] != step->from)
			continue;
		if (step->cost <= p->budget - r.cost) {
			p->at[step->unit] = step->to;
			r.cost += step->cost;
			if (r.between == NONE)
				r.bound -= step->error;
		} else if (r.between == NONE) {
			r.between = step->unit;
			r.bound -= step->error * ((double)(p->budget - r.cost) / (double)step->cost);
			if (r.cost == p->budget) {
				r.between = NONE;
				break;
			}
		}
	}
	return r;
}

static double error_of(const struct problem *p)
{
	double error = 0;

	for (uint32_t u = 0; u < p->count; u++)
		error += p->points[p->at[u]].error;
	return error;
}

/* Spend the remaining budget on the most effective changes, on a hull or not. */
static void fill(struct problem *p, uint64_t cost)
{
	bool changed = true;

	for (int pass = 0; changed && pass < PASSES && cost < p->budget; pass++) {
		uint32_t best = NONE, point = 0;
		double saves = 0;

		changed = false;
		for (uint32_t u = 0; u < p->count; u++) {
			uint32_t at = p->at[u];

			if (p->fixed[u] != NONE)
				continue;
			for (uint32_t i = at + 1; i < p->first[u + 1]; i++) {
				double saved = p->points[at].error - p->points[i].error;

				if (p->points[i].cost - p->points[at].cost > p->budget - cost)
					break;
				if (saved > saves) {
					saves = saved;
					best = u;
					point = i;
				}
			}
		}
		if (best == NONE)
			break;
		cost += p->points[point].cost - p->points[p->at[best]].cost;
		p->at[best] = point;
		changed = true;
	}
}

static void keep_best(struct problem *p)
{
	double error = error_of(p);

	if (error < p->best_error) {
		p->best_error = error;
		memcpy(p->best, p->at, p->count * sizeof *p->at);
	}
}

/* ---- branch and bound -------------------------------------------------------------------------- */

/* A unit that was branched on, and the point that is tried. */
struct branch {
	uint32_t unit, next;
};

/* Whether a better solution may exist with the fixed units, and on which unit to branch then. */
static bool look(struct problem *p, uint32_t *between)
{
	struct relaxed r = relax(p);

	if (!r.feasible || r.bound >= p->best_error)
		return false;
	keep_best(p);
	*between = r.between;
	return r.between != NONE && r.bound < p->best_error;
}

static bool search(struct problem *p, uint32_t between)
{
	struct branch *way = malloc((p->count + (size_t)1) * sizeof *way);
	uint32_t depth = 1;

	if (!way)
		return false;
	way[0] = (struct branch){ between, p->first[between] };
	while (depth) {
		struct branch *last = &way[depth - 1];

		if (p->looks > LOOKS)
			p->cut_short = true;
		if (p->cut_short || last->next == p->first[last->unit + 1]) {
			p->fixed[last->unit] = NONE;
			depth--;
			continue;
		}
		p->fixed[last->unit] = last->next++;
		if (look(p, &between))
			way[depth++] = (struct branch){ between, p->first[between] };
	}
	free(way);
	return true;
}

/* ------------------------------------------------------------------------------------------------ */

static void store_solution(const struct problem *p, uint32_t *chosen, struct xfp_solution *solution)
{
	for (uint32_t u = 0; u < p->count; u++) {
		chosen[u] = p->points[p->best[u]].option;
		solution->cost += p->points[p->best[u]].cost;
		solution->min += p->points[p->first[u]].cost;
		solution->max += p->points[p->first[u + 1] - 1].cost;
	}
	solution->error = p->best_error;
}

enum xfp_status xfp_solve(const struct xfp_solve_unit *units, uint32_t count, uint64_t budget, uint32_t *chosen,
			  struct xfp_solution *solution, struct xfp_error *err)
{
	struct problem p = { .count = count, .budget = budget };
	struct relaxed r;
	bool ok = problem_begin(&p, units);

	*solution = (struct xfp_solution){ 0 };
	if (!ok)
		goto done;
	r = relax(&p);
	solution->feasible = r.feasible;
	solution->bound = r.bound;
	p.best_error = error_of(&p);
	memcpy(p.best, p.at, count * sizeof *p.best);
	if (r.feasible && r.between != NONE) {
		fill(&p, r.cost);
		keep_best(&p);
		ok = r.bound >= p.best_error || search(&p, r.between);
	}
	solution->exact = !p.cut_short;
	store_solution(&p, chosen, solution);
done:
	problem_free(&p);
	return ok ? XFP_OK : xfp_no_memory(err);
}
