/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of a goal over synthetic variants and measurements: on one GPU the cost of a unit is the size of its parts, so
 * bytes are those of the tables.
 */
#include <stdlib.h>
#include <string.h>

#include "conversion/goal/rounds.h"
#include "tests/unit/unit.h"

#define MAX_UNITS 8u /* units */

/* The expected size of a variant, and its measured size; 0: as expected. */
struct made {
	uint64_t expected;
	double error;
	uint32_t sigma_milli; /* 0: its bytes are exact */
	uint16_t library;     /* v2a has one */
	uint64_t bytes;
	double comes_to, outputs; /* measured errors; of outputs: above 0 if calibrated */
	bool unmet, kept;
};

#define SURE(b, e) .expected = (b), .error = (e)
#define GUESS(b, e, sigma) SURE(b, e), .sigma_milli = (sigma)

/* The conversion must be first, so that the measuring callback can find the rest. */
struct subject {
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_ledger ledger;
	struct xfp_ledger_unit units[MAX_UNITS];
	struct xfp_unit_state states[MAX_UNITS];
	struct xfp_allocation allocation;
	const struct made *made[MAX_UNITS];
	uint32_t measured[MAX_UNITS]; /* how often */
	uint32_t undecided;           /* waits for fits; MAX: none does */
	uint32_t failing;             /* unit whose measurement fails; MAX: none */
};

static void begin(struct subject *s)
{
	memset(s, 0, sizeof *s);
	s->c.parameters = xfp_parameters_default();
	for (int i = 0; i < XFP_CLASSES; i++)
		s->c.parameters.floor[i] = 0;
	s->request.goal = (struct xfp_goal){ .kind = XFP_GOAL_ENVELOPE, .gpus = 1, .option = "--envelope" };
	s->ledger.units = s->units;
	s->c.request = &s->request;
	s->c.units.ledger = &s->ledger;
	s->c.units.state = s->states;
	s->allocation = (struct xfp_allocation){ .c = &s->c, .unit = calloc(MAX_UNITS, sizeof *s->allocation.unit) };
	assert_non_null(s->allocation.unit);
	s->undecided = s->failing = MAX_UNITS;
}

static void end(struct subject *s)
{
	xfp_allocation_free(&s->allocation);
	xfp_parameters_free(&s->c.parameters);
}

/* A unit whose shape needs almost no bytes, so that its bytes are those of outliers. A variant is identified by its
 * bits and threshold; variants of one threshold have different bits. */
static void put(struct subject *s, const struct made *made, uint32_t count)
{
	uint32_t u = s->allocation.count++;
	struct xfp_unit_allocation *share = &s->allocation.unit[u];

	assert_true(u < MAX_UNITS);
	s->ledger.unit_count = s->allocation.count;
	s->units[u] = (struct xfp_ledger_unit){ .name = (char *)"w",
						.role = (char *)"q",
						.class_ = XFP_CLASS_ATTENTION,
						.plan = XFP_PLAN_FIT,
						.dtype = XFP_BF16,
						.experts = 1,
						.rows = 2,
						.cols = 32 };
	s->made[u] = made;
	*share = (struct xfp_unit_allocation){ .variants = calloc(count, sizeof *share->variants),
					       .count = count,
					       .at = XFP_NO_VARIANT,
					       .weight = 1,
					       .surveyed = true };
	assert_non_null(share->variants);
	for (uint32_t i = 0; i < count; i++)
		share->variants[i] = (struct xfp_variant){ .bytes = made[i].expected,
							   .error = made[i].error,
							   .sigma_milli = made[i].sigma_milli,
							   .group = made[i].library ? 32 : 0,
							   .library = made[i].library,
							   .mode = made[i].library ? XFP_MODE_V2A : XFP_MODE_V2,
							   .k = (uint8_t)(2 + i % 5),
							   .exact = !made[i].sigma_milli };
}
#define PUT(subject, ...) \
	put(subject, (const struct made[]){ __VA_ARGS__ }, sizeof((struct made[]){ __VA_ARGS__ }) / sizeof(struct made))

static enum xfp_status measure(struct xfp_conversion *c, uint32_t u, bool check, struct xfp_error *err)
{
	struct subject *s = (struct subject *)c;
	const struct xfp_assignment *assigned = &c->parameters.assigned[u];
	const struct xfp_unit_allocation *share = &s->allocation.unit[u];
	uint32_t i = 0;

	(void)check;
	assert_int_equal(c->parameters.assigned_count, s->allocation.count);
	while (i < share->count &&
	       (share->variants[i].k != assigned->k || share->variants[i].sigma_milli != assigned->sigma_milli))
		i++;
	assert_true(i < share->count);
	s->measured[u]++;
	if (u == s->failing)
		return xfp_fail(err, XFP_FAILED, "it cannot be read");
	c->units.state[u].decided = u != s->undecided;
	if (c->units.state[u].decided) {
		const struct made *made = &s->made[u][i];

		c->units.state[u].choice = (struct xfp_choice){
			.candidate = { .mode = made->kept ? XFP_MODE_KEEP : (enum xfp_mode)assigned->mode,
				       .k = assigned->k,
				       .sigma_milli = assigned->sigma_milli,
				       .bytes = made->bytes ? made->bytes : made->expected,
				       .error = made->comes_to > 0 ? made->comes_to : made->error,
				       .cos_median = 0.5 },
			.met = !made->unmet,
			.calibrated = made->outputs > 0,
			.output = { 0.75, 0.5, made->outputs },
		};
	}
	return XFP_OK;
}

static enum xfp_status go(struct subject *s, uint64_t budget, struct xfp_error *err)
{
	struct xfp_solution solution;
	uint64_t total;

	s->allocation.budget = budget;
	assert_int_equal(
		xfp_allocation_solve(&s->allocation, XFP_FROM_ALL, UINT64_MAX / 2, &solution, &s->c.solved.max, NULL),
		XFP_OK);
	assert_int_equal(xfp_allocation_solve(&s->allocation, XFP_FROM_ALL, budget, &solution, &total, NULL), XFP_OK);
	return xfp_rounds_run(&s->allocation, total, measure, false, err);
}

/* Expect a settled goal: the variants of the units as digits, the number of rounds, and the total. */
static void expect(struct subject *s, uint64_t budget, const char *at, uint32_t rounds, uint64_t total)
{
	struct xfp_error err = { 0 };
	char found[MAX_UNITS + 1] = "";

	if (go(s, budget, &err))
		fail_msg("%s", err.text);
	for (uint32_t u = 0; u < s->allocation.count; u++)
		found[u] = (char)('0' + s->allocation.unit[u].at);
	assert_string_equal(found, at);
	assert_int_equal(s->c.solved.steps, rounds);
	assert_int_equal(s->c.solved.total, total);
	assert_true(s->c.solved.settled);
}

static void expect_unmet(struct subject *s, uint64_t budget, const char *message)
{
	struct xfp_error err = { 0 };

	assert_int_equal(go(s, budget, &err), XFP_UNMET);
	if (!strstr(err.text, message))
		fail_msg("'%s' is not in '%s'", message, err.text);
}

/* ------------------------------------------------------------------------------------------------ */

static void what_comes_as_expected_is_measured_once(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .1) });
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .15) });
	expect(&s, 3000, "10", 1, 3000);
	assert_true(s.measured[0] == 1 && s.measured[1] == 1);
	assert_true(s.c.solved.binding);
	assert_int_equal(s.c.solved.max, 4000);
	/* The same below the goal, if no larger variant exists. */
	s.c.solved = (struct xfp_solved){ 0 };
	expect(&s, 9000, "11", 1, 4000);
	assert_false(s.c.solved.binding);
	assert_int_equal(s.c.solved.max, 4000);
	end(&s);
	/* The size with the most bits is then measured. */
	begin(&s);
	PUT(&s, { SURE(1000, .2) }, { GUESS(2000, .1, 4000), .bytes = 2100 });
	expect(&s, 9000, "1", 1, 2100);
	assert_int_equal(s.c.solved.max, 2100);
	end(&s);
	/* Nothing is measured if the goal is impossible. */
	begin(&s);
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .1) });
	expect_unmet(&s, 999, "the goal allows 999 bytes (999 B) on a GPU; raise the goal");
	assert_int_equal(s.measured[0], 0);
	end(&s);
}

/* Outliers depend on the threshold: one measured variant determines all with the same threshold, and no others. */
static void bytes_are_corrected(void **unused)
{
	const struct xfp_variant *variants;
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { GUESS(1000, .3, 4000), .bytes = 1200 }, { GUESS(2000, .1, 4000), .bytes = 2200 },
	    { GUESS(1100, .29, 3000) });
	expect(&s, 2100, "0", 2, 1200);
	variants = s.allocation.unit[0].variants;
	assert_true(variants[0].exact && variants[1].exact && !variants[2].exact);
	assert_int_equal(variants[1].bytes, 2200);
	assert_int_equal(variants[2].bytes, 1100);
	assert_int_equal(s.c.solved.max, 2200); /* larger when measured than expected */
	end(&s);
}

/* The first unit's bits save less error than expected, so they are removed, not those of the second. */
static void errors_are_corrected(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { GUESS(1000, .2, 4000), .bytes = 1050 }, { GUESS(2000, .05, 4000), .bytes = 2050, .comes_to = .19 });
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .08) });
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .1) });
	expect(&s, 5000, "010", 2, 4050);
	assert_true(s.allocation.unit[0].variants[1].error > .18);
	assert_true(s.allocation.unit[0].variants[1].cosine == .5);
	assert_int_equal(s.measured[0], 2);
	assert_int_equal(s.measured[1], 1); /* only changed units are measured again */
	end(&s);
}

static void errors_of_calibrated_units_are_those_of_outputs(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	/* The larger errors of weights would reduce the other unit. */
	PUT(&s, { SURE(1000, .2) }, { GUESS(2000, .1, 4000), .bytes = 2400, .comes_to = .3, .outputs = .05 });
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .1), .comes_to = .3, .outputs = .15 });
	expect(&s, 4000, "10", 2, 3400);
	assert_true(s.allocation.unit[0].variants[1].error == .05);
	assert_true(s.allocation.unit[0].variants[1].cosine == .75);
	end(&s);
}

static void what_is_left_is_given(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { GUESS(1000, .2, 4000) }, { GUESS(2000, .1, 4000), .bytes = 1400 });
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .15) });
	expect(&s, 3500, "11", 2, 3400);
	end(&s);
	/* One percent may remain unused. */
	begin(&s);
	PUT(&s, { SURE(100000, .2) }, { GUESS(200000, .1, 4000), .bytes = 198000 });
	PUT(&s, { SURE(1000, .2) }, { GUESS(2500, .15, 3000) });
	expect(&s, 201000, "10", 1, 199000);
	end(&s);
}

/* In each round another unit is smaller than expected; the fifth is the last round in which any unit gets more. */
static void giving_ends(void **unused)
{
	static const struct made made[] = { { SURE(1000, .2) }, { GUESS(9000, .1, 4000), .bytes = 1500 } };
	struct subject s;

	(void)unused;
	begin(&s);
	for (uint32_t u = 0; u < MAX_UNITS; u++)
		put(&s, made, 2);
	go(&s, 20000, NULL);
	assert_true(s.c.solved.settled);
	assert_int_equal(s.c.solved.steps, 5);
	assert_int_equal(s.c.solved.total, 5 * 1500 + 3 * 1000);
	end(&s);
}

/* A unit whose variant misses its floor gets another one, even at the expense of others. */
static void what_is_unfit_is_not_taken(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { GUESS(1000, .2, 3000) }, { GUESS(2000, .1, 4000) });
	PUT(&s, { SURE(1000, .2), .unmet = true }, { SURE(2000, .15) });
	expect(&s, 3000, "01", 2, 3000);
	assert_true(s.allocation.unit[1].variants[0].unfit && !s.allocation.unit[1].variants[1].unfit);
	end(&s);
	/* With fewer bits it would be no better: it stays, and the rounds end. */
	begin(&s);
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .1), .unmet = true });
	expect(&s, 2000, "1", 1, 2000);
	end(&s);
	/* Not even if the goal would choose it. */
	begin(&s);
	PUT(&s, { SURE(1000, .2), .unmet = true }, { SURE(2000, .1) });
	s.c.parameters.floor[XFP_CLASS_ATTENTION] = 980000000;
	expect_unmet(
		&s, 1500,
		"--envelope: the fewest bits that meet the floors need 2000 bytes (2.00 kB) on a GPU, but the goal "
		"allows 1500 bytes");
	end(&s);
}

/* Smaller variants with known sizes are used first, since an expected size may be wrong. */
static void less_is_taken_of_what_is_known(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { GUESS(3100, .1, 4000), .bytes = 3200 }, { GUESS(3000, .2, 3000), .bytes = 3300 }, { SURE(3090, .3) });
	expect(&s, 3100, "2", 2, 3090);
	assert_int_equal(s.measured[0], 2);
	end(&s);
}

/* If known variants do not suffice, all smaller ones are tried, starting from the variants before. */
static void a_wider_look_begins_from_before(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { SURE(3000, .01) }, { SURE(2000, .2) });
	PUT(&s, { GUESS(1790, .1, 4000), .bytes = 3000 }, { GUESS(1750, .2, 3000) });
	expect(&s, 4800, "01", 2, 4750);
	end(&s);
}

/* Twenty thresholds, each too large on all rows. */
static void rounds_end(void **unused)
{
	struct made made[20] = { { 0 } };
	struct subject s;

	(void)unused;
	for (uint32_t i = 0; i < 20; i++)
		made[i] = (struct made){ GUESS(1000 + i, .5 - .01 * i, 2000 + i), .bytes = 6000 };
	begin(&s);
	put(&s, made, 20);
	expect_unmet(
		&s, 5000,
		"--envelope: after 12 rounds of measuring, the size is 6000 bytes (6.00 kB) on a GPU, but the goal "
		"allows 5000 bytes (5.00 kB) on a GPU; raise the goal");
	assert_int_equal(s.c.solved.steps, 13);
	assert_int_equal(s.measured[0], 13);
	end(&s);
	/* With fewer thresholds this is known earlier. */
	begin(&s);
	put(&s, made, 5);
	expect_unmet(&s, 5000, "--envelope: the fewest bits need 6000 bytes");
	assert_int_equal(s.measured[0], 5);
	end(&s);
}

/* At source precision the unit's size is fixed, there is no choice left, and other units get less. */
static void a_unit_stays_at_source_precision(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { SURE(1000, .2), .bytes = 3000, .kept = true, .unmet = true }, { SURE(1200, .15) });
	PUT(&s, { SURE(200, .5) }, { SURE(1000, .2) }, { SURE(2400, .1) });
	expect(&s, 3500, "00", 2, 3200);
	assert_true(s.allocation.unit[0].source && !s.allocation.unit[1].source);
	assert_int_equal(s.allocation.unit[0].mode, XFP_MODE_KEEP);
	assert_int_equal(s.measured[0], 1);
	assert_true(xfp_allocation_error(&s.allocation) == .5);
	end(&s);
}

/* On two GPUs a library is on both: a variant with more bytes in total may need less per GPU, and is tried at the
 * end. */
static void more_bytes_may_cost_less(void **unused)
{
	struct subject s;

	(void)unused;
	begin(&s);
	s.request.goal.gpus = 2;
	PUT(&s, { GUESS(4000, .2, 3000) }, { GUESS(3000, .1, 4000), .library = 32, .bytes = 3900 });
	expect(&s, 2100, "0", 2, 2000);
	end(&s);
}

static void what_is_not_measured_yet_ends_the_round(void **unused)
{
	struct xfp_error err = { 0 };
	struct subject s;

	(void)unused;
	begin(&s);
	PUT(&s, { SURE(1000, .2) }, { GUESS(2000, .1, 4000), .bytes = 2500 });
	PUT(&s, { SURE(1000, .2) }, { SURE(2000, .15) });
	s.undecided = 0;
	assert_int_equal(go(&s, 3000, &err), XFP_OK);
	assert_false(s.c.solved.settled);
	assert_int_equal(s.c.solved.steps, 1);
	assert_true(s.measured[0] == 1 && s.measured[1] == 1); /* other units are measured too: make runs all at once */
	assert_int_equal(s.c.parameters.assigned[0].k, 3);
	assert_false(s.allocation.unit[0].source);
	assert_int_equal(s.allocation.unit[0].variants[1].bytes, 2000);
	s.failing = 1;
	assert_int_equal(go(&s, 3000, &err), XFP_FAILED);
	assert_string_equal(err.text, "it cannot be read");
	assert_false(s.c.solved.settled);
	end(&s);
}

PROGRAM("test_rounds")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_as_expected_is_measured_once),
		cmocka_unit_test(bytes_are_corrected),
		cmocka_unit_test(errors_are_corrected),
		cmocka_unit_test(errors_of_calibrated_units_are_those_of_outputs),
		cmocka_unit_test(what_is_left_is_given),
		cmocka_unit_test(giving_ends),
		cmocka_unit_test(what_is_unfit_is_not_taken),
		cmocka_unit_test(less_is_taken_of_what_is_known),
		cmocka_unit_test(a_wider_look_begins_from_before),
		cmocka_unit_test(rounds_end),
		cmocka_unit_test(a_unit_stays_at_source_precision),
		cmocka_unit_test(more_bytes_may_cost_less),
		cmocka_unit_test(what_is_not_measured_yet_ends_the_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
