/* SPDX-License-Identifier: Apache-2.0 */
/*
 * solve.h - choose one option for each of many units, so that the sum of their errors is minimal and the sum of their
 * costs stays within a budget: the multiple-choice knapsack problem.
 *
 * The solver is pure: no I/O, no libm, and the same units give the same options to the last bit. Each unit contributes
 * the lower convex hull of (cost, error). Taking hull steps in order of error saved per byte solves the LP relaxation,
 * in which one unit may be split between two options. Its optimum is a lower bound of every solution, and is returned
 * with the solution. After the first step that does not fit, the remaining budget is filled with other steps, also off
 * the hull; then branch and bound, on the unit that is split, searches for better solutions, and ends with the optimum
 * or after a fixed number of steps examined. Small problems are solved exactly. For larger ones, the error exceeds the
 * bound by at most the error that the first step that did not fit would save.
 */
#ifndef XFP_SOLVE_H
#define XFP_SOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_solve_option {
	uint64_t cost;
	double error; /* weighted; finite and not negative */
};

struct xfp_solve_unit {
	const struct xfp_solve_option *options; /* in any order; at least one */
	uint32_t count;
};

struct xfp_solution {
	bool feasible; /* false: even the cheapest options exceed the budget; `chosen` are these */
	bool exact;    /* the solution is optimal */
	uint64_t cost; /* total cost of the chosen options */
	double error;  /* total error of the chosen options */
	double bound;  /* lower bound of the error of any solution */
	uint64_t min;  /* cost of the cheapest options */
	uint64_t max;  /* cost of the options with minimal error: a budget this large does not bind */
};

/* Solve; chosen[units] receives the number of each unit's option. The sum of all costs must fit in 64 bits. XFP_FAILED:
 * out of memory. */
enum xfp_status xfp_solve(const struct xfp_solve_unit *units, uint32_t count, uint64_t budget, uint32_t *chosen,
			  struct xfp_solution *solution, struct xfp_error *err);

#endif
