/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which artifacts provide the digests of a unit's weights.
 */
#include "cache/key.h"
#include "conversion/state/sources.h"
#include "tests/unit/cache_fixture.h"

/* A unit of some matrices of 4 x 5 weights, all in one file. */
struct subject {
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensor;
	struct xfp_ledger_unit unit;
	struct xfp_ledger_matrix matrices[4];
	struct xfp_unit_state state;
};

static void begin(struct subject *s, void **state, uint32_t experts)
{
	struct stat st;

	memset(s, 0, sizeof *s);
	scratch_write(state, "model", "weights", 7);
	s->file.name = (char *)"model";
	s->file.path = scratch_path(state, "model");
	assert_int_equal(stat(s->file.path, &st), 0);
	s->file.identity = xfp_identity_of(&st);
	s->tensor = (struct xfp_ledger_tensor){ .name = (char *)"w", .reason = (char *)"", .dtype = XFP_BF16 };
	s->unit = (struct xfp_ledger_unit){ .name = (char *)"w",
					    .role = (char *)"q",
					    .plan = XFP_PLAN_FIT,
					    .dtype = XFP_BF16,
					    .experts = experts,
					    .rows = FIXTURE_ROWS,
					    .cols = FIXTURE_COLS };
	for (uint32_t m = 0; m < 4; m++)
		s->matrices[m] = (struct xfp_ledger_matrix){ 0, 20 * m, FIXTURE_ROWS, FIXTURE_COLS, FIXTURE_COLS, 1 };
	s->ledger = (struct xfp_ledger){ .files = &s->file,
					 .tensors = &s->tensor,
					 .units = &s->unit,
					 .matrices = s->matrices,
					 .file_count = 1,
					 .tensor_count = 1,
					 .unit_count = 1,
					 .matrix_count = experts };
	s->c.request = &s->request;
	s->c.units.ledger = &s->ledger;
	s->c.units.state = &s->state;
	s->c.place.store = open_cache(state, 0);
	s->c.place.manifest = open_manifest(&s->c.place.store, -1);
}

static void end(struct subject *s)
{
	xfp_manifest_close(s->c.place.manifest);
	xfp_store_close(&s->c.place.store);
	free(s->state.source);
	free(s->file.path);
}

/* Publish the outliers of three matrices whose digests consist of 1, 2 and 3, under the matching key. */
static void publish(struct subject *s, struct xfp_key *key, bool under_another_key)
{
	uint8_t source[FIXTURE_MATRICES_OF_UNIT][16];
	struct xfp_key_source of = { XFP_BF16, FIXTURE_MATRICES_OF_UNIT, FIXTURE_ROWS, FIXTURE_COLS,
				     (const uint8_t(*)[16])source };
	struct xfp_parameters parameters = xfp_parameters_default();
	struct xfp_artifact_label label = { XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, NULL, NULL, "w", 0 };
	struct xfp_pending pending;

	for (int m = 0; m < (int)FIXTURE_MATRICES_OF_UNIT; m++)
		memset(source[m], m + 1, sizeof source[m]);
	parameters.outlier_sigma = 4000;
	OK(xfp_key_outliers(&of, &parameters, key, &err));
	label.key = key->hex;
	label.key_text = key->text;
	if (under_another_key)
		label.key = strcpy(key->hex, OTHER);
	OK(xfp_store_begin(&s->c.place.store, key->hex, &pending, &err));
	fixture_outliers(pending.path, &label);
	OK(xfp_pending_publish(&pending, false, &err));
}

static struct xfp_error err;

static void what_is_told_is_remembered(void **state)
{
	struct xfp_key key = { 0 };
	struct subject s;

	begin(&s, state, FIXTURE_MATRICES_OF_UNIT);
	publish(&s, &key, false);
	OK(xfp_sources_record(&s.c, 0, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, key.hex, &err));
	assert_true(s.state.known);
	for (unsigned m = 0; m < FIXTURE_MATRICES_OF_UNIT; m++)
		assert_int_equal(s.state.source[m][15], m + 1);
	s.state.known = false;
	memset(s.state.source, 0, FIXTURE_MATRICES_OF_UNIT * sizeof *s.state.source);
	OK(xfp_sources_find(&s.c, 0, &err));
	assert_true(s.state.known);
	assert_int_equal(s.state.source[2][0], 3);
	/* for a file that has changed, no digest is known */
	s.state.known = false;
	s.file.identity.mtime_ns++;
	OK(xfp_sources_find(&s.c, 0, &err));
	assert_false(s.state.known);
	OK(xfp_sources_record(&s.c, 0, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, key.hex, &err));
	assert_false(s.state.known);
	xfp_key_free(&key);
	end(&s);
}

/* An artifact of three matrices is not used for a unit of fewer or more: there would be more digests than space, or too
 * few. */
static void another_number_of_matrices(void **state)
{
	static const uint32_t experts[] = { 1, 2, 4 };

	for (size_t i = 0; i < sizeof experts / sizeof *experts; i++) {
		struct xfp_key key = { 0 };
		struct subject s;

		begin(&s, state, experts[i]);
		publish(&s, &key, false);
		OK(xfp_sources_record(&s.c, 0, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, key.hex, &err));
		assert_false(s.state.known);
		assert_null(s.state.source);
		expect(state, "SELECT count(*) FROM sources", "0");
		xfp_store_remove(&s.c.place.store, key.hex);
		xfp_key_free(&key);
		end(&s);
	}
}

/* The right number of matrices, but not those of its key. */
static void another_key(void **state)
{
	struct xfp_key key = { 0 };
	struct subject s;

	begin(&s, state, FIXTURE_MATRICES_OF_UNIT);
	publish(&s, &key, false);
	s.unit.dtype = XFP_F16;
	OK(xfp_sources_record(&s.c, 0, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, key.hex, &err));
	assert_false(s.state.known);
	s.unit.dtype = XFP_BF16;
	s.unit.cols++;
	OK(xfp_sources_record(&s.c, 0, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, key.hex, &err));
	assert_false(s.state.known);
	s.unit.cols--;
	assert_int_equal(xfp_sources_record(&s.c, 0, XFP_FIT_KIND, XFP_FIT_VERSION, key.hex, &err), XFP_DAMAGED);
	assert_false(s.state.known);
	xfp_key_free(&key);
	/* its content gives another key */
	publish(&s, &key, true);
	OK(xfp_sources_record(&s.c, 0, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, key.hex, &err));
	assert_false(s.state.known);
	xfp_key_free(&key);
	end(&s);
}

PROGRAM("test_sources")
{
	const struct CMUnitTest tests[] = { scratch_test(what_is_told_is_remembered),
					    scratch_test(another_number_of_matrices), scratch_test(another_key) };

	return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
