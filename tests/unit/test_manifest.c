/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/inputs.h"
#include "tests/unit/cache_fixture.h"

/* ---- artifacts ----------------------------------------------------------------------------------- */

static void ingest_and_ask(void **state)
{
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);

	assert_false(xfp_manifest_has(m, FIT));
	assert_int_equal(xfp_manifest_ingest(m, &store, FIT, NULL), XFP_FAILED); /* does not exist yet */
	OK(xfp_manifest_begin(m, &err));
	for (unsigned i = 0; i < 4; i++) {
		add_artifact(&store, i);
		OK(xfp_manifest_ingest(m, &store, cache_keys[i], &err));
		OK(xfp_manifest_ingest(m, &store, cache_keys[i], &err));
	}
	OK(xfp_manifest_commit(m, &err));
	everything_is_there(m);
	expect(state, "SELECT group_concat(kind || ' ' || unit || ' ' || seconds) FROM artifacts WHERE kind = 'fit'",
	       "fit layers.0.q.weight 1.5");
	expect(state, "SELECT marked FROM outliers", "3");
	expect(state, "SELECT outlier_bytes || ' ' || balance_bytes || ' ' || bytes FROM packed", "10 0 60");
	expect(state, "SELECT group_concat(substr(key, 1, 2) || name || substr(input, 1, 2)) FROM inputs",
	       "1boutliers0a,2cfit1b,3dfit1b");
	expect(state, "SELECT artifacts || ' ' || seconds FROM stage_costs WHERE kind = 'packed'", "1 1.5");
	expect(state, "SELECT count(*) FROM cache_sizes", "4");
	OK(xfp_manifest_remove_artifact(m, FIT, &err));
	assert_false(xfp_manifest_has(m, FIT));
	expect(state, "SELECT count(*) FROM candidates", "0");
	OK(xfp_manifest_ingest(m, &store, FIT, &err));
	everything_is_there(m);
	xfp_manifest_close(m);
	m = open_manifest(&store, -1);
	everything_is_there(m);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

static void damaged_artifact(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	char *path = xfp_store_path(&store, FIT), *manifest = scratch_path(state, CACHE "/manifest.sqlite");
	struct xfp_manifest *m;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	m = open_manifest(&store, 3);
	assert_int_equal(xfp_manifest_ingest(m, &store, FIT, NULL), XFP_DAMAGED);
	assert_false(xfp_manifest_has(m, FIT));
	assert_true(xfp_store_has(&store, FIT));
	xfp_manifest_close(m);
	free(path);

	/* An artifact of another layout version is left unchanged, but not used. */
	path = xfp_store_path(&store, FIT);
	{
		struct xfp_artifact_label label = { XFP_FIT_KIND, 99, FIT, "", "", 0 };

		fixture_fit(path, &label);
	}
	m = open_manifest(&store, -1);
	assert_int_equal(xfp_manifest_ingest(m, &store, FIT, NULL), XFP_DAMAGED);
	expect(state, "SELECT count(*) FROM artifacts", "3");

	/* A failure half way leaves nothing behind, inside a transaction or outside. */
	{
		struct xfp_artifact_label label = { XFP_FIT_KIND, XFP_FIT_VERSION, FIT, "", "", 0 };
		struct xfp_choice choice = the_choice();

		fixture_choice(path, &label, &choice);
	}
	assert_int_equal(xfp_manifest_ingest(m, &store, FIT, NULL), XFP_DAMAGED);
	expect(state, "SELECT count(*) FROM artifacts", "3");
	OK(xfp_manifest_begin(m, &err));
	assert_int_equal(xfp_manifest_ingest(m, &store, FIT, NULL), XFP_DAMAGED);
	OK(xfp_manifest_commit(m, &err));
	expect(state, "SELECT count(*) FROM artifacts", "3");
	xfp_manifest_close(m);
	free(manifest);
	free(path);
	xfp_store_close(&store);
}

#define LAYER_0 "e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0"
#define LAYER_1 "e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1"

static void add_layer(const struct xfp_store *store, const char *key, uint32_t layer, const char *text)
{
	struct xfp_artifact_label label = { XFP_INPUTS_KIND, XFP_INPUTS_VERSION, key, text, "layer", 2 };
	struct xfp_input_tensor tensor = { "q", 0, XFP_NO_EXPERT };
	struct xfp_input_source source = { "q", { 1 } };
	struct xfp_inputs inputs = { .layer = layer,
				     .hidden = 1,
				     .tokens = 4,
				     .length = 2,
				     .has_stream = true,
				     .input_count = 1,
				     .input = { { "attention", 4, 1 } },
				     .tensor_count = 1,
				     .tensors = &tensor,
				     .source_count = 1,
				     .sources = &source };
	const uint16_t values[4] = { 0 };
	const float stream[4] = { 0 };
	struct xfp_pending pending = { .fd = -1 };
	struct xfp_artifact a;

	OK(xfp_store_begin(store, key, &pending, &err));
	OK(xfp_artifact_create(pending.path, &a, &err));
	OK(xfp_inputs_begin(&a, &inputs, &err));
	OK(xfp_inputs_write_stream(&a, &inputs, 0, 4, stream, &err));
	OK(xfp_inputs_write_values(&a, &inputs.input[0], 0, 4, values, &err));
	OK(xfp_inputs_end(&a, &inputs, &err));
	OK(xfp_artifact_finish(&a, &label, &err));
	OK(xfp_pending_publish(&pending, false, &err));
	xfp_artifact_close(&a);
}

static void inputs_of_layers(void **state)
{
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);

	add_layer(&store, LAYER_0, 0, "kind inputs\ntokens 0\nlayer 0\n");
	add_layer(&store, LAYER_1, 1, "kind inputs\ninputs " LAYER_0 "\nlayer 1\n");
	OK(xfp_manifest_ingest(m, &store, LAYER_0, &err));
	OK(xfp_manifest_ingest(m, &store, LAYER_1, &err));
	expect(state,
	       "SELECT layer || ' ' || tokens || ' ' || length || ' ' || hidden || ' ' || inputs || ' ' || "
	       "tensors FROM layer_inputs WHERE key = '" LAYER_1 "'",
	       "1 4 2 1 1 1");
	expect(state, "SELECT key || name || input FROM inputs", LAYER_1 "inputs" LAYER_0);
	OK(xfp_manifest_remove_artifact(m, LAYER_1, &err));
	expect(state, "SELECT count(*) FROM layer_inputs", "1");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- seals ----------------------------------------------------------------------------------------- */

/* Any change of the recorded candidates of a fit is detected, and repaired from the artifact. */
static void sealed_candidates(void **state)
{
	static const char *const damages[] = {
		"UPDATE candidates SET mode = 'v2c' WHERE number = 1",
		"UPDATE candidates SET mode = 'v3' WHERE number = 1",
		"UPDATE candidates SET k = k | 4 WHERE number = 0",
		"UPDATE candidates SET sigma_milli = sigma_milli + 1 WHERE number = 1",
		"UPDATE candidates SET \"group\" = 16 WHERE number = 1",
		"UPDATE candidates SET library = 1 WHERE number = 1",
		"UPDATE candidates SET bytes = bytes - 1 WHERE number = 1",
		"UPDATE candidates SET outliers = outliers + 1 WHERE number = 1",
		"UPDATE candidates SET cos_median = cos_median + 1e-15 WHERE number = 1",
		"UPDATE candidates SET cos_p5 = -cos_p5 WHERE number = 1",
		"UPDATE candidates SET error = 'x' WHERE number = 1",
		"UPDATE candidates SET number = 7 - number",
		"UPDATE candidates SET number = 5 WHERE number = 0", /* reordered */
		"PRAGMA foreign_keys = OFF; UPDATE candidates SET fit_key = '1a' WHERE number = 0",
		"DELETE FROM candidates WHERE number = 1",
		"DELETE FROM candidates",
		("INSERT INTO candidates SELECT fit_key, 2, mode, k, sigma_milli, \"group\", library, bytes, outliers, "
		 "cos_median, cos_p5, error, NULL, NULL, NULL FROM candidates WHERE number = 1"),
		"UPDATE candidates SET output_median = 0.98",
		"UPDATE artifacts SET seal = x'00000000000000000000000000000000' WHERE kind = 'fit'",
		"UPDATE artifacts SET seal = x'00' WHERE kind = 'fit'",
		"UPDATE artifacts SET seal = NULL WHERE kind = 'fit'",
		"PRAGMA foreign_keys = OFF; UPDATE artifacts SET key = '1c' WHERE kind = 'fit'",
		"PRAGMA foreign_keys = OFF; DELETE FROM artifacts WHERE kind = 'fit'",
	};
	struct xfp_candidate candidates[XFP_MAX_CANDIDATES];
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_output_measure outputs[XFP_MAX_CANDIDATES];
	uint32_t count;
	bool calibrated;

	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		damage(state, damages[i]);
		if (xfp_manifest_get_candidates(m, FIT, XFP_MAX_CANDIDATES, candidates, outputs, &calibrated, &count))
			fail_msg("%s: believed", damages[i]);
		OK(xfp_manifest_repair(m, &store, FIT, &err));
		everything_is_there(m);
		expect(state, "SELECT count(*) FROM candidates WHERE fit_key = '" FIT "'", "2");
		damage(state, "DELETE FROM artifacts WHERE key IN ('" FIT "', '1c')");
		xfp_manifest_ingest(m, &store, FIT, NULL);
	}
	/* If the list is too short, none are returned, not some. */
	assert_false(xfp_manifest_get_candidates(m, FIT, 1, candidates, outputs, &calibrated, &count));
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

static void sealed_sources(void **state)
{
	static const char *const damages[] = {
		"UPDATE sources SET digest = x'00112233445566778899aabbccddeeff'",
		"UPDATE sources SET digest = x'00'",
		"UPDATE sources SET seal = x'00112233445566778899aabbccddeeff'",
		"UPDATE sources SET seal = x'00'",
		"UPDATE sources SET region = '1' WHERE region = '2'",
		("UPDATE sources SET region = '9' WHERE region = '1'; "
		 "UPDATE sources SET region = '1' WHERE region = '3'"),
		"UPDATE source_files SET path = '/y'",
		"UPDATE source_files SET device = device + 1",
		"UPDATE source_files SET inode = inode + 1",
		"UPDATE source_files SET size = size + 1",
		"UPDATE source_files SET mtime_ns = mtime_ns + 1",
		"UPDATE source_files SET ctime_ns = ctime_ns + 1",
		"DELETE FROM sources",
		"DELETE FROM source_files",
	};
	struct xfp_identity identity = { 1, 2, 3, 4, 5 }, changed;
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);
	uint8_t want[16] = "0123456789abcde", other[16] = "fedcba987654321", got[16];

	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		OK(xfp_manifest_put_source(m, "/x", &identity, "1", want, &err));
		OK(xfp_manifest_put_source(m, "/x", &identity, "3", other, &err));
		assert_true(xfp_manifest_get_source(m, "/x", &identity, "1", got));
		assert_memory_equal(got, want, 16);
		if (strstr(damages[i], "'2'"))
			OK(xfp_manifest_put_source(m, "/x", &identity, "2", other, &err));
		if (strstr(damages[i], "region = '1' WHERE"))
			OK(xfp_manifest_remove_source(m, "/x", "1", &err));
		damage(state, damages[i]);
		/* Query with the old and with the new values of the row. */
		for (unsigned field = 0; field < 6; field++) {
			changed = identity;
			changed.device += field == 1;
			changed.inode += field == 2;
			changed.size += field == 3;
			changed.mtime_ns += field == 4;
			changed.ctime_ns += field == 5;
			if (xfp_manifest_get_source(m, "/x", &changed, "1", got) ||
			    xfp_manifest_get_source(m, "/y", &changed, "1", got))
				fail_msg("%s: believed", damages[i]);
		}
		damage(state, "INSERT OR REPLACE INTO source_files VALUES (99, 'z', 0, 0, 0, 0, 0)");
		damage(state, "DELETE FROM source_files");
	}
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* Only one row is removed. */
static void forgotten_source(void **state)
{
	struct xfp_identity identity = { 1, 2, 3, 4, 5 };
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);
	uint8_t digest[16] = "0123456789abcde", got[16];

	OK(xfp_manifest_put_source(m, "/x", &identity, "1", digest, &err));
	OK(xfp_manifest_put_source(m, "/x", &identity, "2", digest, &err));
	OK(xfp_manifest_put_source(m, "/y", &identity, "1", digest, &err));
	OK(xfp_manifest_remove_source(m, "/x", "1", &err));
	assert_false(xfp_manifest_get_source(m, "/x", &identity, "1", got));
	assert_true(xfp_manifest_get_source(m, "/x", &identity, "2", got));
	assert_true(xfp_manifest_get_source(m, "/y", &identity, "1", got));
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* A line of a key is an input if its name is that of one, not if it merely begins with one. */
static void lines_that_are_no_input(void **state)
{
	struct xfp_artifact_label label = { XFP_PACKED_KIND,
					    XFP_PACKED_VERSION,
					    PACKED,
					    "kind packed\nfit_" FIT "\nfitter " FIT "\noutlier " FIT
					    "\nlibrary " OUTLIERS "\n",
					    "q",
					    1 };
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);
	struct xfp_pending pending;

	OK(xfp_store_begin(&store, PACKED, &pending, &err));
	fixture_packed(pending.path, &label);
	OK(xfp_pending_publish(&pending, false, &err));
	OK(xfp_manifest_ingest(m, &store, PACKED, &err));
	expect(state, "SELECT group_concat(name || ' ' || substr(input, 1, 2)) FROM inputs", "library 0a");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- sources --------------------------------------------------------------------------------------- */

static void sources(void **state)
{
	const char *path = "/models/h\xc3\xa9llo w\xffrld/'1'.safetensors", *region = "512 BF16 0 8 6 6 1";
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);
	struct xfp_identity identity = { UINT64_MAX - 1, UINT64_MAX, 1ull << 50, -1, INT64_MAX };
	uint8_t want[16] = "0123456789abcde", other[16] = "fedcba987654321", got[16] = { 0 };

	assert_false(xfp_manifest_get_source(m, path, &identity, region, got));
	OK(xfp_manifest_put_source(m, path, &identity, region, want, &err));
	OK(xfp_manifest_put_source(m, path, &identity, "0 F32 0 1 1 1 1", other, &err));
	OK(xfp_manifest_put_source(m, "/elsewhere", &identity, region, other, &err));
	assert_true(xfp_manifest_get_source(m, path, &identity, region, got));
	assert_memory_equal(got, want, 16);
	assert_false(xfp_manifest_get_source(m, path, &identity, "512 BF16 0 8 6 6 2", got));
	for (unsigned field = 0; field < 5; field++) {
		struct xfp_identity changed = identity;

		switch (field) {
		case 0:
			changed.device--;
			break;
		case 1:
			changed.inode--;
			break;
		case 2:
			changed.size--;
			break;
		case 3:
			changed.mtime_ns--;
			break;
		case 4:
			changed.ctime_ns--;
			break;
		}
		if (xfp_manifest_get_source(m, path, &changed, region, got))
			fail_msg("a change of field %u goes unnoticed", field);
	}
	/* If a file has changed, all its digests are removed. */
	identity.mtime_ns = 7;
	OK(xfp_manifest_put_source(m, path, &identity, region, other, &err));
	assert_true(xfp_manifest_get_source(m, path, &identity, region, got));
	assert_memory_equal(got, other, 16);
	assert_false(xfp_manifest_get_source(m, path, &identity, "0 F32 0 1 1 1 1", got));
	expect(state, "SELECT count(*) FROM sources", "2");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- runs and questions ------------------------------------------------------------------------------ */

static void runs(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_choice choice = the_choice();
	struct xfp_run_unit unit = {
		.number = 0,
		.name = "layers.0.q.weight",
		.class_ = "attention",
		.role = "q",
		.experts = 2,
		.rows = 4,
		.cols = 5,
		.choice = &choice,
		.mode = "v2",
		.outliers = OUTLIERS,
		.fit = "another",
		.choice_key = CHOICE,
		.packed = PACKED,
		.fitted = true,
		.repacked = true,
		.seconds = 2.5,
	};
	struct xfp_run_unit head = {
		.number = 1,
		.name = "lm_head.weight",
		.class_ = "lm_head",
		.role = "lm_head",
		.experts = 1,
		.rows = 10,
		.cols = 6,
		.mode = "fp8",
		.packed = PACKED,
		.seconds = 0,
	};
	int64_t run = 0, second = 0, third = 0, fourth = 0, fifth = 0;

	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{\"mode\": \"v2\"}", &run, &err));
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	OK(xfp_manifest_run_unit(m, run, &unit, &err)); /* again after a retry */
	OK(xfp_manifest_run_unit(m, run, &head, &err));
	OK(xfp_manifest_run_end(m, run, XFP_OK, "00ff", 4096, &err));
	expect(state,
	       "SELECT group_concat(unit || ' ' || mode || ' ' || k || ' ' || cos_median || ' ' || bytes, '; ') FROM "
	       "(SELECT * FROM latest_units ORDER BY number)",
	       "layers.0.q.weight v2 3 0.99 60; lm_head.weight fp8 3 0.99 60");
	expect(state,
	       "SELECT true_bits || ' ' || weights || ' ' || outlier_share || ' ' || floor || ' ' || met || ' ' || "
	       "cos_p5 || ' ' || seconds FROM latest_units WHERE class = 'attention'",
	       "12.0 40 0.075 0.98 1 0.97 2.5");
	/* Four artifacts for the unit, one for the head. */
	expect(state, "SELECT group_concat(made_seconds, ' ') FROM (SELECT * FROM latest_units ORDER BY number)",
	       "6.0 1.5");
	expect(state,
	       "SELECT floor IS NULL AND met IS NULL AND choice_key IS NULL FROM latest_units WHERE mode = 'fp8'", "1");
	expect(state,
	       "SELECT group_concat(k || ' ' || meets || ' ' || chosen || ' ' || true_bits, '; ') "
	       "FROM latest_candidates",
	       "2 0 0 20.0; 3 1 1 30.0");
	expect(state, "SELECT true_bits || ' ' || below_floor FROM latest_classes WHERE class = 'attention'", "12.0 0");
	expect(state,
	       "SELECT below_floor || ' ' || kept || ' ' || made_seconds FROM latest_classes WHERE class = 'lm_head'",
	       "0 0 1.5");
	expect(state, "SELECT group_concat(unit) FROM repacked_units", "layers.0.q.weight");
	expect(state, "SELECT json_extract(parameters, '$.mode') FROM runs", "v2");
	expect(state, "SELECT path || ' ' || sha256 || ' ' || bytes FROM bundles", "x.xfp 00ff 4096");

	unit.fitted = unit.repacked = false;
	unit.seconds = 0;
	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{}", &second, &err));
	assert_true(second > run);
	OK(xfp_manifest_run_unit(m, second, &unit, &err));
	OK(xfp_manifest_run_end(m, second, XFP_UNMET, NULL, 0, &err));
	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{}", &third, &err)); /* killed before its first unit */
	/* Neither a failed nor a killed run is the last one of an output. */
	expect(state, "SELECT count(*) || ' ' || max(run) || ' ' || sum(seconds) FROM latest_units", "2 1 2.5");
	expect(state, "SELECT count(*) FROM unit_results WHERE run = 2", "1");
	expect(state,
	       "SELECT group_concat(units || ' ' || fitted || ' ' || repacked || ' ' || cached || ' ' || "
	       "coalesce(status, '-') || ' ' || coalesce(bytes, '-'), '; ') FROM run_summaries",
	       "2 1 1 1 0 4096; 1 0 0 1 4 -; 0 0 0 0 - -");

	/* Another output in the same cache has its own last run. */
	OK(xfp_manifest_run_begin(m, "/models/y", "y.xfp", "{}", &fourth, &err));
	OK(xfp_manifest_run_unit(m, fourth, &head, &err));
	OK(xfp_manifest_run_end(m, fourth, XFP_OK, "11ff", 1024, &err));
	expect(state, "SELECT group_concat(output || ' ' || run, '; ') FROM latest_runs", "x.xfp 1; y.xfp 4");
	expect(state, "SELECT count(*) FROM latest_units WHERE output = 'x.xfp'", "2");
	expect(state, "SELECT group_concat(output || ' ' || class || ' ' || units, '; ') FROM latest_classes",
	       "x.xfp attention 1; x.xfp lm_head 1; y.xfp lm_head 1");

	/* A run in which everything was cached: it made nothing, and the original times are still reported. */
	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{}", &fifth, &err));
	OK(xfp_manifest_run_unit(m, fifth, &unit, &err));
	OK(xfp_manifest_run_end(m, fifth, XFP_OK, "00ff", 4096, &err));
	expect(state, "SELECT run || ' ' || seconds || ' ' || made_seconds FROM latest_units WHERE output = 'x.xfp'",
	       "5 0.0 6.0");
	expect(state, "SELECT seconds || ' ' || made_seconds FROM latest_classes WHERE output = 'x.xfp'", "0.0 6.0");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

#define VERIFIED                                                                                          \
	"SELECT group_concat(coalesce(verified, '-') || ' ' || coalesce(verify_status, '-'), '; ') FROM " \
	"(SELECT * FROM run_summaries ORDER BY run)"

static int64_t a_run(struct xfp_manifest *m, const char *output, const char *sha256)
{
	int64_t run = 0;

	OK(xfp_manifest_run_begin(m, "/models/x", output, "{}", &run, &err));
	OK(xfp_manifest_run_end(m, run, sha256 ? XFP_OK : XFP_UNMET, sha256, 4096, &err));
	return run;
}

static void verified(void **state)
{
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);
	int64_t last;

	a_run(m, "x.xfp", "00ff");
	a_run(m, "x.xfp", "00ff");
	a_run(m, "y.xfp", "00ff"); /* the same bytes elsewhere */
	a_run(m, "x.xfp", NULL);   /* this run wrote none */
	expect(state, VERIFIED, "- -; - -; - -; - -");
	OK(xfp_manifest_verified(m, "x.xfp", "00ff", "2026-01-31T12:34:56Z", XFP_OK, &err));
	expect(state, VERIFIED, "- -; 2026-01-31T12:34:56Z 0; - -; - -");
	/* not written there by any run */
	OK(xfp_manifest_verified(m, "x.xfp", "11ff", "2026-02-01T00:00:00Z", XFP_OK, &err));
	OK(xfp_manifest_verified(m, "z.xfp", "00ff", "2026-02-01T00:00:00Z", XFP_OK, &err));
	expect(state, VERIFIED, "- -; 2026-01-31T12:34:56Z 0; - -; - -");
	/* the last result applies */
	OK(xfp_manifest_verified(m, "x.xfp", "00ff", "2026-02-02T00:00:00Z", XFP_BAD_INPUT, &err));
	expect(state, VERIFIED, "- -; 2026-02-02T00:00:00Z 3; - -; - -");
	/* a bundle that was written again is not verified, although its bytes are the same; an unchanged one keeps its
	 * result */
	last = a_run(m, "x.xfp", "00ff");
	expect(state, VERIFIED, "- -; 2026-02-02T00:00:00Z 3; - -; - -; - -");
	OK(xfp_manifest_verified(m, "x.xfp", "00ff", "2026-02-03T00:00:00Z", XFP_UNMET, &err));
	OK(xfp_manifest_still_verified(m, a_run(m, "x.xfp", "00ff"), &err));
	OK(xfp_manifest_still_verified(m, a_run(m, "y.xfp", "00ff"), &err));
	OK(xfp_manifest_still_verified(m, a_run(m, "x.xfp", "22ff"), &err)); /* other bundles do not */
	assert_int_equal(last, 5);
	expect(state, VERIFIED,
	       "- -; 2026-02-02T00:00:00Z 3; - -; - -; 2026-02-03T00:00:00Z 4; 2026-02-03T00:00:00Z 4; - -; - -");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- candidates ---------------------------------------------------------------------------------- */

#define OTHER_FIT "4e000000000000000000000000000000"
#define EXTENDED_CHOICE "5f000000000000000000000000000000"

static void add_other(const struct xfp_store *store, struct xfp_manifest *m, const char *key, const char *kind,
		      const char *key_text)
{
	bool fit = !strcmp(kind, XFP_FIT_KIND);
	uint32_t version = fit ? XFP_FIT_VERSION : XFP_CHOICE_VERSION;
	struct xfp_artifact_label label = { kind, version, key, key_text, "layers.0.q.weight", 0.25 };
	struct xfp_choice choice = the_choice();
	struct xfp_pending pending;

	OK(xfp_store_begin(store, key, &pending, &err));
	if (fit)
		fixture_fit(pending.path, &label);
	else
		fixture_choice(pending.path, &label, &choice);
	OK(xfp_pending_publish(&pending, false, &err));
	OK(xfp_manifest_ingest(m, store, key, &err));
}

/* A unit's candidates are those from which its choice was made, whatever else was measured. */
static void candidates(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_choice choice = the_choice();
	struct xfp_run_unit unit = {
		.name = "layers.0.q.weight",
		.class_ = "attention",
		.role = "q",
		.experts = 1,
		.rows = 4,
		.cols = 5,
		.choice = &choice,
		.mode = "v2",
		.outliers = OUTLIERS,
		.fit = FIT,
		.choice_key = CHOICE,
		.packed = PACKED,
	};
	int64_t run = 0;

	add_other(&store, m, OTHER_FIT, XFP_FIT_KIND, "kind fit\noutliers " OUTLIERS "\niterations 5\n");
	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{}", &run, &err));
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	expect(state, "SELECT count(*) FROM latest_candidates", "0"); /* it has not ended */
	OK(xfp_manifest_run_end(m, run, XFP_OK, "00ff", 4096, &err));
	expect(state, "SELECT count(*) || ' ' || sum(chosen) FROM latest_candidates", "2 1");
	expect(state, "SELECT made_seconds FROM latest_units", "6.0");

	add_other(&store, m, EXTENDED_CHOICE, XFP_CHOICE_KIND, "kind choice\nfit " FIT "\nextended " OTHER_FIT "\n");
	unit.choice_key = EXTENDED_CHOICE;
	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{}", &run, &err));
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	OK(xfp_manifest_run_end(m, run, XFP_OK, "00ff", 4096, &err));
	expect(state, "SELECT count(*) || ' ' || sum(chosen) FROM latest_candidates", "4 1");
	/* outliers, two fits, the other choice, packed */
	expect(state, "SELECT made_seconds FROM latest_units", "5.0");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

PROGRAM("test_manifest")
{
	const struct CMUnitTest tests[] = {
		scratch_test(ingest_and_ask),   scratch_test(damaged_artifact),  scratch_test(lines_that_are_no_input),
		scratch_test(inputs_of_layers), scratch_test(sealed_candidates), scratch_test(sealed_sources),
		scratch_test(forgotten_source), scratch_test(sources),           scratch_test(runs),
		scratch_test(verified),         scratch_test(candidates),
	};

	return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
