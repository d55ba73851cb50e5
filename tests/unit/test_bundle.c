/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/sha256.h"
#include "runtime/xfp.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/watching.h"

static struct xfp_error err;

/* ---- writing and reading ----------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_file_info file;

	(void)state;
	fixture_make_bundle(&f, 0);
	assert_int_equal(fixture_accept(f.out, &err), XFP_OK);
	bundle = fixture_open(f.out);
	xfp_bundle_describe(bundle, &info);
	assert_string_equal(info.family, "test");
	assert_int_equal(info.json_bytes, strlen(f.input.json));
	assert_memory_equal(info.json, f.input.json, info.json_bytes);
	assert_int_equal(info.units, f.ledger.unit_count);
	assert_int_equal(info.tensors, f.ledger.tensor_count);
	assert_int_equal(info.files, f.ledger.extra_count);
	assert_int_equal(xfp_bundle_members(bundle), 4 + 2 + 3 + 3 + 4 + 4 + 1 + 4 + 4 + 5 + 3 + 4 + 5 + 4 + 3 + 3);

	for (uint32_t u = 0; u < info.units; u++) {
		const struct xfp_ledger_unit *unit = &f.units[u];
		const struct xfp_packed *packed = &f.packed[u];
		struct xfp_unit_info got;

		assert_true(xfp_bundle_unit(bundle, u, &got));
		assert_string_equal(got.name, unit->name);
		assert_string_equal(got.role, unit->role);
		assert_string_equal(got.class_name, xfp_class_name(unit->class_));
		assert_string_equal(got.mode_name, xfp_mode_name(packed->mode));
		assert_int_equal(got.k, packed->k);
		assert_int_equal(got.experts, unit->experts);
		assert_int_equal(got.rows, unit->rows);
		assert_int_equal(got.cols, unit->cols);
		assert_int_equal(got.outliers, packed->outliers);
		for (int p = 0; p < XFP_PARTS; p++)
			got.bytes -= packed->bytes[p];
		assert_int_equal(got.bytes, 0);
		assert_int_equal(got.group_size, packed->group ? 1u << packed->group : 0);
		assert_int_equal(got.library_size, packed->group ? 1u << packed->library : 0);
		assert_memory_equal(&got.cos_median, &packed->cos_median, sizeof(double));
		assert_memory_equal(&got.cos_p5, &packed->cos_p5, sizeof(double));
		assert_memory_equal(&got.error, &packed->error, sizeof(double));
		assert_true(got.floor == f.bundle_units[u].floor && got.met);
		assert_int_equal(xfp_bundle_find_unit(bundle, unit->name, unit->role), u);
		assert_true(xfp_bundle_find_unit(bundle, unit->name, NULL) != XFP_NOT_FOUND);
		assert_int_equal(xfp_bundle_find_unit(bundle, unit->name, "other"), XFP_NOT_FOUND);
		for (uint32_t e = 0; e < unit->experts; e++) {
			struct xfp_matrix_info matrix;

			assert_true(xfp_bundle_matrix(bundle, got.first_matrix + e, &matrix));
			assert_int_equal(matrix.unit, u);
			assert_int_equal(matrix.expert, e);
			assert_int_equal(matrix.tensor, f.matrices[got.first_matrix + e].tensor);
			assert_int_equal(matrix.base, f.matrices[got.first_matrix + e].base);
			assert_int_equal(matrix.exponent, packed->matrix[e].exponent);
			assert_memory_equal(matrix.source, packed->matrix[e].source, 16);
			assert_int_equal(e ? 0 : (uintptr_t)matrix.index % 4096, 0);
		}
	}
	for (uint32_t t = 0; t < info.tensors; t++) {
		const struct xfp_ledger_tensor *tensor = &f.tensors[t];
		struct xfp_tensor_info got;

		assert_true(xfp_bundle_tensor(bundle, t, &got));
		assert_string_equal(got.name, tensor->name);
		assert_string_equal(got.reason, tensor->reason);
		assert_string_equal(got.dtype_name, xfp_dtype_name(tensor->dtype));
		assert_int_equal(got.fate, tensor->fate);
		assert_int_equal(got.rank, tensor->rank);
		assert_memory_equal(got.shape, tensor->shape, sizeof got.shape);
		assert_int_equal(got.tied, tensor->tied);
		assert_int_equal(xfp_bundle_find_tensor(bundle, tensor->name), t);
		assert_int_equal(!got.data, tensor->fate != XFP_FATE_KEPT || !strcmp(tensor->name, "e.k_proj.weight"));
		if (got.data) {
			XXH128_canonical_t digest;

			assert_int_equal((uintptr_t)got.data % 4096, 0);
			assert_int_equal(got.bytes, tensor->bytes);
			assert_memory_equal(got.data, f.data[t], tensor->bytes);
			XXH128_canonicalFromHash(&digest, XXH3_128bits(f.data[t], tensor->bytes));
			assert_memory_equal(got.source, digest.digest, 16);
		}
	}
	assert_true(xfp_bundle_file(bundle, xfp_bundle_find_file(bundle, "1_Pooling/config.json"), &file));
	assert_int_equal(file.bytes, strlen("{\"word_embedding_dimension\": 8}\n"));
	assert_memory_equal(file.data, "{\"word_embedding_dimension\": 8}\n", file.bytes);
	assert_true(xfp_bundle_file(bundle, xfp_bundle_find_file(bundle, f.extras[3]), &file));
	assert_memory_equal(file.data, "words\n", 6);
	assert_int_equal(xfp_bundle_find_file(bundle, "none"), XFP_NOT_FOUND);
	assert_int_equal(xfp_bundle_find_tensor(bundle, "zzz"), XFP_NOT_FOUND);
	assert_false(xfp_bundle_unit(bundle, info.units, &(struct xfp_unit_info){ 0 }));
	assert_false(xfp_bundle_matrix(bundle, info.matrices, &(struct xfp_matrix_info){ 0 }));
	assert_false(xfp_bundle_tensor(bundle, info.tensors, &(struct xfp_tensor_info){ 0 }));
	assert_false(xfp_bundle_file(bundle, info.files, &(struct xfp_file_info){ 0 }));
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void decoding_agrees_with_the_plain_way(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	for (uint32_t m = 0; m < f.ledger.matrix_count; m++) {
		uint64_t rows = f.matrices[m].rows, cols = f.matrices[m].cols;
		float *out = malloc(rows * cols * sizeof *out);

		assert_int_equal(xfp_bundle_dequantize(bundle, m, 0, rows, XFP_FLOAT32, out, &err), XFP_OK);
		assert_memory_equal(out, f.decoded[m], rows * cols * sizeof *out);
		/* a few rows at a time */
		assert_int_equal(xfp_bundle_dequantize(bundle, m, 1, 2, XFP_FLOAT32, out, &err), XFP_OK);
		assert_memory_equal(out, f.decoded[m] + cols, 2 * cols * sizeof *out);
		assert_int_equal(xfp_bundle_dequantize(bundle, m, rows, 0, XFP_FLOAT32, out, &err), XFP_OK);
		assert_int_equal(xfp_bundle_dequantize(bundle, m, 1, rows, XFP_FLOAT32, out, &err), XFP_USAGE);
		assert_int_equal(xfp_bundle_dequantize(bundle, m, rows + 1, 0, XFP_FLOAT32, out, &err), XFP_USAGE);
		free(out);
	}
	assert_int_equal(xfp_bundle_dequantize(bundle, f.ledger.matrix_count, 0, 0, XFP_FLOAT32, NULL, &err),
			 XFP_USAGE);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void the_same_description_gives_the_same_bytes(void **state)
{
	struct fixture f;
	size_t first_size, second_size;
	uint8_t *first, *second, digest[32];
	char sha256[65], hex[65];

	(void)state;
	fixture_make_bundle(&f, 0);
	first = fixture_read(f.out, &first_size);
	assert_int_equal(xfp_bundle_write(f.out, &f.input, sha256, &err), XFP_OK);
	second = fixture_read(f.out, &second_size);
	assert_int_equal(first_size, second_size);
	assert_memory_equal(first, second, first_size);
	xfp_sha256(second, second_size, digest);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(sha256, hex);
	free(first);
	free(second);
	fixture_free(&f);
}

static void a_bundle_of_nothing(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	f.ledger.unit_count = f.ledger.tensor_count = f.ledger.matrix_count = f.ledger.extra_count = 0;
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_int_equal(fixture_accept(f.out, &err), XFP_OK);
	f.ledger.unit_count = f.ledger.tensor_count = f.ledger.matrix_count = 1; /* restored for fixture_free */
	f.ledger.tensor_count = 2;
	fixture_free(&f);
}

/* ---- faults of the sources --------------------------------------------------------------------- */

static void nothing_is_left(const struct fixture *f)
{
	char *pattern = xfp_formatted("ls -A '%s' | grep -c -e out -e tmp >/dev/null", f->folder);

	assert_int_not_equal(system(pattern), 0);
	free(pattern);
}

static void a_damaged_artifact_is_named(void **state)
{
	struct fixture f;
	size_t size;
	uint8_t *data;

	(void)state;
	fixture_make(&f, 1);
	data = fixture_read(f.bundle_units[0].path, &size);
	data[f.bundle_units[0].offset[XFP_PART_CODE] + 1] ^= 4;
	fixture_write(f.bundle_units[0].path, data, size);
	free(data);
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_DAMAGED);
	assert_non_null(strstr(err.text, f.bundle_units[0].path));
	nothing_is_left(&f);
	fixture_free(&f);
}

static const char *grows; /* its file grows after its size is known */

/* Replaces the function of base/ through the linker's --wrap: the bundle is begun after all sizes are known. */
enum xfp_status __real_xfp_pending_open(const char *path, struct xfp_pending *pending, struct xfp_error *err);
enum xfp_status __wrap_xfp_pending_open(const char *path, struct xfp_pending *pending, struct xfp_error *err);

enum xfp_status __wrap_xfp_pending_open(const char *path, struct xfp_pending *pending, struct xfp_error *err)
{
	if (grows) {
		FILE *file = fopen(grows, "a");

		assert_non_null(file);
		fputs("and more", file);
		assert_int_equal(fclose(file), 0);
		grows = NULL;
	}
	return __real_xfp_pending_open(path, pending, err);
}

/* Otherwise only its beginning would be stored. */
static void a_small_file_that_grows_is_told(void **state)
{
	struct fixture f;
	char *path;

	(void)state;
	fixture_make(&f, 1);
	assert_true(f.ledger.extra_count > 0);
	path = xfp_path(f.ledger.model, f.extras[0]);
	grows = path;
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_BAD_INPUT);
	assert_null(grows);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "changed while the bundle was being written"));
	nothing_is_left(&f);
	free(path);
	fixture_free(&f);
}

static void parts_of_the_wrong_size_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	for (int small = 1; small <= 3; small++) {
		for (int p = 0; p < XFP_PARTS; p++) {
			fixture_make(&f, small);
			f.packed[0].bytes[p] += 16;
			assert_int_equal(fixture_write_bundle(&f, &err), XFP_DAMAGED);
			nothing_is_left(&f);
			fixture_free(&f);
		}
	}
}

static void groups_of_the_wrong_size_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	for (int small = 1; small <= 3; small++) {
		for (int fault = 0; fault < 6; fault++) {
			fixture_make(&f, small);
			f.packed[0].group += fault == 0 ? 7 : 0;
			f.packed[0].library += fault == 1 ? 1 : fault == 2 ? 256 : 0;
			f.packed[0].mode += fault == 3 ? 1 : 0;
			f.packed_matrices[0][0].mode += fault == 3 ? 1 : 0;
			f.packed[0].k += fault == 4 ? 1 : 0;
			f.packed_matrices[0][0].k += fault == 4 ? 1 : 0;
			f.packed_matrices[0][0].offset[XFP_PART_INDEX] += fault == 5 ? 16 : 0;
			assert_int_equal(fixture_write_bundle(&f, &err), XFP_DAMAGED);
			nothing_is_left(&f);
			fixture_free(&f);
		}
	}
}

static void a_source_that_became_shorter_is_named(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	assert_int_equal(truncate(f.file.path, (off_t)(f.tensors[1].offset + 2)), 0);
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "model.safetensors"));
	nothing_is_left(&f);
	fixture_free(&f);
}

static void a_missing_source_is_named(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	assert_int_equal(unlink(f.file.path), 0);
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "model.safetensors"));
	nothing_is_left(&f);
	fixture_free(&f);
}

/* Extras must be files; a folder of that name is not one. */
static void a_folder_is_no_extra_file(void **state)
{
	struct fixture f;
	char *path;

	(void)state;
	fixture_make(&f, 1);
	path = xfp_path(f.model, f.extras[0]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "config.json: not a file"));
	nothing_is_left(&f);
	free(path);
	fixture_free(&f);
}

/* Progress is reported for every part that is read, and the total was known before the first. */
static void who_watches_is_told_of_every_part(void **state)
{
	struct counter counter = { .watcher = { count_more, count_done } };
	struct xfp_ledger ledger;
	struct fixture f;

	(void)state;
	fixture_make(&f, 0);
	ledger = *f.input.ledger;
	ledger.watcher = &counter.watcher;
	f.input.ledger = &ledger;
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_true(counter.calls > ledger.unit_count);
	assert_int_equal(counter.done, counter.more);
	assert_true(counter.more > 0 && !counter.late);
	fixture_free(&f);
}

/* The checkpoint's files are checked again after everything is written. */
static void a_source_that_changed_meanwhile_is_named(void **state)
{
	char sha256[65];
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_int_equal(unlink(f.out), 0);
	f.file.identity.mtime_ns++;
	assert_int_equal(xfp_bundle_write(f.out, &f.input, sha256, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "model.safetensors: changed while it was being converted"));
	nothing_is_left(&f);
	fixture_free(&f);
}

static void a_full_disk_leaves_nothing(void **state)
{
	struct rlimit before, limit;
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	for (limit.rlim_cur = 0; limit.rlim_cur < 24000; limit.rlim_cur += 1999) {
		enum xfp_status status;

		setrlimit(RLIMIT_FSIZE, &limit);
		status = fixture_write_bundle(&f, &err);
		setrlimit(RLIMIT_FSIZE, &before);
		assert_int_equal(status, XFP_FAILED);
		nothing_is_left(&f);
	}
	fixture_free(&f);
}

static void a_name_that_is_not_utf8_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	f.tensors[0].name = (char *)"\xff\xfe";
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_BAD_INPUT);
	nothing_is_left(&f);
	fixture_free(&f);
}

/* ---- faults of the bundle ---------------------------------------------------------------------- */

static void flip_every_byte(int small)
{
	struct fixture f;
	size_t size;
	uint8_t *map;
	int fd;

	fixture_make_bundle(&f, small);
	free(fixture_read(f.out, &size));
	fd = open(f.out, O_RDWR);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(fixture_accept(f.out, &err), XFP_OK);
	for (size_t i = 0; i < size; i++) {
		map[i] ^= (uint8_t)(1u << i % 8);
		if (fixture_accept(f.out, &err) != XFP_BAD_INPUT)
			fail_msg("byte %zu of %zu may be anything", i, size);
		map[i] ^= (uint8_t)(1u << i % 8);
	}
	assert_int_equal(fixture_accept(f.out, &err), XFP_OK);
	munmap(map, size);
	close(fd);
	fixture_free(&f);
}

static void every_flipped_byte_is_found(void **state)
{
	(void)state;
	for (int small = 1; small <= 3; small++)
		flip_every_byte(small);
}

static void every_other_length_is_refused(void **state)
{
	struct fixture f;
	size_t size;
	uint8_t *data;
	int fd;

	(void)state;
	fixture_make_bundle(&f, 1);
	data = fixture_read(f.out, &size);
	fd = open(f.out, O_WRONLY | O_APPEND);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(write(fd, "", 1), 1);
		if (i < 600 || i % 512 == 511 || i == 4095)
			assert_int_equal(fixture_accept(f.out, &err), XFP_BAD_INPUT);
	}
	for (size_t length = size; length-- > 0;) {
		assert_int_equal(ftruncate(fd, (off_t)length), 0);
		assert_int_equal(fixture_accept(f.out, &err), XFP_BAD_INPUT);
	}
	close(fd);
	free(data);
	fixture_free(&f);
}

static void what_is_no_bundle_is_refused(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct fixture f;
	char *fifo;

	(void)state;
	fixture_make_bundle(&f, 1);
	assert_int_equal(fixture_accept(f.folder, &err), XFP_BAD_INPUT);
	assert_int_equal(fixture_accept(f.file.path, &err), XFP_BAD_INPUT);
	assert_int_equal(fixture_accept("/dev/null", &err), XFP_BAD_INPUT);
	fifo = xfp_path(f.folder, "fifo"); /* without a writer */
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(fixture_accept(fifo, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "not a regular file"));
	free(fifo);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", f.folder);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(fixture_accept(address.sun_path, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "not a regular file"));
	close(listener);
	assert_int_equal(fixture_accept("/nonexistent/x.xfp", &err), XFP_BAD_INPUT);
	assert_int_equal(fixture_accept("/dev/null/x.xfp", &err), XFP_BAD_INPUT); /* a file is not a folder */
	assert_non_null(strstr(err.text, "/dev/null/x.xfp: no such file"));
	fixture_free(&f);
}

static bool stop(void *context, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	return --*(int *)context > 0;
}

static void a_check_reports_and_can_be_stopped(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	int left = 3;

	(void)state;
	fixture_make_bundle(&f, 1);
	bundle = fixture_open(f.out);
	assert_int_equal(xfp_bundle_check(bundle, stop, &left, &err), XFP_FAILED);
	assert_int_equal(left, 0);
	left = 100;
	assert_int_equal(xfp_bundle_check(bundle, stop, &left, &err), XFP_OK);
	assert_int_equal(left, 100 - (int)xfp_bundle_members(bundle));
	assert_int_equal(xfp_bundle_check_member(bundle, xfp_bundle_members(bundle), &err), XFP_USAGE);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

PROGRAM("test_bundle")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(decoding_agrees_with_the_plain_way),
		cmocka_unit_test(the_same_description_gives_the_same_bytes),
		cmocka_unit_test(a_bundle_of_nothing),
		cmocka_unit_test(a_damaged_artifact_is_named),
		cmocka_unit_test(a_small_file_that_grows_is_told),
		cmocka_unit_test(parts_of_the_wrong_size_are_refused),
		cmocka_unit_test(groups_of_the_wrong_size_are_refused),
		cmocka_unit_test(a_source_that_became_shorter_is_named),
		cmocka_unit_test(a_missing_source_is_named),
		cmocka_unit_test(a_folder_is_no_extra_file),
		cmocka_unit_test(who_watches_is_told_of_every_part),
		cmocka_unit_test(a_source_that_changed_meanwhile_is_named),
		cmocka_unit_test(a_full_disk_leaves_nothing),
		cmocka_unit_test(a_name_that_is_not_utf8_is_refused),
		cmocka_unit_test(every_flipped_byte_is_found),
		cmocka_unit_test(every_other_length_is_refused),
		cmocka_unit_test(what_is_no_bundle_is_refused),
		cmocka_unit_test(a_check_reports_and_can_be_stopped),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
