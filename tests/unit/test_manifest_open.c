/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/wait.h>

#include "tests/unit/cache_fixture.h"

/* ---- loss and damage of the manifest -------------------------------------------------------------- */

static void overwrite(const char *path, off_t at, size_t size)
{
	char *garbage = malloc(size);
	int fd = open(path, O_WRONLY | O_CREAT, 0666);

	memset(garbage, 0xa5, size);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, garbage, size, at), size);
	close(fd);
	free(garbage);
}

static void rebuilt(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	char *path = scratch_path(state, CACHE "/manifest.sqlite");
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct stat st;
	unsigned aside = 0;

	everything_is_there(m);
	xfp_manifest_close(m);
	for (unsigned harm = 0; harm < 8; harm++) {
		char *old;

		assert_int_equal(stat(path, &st), 0);
		switch (harm) {
		case 0:
			assert_int_equal(unlink(path), 0);
			break;
		case 1:
			overwrite(path, 0, 300);
			break;
		case 2:
			overwrite(path, 4096, (size_t)st.st_size - 4096);
			break;
		case 3:
			assert_int_equal(truncate(path, st.st_size / 2), 0);
			break;
		case 4:
			free(ask(state, "PRAGMA user_version = 99"));
			break;
		case 6:
			overwrite(path, 3 * 4096, 4096); /* one page of a table */
			break;
		case 5:
			free(ask(state, "PRAGMA user_version = 0"));
			break; /* tables of another program */
		case 7:
			free(ask(state, "PRAGMA user_version = 1")); /* views with other names */
			break;
		}
		aside += harm > 0;
		m = open_manifest(&store, 4);
		everything_is_there(m);
		xfp_manifest_close(m);
		m = open_manifest(&store, -1);
		everything_is_there(m);
		xfp_manifest_close(m);
		old = xfp_formatted("%s.old-%u", path, aside);
		if (aside)
			assert_int_equal(access(old, F_OK), 0);
		free(old);
	}
	free(path);
	xfp_store_close(&store);
}

/* An empty file, as left by a full disk, is a new manifest. */
static void empty_file(void **state)
{
	struct xfp_store store = open_cache(state, 2);
	struct xfp_manifest *m;

	scratch_write(state, CACHE "/manifest.sqlite", "", 0);
	m = open_manifest(&store, 2);
	xfp_manifest_close(m);
	assert_false(scratch_has(state, CACHE "/manifest.sqlite.old-1"));
	xfp_store_close(&store);
}

/* ---- several processes ----------------------------------------------------------------------------- */

/* Concurrently: each process opens the manifest, and adds what it can and its own run. */
static void together(void **state, const char *prepare)
{
	enum { PROCESSES = 4, SOURCES = 25 };
	struct xfp_store store = open_cache(state, 4);
	pid_t child[PROCESSES];
	int gate[2];

	if (prepare)
		scratch_write(state, CACHE "/manifest.sqlite", prepare, strlen(prepare));
	assert_int_equal(pipe(gate), 0);
	for (unsigned c = 0; c < PROCESSES; c++) {
		assert_true((child[c] = fork()) >= 0);
		if (!child[c]) {
			struct xfp_identity identity = { 1, 2, 3, 4, 5 };
			struct xfp_manifest *m = NULL;
			struct xfp_error err = { 0 };
			uint8_t digest[16] = { (uint8_t)c };
			char byte, path[32];
			int64_t run;

			close(gate[1]);
			if (read(gate[0], &byte, 1) != 0) /* until the parent closes its end */
				_exit(1);
			if (xfp_manifest_open(&store, &m, NULL, &err) || xfp_manifest_ingest(m, &store, FIT, &err) ||
			    xfp_manifest_run_begin(m, "model", "out", "{}", &run, &err))
				goto failed;
			for (unsigned i = 0; i < SOURCES; i++) {
				snprintf(path, sizeof path, "/m/%u", i);
				if (xfp_manifest_put_source(m, path, &identity, path, digest, &err))
					goto failed;
			}
			if (xfp_manifest_run_end(m, run, XFP_OK, NULL, 0, &err))
				goto failed;
			xfp_manifest_close(m);
			_exit(0);
		failed:
			fprintf(stderr, "process %u: %s\n", c, err.text);
			_exit(2);
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (unsigned c = 0; c < PROCESSES; c++) {
		int ended;

		assert_int_equal(waitpid(child[c], &ended, 0), child[c]);
		assert_int_equal(ended, 0);
	}
	expect(state, "SELECT count(*) FROM artifacts", "4");
	expect(state, "SELECT count(*) FROM runs WHERE ended IS NOT NULL", "4");
	expect(state, "SELECT count(*) FROM sources", "25");
	if (prepare) /* renamed once, not by each of them */
		assert_false(scratch_has(state, CACHE "/manifest.sqlite.old-2"));
	xfp_store_close(&store);
}

static void created_together(void **state)
{
	together(state, NULL);
}

static void replaced_together(void **state)
{
	together(state, "This is not a database, and longer than the header of one would have to be. ............");
	assert_true(scratch_has(state, CACHE "/manifest.sqlite.old-1"));
}

/* A writer that is killed in the middle leaves what was committed. */
static void killed_writer(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	pid_t child;
	int ended;

	xfp_manifest_close(m);
	assert_true((child = fork()) >= 0);
	if (!child) {
		struct xfp_manifest *mine;
		int64_t run;

		if (xfp_manifest_open(&store, &mine, NULL, NULL) ||
		    xfp_manifest_run_begin(mine, "a", "b", "{}", &run, NULL) || xfp_manifest_begin(mine, NULL) ||
		    xfp_manifest_remove_artifact(mine, FIT, NULL))
			_exit(1);
		_exit(0); /* neither committed nor closed */
	}
	assert_int_equal(waitpid(child, &ended, 0), child);
	assert_int_equal(ended, 0);
	m = open_manifest(&store, -1);
	everything_is_there(m);
	expect(state, "SELECT count(*) FROM runs WHERE ended IS NULL", "1");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- read-only caches ---------------------------------------------------------------------------------- */

static void lock_cache(void **state, bool locked)
{
	static const char *const names[] = { CACHE "/manifest.sqlite", CACHE "/artifacts", CACHE };
	static uid_t user;

	if (!locked) {
		assert_int_equal(seteuid(user), 0);
	} else {
		user = geteuid();
		assert_int_equal(chmod(*state, 0755), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		char *path = scratch_path(state, names[i]);

		if (!access(path, F_OK))
			assert_int_equal(chmod(path, locked ? (i ? 0555 : 0444) : 0755), 0);
		free(path);
	}
	if (locked && !user) /* root ignores permissions */
		assert_int_equal(seteuid(65534), 0);
}

static void read_only(void **state)
{
	struct xfp_identity identity = { 1, 2, 3, 4, 5 };
	uint8_t digest[16] = "0123456789abcde";

	for (unsigned kind = 0; kind < 3; kind++) { /* a good manifest, none, a damaged one */
		struct xfp_store store = open_cache(state, 4);
		char *path = scratch_path(state, CACHE "/manifest.sqlite");
		struct xfp_manifest *m;
		int64_t run = -5;

		xfp_manifest_close(open_manifest(&store, 4));
		if (kind == 1)
			assert_int_equal(unlink(path), 0);
		if (kind == 2)
			overwrite(path, 0, 4096);
		xfp_store_close(&store);
		lock_cache(state, true);
		store = open_cache(state, 0);
		assert_true(store.read_only);
		m = open_manifest(&store, kind ? 4 : -1);
		everything_is_there(m);
		OK(xfp_manifest_begin(m, &err));
		OK(xfp_manifest_remove_artifact(m, "99000000000000000000000000000000", &err));
		OK(xfp_manifest_put_source(m, "/x", &identity, "0", digest, &err));
		OK(xfp_manifest_run_begin(m, "m", "o", "{}", &run, &err));
		assert_true(run >= 0);
		OK(xfp_manifest_run_end(m, run, XFP_OK, "00", 1, &err));
		OK(xfp_manifest_commit(m, &err));
		xfp_manifest_close(m);
		xfp_store_close(&store);
		lock_cache(state, false);
		assert_int_equal(scratch_has(state, CACHE "/manifest.sqlite"), kind != 1);
		if (!kind) {
			expect(state, "SELECT count(*) FROM runs", "0");
			expect(state, "SELECT count(*) FROM sources", "0");
		}
		unlink(path);
		free(path);
	}
}

/* Another process is writing: the journal must be read as well, and no new file appears. */
static void read_only_with_journal(void **state)
{
	struct xfp_identity identity = { 1, 2, 3, 4, 5 };
	struct xfp_store store = open_cache(state, 3), copy;
	struct xfp_manifest *m = open_manifest(&store, 3), *reader;
	char *shared = scratch_path(state, CACHE "/manifest.sqlite-shm"), *aside = scratch_path(state, "shm");
	uint8_t digest[16] = "0123456789abcde", found[16] = "";

	xfp_manifest_close(m);
	m = open_manifest(&store, -1);
	add_artifact(&store, 3);
	OK(xfp_manifest_ingest(m, &store, PACKED, &err)); /* now in the journal only */
	OK(xfp_manifest_put_source(m, "/x", &identity, "0", digest, &err));
	assert_true(scratch_has(state, CACHE "/manifest.sqlite-wal"));
	copy = (struct xfp_store){ .folder = store.folder, .read_only = true };
	reader = open_manifest(&copy, -1);
	everything_is_there(reader);
	assert_true(xfp_manifest_get_source(reader, "/x", &identity, "0", found));
	assert_memory_equal(found, digest, sizeof digest);
	OK(xfp_manifest_remove_artifact(reader, PACKED, &err));
	xfp_manifest_close(reader);
	assert_true(xfp_manifest_has(m, PACKED));

	/* A copy taken in the meantime lacks this file, which SQLite would have to create. */
	assert_int_equal(rename(shared, aside), 0);
	reader = open_manifest(&copy, 4);
	everything_is_there(reader);
	assert_false(xfp_manifest_get_source(reader, "/x", &identity, "0", found));
	xfp_manifest_close(reader);
	assert_false(scratch_has(state, CACHE "/manifest.sqlite-shm"));
	assert_int_equal(rename(aside, shared), 0);
	xfp_manifest_close(m);
	xfp_store_close(&store);
	free(shared);
	free(aside);
}

/* ---- calibrated fits ------------------------------------------------------------------------------- */

/* The outputs of a calibrated fit are stored and sealed, and so are those of a choice and of a unit. */
static void calibrated_candidates(void **state)
{
	static const char *const damages[] = {
		"UPDATE candidates SET output_median = output_median + 1e-15 WHERE number = 1",
		"UPDATE candidates SET output_p5 = -output_p5 WHERE number = 0",
		"UPDATE candidates SET output_error = NULL WHERE number = 1",
		"UPDATE candidates SET output_median = NULL",
	};
	struct xfp_store store = open_cache(state, 0);
	struct xfp_candidate candidates[XFP_MAX_CANDIDATES];
	struct xfp_output_measure outputs[XFP_MAX_CANDIDATES];
	struct xfp_artifact_label label = { XFP_FIT_KIND, XFP_FIT_VERSION, FIT, "", "", 0 };
	struct xfp_choice choice = the_choice();
	struct xfp_run_unit unit = { .name = "q", .class_ = "attention", .role = "q", .mode = "v2", .choice = &choice };
	struct xfp_pending pending;
	struct xfp_manifest *m;
	bool calibrated;
	uint32_t count;
	int64_t run;

	OK(xfp_store_begin(&store, FIT, &pending, &err));
	fixture_calibrated_fit(pending.path, &label);
	OK(xfp_pending_publish(&pending, false, &err));
	choice.calibrated = true;
	choice.output = (struct xfp_output_measure){ 0.98, 0.96, 0.04 };
	label.kind = XFP_CHOICE_KIND;
	label.version = XFP_CHOICE_VERSION;
	label.key = CHOICE;
	OK(xfp_store_begin(&store, CHOICE, &pending, &err));
	fixture_choice(pending.path, &label, &choice);
	OK(xfp_pending_publish(&pending, false, &err));
	m = open_manifest(&store, 2);
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		assert_true(xfp_manifest_get_candidates(m, FIT, 2, candidates, outputs, &calibrated, &count));
		assert_true(calibrated && count == 2 && outputs[0].median == 0.98 && outputs[0].p5 == 0.96 &&
			    outputs[1].error == 0.001);
		damage(state, damages[i]);
		if (xfp_manifest_get_candidates(m, FIT, 2, candidates, outputs, &calibrated, &count))
			fail_msg("%s: believed", damages[i]);
		OK(xfp_manifest_repair(m, &store, FIT, &err));
	}
	expect(state, "SELECT output_median || ' ' || output_p5 || ' ' || output_error FROM choices", "0.98 0.96 0.04");
	OK(xfp_manifest_run_begin(m, "/models/x", "x.xfp", "{}", &run, &err));
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	expect(state, "SELECT output_median || ' ' || output_p5 || ' ' || output_error FROM unit_results",
	       "0.98 0.96 0.04");
	choice.calibrated = false;
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	expect(state, "SELECT count(output_median) FROM unit_results", "0");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

PROGRAM("test_manifest_open")
{
	const struct CMUnitTest tests[] = {
		scratch_test(rebuilt),
		scratch_test(empty_file),
		scratch_test(created_together),
		scratch_test(replaced_together),
		scratch_test(killed_writer),
		scratch_test(read_only),
		scratch_test(read_only_with_journal),
		scratch_test(calibrated_candidates),
	};

	return cmocka_run_group_tests_name("manifest_open", tests, NULL, NULL);
}
