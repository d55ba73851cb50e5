/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The solver compared with exhaustive search on small problems, and with its bound on a large one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stages/quantize/solve.h"
#include "tests/unit/unit.h"

#define MAX_UNITS 6
#define MAX_OPTIONS 6
#define LARGE 10000u
#define LARGE_OPTIONS 100u

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

struct small {
	struct xfp_solve_option options[MAX_UNITS][MAX_OPTIONS];
	struct xfp_solve_unit units[MAX_UNITS];
	uint32_t count;
	uint64_t min, max, budget;
};

/* Costs and errors that often tie, are often off the hull, and sometimes increase. */
static void generate(uint64_t seed, struct small *s)
{
	state = seed * 2654435761u + 1;
	s->count = 1 + (uint32_t)draw(MAX_UNITS);
	s->min = s->max = 0;
	for (uint32_t u = 0; u < s->count; u++) {
		uint64_t min = UINT64_MAX, max = 0;

		s->units[u] = (struct xfp_solve_unit){ s->options[u], 1 + (uint32_t)draw(MAX_OPTIONS) };
		for (uint32_t i = 0; i < s->units[u].count; i++) {
			struct xfp_solve_option *o = &s->options[u][i];

			o->cost = 10 + draw(seed % 3 ? 90 : 6);
			o->error = (double)draw(seed % 2 ? 1000 : 8) / 64;
			min = o->cost < min ? o->cost : min;
			max = o->cost > max ? o->cost : max;
		}
		s->min += min;
		s->max += max;
	}
	s->budget = s->min + draw(s->max - s->min + 10);
}

static double brute(const struct small *s, uint32_t u, uint64_t left)
{
	double best = INFINITY;

	if (u == s->count)
		return 0;
	for (uint32_t i = 0; i < s->units[u].count; i++) {
		const struct xfp_solve_option *o = &s->options[u][i];
		double error = o->cost <= left ? o->error + brute(s, u + 1, left - o->cost) : INFINITY;

		best = error < best ? error : best;
	}
	return best;
}

static void test_equals_all_tried(void **unused)
{
	(void)unused;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct small s;
		uint32_t chosen[MAX_UNITS];
		struct xfp_solution solution;
		uint64_t cost = 0;
		double error = 0;

		generate(seed, &s);
		assert_int_equal(xfp_solve(s.units, s.count, s.budget, chosen, &solution, NULL), XFP_OK);
		for (uint32_t u = 0; u < s.count; u++) {
			assert_true(chosen[u] < s.units[u].count);
			cost += s.options[u][chosen[u]].cost;
			error += s.options[u][chosen[u]].error;
		}
		/* Errors are multiples of 1/64, so that their sums are exact. */
		if (!solution.feasible || !solution.exact || cost > s.budget || cost != solution.cost ||
		    error != brute(&s, 0, s.budget) || solution.bound > error + 1e-9 || solution.min != s.min)
			fail_msg("seed %llu: error %g, not %g; bound %g, cost %llu of %llu", (unsigned long long)seed,
				 error, brute(&s, 0, s.budget), solution.bound, (unsigned long long)cost,
				 (unsigned long long)s.budget);
	}
}

static void test_too_little_and_plenty(void **unused)
{
	struct small s;
	uint32_t chosen[MAX_UNITS];
	struct xfp_solution solution;

	(void)unused;
	generate(7, &s);
	assert_int_equal(xfp_solve(s.units, s.count, s.min - 1, chosen, &solution, NULL), XFP_OK);
	assert_false(solution.feasible);
	assert_int_equal(solution.cost, s.min);
	assert_int_equal(xfp_solve(s.units, s.count, UINT64_MAX / 2, chosen, &solution, NULL), XFP_OK);
	assert_true(solution.feasible && solution.exact);
	assert_int_equal(solution.cost, solution.max);
	assert_true(solution.error == brute(&s, 0, UINT64_MAX / 2));
	assert_int_equal(xfp_solve(s.units, 0, 0, chosen, &solution, NULL), XFP_OK);
	assert_true(solution.feasible && solution.exact);
}

/* Every byte saves the same, all costs are even and the budget is odd: no solution reaches the bound, and too many are
 * equally good for an exhaustive search. The result is then not called exact, but is still optimal. */
static void test_too_much_to_look_at(void **unused)
{
	struct xfp_solve_option options[60][2];
	struct xfp_solve_unit units[60];
	struct xfp_solution solution;
	uint32_t chosen[60];
	uint64_t max = 0, budget;

	(void)unused;
	state = 7;
	for (uint32_t u = 0; u < 60; u++) {
		uint64_t cost = 2 * (1000 + draw(1000));

		options[u][0] = (struct xfp_solve_option){ 0, (double)cost };
		options[u][1] = (struct xfp_solve_option){ cost, 0 };
		units[u] = (struct xfp_solve_unit){ options[u], 2 };
		max += cost;
	}
	budget = max / 2 | 1;
	assert_int_equal(xfp_solve(units, 60, budget, chosen, &solution, NULL), XFP_OK);
	assert_true(solution.feasible && !solution.exact);
	assert_true(solution.cost < budget && solution.error == (double)(max - solution.cost));
	assert_true(solution.bound == (double)(max - budget));
	assert_true(solution.error - solution.bound <= 4000); /* a step */
}

/* Units of all sizes, whose errors fall by a factor of about four per bit, like measurements. */
static void test_large(void **unused)
{
	struct xfp_solve_option *options = malloc(LARGE * (size_t)LARGE_OPTIONS * sizeof *options);
	struct xfp_solve_unit *units = malloc(LARGE * sizeof *units);
	uint32_t *chosen = malloc(LARGE * sizeof *chosen), *again = malloc(LARGE * sizeof *again);
	struct xfp_solution solution;
	double largest = 0, took;
	clock_t began;
	uint64_t min, max;

	(void)unused;
	assert_true(options && units && chosen && again);
	state = 1;
	for (uint32_t u = 0; u < LARGE; u++) {
		uint64_t weights = 1000 + draw(10000000);

		units[u] = (struct xfp_solve_unit){ options + u * (size_t)LARGE_OPTIONS, LARGE_OPTIONS };
		for (uint32_t i = 0; i < LARGE_OPTIONS; i++) {
			double bits = 2.1 + 4.0 * i / LARGE_OPTIONS;

			options[u * (size_t)LARGE_OPTIONS + i] =
				(struct xfp_solve_option){ (uint64_t)((double)weights * bits / 8),
							   exp2(-2 * bits) * (1 + (double)draw(100) / 300) };
		}
	}
	assert_int_equal(xfp_solve(units, LARGE, 0, chosen, &solution, NULL), XFP_OK);
	min = solution.min;
	max = solution.max;
	for (int tenth = 1; tenth < 10; tenth += 4) {
		uint64_t budget = min + (max - min) / 10 * (uint64_t)tenth;

		began = clock();
		assert_int_equal(xfp_solve(units, LARGE, budget, chosen, &solution, NULL), XFP_OK);
		took = (double)(clock() - began) / CLOCKS_PER_SEC;
		assert_true(took < 5); /* of processor time; under a second here */
		print_message("%u units: %.2f s, error %.9g, bound %.9g\n", LARGE, took, solution.error,
			      solution.bound);
		assert_true(solution.feasible && solution.cost <= budget);
		assert_true(solution.bound <= solution.error);
		/* The error exceeds the bound by at most one step: less than a unit's largest error. */
		for (uint32_t u = 0; u < LARGE; u++)
			largest = options[u * (size_t)LARGE_OPTIONS].error > largest
					  ? options[u * (size_t)LARGE_OPTIONS].error
					  : largest;
		assert_true(solution.error - solution.bound <= largest);
		assert_true(solution.error - solution.bound <= 1e-6 * solution.error);
		assert_int_equal(xfp_solve(units, LARGE, budget, again, &solution, NULL), XFP_OK);
		assert_memory_equal(chosen, again, LARGE * sizeof *chosen);
	}
	free(options);
	free(units);
	free(chosen);
	free(again);
}

PROGRAM("test_solve")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_all_tried),
		cmocka_unit_test(test_too_little_and_plenty),
		cmocka_unit_test(test_too_much_to_look_at),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
