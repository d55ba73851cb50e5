/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversion starts if the space that it is expected to need is free, to the byte: on a disk of any size, reported by
 * a replacement of the function that queries free space.
 */
#include "conversion/disk_space.h"
#include "conversion/estimate/footprint.h"
#include "tests/unit/round_floors.h"
#include "tests/unit/scratch.h"

static uint64_t disk_free;

bool __wrap_xfp_free_bytes(const char *folder, uint64_t *bytes);
bool __wrap_xfp_free_bytes(const char *folder, uint64_t *bytes)
{
	(void)folder;
	*bytes = disk_free;
	return true;
}

#define UNITS 3u

struct subject {
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensor;
	struct xfp_ledger_unit units[UNITS];
	struct xfp_ledger_matrix matrices[UNITS];
	struct xfp_unit_state states[UNITS];
	char *out, *work, *cache;
};

/* OUT and cache are in the same folder; the work folder is an existing folder in it. */
static void begin(struct subject *s, void **state)
{
	memset(s, 0, sizeof *s);
	s->file.name = s->file.path = (char *)"f";
	s->tensor = (struct xfp_ledger_tensor){
		.name = (char *)"w", .reason = (char *)"", .dtype = XFP_BF16, .rank = 2, .tied = UINT32_MAX
	};
	for (uint32_t u = 0; u < UNITS; u++) {
		s->units[u] = (struct xfp_ledger_unit){ .name = (char *)"w",
							.role = (char *)"q",
							.class_ = XFP_CLASS_ATTENTION,
							.plan = XFP_PLAN_FIT,
							.dtype = XFP_BF16,
							.experts = 1,
							.rows = 1024,
							.cols = 1024,
							.first_matrix = u };
		s->matrices[u] = (struct xfp_ledger_matrix){ 0, 0, 1024, 1024, 1024, 1 };
	}
	s->ledger = (struct xfp_ledger){ .model = (char *)"",
					 .family = (char *)"",
					 .format = (char *)"",
					 .files = &s->file,
					 .tensors = &s->tensor,
					 .units = s->units,
					 .matrices = s->matrices,
					 .file_count = 1,
					 .tensor_count = 1,
					 .unit_count = UNITS,
					 .matrix_count = UNITS };
	s->c.request = &s->request;
	s->c.units.ledger = &s->ledger;
	s->c.units.state = s->states;
	s->c.units.todo = UNITS;
	s->c.parameters = round_floors();
	scratch_mkdir(state, "work");
	s->request.out = s->out = scratch_path(state, "out.xfp");
	s->request.cache = s->cache = scratch_path(state, "none/cache");
	s->request.work = s->work = scratch_path(state, "work");
}

static void end(struct subject *s)
{
	free(s->out);
	free(s->work);
	free(s->cache);
}

static struct xfp_disk disk(const struct subject *s, enum xfp_bound bound)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(&s->c);

	return xfp_footprint_disk(&input, bound);
}

/* It starts with this many free bytes, and not with one less. */
static void expect_need(struct subject *s, uint64_t bytes)
{
	struct xfp_error err = { 0 };

	disk_free = bytes;
	if (xfp_check_disk_space(&s->c, &err))
		fail_msg("%s", err.text);
	disk_free = bytes - 1;
	assert_int_equal(xfp_check_disk_space(&s->c, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "--force"));
}

static void what_is_expected_is_needed(void **state)
{
	struct xfp_disk need;
	struct subject s;

	begin(&s, state);
	need = disk(&s, XFP_EXPECTED);
	assert_true(need.together == need.bundle + need.artifacts + need.work);
	assert_true(disk(&s, XFP_MINIMUM).together < need.together && need.together < disk(&s, XFP_MAXIMUM).together);
	expect_need(&s, need.together);
	end(&s);
}

/* The existing contents of the work folder need no space. */
static void what_is_there_is_not_needed_again(void **state)
{
	struct subject s;
	struct xfp_disk need;
	char *path = scratch_path(state, "work/file");
	struct stat st;

	begin(&s, state);
	need = disk(&s, XFP_EXPECTED);
	/* Synced, so that its blocks exist on any file system. */
	assert_int_equal(xfp_write_file(path, (char[20000]){ "x" }, 20000, true, NULL), XFP_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_blocks > 0 && (uint64_t)st.st_blocks * 512 < need.work);
	expect_need(&s, need.together - (uint64_t)st.st_blocks * 512);
	/* With nothing left to pack, the cache needs no space, but the bundle does. */
	s.c.units.todo = 0;
	expect_need(&s, need.together - need.artifacts - (uint64_t)st.st_blocks * 512);
	free(path);
	end(&s);
}

/* If artifacts are removed as the bundle grows, both never exist completely. */
static void what_goes_makes_room(void **state)
{
	struct subject s;
	struct xfp_disk need;

	begin(&s, state);
	s.c.drop.units = 1;
	need = disk(&s, XFP_EXPECTED);
	assert_true(need.together < need.bundle + need.artifacts + need.work);
	expect_need(&s, need.together);
	end(&s);
}

static void a_refusal_names_all_figures(void **state)
{
	struct xfp_error err = { 0 };
	struct subject s;

	begin(&s, state);
	disk_free = 1000;
	assert_int_equal(xfp_check_disk_space(&s.c, &err), XFP_FAILED);
	assert_memory_equal(err.text, *state, strlen(*state));
	assert_non_null(strstr(err.text, " needed, 1.00 kB free, for the bundle ("));
	assert_non_null(strstr(err.text, "), the cache ("));
	assert_non_null(strstr(err.text, "), the work folder ("));
	assert_non_null(strstr(err.text, "with -o or --cache or --work, or try anyway with --force"));
	end(&s);
}

/* Codes are stored, and fits need more memory, only of units that have inputs, whatever their class. */
static void calibrated_units_have_codes(void **state)
{
	uint32_t layer_of[UNITS] = { XFP_NO_LAYER, XFP_NO_LAYER, XFP_NO_LAYER };
	struct xfp_estimate_input input;
	uint64_t artifacts[3];
	struct subject s;

	begin(&s, state);
	s.c.parameters.modes = 1u << XFP_MODE_V2C;
	s.c.parameters.calibration.tokens = 4096;
	memcpy(s.c.parameters.calibration.sha256, "a", 2);
	s.c.layers.of_unit = layer_of;
	for (int i = 0; i < 3; i++) {
		s.units[i].class_ = XFP_CLASS_EMBEDDING;
		artifacts[i] = disk(&s, XFP_EXPECTED).artifacts;
		if (i < 2)
			layer_of[i] = 0;
	}
	assert_true(artifacts[1] > artifacts[0] + 1024 * 1024 / 8);
	assert_true(artifacts[2] > artifacts[1] + 1024 * 1024 / 8);
	input = xfp_conversion_estimate_input(&s.c);
	assert_true(xfp_footprint_step(&input, 0, XFP_STAMP_LIBRARY, 1) >
		    xfp_footprint_step(&input, 2, XFP_STAMP_LIBRARY, 1) + (1 << 20));
	end(&s);
}

/* The inputs of two layers at a time, while the units of the layers after them have no artifacts. */
static void inputs_of_two_layers(void **state)
{
	uint64_t none[UNITS + 1] = { 0 }, inputs[UNITS + 1] = { 1 << 30, 3 << 28, 1 << 30, 1 << 20 };
	uint32_t of_unit[UNITS] = { 0, 1, 2 };
	struct xfp_disk before, after;
	struct subject s;
	uint64_t later;

	begin(&s, state);
	s.c.layers.of_unit = of_unit;
	s.c.layers.inputs = none;
	s.c.layers.count = UNITS + 1;
	before = disk(&s, XFP_EXPECTED);
	s.states[2].done = true;
	later = before.artifacts - disk(&s, XFP_EXPECTED).artifacts;
	s.states[2].done = false;
	s.c.layers.inputs = inputs;
	after = disk(&s, XFP_EXPECTED);
	/* Layers 1 and 2, without the artifacts of the unit in layer 2. */
	assert_in_range(before.artifacts + inputs[1] + inputs[2] - after.artifacts, later - later / 16, later);
	/* The bundle is written when inputs are gone. */
	assert_true(after.bundle == before.bundle && after.together == after.artifacts + after.work);
	expect_need(&s, after.together);
	s.c.layers.stay = true;
	after = disk(&s, XFP_EXPECTED);
	assert_true(after.artifacts == before.artifacts + inputs[0] + inputs[1] + inputs[2] + inputs[3]);
	expect_need(&s, after.artifacts + after.work + after.bundle);
	end(&s);
}

PROGRAM("test_disk_space")
{
	const struct CMUnitTest tests[] = {
		scratch_test(what_is_expected_is_needed),  scratch_test(what_is_there_is_not_needed_again),
		scratch_test(what_goes_makes_room),        scratch_test(a_refusal_names_all_figures),
		scratch_test(calibrated_units_have_codes), scratch_test(inputs_of_two_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
