/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates that a plan uses: sizes of units, and their memory and disk space.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "conversion/estimate/footprint.h"
#include "conversion/state/conversion.h"
#include "schemas/layout/bundle_layout.h"
#include "stages/pack/chosen.h"
#include "stages/quantize/candidates.h"
#include "tests/unit/round_floors.h"

#define MIB (1024.0 * 1024)

/* A conversion of `count` units of one shape, to v2 with its threshold unless stated otherwise. */
struct subject {
	struct xfp_conversion c;
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	uint8_t (*source)[16];
	struct xfp_estimate_input input; /* of `c`, from the last call */
};

static struct subject *subject(uint32_t count, uint32_t experts, uint64_t rows, uint64_t cols, enum xfp_class class_)
{
	struct subject *s = calloc(1, sizeof *s);
	struct xfp_ledger *l = &s->ledger;

	l->model = l->family = l->format = (char *)"";
	s->file.name = s->file.path = (char *)"f";
	l->files = &s->file;
	l->file_count = 1;
	l->unit_count = l->tensor_count = count;
	l->matrix_count = count * experts;
	l->units = calloc(count, sizeof *l->units);
	l->tensors = calloc(count, sizeof *l->tensors);
	l->matrices = calloc(l->matrix_count, sizeof *l->matrices);
	for (uint32_t u = 0; u < count; u++) {
		l->units[u] = (struct xfp_ledger_unit){ (char *)"w", (char *)"q", class_, XFP_PLAN_FIT, XFP_BF16,
							experts,     rows,        cols,   u * experts };
		l->tensors[u] = (struct xfp_ledger_tensor){ .name = (char *)"w",
							    .reason = (char *)"",
							    .dtype = XFP_BF16,
							    .class_ = class_,
							    .rank = 3,
							    .shape = { experts, rows, cols },
							    .bytes = experts * rows * cols * 2,
							    .tied = UINT32_MAX };
		for (uint32_t m = 0; m < experts; m++)
			l->matrices[u * experts + m] =
				(struct xfp_ledger_matrix){ u, m * rows * cols, rows, cols, cols, 1 };
	}
	s->c.units.ledger = l;
	s->c.parameters = round_floors();
	s->c.parameters.modes = 1u << XFP_MODE_V2;
	s->c.parameters.outlier_sigma = XFP_SIGMA_DEFAULT;
	s->c.parameters.outlier_cap = XFP_CAP_DEFAULT;
	s->c.units.state = calloc(count, sizeof *s->c.units.state);
	s->c.units.todo = count;
	return s;
}

static void done_with(struct subject *s)
{
	free(s->ledger.units);
	free(s->ledger.tensors);
	free(s->ledger.matrices);
	free(s->c.units.state);
	free(s);
}

static const struct xfp_estimate_input *input(struct subject *s)
{
	s->input = xfp_conversion_estimate_input(&s->c);
	return &s->input;
}

static void set_floor(struct subject *s, double floor)
{
	for (int i = 0; i < XFP_CLASSES; i++)
		s->c.parameters.floor[i] = (uint32_t)(floor * XFP_NANO);
}

static void set_default(struct subject *s)
{
	s->c.parameters = round_floors();
}

static void set_modes(struct subject *s, const char *name)
{
	assert_true(xfp_modes_parse(name, &s->c.parameters.modes));
}

/* ---- estimates ------------------------------------------------------------------------------------ */

static void bits_follow_the_floor(void **state)
{
	static const struct {
		double floor;
		unsigned k[XFP_BOUNDS];
	} cases[] = {
		{ 0.5, { 2, 2, 2 } },  { 0.93, { 2, 2, 3 } },  { 0.98, { 3, 3, 4 } },
		{ 0.99, { 3, 4, 4 } }, { 0.998, { 5, 5, 6 } },
	};
	struct subject *s = subject(1, 1, 4096, 4096, XFP_CLASS_ATTENTION);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		set_floor(s, cases[i].floor);
		for (int bound = 0; bound < XFP_BOUNDS; bound++) {
			struct xfp_estimate e = xfp_estimate(input(s), 0, (enum xfp_bound)bound);

			assert_int_equal(e.k, cases[i].k[bound]);
			assert_int_equal(e.mode, XFP_MODE_V2);
			assert_true(e.met);
			assert_int_equal(e.extended, e.k > 4);
			assert_true(e.cos_median >= cases[i].floor);
		}
	}
	done_with(s);
}

static void no_candidate(void **state)
{
	struct subject *s = subject(1, 1, 4096, 4096, XFP_CLASS_ATTENTION);
	struct xfp_estimate e;

	(void)state;
	set_floor(s, 1);
	e = xfp_estimate(input(s), 0, XFP_EXPECTED);
	assert_int_equal(e.mode, XFP_MODE_KEEP);
	assert_false(e.met);
	assert_true(e.extended);
	assert_int_equal(e.bytes, 4096 * 4096 * 2);
	s->c.parameters.on_miss = XFP_MISS_BEST;
	e = xfp_estimate(input(s), 0, XFP_EXPECTED);
	assert_int_equal(e.k, 6);
	assert_false(e.met);

	/* Codebooks would be larger than the rows. */
	s->ledger.units[0].cols = 4;
	set_floor(s, 0.5);
	assert_int_equal(xfp_estimate(input(s), 0, XFP_EXPECTED).mode, XFP_MODE_KEEP);

	s->ledger.units[0].cols = 4096;
	s->ledger.units[0].plan = XFP_PLAN_FP8;
	e = xfp_estimate(input(s), 0, XFP_EXPECTED);
	assert_int_equal(e.mode, XFP_MODE_FP8);
	assert_int_equal(e.bytes, 4096 * (4096 + 4));
	done_with(s);
}

static void library_modes_follow_the_floor(void **state)
{
	static const struct {
		const char *modes;
		uint32_t group_size, library_size;
		double floor;
		enum xfp_mode mode;
		unsigned k, group, library;
	} cases[] = {
		{ "v2c", 0, 0, .95, XFP_MODE_V2C, 2, 32, 16 },    { "v2c", 0, 0, .965, XFP_MODE_V2C, 2, 16, 16 },
		{ "v2c", 0, 0, .99, XFP_MODE_V2C, 3, 32, 16 },    { "v2c", 0, 0, .998, XFP_MODE_V2C, 4, 16, 16 },
		{ "v2c", 0, 0, .999, XFP_MODE_V2C, 5, 32, 8 },    { "v2c", 0, 0, .99985, XFP_MODE_V2C, 6, 16, 4 },
		{ "v2c", 64, 0, .998, XFP_MODE_V2C, 5, 64, 8 },   { "v2a", 0, 0, .98, XFP_MODE_V2A, 3, 128, 32 },
		{ "v2a", 0, 0, .99, XFP_MODE_V2A, 4, 128, 32 },   { "v2a", 64, 16, .95, XFP_MODE_V2A, 2, 64, 16 },
		{ "v2a", 0, 1, .9965, XFP_MODE_V2A, 5, 128, 1 },  { "auto", 0, 0, .93, XFP_MODE_V2, 2, 0, 0 },
		{ "auto", 0, 0, .94, XFP_MODE_V2C, 2, 32, 16 },   { "auto", 0, 0, .96, XFP_MODE_V2C, 2, 16, 16 },
		{ "auto", 0, 0, .98, XFP_MODE_V2, 3, 0, 0 },      { "auto", 0, 0, .99, XFP_MODE_V2C, 3, 32, 16 },
		{ "auto", 0, 0, .9955, XFP_MODE_V2C, 4, 32, 16 }, { "auto", 0, 0, .999, XFP_MODE_V2C, 5, 32, 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct subject *s = subject(1, 1, 4096, 4096, XFP_CLASS_ATTENTION);
		struct xfp_estimate e;

		set_modes(s, cases[i].modes);
		s->c.parameters.group_size = cases[i].group_size;
		s->c.parameters.library_size = cases[i].library_size;
		set_floor(s, cases[i].floor);
		e = xfp_estimate(input(s), 0, XFP_EXPECTED);
		if (e.mode != cases[i].mode || e.k != cases[i].k || e.group != cases[i].group)
			print_error("case %zu: %s %u, groups of %u\n", i, xfp_mode_name(e.mode), e.k, e.group);
		assert_int_equal(e.mode, cases[i].mode);
		assert_int_equal(e.k, cases[i].k);
		assert_int_equal(e.group, cases[i].group);
		assert_int_equal(e.library, cases[i].library);
		assert_true(e.met);
		assert_int_equal(e.extended, e.k > 4);
		done_with(s);
	}
}

/* The estimate's bytes are those that autoselect would see. */
static void bytes_of_candidates(void **state)
{
	struct subject *s = subject(1, 3, 100, 1000, XFP_CLASS_ROUTED_EXPERT);
	uint64_t first[4] = { 0 }, bytes[XFP_PARTS], sum;
	uint8_t balance[1000] = { 1 };
	struct xfp_outliers known = { .matrices = 3, .rows = 100, .cols = 1000, .first = first, .balance = balance };

	(void)state;
	set_modes(s, "v2c");
	set_floor(s, .99);
	for (int balanced = 0; balanced < 2; balanced++) {
		struct xfp_candidate candidate = { .mode = XFP_MODE_V2C, .k = 3, .group = 32, .library = 16 };
		struct xfp_estimate e;

		balance[0] = (uint8_t)balanced;
		s->c.parameters.balance = balanced ? XFP_NANO / 2 : 0;
		e = xfp_estimate(input(s), 0, XFP_EXPECTED);
		for (uint64_t m = 0; m <= 3; m++)
			first[m] = m * (e.outliers / 3);
		xfp_candidate_parts(&candidate, &known, bytes);
		sum = 0;
		for (int p = 0; p < XFP_PARTS; p++)
			sum += bytes[p];
		assert_int_equal(e.group, 32);
		assert_int_equal(e.k, 3);
		assert_int_equal(e.bytes, sum);
		/* A byte per group and per row, rounded up; library and ratios. */
		assert_int_equal(bytes[XFP_PART_GROUP], 3 * (100 * 33 + 12));
		assert_int_equal(bytes[XFP_PART_CODE], 2 * (16 * 8 + 16));
	}
	done_with(s);
}

/* As autoselect does: fixed bits use the mode with the fewest bytes, a miss the best candidate of all. */
static void library_modes_and_policies(void **state)
{
	struct subject *s = subject(1, 1, 4096, 4096, XFP_CLASS_ATTENTION);
	struct xfp_estimate e;

	(void)state;
	set_modes(s, "auto");
	set_floor(s, .99);
	xfp_parameters_set_format(&s->c.parameters, XFP_CLASS_ATTENTION, (struct xfp_format){ XFP_FORM_BITS, 1 << 5 });
	e = xfp_estimate(input(s), 0, XFP_EXPECTED);
	assert_int_equal(e.mode, XFP_MODE_V2);
	assert_int_equal(e.group, 0);
	assert_int_equal(e.k, 5);
	assert_false(e.extended);
	xfp_parameters_set_format(&s->c.parameters, XFP_CLASS_ATTENTION, (struct xfp_format){ XFP_FORM_AUTO, 0 });
	set_floor(s, 1);
	s->c.parameters.on_miss = XFP_MISS_BEST;
	e = xfp_estimate(input(s), 0, XFP_EXPECTED);
	assert_int_equal(e.mode, XFP_MODE_V2C);
	assert_int_equal(e.group, 16);
	assert_int_equal(e.k, 6);
	assert_false(e.met);
	assert_true(e.extended);
	done_with(s);
}

static void measurements_win(void **state)
{
	struct subject *s = subject(1, 1, 4096, 4096, XFP_CLASS_ATTENTION);

	(void)state;
	s->c.units.state[0].decided = true;
	s->c.units.state[0].choice.met = 1;
	s->c.units.state[0].choice.candidate =
		(struct xfp_candidate){ XFP_MODE_V2, 3, 4000, 0, 0, 1234567, 89, 0.99, 0.98, 0.01 };
	for (int bound = 0; bound < XFP_BOUNDS; bound++) {
		struct xfp_estimate e = xfp_estimate(input(s), 0, (enum xfp_bound)bound);

		assert_int_equal(e.k, 3);
		assert_int_equal(e.bytes, 1234567);
		assert_int_equal(e.outliers, 89);
	}
	done_with(s);
}

static void outlier_shares(void **state)
{
	(void)state;
	assert_true(xfp_outlier_share(0, XFP_MAXIMUM) == 0);
	/* A unit's own threshold is one of those that surveys try. */
	assert_true(xfp_outlier_share(XFP_SIGMA_AUTO, XFP_MINIMUM) == xfp_outlier_share(5000, XFP_MINIMUM));
	assert_true(xfp_outlier_share(XFP_SIGMA_AUTO, XFP_MAXIMUM) == xfp_outlier_share(2500, XFP_MAXIMUM));
	/* The tail of a normal distribution is the minimum: 6.3e-5 beyond 4 sigma, 4.55 % beyond 2. */
	assert_true(xfp_outlier_share(4000, XFP_MINIMUM) > 6.2e-5 && xfp_outlier_share(4000, XFP_MINIMUM) < 6.4e-5);
	assert_true(xfp_outlier_share(2000, XFP_EXPECTED) > 0.0454);
	assert_true(xfp_outlier_share(4000, XFP_EXPECTED) > 0.004 && xfp_outlier_share(4000, XFP_EXPECTED) < 0.006);
	/* At most the limit of Chebyshev's inequality. */
	for (uint32_t c = 2000; c < 20000; c += 500)
		assert_true(xfp_outlier_share(c, XFP_MAXIMUM) <= 1e6 / c / c);
}

/* ---- memory --------------------------------------------------------------------------------------- */

static double peak(struct subject *s, unsigned jobs)
{
	struct xfp_memory memory;
	struct xfp_error err = { 0 };

	assert_int_equal(xfp_footprint_memory(input(s), jobs, true, &memory, &err), XFP_OK);
	assert_true(memory.peak >= memory.inspect && memory.peak >= memory.units && memory.peak >= memory.bundle);
	return (double)memory.peak / MIB;
}

static void memory_grows_with_jobs_and_matrices(void **state)
{
	struct subject *s = subject(64, 1, 4096, 4096, XFP_CLASS_ATTENTION);
	double one = peak(s, 1), two = peak(s, 2), three = peak(s, 3), four = peak(s, 4), many = peak(s, 64);

	(void)state;
	unsetenv("OMP_NUM_THREADS");
	assert_true(two > one && three > one + 4);
	/* Programs are shared: from the third job on, each costs the same. */
	assert_true(four - three > 0.5 * (two - one));
	assert_true(many - four > 59.9 * (four - three) && many - four < 60.1 * (four - three) + 60);
	/* More jobs than units need no more memory, except for their threads. */
	s->c.units.todo = 1;
	for (uint32_t i = 1; i < 64; i++)
		s->c.units.state[i].done = true;
	assert_true(peak(s, 2) < one + 4);
	done_with(s);
}

/* The position of the large unit does not matter, with one job or two. */
static void small_units_before_a_large_one(void **state)
{
	double peaks[2][3];

	(void)state;
	for (uint32_t at = 0; at < 3; at++) {
		struct subject *s = subject(3, 1, 512, 1024, XFP_CLASS_ATTENTION);
		struct xfp_memory memory;
		struct xfp_error err = { 0 };

		s->ledger.units[at].rows = s->ledger.matrices[at].rows = 2048;
		s->ledger.units[at].cols = s->ledger.matrices[at].cols = s->ledger.matrices[at].row_stride = 65536;
		for (unsigned jobs = 1; jobs <= 2; jobs++) {
			assert_int_equal(xfp_footprint_memory(input(s), jobs, false, &memory, &err), XFP_OK);
			assert_int_equal(memory.largest, at);
			peaks[jobs - 1][at] = (double)memory.units / MIB;
			assert_true(peaks[jobs - 1][at] == peaks[jobs - 1][0]);
		}
		assert_true(peaks[1][at] > peaks[0][at]);
		s->c.units.state[at].done = true;
		assert_int_equal(xfp_footprint_memory(input(s), 1, false, &memory, &err), XFP_OK);
		assert_int_equal(memory.largest, at ? 0 : 1);
		assert_true((double)memory.units / MIB < peaks[0][at] - 1);
		done_with(s);
	}
}

static void memory_does_not_grow_with_the_stack(void **state)
{
	struct subject *few = subject(4, 8, 1024, 4096, XFP_CLASS_ROUTED_EXPERT);
	struct subject *many = subject(4, 512, 1024, 4096, XFP_CLASS_ROUTED_EXPERT);
	double before = peak(few, 1), after = peak(many, 1);

	(void)state;
	/* Cosines of all rows and largest weights of all columns: 8 and 4 bytes each. */
	assert_true(after > before && after - before < 504 * (1024 * 8 + 4096 * 4) / MIB + 1);
	done_with(few);
	done_with(many);
}

static void promised_bounds(void **state)
{
	struct subject *s = subject(32, 1, 4096, 14336, XFP_CLASS_DENSE_MLP);

	(void)state;
	assert_true(peak(s, 2) < 300);
	assert_true(peak(s, 16) < 1024);
	done_with(s);
	/* Measured memory of outlier-extract for a generated embedding of this many weights, at two thresholds. */
	s = subject(1, 1, 150000, 4096, XFP_CLASS_EMBEDDING);
	s->c.parameters.outlier_sigma = 4000;
	assert_in_range(xfp_footprint_step(input(s), 0, XFP_STAMP_OUTLIERS, 1), 103000000, 160000000);
	s->c.parameters.outlier_sigma = 2500;
	assert_in_range(xfp_footprint_step(input(s), 0, XFP_STAMP_OUTLIERS, 1), 456000000, 550000000);
	done_with(s);
}

/* Each mode has its own steps, and a library does not grow with the stack. */
static void library_modes_have_their_own_steps(void **state)
{
	static const char *const modes[] = { "v2a", "v2c", "auto" };
	double v2, one, grown;

	(void)state;
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		struct subject *s = subject(32, 1, 4096, 14336, XFP_CLASS_DENSE_MLP);
		struct subject *stack = subject(2, 64, 1024, 4096, XFP_CLASS_ROUTED_EXPERT);
		uint64_t libfit;

		v2 = peak(s, 2);
		set_modes(s, modes[i]);
		set_modes(stack, modes[i]);
		libfit = xfp_footprint_step(input(s), 0, XFP_STAMP_LIBRARY, 1);
		assert_true(libfit > 4 * MIB && libfit < 24 * MIB);
		assert_true(xfp_footprint_step(input(s), 0, XFP_STAMP_LIBRARY, 2) > libfit);
		assert_true(peak(s, 2) < 2 * v2 && peak(s, 2) < 300);
		assert_true(peak(s, 16) < 1024);
		assert_int_equal(xfp_step_wanted(&s->c.parameters, XFP_STAMP_FIT, true), i == 2);
		assert_true(xfp_step_wanted(&s->c.parameters, XFP_STAMP_LIBRARY, false));
		assert_false(xfp_step_wanted(&s->c.parameters, XFP_STAMP_EXTENDED_LIBRARY, false));
		assert_true(xfp_step_wanted(&s->c.parameters, XFP_STAMP_EXTENDED_LIBRARY, true));
		one = (double)xfp_footprint_step(input(stack), 0, XFP_STAMP_LIBRARY, 1);
		stack->ledger.units[0].experts = 1;
		grown = one - (double)xfp_footprint_step(input(stack), 0, XFP_STAMP_LIBRARY, 1);
		assert_true(grown >= 0 && grown < 3 * MIB);
		done_with(s);
		done_with(stack);
	}
}

/* A survey holds a limited number of rows, for units of any size. */
static void a_survey_is_a_step(void **state)
{
	static const uint64_t cols[] = { 64, 4096, 14336, 100000 };
	uint64_t survey, more;

	(void)state;
	for (size_t i = 0; i < sizeof cols / sizeof cols[0]; i++) {
		struct subject *s = subject(32, 1, 4096, cols[i], XFP_CLASS_DENSE_MLP);

		assert_false(xfp_step_wanted(&s->c.parameters, XFP_STAMP_SURVEY, false));
		set_default(s);
		assert_true(xfp_step_wanted(&s->c.parameters, XFP_STAMP_SURVEY, false));
		survey = xfp_footprint_step(input(s), 0, XFP_STAMP_SURVEY, 1);
		assert_true(survey > 3 * MIB && survey < 64 * MIB);
		assert_true(xfp_footprint_step(input(s), 0, XFP_STAMP_SURVEY, 2) > survey);
		s->ledger.units[0].rows *= 8;
		more = xfp_footprint_step(input(s), 0, XFP_STAMP_SURVEY, 1);
		assert_true(more >= survey && more < survey + MIB);
		if (cols[i] == 14336) {
			s->ledger.units[0].rows /= 8;
			assert_true(peak(s, 2) < 300);
			assert_true(peak(s, 16) < 1024);
		}
		done_with(s);
	}
}

/* make runs both fits of a unit at once if jobs are idle. */
static void fits_of_few_units_are_at_work_together(void **state)
{
	struct subject *s = subject(2, 1, 1024, 4096, XFP_CLASS_ATTENTION);
	struct xfp_memory two, three;
	struct xfp_error err = { 0 };

	(void)state;
	set_modes(s, "auto");
	setenv("OMP_NUM_THREADS", "1", 1);
	assert_int_equal(xfp_footprint_memory(input(s), 2, true, &two, &err), XFP_OK);
	assert_int_equal(xfp_footprint_memory(input(s), 3, true, &three, &err), XFP_OK);
	assert_true(three.units > two.units + 4 * MIB);
	set_modes(s, "v2c");
	assert_int_equal(xfp_footprint_memory(input(s), 2, true, &two, &err), XFP_OK);
	assert_int_equal(xfp_footprint_memory(input(s), 3, true, &three, &err), XFP_OK);
	assert_int_equal(three.units, two.units);
	unsetenv("OMP_NUM_THREADS");
	done_with(s);
}

static void finished_steps_take_nothing(void **state)
{
	struct subject *s = subject(2, 1, 4096, 4096, XFP_CLASS_ATTENTION);
	struct xfp_memory memory;
	struct xfp_error err = { 0 };

	(void)state;
	s->c.units.state[0].done = true;
	assert_int_equal(xfp_footprint_memory(input(s), 2, true, &memory, &err), XFP_OK);
	assert_int_equal(memory.largest, 1);
	s->c.units.state[1].done = true;
	s->c.units.todo = 0;
	assert_int_equal(xfp_footprint_memory(input(s), 2, true, &memory, &err), XFP_OK);
	assert_int_equal(memory.units, 0);
	assert_int_equal(memory.largest, UINT32_MAX);
	assert_true(memory.bundle > memory.front);
	assert_int_equal(xfp_footprint_memory(input(s), 2, false, &memory, &err), XFP_OK);
	assert_int_equal(memory.bundle, 0);
	assert_true(memory.peak > memory.front);
	done_with(s);
}

/* ---- disk ----------------------------------------------------------------------------------------- */

static void disk_holds_everything_twice(void **state)
{
	struct subject *s = subject(8, 4, 1024, 4096, XFP_CLASS_ROUTED_EXPERT);
	struct xfp_disk min, expected, max;
	uint64_t units = 0;

	(void)state;
	min = xfp_footprint_disk(input(s), XFP_MINIMUM);
	expected = xfp_footprint_disk(input(s), XFP_EXPECTED);
	max = xfp_footprint_disk(input(s), XFP_MAXIMUM);
	for (uint32_t i = 0; i < 8; i++)
		units += xfp_estimate(input(s), i, XFP_EXPECTED).bytes;
	assert_true(expected.bundle > units && expected.bundle < units + units / 20);
	/* Packed units, and at most a tenth of two bytes per weight. */
	assert_true(expected.artifacts > units);
	assert_true(expected.artifacts < units + (uint64_t)(8 * 4 * 1024 * 4096) / 5);
	assert_true(min.bundle <= expected.bundle && expected.bundle < max.bundle);
	assert_true(xfp_disk_total(&max) == max.bundle + max.artifacts + max.work);
	done_with(s);
}

static void disk_has_the_library_fit(void **state)
{
	struct subject *s = subject(8, 1, 4096, 4096, XFP_CLASS_ATTENTION);
	uint64_t v2 = xfp_footprint_disk(input(s), XFP_EXPECTED).work, units = 0, rows = 4096 * (6 * 9);
	struct xfp_disk both, there;

	(void)state;
	set_modes(s, "auto");
	both = xfp_footprint_disk(input(s), XFP_EXPECTED);
	for (uint32_t i = 0; i < 8; i++)
		units += xfp_estimate(input(s), i, XFP_EXPECTED).bytes;
	assert_true(both.bundle > units && both.bundle < units + units / 20);
	/* One more stamp per unit. */
	assert_true(both.work >= v2 + 8 * 4096 && both.work < v2 + 8 * 8192);
	/* Cosines of six candidates, bytes of rows, and their libraries. */
	for (uint32_t i = 0; i < 8; i++)
		s->c.units.state[i].in_store = 1 << XFP_STAMP_LIBRARY;
	there = xfp_footprint_disk(input(s), XFP_EXPECTED);
	assert_true(both.artifacts - there.artifacts > (uint64_t)8 * rows);
	assert_true(both.artifacts - there.artifacts < (uint64_t)8 * (rows + 65536));
	done_with(s);
}

/* The candidates of seven thresholds and a stamp. */
static void disk_has_the_survey(void **state)
{
	struct subject *s = subject(8, 1, 4096, 4096, XFP_CLASS_ATTENTION);
	struct xfp_disk both, without;

	(void)state;
	set_modes(s, "auto");
	without = xfp_footprint_disk(input(s), XFP_EXPECTED);
	set_default(s);
	both = xfp_footprint_disk(input(s), XFP_EXPECTED);
	assert_true(both.work >= without.work + 8 * 4096 && both.work < without.work + 8 * 8192);
	for (uint32_t i = 0; i < 8; i++)
		s->c.units.state[i].in_store = 1 << XFP_STAMP_SURVEY;
	without = xfp_footprint_disk(input(s), XFP_EXPECTED);
	assert_true(both.artifacts - without.artifacts > 8 * 7 * 15 * sizeof(struct xfp_candidate));
	assert_true(both.artifacts - without.artifacts < 8 * (7 * 15 * sizeof(struct xfp_candidate) + 65536));
	done_with(s);
}

static void disk_of_what_is_there(void **state)
{
	struct subject *s = subject(8, 1, 1024, 4096, XFP_CLASS_ATTENTION);
	struct xfp_disk none = xfp_footprint_disk(input(s), XFP_EXPECTED), some, all;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		s->c.units.state[i].in_store = 1 << XFP_STAMP_OUTLIERS | 1 << XFP_STAMP_FIT;
	some = xfp_footprint_disk(input(s), XFP_EXPECTED);
	for (uint32_t i = 0; i < 8; i++)
		s->c.units.state[i].done = true;
	all = xfp_footprint_disk(input(s), XFP_EXPECTED);
	assert_true(some.artifacts < none.artifacts && all.artifacts < some.artifacts);
	assert_true(all.artifacts < 1 << 20);
	assert_true(all.bundle == none.bundle && all.work == none.work);
	done_with(s);
}

PROGRAM("test_footprint")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_follow_the_floor),
		cmocka_unit_test(no_candidate),
		cmocka_unit_test(library_modes_follow_the_floor),
		cmocka_unit_test(bytes_of_candidates),
		cmocka_unit_test(library_modes_and_policies),
		cmocka_unit_test(measurements_win),
		cmocka_unit_test(outlier_shares),
		cmocka_unit_test(memory_grows_with_jobs_and_matrices),
		cmocka_unit_test(small_units_before_a_large_one),
		cmocka_unit_test(memory_does_not_grow_with_the_stack),
		cmocka_unit_test(promised_bounds),
		cmocka_unit_test(library_modes_have_their_own_steps),
		cmocka_unit_test(a_survey_is_a_step),
		cmocka_unit_test(fits_of_few_units_are_at_work_together),
		cmocka_unit_test(finished_steps_take_nothing),
		cmocka_unit_test(disk_holds_everything_twice),
		cmocka_unit_test(disk_has_the_library_fit),
		cmocka_unit_test(disk_has_the_survey),
		cmocka_unit_test(disk_of_what_is_there),
	};

	return cmocka_run_group_tests_name("footprint", tests, NULL, NULL);
}
