/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversion as input to a goal: the size of everything in a file or on GPUs; solutions are as large as the goal
 * allows, including the overhead outside the units.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/goal/allocation.h"
#include "tests/unit/unit.h"

#define UNITS 60u
#define VARIANTS 5u

/* Projections, and one tensor that is not a unit. */
struct subject {
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensors[UNITS + 1];
	struct xfp_ledger_unit units[UNITS];
	struct xfp_ledger_matrix matrices[UNITS];
	struct xfp_unit_state states[UNITS];
	char names[UNITS][16];
};

static void begin(struct subject *s, enum xfp_goal_kind kind)
{
	memset(s, 0, sizeof *s);
	s->file.name = s->file.path = (char *)"f";
	for (uint32_t u = 0; u < UNITS; u++) {
		snprintf(s->names[u], sizeof s->names[u], "layer.%" PRIu32, u);
		s->units[u] = (struct xfp_ledger_unit){ .name = s->names[u],
							.role = (char *)"q",
							.class_ = XFP_CLASS_ATTENTION,
							.plan = XFP_PLAN_FIT,
							.dtype = XFP_BF16,
							.experts = 1,
							.rows = 64,
							.cols = 64,
							.first_matrix = u };
		s->matrices[u] = (struct xfp_ledger_matrix){ u, 0, 64, 64, 64, 1 };
		s->tensors[u] = (struct xfp_ledger_tensor){ .name = s->names[u],
							    .reason = (char *)"",
							    .dtype = XFP_BF16,
							    .class_ = XFP_CLASS_ATTENTION,
							    .fate = XFP_FATE_QUANTIZED,
							    .rank = 2,
							    .shape = { 64, 64 },
							    .bytes = 8192 };
	}
	s->tensors[UNITS] = (struct xfp_ledger_tensor){ .name = (char *)"norm",
							.reason = (char *)"norm: kept by rule",
							.dtype = XFP_F32,
							.class_ = XFP_CLASS_NORM,
							.fate = XFP_FATE_KEPT,
							.rank = 1,
							.shape = { 3000 },
							.bytes = 12000 };
	s->ledger = (struct xfp_ledger){ .family = (char *)"made-up",
					 .files = &s->file,
					 .tensors = s->tensors,
					 .units = s->units,
					 .matrices = s->matrices,
					 .file_count = 1,
					 .tensor_count = UNITS + 1,
					 .unit_count = UNITS,
					 .matrix_count = UNITS };
	s->c.request = &s->request;
	s->c.units.ledger = &s->ledger;
	s->c.units.state = s->states;
	s->c.parameters = xfp_parameters_default();
	s->request.goal =
		(struct xfp_goal){ .kind = kind, .bytes = 1000000, .gpus = kind == XFP_GOAL_ENVELOPE ? 1 : 0 };
}

/* ------------------------------------------------------------------------------------------------ */

/* Random variants: more bytes, less error. */
static void make_offers(struct xfp_allocation *allocation)
{
	uint64_t random = 15;

	for (uint32_t u = 0; u < UNITS; u++) {
		struct xfp_unit_allocation *share = &allocation->unit[u];
		uint64_t bytes = 2000;
		double error = 1;

		free(share->variants);
		assert_non_null(share->variants = calloc(VARIANTS, sizeof *share->variants));
		share->count = VARIANTS;
		share->at = XFP_NO_VARIANT;
		for (uint32_t i = 0; i < VARIANTS; i++) {
			/* One after another, because members of an initializer are evaluated in any order. */
			uint32_t sigma = 2000 + (uint32_t)(test_random(&random) % 4000);
			uint8_t k = (uint8_t)(3 + test_random(&random) % 3);

			bytes += 1 + test_random(&random) % 800;
			error /= 1.5 + (double)(test_random(&random) % 8);
			share->variants[i] = (struct xfp_variant){ .bytes = bytes,
								   .error = error,
								   .sigma_milli = i ? sigma : 0,
								   .mode = XFP_MODE_V2,
								   .k = i ? k : 2 };
		}
	}
}

/* The file's description and its padding depend on the solution; still the total never exceeds the goal, nor leaves
 * much unused. */
static void what_is_beside_is_reckoned_with(void **unused)
{
	struct subject s;
	struct xfp_allocation allocation;
	struct xfp_solution solution;
	uint64_t min, max, total;

	(void)unused;
	begin(&s, XFP_GOAL_SIZE);
	assert_int_equal(xfp_allocation_of_headers(&s.c, XFP_HEADERS_LIKELY, &allocation, NULL), XFP_OK);
	make_offers(&allocation);
	assert_int_equal(xfp_allocation_solve(&allocation, XFP_FROM_ALL, 0, &solution, &min, NULL), XFP_OK);
	assert_false(solution.feasible);
	assert_int_equal(xfp_allocation_solve(&allocation, XFP_FROM_ALL, UINT64_MAX / 2, &solution, &max, NULL),
			 XFP_OK);
	assert_true(solution.feasible && max > min + 50000);
	for (uint64_t budget = min; budget < max; budget += 307) {
		assert_int_equal(xfp_allocation_solve(&allocation, XFP_FROM_ALL, budget, &solution, &total, NULL),
				 XFP_OK);
		if (total > budget || budget - total > budget / 100)
			fail_msg("%" PRIu64 " of %" PRIu64, total, budget);
	}
	xfp_allocation_free(&allocation);
}

static void what_is_no_unit_is_on_gpus_too(void **unused)
{
	struct subject s;
	struct xfp_allocation allocation;
	struct xfp_solution solution;
	uint64_t total;

	(void)unused;
	begin(&s, XFP_GOAL_ENVELOPE);
	s.request.goal.reserve = 1000;
	assert_int_equal(xfp_allocation_of_headers(&s.c, XFP_HEADERS_LOWER_BOUND, &allocation, NULL), XFP_OK);
	assert_int_equal(allocation.budget, 999000);
	assert_int_equal(xfp_allocation_solve(&allocation, XFP_FROM_ALL, 0, &solution, &total, NULL), XFP_OK);
	assert_int_equal(total, solution.cost + 12000);
	/* A solution leaves space for it. */
	assert_int_equal(xfp_allocation_solve(&allocation, XFP_FROM_ALL, total, &solution, &total, NULL), XFP_OK);
	assert_true(solution.feasible);
	assert_int_equal(total, solution.cost + 12000);
	xfp_allocation_free(&allocation);
}

/* xfp.json has outputs of each unit whose choice has them, whatever it is stored as. */
static void outputs_are_counted(void **unused)
{
	static const enum xfp_mode modes[] = { XFP_MODE_V2C, XFP_MODE_FP8, XFP_MODE_KEEP };
	struct subject s;
	struct xfp_allocation allocation;
	uint32_t layer[UNITS] = { 0 };

	(void)unused;
	begin(&s, XFP_GOAL_SIZE);
	strcpy(s.c.parameters.calibration.sha256, "0");
	s.c.layers.count = 1;
	s.c.layers.of_unit = layer;
	for (size_t i = 0; i < 3; i++) {
		struct xfp_bundle_breakdown sizes[3];
		uint64_t total;

		assert_int_equal(xfp_allocation_of_headers(&s.c, XFP_HEADERS_LIKELY, &allocation, NULL), XFP_OK);
		make_offers(&allocation);
		for (uint32_t u = 0; u < UNITS; u++) {
			allocation.unit[u].at = 0;
			allocation.unit[u].source = modes[i] == XFP_MODE_KEEP;
			allocation.unit[u].variants[0].mode = (uint8_t)modes[i];
		}
		for (int decided = 0; decided < 3; decided++) {
			for (uint32_t u = 0; u < UNITS; u++) {
				s.states[u].decided = decided > 0;
				s.states[u].choice.calibrated = decided == 1;
			}
			assert_int_equal(xfp_allocation_total(&allocation, &total, &sizes[decided], NULL), XFP_OK);
		}
		assert_int_equal(sizes[0].index, sizes[1].index);
		/* "0.000000,0.000000,0.000000", or "-" */
		assert_int_equal(sizes[1].index - sizes[2].index, UNITS * 25);
		xfp_allocation_free(&allocation);
		memset(s.states, 0, sizeof s.states);
	}
}

PROGRAM("test_allocation")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_beside_is_reckoned_with),
		cmocka_unit_test(what_is_no_unit_is_on_gpus_too),
		cmocka_unit_test(outputs_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
