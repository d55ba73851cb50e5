/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "schemas/envelope.h"
#include "schemas/h5.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"

static void spill(const char *path, const void *bytes, size_t size)
{
	OK(xfp_write_file(path, bytes, size, false, &err));
}

/* ---- damage ------------------------------------------------------------------------------------ */

static void expect_damaged(const char *path, const char *kind, uint32_t version, const char *key, const char *word)
{
	struct xfp_artifact a = { 0 };
	struct xfp_error err = { 0 };

	assert_int_equal(xfp_artifact_open(path, kind, version, key, &a, &err), XFP_DAMAGED);
	assert_int_equal(err.status, XFP_DAMAGED);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "made again"));
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not say \"%s\"", err.text, word);
	assert_null(a.path);
}

static void every_flipped_byte(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_CHOICE_KIND);
	struct xfp_choice choice = { .candidate = fixture_fit_table().candidates[0], .fit = OTHER };
	uint8_t *bytes;
	size_t size;
	int fd;

	fixture_choice(path, &label, &choice);
	bytes = slurp(path, &size);
	assert_true((fd = open(path, O_RDWR)) >= 0);
	for (size_t i = 0; i < size; i++) {
		uint8_t flipped = bytes[i] ^ (uint8_t)(1 << i % 8);

		assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
		if (xfp_artifact_check(path, NULL) != XFP_DAMAGED)
			fail_msg("byte %zu of %zu is not protected", i, size);
		assert_int_equal(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
	}
	OK(xfp_artifact_check(path, &err));
	close(fd);
	free(bytes);
	free(path);
}

static void wrong_size(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	uint8_t *bytes;
	size_t size;

	fixture_fit(path, &label);
	bytes = slurp(path, &size); /* with a NUL after it */
	spill(path, bytes, size + 1);
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, "bytes long");
	spill(path, bytes, size - 1);
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, "bytes long");
	spill(path, bytes, 512);
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, "truncated");
	spill(path, bytes, 0);
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, "truncated");
	bytes[0] = 'Y';
	spill(path, bytes, size);
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, "not made by xfp");
	free(bytes);
	free(path);
}

static void wrong_identity(void **state)
{
	char *path = scratch_path(state, "a.h5"), *missing = scratch_path(state, "b.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_artifact a;

	fixture_fit(path, &label);
	expect_damaged(path, XFP_CHOICE_KIND, 1, KEY, "kind \"fit\"");
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION + 1, KEY, "version 4 instead of 5");
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, OTHER, "made for key");
	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	xfp_artifact_close(&a);
	assert_int_equal(xfp_artifact_open(missing, NULL, 0, NULL, &a, NULL), XFP_FAILED);
	assert_int_equal(xfp_artifact_check(*state, NULL), XFP_DAMAGED); /* a folder */
	free(path);
	free(missing);
}

/* Validly sealed, but not readable by libhdf5: it was read, and has the wrong form. */
static void wrong_form(void **state)
{
	char *path = scratch_path(state, "a.h5");
	uint8_t bytes[4096] = { 0 };

	for (size_t i = XFP_ENVELOPE_BYTES; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * i >> 3);
	spill(path, bytes, sizeof bytes);
	OK(xfp_envelope_seal(path, &err));
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, "not HDF5");
	free(path);
}

/* A file whose digest is right is never called damaged because libhdf5 fails: it may lack memory. */
static void library_fails(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_error err = { 0 };
	struct xfp_artifact a;
	uint8_t *bytes;
	size_t size;

	fixture_fit(path, &label);
	bytes = slurp(path, &size);
	bytes[XFP_ENVELOPE_BYTES + 8] = 200; /* the version of the superblock, after the signature */
	spill(path, bytes, size);
	OK(xfp_envelope_seal(path, &err));
	assert_int_equal(xfp_artifact_open(path, NULL, 0, NULL, &a, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "libhdf5 cannot read it (cannot be opened), although its digest is right"));
	free(bytes);
	free(path);
}

/* Errors of the system do not mean damage: the reason is reported, and the artifact must not be made again. */
static void refused(void **state)
{
	char *path = scratch_path(state, "a.h5"), *loop = scratch_path(state, "b.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_error err = { 0 };
	struct rlimit before, none;
	struct xfp_artifact a;

	fixture_fit(path, &label);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(xfp_artifact_open(path, NULL, 0, NULL, &a, &err), XFP_FAILED);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, strerror(EMFILE)));
	assert_int_equal(symlink(loop, loop), 0);
	assert_int_equal(xfp_artifact_open(loop, NULL, 0, NULL, &a, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, strerror(ELOOP)));
	free(path);
	free(loop);
}

/* Complete and sealed, but contrary to the schema: each of these readers must reject it. */
static void wrong_schema(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_OUTLIERS_KIND);
	struct xfp_packed packed = { 0 };
	struct xfp_choice choice = { 0 };
	struct xfp_outliers o = { 0 };
	struct xfp_artifact a;
	struct xfp_fit fit;

	fixture_outliers(path, &label);
	OK(xfp_artifact_open(path, NULL, 0, KEY, &a, &err));
	assert_int_equal(xfp_fit_read(&a, &fit, NULL), XFP_DAMAGED);
	assert_int_equal(xfp_choice_read(&a, &choice, NULL), XFP_DAMAGED);
	assert_int_equal(xfp_packed_read(&a, &packed, NULL), XFP_DAMAGED);
	xfp_artifact_close(&a);

	for (unsigned fault = 0; fault < 9; fault++) {
		uint64_t rows = fault == 0 ? UINT64_MAX : 2, cols = fault == 1 ? 4 : 3;
		uint64_t first[] = { 0, fault == 2 ? 3 : 1, 2 }, position[] = { 5, fault == 3 ? 6 : 0 };
		hid_t type = fault == 4 ? H5T_NATIVE_INT64 : fault == 5 ? H5T_STD_U64BE : H5T_NATIVE_UINT64;
		static const uint8_t bytes[32];
		static const double numbers[2];
		enum xfp_status status;
		uint64_t got[2];

		OK(xfp_artifact_create(path, &a, &err));
		OK(xfp_outliers_begin(&a, &err));
		OK(xfp_h5_append(&a, "position", H5T_NATIVE_UINT64, 2, position, &err));
		OK(xfp_h5_write_u64(&a, "matrices", 2, &err));
		OK(xfp_h5_write_u64(&a, "rows", rows, &err));
		OK(xfp_h5_write_u64(&a, "cols", cols, &err));
		if (fault == 6)
			OK(xfp_h5_write_f64(&a, "sigma_milli", 4000, &err));
		else if (fault != 7)
			OK(xfp_h5_write_u64(&a, "sigma_milli", 4000, &err));
		OK(xfp_h5_write(&a, "source", H5T_NATIVE_UINT8, fault == 8 ? 31 : 32, bytes, &err));
		OK(xfp_h5_write(&a, "balance", H5T_NATIVE_UINT8, 3, bytes, &err));
		OK(xfp_h5_write(&a, "exponent", H5T_NATIVE_INT16, 2, bytes, &err));
		OK(xfp_h5_write(&a, "mean", H5T_NATIVE_DOUBLE, 2, numbers, &err));
		OK(xfp_h5_write(&a, "sigma", H5T_NATIVE_DOUBLE, 2, numbers, &err));
		OK(xfp_h5_write(&a, "first", type, 3, first, &err));
		OK(xfp_artifact_finish(&a, &label, &err));
		OK(xfp_artifact_open(path, XFP_OUTLIERS_KIND, 1, KEY, &a, &err));
		status = xfp_outliers_read(&a, &o, NULL);
		if (fault == 3 && !status) /* detected when the positions are read */
			status = xfp_outliers_positions(&a, &o, 1, 0, 1, got, NULL);
		if (status != XFP_DAMAGED)
			fail_msg("fault %u: status %d", fault, status);
		xfp_outliers_free(&o);
		xfp_artifact_close(&a);
	}
	free(path);
}

static void impossible_numbers(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_CHOICE_KIND);
	const struct xfp_choice good = { .candidate = fixture_fit_table().candidates[0], .fit = OTHER };

	for (unsigned fault = 0; fault < 11; fault++) {
		struct xfp_choice choice = good, read = { 0 };
		struct xfp_artifact a;
		enum xfp_status status;

		switch (fault) {
		case 1:
			choice.candidate.mode = XFP_MODES;
			break;
		case 2:
			choice.candidate.k = 7;
			break;
		case 3:
			choice.candidate.cos_median = 0.0 / 0.0;
			break;
		case 4:
			choice.candidate.error = -1;
			break;
		case 5:
			choice.met = 2;
			break;
		case 6:
			choice.fit[3] = 'G';
			break;
		case 7:
			choice.fixed = 2;
			break;
		case 8:
			choice.sample_median = 0.0 / 0.0;
			break;
		case 9:
			choice.sample_p5 = 3;
			break;
		case 10:
			choice.calibrated = true;
			choice.output.median = 0.0 / 0.0;
			break;
		}
		fixture_choice(path, &label, &choice);
		OK(xfp_artifact_open(path, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, KEY, &a, &err));
		status = xfp_choice_read(&a, &read, NULL);
		if (status != (fault ? XFP_DAMAGED : XFP_OK))
			fail_msg("fault %u: status %d", fault, status);
		xfp_artifact_close(&a);
	}
	free(path);
}

/* ---- writing that fails ------------------------------------------------------------------------- */

/* A file size limit simulates a full disk. Wherever it strikes, the failure is reported, and the process continues and
 * exits normally. */
static void full_disk(void **state)
{
	char *path = scratch_path(state, "a.h5"), *whole = scratch_path(state, "b.h5");
	struct xfp_artifact_label label = label_of(XFP_PACKED_KIND);
	static const uint8_t data[20000];
	struct stat st;

	fixture_packed(whole, &label);
	assert_int_equal(stat(whole, &st), 0);
	for (rlim_t limit = 0; limit < 24000; limit += 1500) {
		pid_t child = fork();
		int ended;

		assert_true(child >= 0);
		if (!child) {
			struct xfp_packed p = { .mode = XFP_MODE_KEEP, .bytes = { sizeof data } };
			struct rlimit rlimit = { limit, limit };
			struct xfp_error err = { 0 };
			struct xfp_artifact a = { .file = -1 };
			enum xfp_status status;

			signal(SIGXFSZ, SIG_IGN);
			if (setrlimit(RLIMIT_FSIZE, &rlimit))
				_exit(100);
			if (!(status = xfp_artifact_create(path, &a, &err)) &&
			    !(status = xfp_packed_begin(&a, &p, &err)) &&
			    !(status = xfp_packed_write(&a, XFP_PART_INDEX, 0, sizeof data, data, &err)) &&
			    !(status = xfp_packed_end(&a, &p, &err)))
				status = xfp_artifact_finish(&a, &label, &err);
			xfp_artifact_close(&a);
			exit(status == XFP_FAILED && err.text[0] ? 0 : 10 + (int)status);
		}
		assert_int_equal(waitpid(child, &ended, 0), child);
		if (!WIFEXITED(ended) || WEXITSTATUS(ended))
			fail_msg("limit %lu: wait status %x", (unsigned long)limit, ended);
	}
	free(path);
	free(whole);
}

static void cannot_create(void **state)
{
	char *path = scratch_path(state, "none/a.h5");
	struct xfp_artifact a = { 0 };
	struct xfp_error err = { 0 };

	assert_int_equal(xfp_artifact_create(path, &a, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, strerror(ENOENT)));
	xfp_artifact_close(&a);
	free(path);
}

PROGRAM("test_artifact_damage")
{
	const struct CMUnitTest tests[] = {
		scratch_test(every_flipped_byte), scratch_test(wrong_size),         scratch_test(wrong_identity),
		scratch_test(wrong_form),         scratch_test(library_fails),      scratch_test(refused),
		scratch_test(wrong_schema),       scratch_test(impossible_numbers), scratch_test(full_disk),
		scratch_test(cannot_create),
	};

	return cmocka_run_group_tests_name("artifact-damage", tests, NULL, NULL);
}
