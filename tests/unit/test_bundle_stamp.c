/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stamp of an existing bundle is valid only as long as neither it nor the inputs of the requested bundle have
 * changed.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sha256.h"
#include "conversion/unchanged.h"
#include "schemas/layout/bundle_layout.h"
#include "stages/work/bundle_stamp.h"
#include "tests/unit/bundle_fixture.h"

static struct xfp_error err;

struct stamped {
	struct fixture f;
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_bundle_stamp stamp;
};

static void sha256_of(const char *path, char hex[65])
{
	size_t size;
	uint8_t *bytes = fixture_read(path, &size), digest[32];

	xfp_sha256(bytes, size, digest);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	free(bytes);
}

/* Create a bundle and its stamp, both in one folder. */
static void stamped_make(struct stamped *s, bool alone)
{
	memset(s, 0, sizeof *s);
	fixture_make_bundle(&s->f, 1);
	s->request.out = s->f.out;
	s->request.work = s->f.folder;
	s->c.parameters = xfp_parameters_default();
	s->c.request = &s->request;
	s->c.units.ledger = &s->f.ledger;
	s->c.units.state = calloc(s->f.ledger.unit_count + 1, sizeof *s->c.units.state);
	assert_non_null(s->c.units.state);
	sha256_of(s->f.out, s->stamp.sha256);
	assert_int_equal(xfp_bundle_stamp_fill(s->f.out, &s->stamp, &err), XFP_OK);
	assert_int_equal(xfp_bundle_stamp_key(&s->c, alone, s->stamp.key, &err), XFP_OK);
	assert_int_equal(xfp_bundle_stamp_write(s->f.folder, &s->stamp, &err), XFP_OK);
}

static void stamped_free(struct stamped *s)
{
	free(s->c.units.state);
	xfp_parameters_free(&s->c.parameters);
	fixture_free(&s->f);
}

static bool matches(struct stamped *s, bool alone)
{
	struct xfp_bundle_stamp stamp;
	bool yes = false;

	assert_int_equal(xfp_bundle_stamp_matches(&s->c, alone, &stamp, &yes, &err), XFP_OK);
	if (yes)
		assert_string_equal(stamp.sha256, s->stamp.sha256);
	return yes;
}

/* Change a byte of OUT as a failing disk does, and update the identity in the stamp. */
static void rot(struct stamped *s, uint64_t at)
{
	struct stat st;
	uint8_t byte;
	int fd = open(s->f.out, O_RDWR);

	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	s->stamp.identity = xfp_identity_of(&st);
	assert_int_equal(xfp_bundle_stamp_write(s->f.folder, &s->stamp, &err), XFP_OK);
}

static void a_bundle_that_is_as_it_was(void **state)
{
	struct stamped s;

	(void)state;
	for (int alone = 0; alone < 2; alone++) {
		stamped_make(&s, alone);
		assert_true(matches(&s, alone));
		assert_false(matches(&s, !alone));
		s.request.rehash = true;
		assert_int_equal(matches(&s, alone), !alone);
		stamped_free(&s);
	}
}

static bool is_sound(const struct stamped *s)
{
	struct xfp_bundle_stamp stamp;
	bool sound = true;

	assert_int_equal(xfp_bundle_stamp_read(s->f.folder, &stamp, &sound, &err), XFP_OK);
	return sound;
}

static void any_other_bit_of_the_stamp(void **state)
{
	struct stamped s;
	char *path, *text;
	size_t size;

	(void)state;
	stamped_make(&s, false);
	path = xfp_path(s.f.folder, XFP_BUNDLE_STAMP);
	text = (char *)fixture_read(path, &size);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		text[bit / 8] ^= (char)(1 << bit % 8);
		fixture_write(path, text, size);
		if (is_sound(&s))
			fail_msg("bit %zu of %.*s", bit, (int)size, text);
		assert_false(matches(&s, false));
		text[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t shorter = 0; shorter < size; shorter++) {
		fixture_write(path, text, shorter);
		assert_false(is_sound(&s));
	}
	{
		char *longer = malloc(size + 1);

		memcpy(longer, text, size);
		longer[size] = '\n';
		fixture_write(path, longer, size + 1);
		free(longer);
	}
	assert_false(is_sound(&s));
	fixture_write(path, text, size);
	assert_true(matches(&s, false));
	free(text);
	free(path);
	stamped_free(&s);
}

/* Find the ends of json and index in the archive's headers. */
static uint64_t front_of(const char *path)
{
	size_t size;
	uint8_t *bytes = fixture_read(path, &size);
	uint64_t at = 0;

	for (int member = 0; member < 2; member++)
		at += XFP_TAR_BLOCK +
		      ((strtoull((const char *)bytes + at + 124, NULL, 8) + XFP_TAR_BLOCK - 1) & ~(XFP_TAR_BLOCK - 1));
	free(bytes);
	return at;
}

/* Damage outside json and index is found only if everything is read. */
static void any_byte_of_the_bundle(void **state)
{
	uint64_t size, front, tail;
	struct stamped s;

	(void)state;
	stamped_make(&s, false);
	size = s.stamp.identity.size;
	front = front_of(s.f.out);
	tail = size - 4 * (uint64_t)XFP_TAR_BLOCK;
	for (int whole = 0; whole < 2; whole++) {
		s.request.rehash = whole;
		for (uint64_t at = 0; at < size; at += at < front || at >= tail ? 5 : 253) {
			bool noticed;

			rot(&s, at);
			noticed = !matches(&s, false);
			if (noticed != (whole || at < front || at >= tail))
				fail_msg("byte %llu of %llu", (unsigned long long)at, (unsigned long long)size);
			rot(&s, at);
		}
		assert_true(matches(&s, false));
	}
	stamped_free(&s);
}

/* Another valid index: another bundle replaced this one. */
static void another_index(void **state)
{
	struct stamped s;

	(void)state;
	stamped_make(&s, false);
	s.stamp.index[0] ^= 1;
	assert_int_equal(xfp_bundle_stamp_write(s.f.folder, &s.stamp, &err), XFP_OK);
	assert_false(matches(&s, false));
	stamped_free(&s);
}

/* Failing to open either is no reason to write the bundle again. */
static void no_descriptors_left(void **state)
{
	struct rlimit before, few;
	struct xfp_bundle_stamp stamp;
	enum xfp_status status;
	struct stamped s;
	bool yes = true;

	(void)state;
	stamped_make(&s, false);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	status = xfp_bundle_stamp_matches(&s.c, false, &stamp, &yes, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(status, XFP_FAILED);
	assert_false(yes);
	assert_non_null(strstr(err.text, "Too many open files"));
	stamped_free(&s);
}

/* Replaces the real function through the linker's --wrap. */
static const char *left_out;
bool __real_xfp_algorithm_decides(const struct xfp_algorithm *algorithm, const struct xfp_parameters *parameters);
bool __wrap_xfp_algorithm_decides(const struct xfp_algorithm *algorithm, const struct xfp_parameters *parameters);

bool __wrap_xfp_algorithm_decides(const struct xfp_algorithm *algorithm, const struct xfp_parameters *parameters)
{
	return __real_xfp_algorithm_decides(algorithm, parameters) && (!left_out || strcmp(algorithm->name, left_out));
}

/* The key of a bundle covers all algorithms that made it, including the survey. */
static void every_algorithm_is_in_the_key(void **state)
{
	struct stamped s;
	char key[33];

	(void)state;
	stamped_make(&s, true);
	s.c.parameters.outlier_sigma = XFP_SIGMA_AUTO;
	s.c.parameters.calibration = (struct xfp_calibrated){ "0", 1, "a" };
	assert_int_equal(xfp_bundle_stamp_key(&s.c, true, s.stamp.key, &err), XFP_OK);
	for (int i = 0; i < XFP_ALGORITHMS; i++) {
		left_out = xfp_algorithms[i].name;
		assert_int_equal(xfp_bundle_stamp_key(&s.c, true, key, &err), XFP_OK);
		if (!strcmp(key, s.stamp.key))
			fail_msg("%s does not count", left_out);
	}
	left_out = NULL;
	stamped_free(&s);
}

PROGRAM("test_bundle_stamp")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bundle_that_is_as_it_was), cmocka_unit_test(any_other_bit_of_the_stamp),
		cmocka_unit_test(any_byte_of_the_bundle),     cmocka_unit_test(another_index),
		cmocka_unit_test(no_descriptors_left),        cmocka_unit_test(every_algorithm_is_in_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
