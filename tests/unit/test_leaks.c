/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures leave no descriptor open, and no memory: a build with sanitizers checks the latter with this test.
 */
#include <dirent.h>
#include <fcntl.h>

#include "cache/lock.h"
#include "schemas/envelope.h"
#include "schemas/ledger.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/cache_fixture.h"
#include "tests/unit/model.h"

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	if (!dir) {
		print_message("# there is no /proc/self/fd\n");
		skip();
	}
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

typedef enum xfp_status trial_fn(void **state, const char *path, struct xfp_error *err);

/* Twice, because libhdf5 opens a file that is already open without another descriptor. */
static void fails_without_a_trace(void **state, const char *name, const char *path, trial_fn *trial)
{
	for (int i = 0; i < 2; i++) {
		unsigned before = descriptors();
		struct xfp_error err = { 0 };

		if (!trial(state, path, &err))
			fail_msg("%s: nothing was wrong", name);
		if (!*err.text)
			fail_msg("%s: nothing was said", name);
		if (descriptors() != before)
			fail_msg("%s: %u descriptors instead of %u (%s)", name, descriptors(), before, err.text);
	}
}
#define FAILS(path, trial) fails_without_a_trace(state, #trial, path, trial)

/* ---- artifacts ---------------------------------------------------------------------------------- */

static enum xfp_status open_fit(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_artifact a = { 0 };
	enum xfp_status status = xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, err);

	(void)state;
	assert_true(status || !"opened");
	return status;
}

static enum xfp_status read_label(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_artifact_label label;
	enum xfp_status status;
	struct xfp_artifact a;

	(void)state;
	if ((status = xfp_artifact_open(path, NULL, 0, NULL, &a, err)))
		return status;
	status = xfp_artifact_get_label(&a, &label, err);
	xfp_artifact_close(&a);
	return status;
}

static enum xfp_status create(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_artifact a = { 0 };

	(void)state;
	return xfp_artifact_create(path, &a, err);
}

/* Seal and open it, then read it as another kind. */
static enum xfp_status read_as_others(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_outliers outliers = { 0 };
	struct xfp_packed packed = { 0 };
	struct xfp_choice choice;
	struct xfp_artifact a = { 0 };
	enum xfp_status status;

	(void)state;
	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	assert_int_not_equal(xfp_outliers_read(&a, &outliers, NULL), XFP_OK);
	assert_int_not_equal(xfp_packed_read(&a, &packed, NULL), XFP_OK);
	status = xfp_choice_read(&a, &choice, err);
	xfp_artifact_close(&a);
	return status;
}

static void artifacts(void **state)
{
	char *good = scratch_path(state, "good.h5"), *bad = scratch_path(state, "bad.h5");
	char *nowhere = scratch_path(state, "no/where.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	uint8_t *bytes;
	size_t size;

	fixture_fit(good, &label);
	bytes = slurp(good, &size);
	FAILS(bad, open_fit);
	FAILS(*state, open_fit);
	FAILS(nowhere, create);
	FAILS(good, read_as_others);
	for (size_t cut = 0; cut < size; cut += size / 5) {
		scratch_write(state, "bad.h5", bytes, cut);
		FAILS(bad, open_fit);
		FAILS(bad, read_label);
	}
	bytes[size / 2] ^= 1;
	scratch_write(state, "bad.h5", bytes, size);
	FAILS(bad, open_fit);
	/* a valid envelope, but not HDF5 */
	memset(bytes + 512, 'x', size - 512);
	scratch_write(state, "bad.h5", bytes, size);
	OK(xfp_envelope_seal(bad, &err));
	FAILS(bad, open_fit);
	FAILS(bad, read_label);
	/* of another kind, version, key */
	label = fixture_label(XFP_CHOICE_KIND, XFP_FIT_VERSION, KEY);
	fixture_fit(bad, &label);
	FAILS(bad, open_fit);
	label = fixture_label(XFP_FIT_KIND, XFP_FIT_VERSION + 1, KEY);
	fixture_fit(bad, &label);
	FAILS(bad, open_fit);
	label = fixture_label(XFP_FIT_KIND, XFP_FIT_VERSION, OTHER);
	fixture_fit(bad, &label);
	FAILS(bad, open_fit);
	free(bytes);
	free(good);
	free(bad);
	free(nowhere);
}

/* ---- ledgers ------------------------------------------------------------------------------------ */

static enum xfp_status read_ledger(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_ledger *ledger = NULL;
	enum xfp_status status = xfp_ledger_read_unit(path, 0, &ledger, NULL);

	(void)state;
	assert_int_not_equal(status, XFP_OK);
	assert_null(ledger);
	status = xfp_ledger_read(path, &ledger, err);
	assert_null(ledger);
	return status;
}

static void ledgers(void **state)
{
	char *path = scratch_path(state, "ledger.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_ledger empty = { 0 };
	struct stat st;

	FAILS(path, read_ledger);
	scratch_write(state, "ledger.h5", "no ledger", 9);
	FAILS(path, read_ledger);
	fixture_fit(path, &label); /* with any digest, and without one */
	FAILS(path, read_ledger);
	OK(xfp_ledger_write(path, &empty, &err));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	FAILS(path, read_ledger);
	free(path);
}

/* ---- checkpoints -------------------------------------------------------------------------------- */

static enum xfp_status open_checkpoint(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_checkpoint *checkpoint = NULL;
	enum xfp_status status = xfp_checkpoint_open(path, &checkpoint, err);

	(void)state;
	xfp_checkpoint_close(checkpoint);
	return status;
}

static enum xfp_status read_matrix(void **state, const char *path, struct xfp_error *err)
{
	const struct xfp_matrix_source rows = { .path = path,
						.tensor = "x",
						.dtype = XFP_F32,
						.offset = 8,
						.bytes = 64,
						.view = { 0, 4, 4, 4, 1 } },
				       columns = { .path = path,
						   .tensor = "x",
						   .dtype = XFP_F32,
						   .offset = 8,
						   .bytes = 64,
						   .view = { 0, 4, 4, 1, 4 } };
	struct xfp_matrix_reader *reader = NULL;
	enum xfp_status status = xfp_matrix_open(&columns, &reader, NULL);
	float w[16];

	(void)state;
	status = status ? status : xfp_matrix_read(reader, 0, 4, w, NULL);
	assert_int_not_equal(status, XFP_OK);
	xfp_matrix_close(reader);
	reader = NULL;
	status = xfp_matrix_open(&rows, &reader, err);
	status = status ? status : xfp_matrix_read(reader, 0, 4, w, err);
	xfp_matrix_close(reader);
	return status;
}

static void checkpoints(void **state)
{
	static const char *const headers[] = {
		"",
		"{",
		"[]",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}",
		("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		 "\"x\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}"),
		"{\"x\":{\"dtype\":\"what\",\"shape\":[1],\"data_offsets\":[0,4]}}",
	};
	char *path = scratch_path(state, "model.safetensors");

	FAILS(*state, open_checkpoint); /* an empty folder */
	FAILS(path, open_checkpoint);
	scratch_write(state, "model.safetensors", "123", 3);
	FAILS(path, open_checkpoint);
	FAILS(path, read_matrix);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		write_model(state, "model.safetensors", headers[i], 4);
		FAILS(*state, open_checkpoint);
	}
	assert_int_equal(unlink(path), 0);
	FAILS(path, read_matrix);
	write_model(state, "a.safetensors", "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4);
	for (int i = 0; i < 3; i++) {
		static const char *const maps[] = { "{\"weight_map\": {\"x\": \"b.safetensors\"}}",
						    "{\"weight_map\": {\"y\": \"a.safetensors\"}}", "{\"weight_map\"" };

		write_text(state, "model.safetensors.index.json", maps[i]);
		FAILS(*state, open_checkpoint);
	}
	free(path);
}

/* ---- bundles ------------------------------------------------------------------------------------ */

static enum xfp_status open_bundle(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	enum xfp_status status = xfp_bundle_open(path, &bundle, err);

	(void)state;
	xfp_bundle_close(bundle);
	return status;
}

static struct fixture *writing;

static enum xfp_status write_bundle(void **state, const char *path, struct xfp_error *err)
{
	(void)state;
	(void)path;
	return fixture_write_bundle(writing, err);
}

static void bundles(void **state)
{
	struct fixture f;
	uint8_t *bytes;
	size_t size, noticed = 0;
	char *kept;

	fixture_make_bundle(&f, 1);
	bytes = fixture_read(f.out, &size);
	for (size_t cut = 0; cut < size; cut += size / 7 + 1) {
		fixture_write(f.out, bytes, cut);
		FAILS(f.out, open_bundle);
	}
	for (size_t at = 0; at < size; at += 61) { /* bytes that opening examines */
		bytes[at] ^= 0xff;
		fixture_write(f.out, bytes, size);
		if (open_bundle(NULL, f.out, &(struct xfp_error){ 0 })) {
			FAILS(f.out, open_bundle);
			noticed++;
		}
		bytes[at] ^= 0xff;
	}
	assert_true(noticed > 10);
	FAILS(f.folder, open_bundle);
	FAILS("/no/such/bundle.xfp", open_bundle);
	/* the writer: missing or truncated parts; a missing extra file; a missing checkpoint */
	writing = &f;
	fixture_write(f.bundle_units[0].path, "", 0);
	FAILS("", write_bundle);
	assert_int_equal(unlink(f.bundle_units[0].path), 0);
	FAILS("", write_bundle);
	kept = xfp_path(f.model, f.extras[0]);
	assert_int_equal(unlink(kept), 0);
	FAILS("", write_bundle);
	assert_int_equal(unlink(f.file.path), 0);
	FAILS("", write_bundle);
	free(kept);
	free(bytes);
	fixture_free(&f);
}

/* ---- the cache ---------------------------------------------------------------------------------- */

static enum xfp_status open_store(void **state, const char *path, struct xfp_error *err)
{
	struct xfp_store store;
	enum xfp_status status = xfp_store_open(path, &store, err);

	(void)state;
	assert_int_not_equal(xfp_store_open_readonly(path, &store, NULL), XFP_OK);
	return status;
}

static enum xfp_status ingest(void **state, const char *key, struct xfp_error *err)
{
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m;
	int64_t rebuilt;
	enum xfp_status status = xfp_manifest_open(&store, &m, &rebuilt, err);

	status = status ? status : xfp_manifest_ingest(m, &store, key, err);
	xfp_manifest_close(m);
	xfp_store_close(&store);
	return status;
}

static enum xfp_status begin_artifact(void **state, const char *folder, struct xfp_error *err)
{
	struct xfp_store store = { .folder = (char *)folder };
	struct xfp_pending pending;

	(void)state;
	return xfp_store_begin(&store, FIT, &pending, err);
}

static enum xfp_status lock(void **state, const char *folder, struct xfp_error *err)
{
	struct xfp_store store = { .folder = (char *)folder };
	int fd = -1;

	(void)state;
	assert_int_not_equal(xfp_lock_shared(&store, "xfp", &fd, NULL), XFP_OK);
	assert_int_equal(fd, -1);
	return xfp_lock_exclusive(&store, "xfp", &fd, err);
}

static void caches(void **state)
{
	char *file = scratch_path(state, "file"), *nowhere = scratch_path(state, "no/where"), *path;
	char *below = scratch_path(state, "file/cache");
	struct xfp_store store = open_cache(state, 1);
	struct stat st;

	scratch_write(state, "file", "", 0);
	FAILS(file, begin_artifact);
	FAILS(below, open_store);
	FAILS(nowhere, lock);
	FAILS(OTHER, ingest);
	add_artifact(&store, 3);
	path = xfp_store_path(&store, PACKED);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 3), 0);
	FAILS(PACKED, ingest);
	free(path);
	add_artifact(&store, 1);
	path = xfp_store_path(&store, FIT);
	{
		struct xfp_artifact_label label = { XFP_FIT_KIND, XFP_FIT_VERSION, FIT, "", "", 0 };
		struct xfp_choice choice = the_choice();

		fixture_choice(path, &label, &choice);
	}
	FAILS(FIT, ingest);
	free(path);
	free(file);
	free(nowhere);
	free(below);
	xfp_store_close(&store);
}

PROGRAM("test_leaks")
{
	const struct CMUnitTest tests[] = {
		scratch_test(artifacts), scratch_test(ledgers), scratch_test(checkpoints),
		scratch_test(bundles),   scratch_test(caches),
	};

	return cmocka_run_group_tests_name("leaks", tests, NULL, NULL);
}
