/* SPDX-License-Identifier: Apache-2.0 */
/*
 * solve.h - one option for each of many units, so that the sum of their errors is least and the sum of their costs
 * stays within a budget: the multiple-choice knapsack problem.
 *
 * It is pure: no I/O, no libm, and the same units give the same options to the last bit. Of each unit the lower convex
 * hull of errors over costs is what counts; its steps, taken in the order of what they save a byte, are the optimum of
 * the relaxed problem, in which one unit may stand between two options. That optimum is a lower bound of every
 * solution, and is told with the solution. What is left once the first step does not fit is filled with other steps,
 * off the hull too; then branch and bound, on the unit that stands between, looks for better solutions and ends with
 * the best one, or after a fixed number of looks at steps. Small problems are solved exactly. Of larger ones the error
 * is above the bound by no more than the one step that did not fit saves.
 */
#ifndef XFP_SOLVE_H
#define XFP_SOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_solve_option {
	uint64_t cost;
	double error; /* weighted; not negative, and a number */
};

struct xfp_solve_unit {
	const struct xfp_solve_option *options; /* in any order; at least one */
	uint32_t count;
};

struct xfp_solution {
	bool feasible;  /* false: even the cheapest options exceed the budget; `chosen` are these */
	bool exact;     /* nothing is better */
	uint64_t cost;  /* of what is chosen */
	double error;   /* likewise */
	double bound;   /* no solution has less error */
	uint64_t least; /* cost of the cheapest options */
	uint64_t most;  /* cost of those of least error: a budget of as much does not bind */
};

/* chosen[units] receives the number of each unit's option. Sums of all costs stay within 64 bits. XFP_FAILED: no
 * memory. */
enum xfp_status xfp_solve(const struct xfp_solve_unit *units, uint32_t count, uint64_t budget, uint32_t *chosen,
			  struct xfp_solution *solution, struct xfp_error *err);

#endif
