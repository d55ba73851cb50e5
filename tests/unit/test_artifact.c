/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "artifact_fixture.h"
#include "scratch.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

static struct xfp_artifact_label label_of(const char *kind)
{
	uint32_t version = !strcmp(kind, XFP_FIT_KIND)      ? XFP_FIT_VERSION
			   : !strcmp(kind, XFP_CHOICE_KIND) ? XFP_CHOICE_VERSION
							    : 1;

	return fixture_label(kind, version, KEY);
}

static uint8_t *slurp(const char *path, size_t *size)
{
	char *bytes;

	OK(xfp_slurp(path, 1 << 24, &bytes, size, &err));
	return (uint8_t *)bytes;
}

static void spill(const char *path, const void *bytes, size_t size)
{
	OK(xfp_write_file(path, bytes, size, false, &err));
}

/* ---- round trips ------------------------------------------------------------------------------- */

static void outliers_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_OUTLIERS_KIND), read;
	struct xfp_outliers o = { 0 };
	struct xfp_artifact a;
	uint64_t position[2];

	fixture_outliers(path, &label);
	OK(xfp_artifact_open(path, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, KEY, &a, &err));
	OK(xfp_outliers_read(&a, &o, &err));
	assert_int_equal(o.matrices, 3);
	assert_int_equal(o.rows, 4);
	assert_int_equal(o.cols, 5);
	assert_int_equal(o.sigma_milli, 4000);
	assert_int_equal(o.source[2][15], 3);
	assert_int_equal(o.balance[4], 200);
	assert_int_equal(o.exponent[2], -30);
	assert_true(o.mean[2] == 2 / 3.0 && o.sigma[1] == 2);
	assert_int_equal(o.first[1], 0);
	assert_int_equal(o.first[3], 3);
	OK(xfp_outliers_positions(&a, &o, 0, 0, 0, NULL, &err));
	OK(xfp_outliers_positions(&a, &o, 2, 0, 2, position, &err));
	assert_int_equal(position[0], 6);
	assert_int_equal(position[1], 0);
	xfp_outliers_free(&o);
	xfp_artifact_close(&a);
	xfp_artifact_close(&a);

	OK(xfp_artifact_read_label(path, &read, &err));
	assert_string_equal(read.kind, label.kind);
	assert_int_equal(read.version, 1);
	assert_string_equal(read.key, KEY);
	assert_string_equal(read.key_text, label.key_text);
	assert_string_equal(read.unit, label.unit);
	assert_true(read.seconds == 0.25);
	xfp_artifact_label_free(&read);
	free(path);
}

/* More positions than a chunk, in pieces, and a unit without any. */
static void many_and_no_outliers(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_OUTLIERS_KIND);
	uint64_t *position = malloc(5000 * sizeof *position);

	for (uint64_t i = 0; i < 5000; i++)
		position[i] = 4999 - i;
	for (unsigned each = 0; each <= 2500; each += 2500) {
		struct xfp_outliers o = { 0 }, read = { 0 };
		struct xfp_artifact a;
		uint64_t *got = calloc(2500, sizeof *got);

		OK(xfp_outliers_init(&o, 2, 100, 50, &err));
		OK(xfp_artifact_create(path, &a, &err));
		OK(xfp_outliers_begin(&a, &err));
		OK(xfp_outliers_append(&a, &o, 0, position, each, &err));
		OK(xfp_outliers_append(&a, &o, 1, position + each, each, &err));
		OK(xfp_outliers_end(&a, &o, &err));
		OK(xfp_artifact_finish(&a, &label, &err));
		OK(xfp_artifact_open(path, XFP_OUTLIERS_KIND, 1, NULL, &a, &err));
		OK(xfp_outliers_read(&a, &read, &err));
		assert_int_equal(read.first[2], 2 * each);
		OK(xfp_outliers_positions(&a, &read, 1, 0, each, got, &err));
		assert_memory_equal(got, position + each, each * sizeof *got);
		xfp_artifact_close(&a);
		xfp_outliers_free(&o);
		xfp_outliers_free(&read);
		free(got);
	}
	free(position);
	free(path);
}

static void same_fit(const struct xfp_fit *a, const struct xfp_fit *b)
{
	assert_int_equal(a->matrices, b->matrices);
	assert_int_equal(a->rows, b->rows);
	assert_int_equal(a->cols, b->cols);
	assert_string_equal(a->outliers, b->outliers);
	assert_int_equal(a->candidate_count, b->candidate_count);
	assert_memory_equal(a->candidates, b->candidates, sizeof a->candidates);
}

static void fit_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_fit want = fixture_fit_table(), fit;
	struct xfp_artifact a;
	uint16_t codebook[16];
	double cosine[2];

	fixture_fit(path, &label);
	OK(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, &err));
	OK(xfp_fit_read(&a, &fit, &err));
	same_fit(&fit, &want);
	OK(xfp_fit_read_rows(&a, 3, 10, 2, codebook, cosine, &err));
	assert_int_equal(codebook[0], 1000);
	assert_int_equal(codebook[15], 1107);
	assert_true(cosine[1] == 1 / 12.0);
	OK(xfp_fit_read_rows(&a, 2, 0, 1, codebook, NULL, &err));
	assert_int_equal(codebook[3], 3);
	assert_int_equal(xfp_fit_read_rows(&a, 2, 11, 2, codebook, NULL, NULL), XFP_DAMAGED);
	assert_int_equal(xfp_fit_read_rows(&a, 4, 0, 1, codebook, NULL, NULL), XFP_DAMAGED);
	xfp_artifact_close(&a);
	free(path);
}

/* A fit that says there is nothing to choose from (weights that are not finite). */
static void empty_fit(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_fit fit = { .matrices = 1, .rows = 2, .cols = 3 }, read;
	struct xfp_artifact a;

	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_fit_begin(&a, 2, 0, &err));
	OK(xfp_fit_end(&a, &fit, &err));
	OK(xfp_artifact_finish(&a, &label, &err));
	OK(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, &err));
	OK(xfp_fit_read(&a, &read, &err));
	same_fit(&read, &fit);
	xfp_artifact_close(&a);
	free(path);
}

static void choice_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_CHOICE_KIND);
	struct xfp_choice choice = { .candidate = fixture_fit_table().candidates[1],
				     .floor = 980000000,
				     .met = 1,
				     .fixed = 1,
				     .sample = 4,
				     .sample_median = 0.75,
				     .sample_p5 = 0.5,
				     .fit = OTHER },
			  read = { 0 };
	struct xfp_artifact a;

	fixture_choice(path, &label, &choice);
	OK(xfp_artifact_open(path, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, KEY, &a, &err));
	OK(xfp_choice_read(&a, &read, &err));
	assert_memory_equal(&choice.candidate, &read.candidate, sizeof read.candidate);
	assert_int_equal(read.floor, 980000000);
	assert_int_equal(read.met, 1);
	assert_int_equal(read.fixed, 1);
	assert_int_equal(read.sample, 4);
	assert_true(read.sample_median == 0.75 && read.sample_p5 == 0.5);
	assert_string_equal(read.fit, OTHER);
	xfp_artifact_close(&a);
	free(path);
}

static void packed_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_PACKED_KIND);
	struct xfp_packed p = { 0 };
	uint64_t offset, bytes;
	struct xfp_artifact a;
	uint8_t *file;
	size_t size;

	label.version = XFP_PACKED_VERSION;
	fixture_packed(path, &label);
	OK(xfp_artifact_open(path, XFP_PACKED_KIND, XFP_PACKED_VERSION, KEY, &a, &err));
	OK(xfp_packed_read(&a, &p, &err));
	assert_int_equal(p.k, 3);
	assert_int_equal(p.matrices, 2);
	assert_int_equal(p.outliers, 3);
	assert_int_equal(p.bytes[XFP_PART_INDEX], 30);
	assert_int_equal(p.bytes[XFP_PART_BALANCE], 0);
	assert_int_equal(p.digest[XFP_PART_OUTLIER].sha256[31], 4);
	assert_int_equal(p.digest[XFP_PART_BALANCE].xxh3[0], 0);
	assert_int_equal(p.matrix[0].exponent, -7);
	assert_int_equal(p.matrix[1].exponent, 300);
	assert_int_equal(p.matrix[1].offset[XFP_PART_OUTLIER], 5);
	assert_int_equal(p.matrix[1].source[2], 6);
	assert_true(p.cos_p5 == 0.97);
	/* The extents are those of the file as it is. */
	file = slurp(path, &size);
	OK(xfp_packed_extent(&a, XFP_PART_OUTLIER, &offset, &bytes, &err));
	assert_int_equal(bytes, 10);
	assert_true(offset + bytes <= size);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(file[offset + i], 192 + i);
	assert_int_equal(xfp_packed_extent(&a, XFP_PART_BALANCE, &offset, &bytes, NULL), XFP_DAMAGED);
	free(file);
	xfp_packed_free(&p);
	xfp_artifact_close(&a);
	free(path);
}

/* The same content gives the same bytes, a second later. */
static void reproducible(void **state)
{
	char *one = scratch_path(state, "a.h5"), *two = scratch_path(state, "b.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	uint8_t *first, *second;
	size_t size, other;

	fixture_fit(one, &label);
	sleep(1);
	fixture_fit(two, &label);
	first = slurp(one, &size);
	second = slurp(two, &other);
	assert_int_equal(size, other);
	assert_memory_equal(first, second, size);
	free(first);
	free(second);
	free(one);
	free(two);
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
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION + 1, KEY, "version 2 instead of 3");
	expect_damaged(path, XFP_FIT_KIND, XFP_FIT_VERSION, OTHER, "made for key");
	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	xfp_artifact_close(&a);
	assert_int_equal(xfp_artifact_open(missing, NULL, 0, NULL, &a, NULL), XFP_FAILED);
	assert_int_equal(xfp_artifact_check(*state, NULL), XFP_DAMAGED); /* a folder */
	free(path);
	free(missing);
}

/* Whole and sealed, but not what the schema says: each of these readers must refuse. */
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
		if (fault == 3 && !status) /* found when the positions are read */
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

	for (unsigned fault = 0; fault < 10; fault++) {
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

/* A file size limit is as good as a full disk. Wherever it strikes, the failure is reported, and the
 * process goes on and ends as it should. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(outliers_round_trip), scratch_test(many_and_no_outliers), scratch_test(fit_round_trip),
		scratch_test(empty_fit),           scratch_test(choice_round_trip),    scratch_test(packed_round_trip),
		scratch_test(reproducible),        scratch_test(every_flipped_byte),   scratch_test(wrong_size),
		scratch_test(wrong_identity),      scratch_test(wrong_schema),         scratch_test(impossible_numbers),
		scratch_test(full_disk),           scratch_test(cannot_create),
	};

	return cmocka_run_group_tests_name("artifact", tests, NULL, NULL);
}
