/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle's bytes are compared with their digests before they are used.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/weights/digests.h"
#include "model/weights/weights.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/unit.h"

struct opened {
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_digests *digests;
	struct xfp_team *team;
	uint32_t members;
};

static const struct xfp_digest_reading plain = { 0 }, letting_go = { .releases_pages = true };
static struct xfp_error err;
static uint32_t restored = XFP_NOT_FOUND; /* changed back before libxfp reads it again */
static struct opened *opened;

/* Flip one bit in the middle of a member of the mapped file. */
static void flip(uint32_t member)
{
	struct xfp_member_info info;
	struct xfp_bundle_info of;
	size_t size;
	uint8_t *data = fixture_read(opened->f.out, &size), *json;
	const uint8_t *middle;
	int fd = open(opened->f.out, O_WRONLY);

	xfp_bundle_describe(opened->bundle, &of);
	assert_true(xfp_bundle_member(opened->bundle, member, &info));
	assert_non_null(json = memmem(data, size, of.json, of.json_bytes));
	middle = (const uint8_t *)info.data + info.bytes / 2;
	json += middle - (const uint8_t *)of.json;
	*json ^= 16;
	assert_int_equal(pwrite(fd, json, 1, json - data), 1);
	close(fd);
	free(data);
}

enum xfp_status __real_xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *err);
enum xfp_status __wrap_xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *err);

enum xfp_status __wrap_xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *own)
{
	if (number == restored)
		flip(number);
	return __real_xfp_bundle_check_member(bundle, number, own);
}

static int begin_with(void **state, int small)
{
	opened = calloc(1, sizeof *opened);
	fixture_make_bundle(&opened->f, small);
	opened->bundle = fixture_open(opened->f.out);
	opened->members = xfp_bundle_members(opened->bundle);
	restored = XFP_NOT_FOUND;
	*state = opened;
	return xfp_digests_open(opened->bundle, &opened->digests, &err) || xfp_team_start(2, &opened->team, &err);
}

static int begin(void **state)
{
	return begin_with(state, 0);
}

static int begin_small(void **state)
{
	return begin_with(state, 1);
}

static int end(void **state)
{
	(void)state;
	xfp_team_end(opened->team);
	xfp_digests_close(opened->digests);
	xfp_bundle_close(opened->bundle);
	fixture_free(&opened->f);
	free(opened);
	return 0;
}

/* Check only the unit or tensor that owns the member. */
static enum xfp_status check_owner(uint32_t member, const struct xfp_digest_reading *reading)
{
	struct xfp_member_info info;

	assert_true(xfp_bundle_member(opened->bundle, member, &info));
	assert_int_equal((info.unit != XFP_NOT_FOUND) + (info.tensor != XFP_NOT_FOUND) + (info.file != XFP_NOT_FOUND),
			 1);
	if (info.unit != XFP_NOT_FOUND)
		return xfp_digests_check_unit(opened->digests, info.unit, reading, &err);
	if (info.tensor != XFP_NOT_FOUND)
		return xfp_digests_check_tensor(opened->digests, info.tensor, reading, &err);
	return xfp_digests_check_file(opened->digests, info.file, &err);
}

static void each_member_is_held_against_its_digest(void **state)
{
	struct xfp_member_info info;

	(void)state;
	assert_false(xfp_bundle_member(opened->bundle, opened->members, &info));
	/* Later members of the same unit are restored by then. */
	for (uint32_t member = opened->members; member--;) {
		assert_true(xfp_bundle_member(opened->bundle, member, &info));
		if (!info.bytes)
			continue;
		flip(member);
		assert_int_equal(check_owner(member, member % 2 ? &plain : &letting_go), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "its content fails its SHA-256"));
		flip(member);
	}
	for (uint32_t member = 0; member < opened->members; member++)
		assert_int_equal(check_owner(member, &letting_go), XFP_OK);
	/* Verified members are not read again. */
	flip(opened->members - 1);
	assert_int_equal(check_owner(opened->members - 1, &plain), XFP_OK);
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &plain, &err), XFP_OK);
}

static void all_together_name_the_first(void **state)
{
	struct xfp_error first;

	(void)state;
	flip(opened->members - 1);
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &plain, &err), XFP_BAD_INPUT);
	flip(opened->members - 2);
	assert_int_equal(xfp_bundle_check(opened->bundle, NULL, NULL, &first), XFP_BAD_INPUT);
	assert_string_not_equal(err.text, first.text);
	xfp_digests_close(opened->digests);
	assert_int_equal(xfp_digests_open(opened->bundle, &opened->digests, &err), XFP_OK);
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &letting_go, &err), XFP_BAD_INPUT);
	assert_string_equal(err.text, first.text);
}

static void wrong_once_is_no_damage(void **state)
{
	(void)state;
	restored = opened->members - 1;
	flip(restored);
	assert_int_equal(check_owner(restored, &plain), XFP_FAILED);
	assert_non_null(strstr(err.text, "but not when it was read again; check the disk and memory"));
	flip(restored);
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &plain, &err), XFP_FAILED);
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &plain, &err), XFP_OK);
}

static bool some_times(void *context, uint64_t numbers)
{
	int *left = context;

	assert_int_equal(numbers, 0);
	return --*left > 0;
}

static void who_watches_may_end_it(void **state)
{
	int left = 1;
	const struct xfp_digest_reading reading = { .watch = some_times, .context = &left };

	(void)state;
	assert_int_equal(check_owner(opened->members - 1, &reading), XFP_FAILED);
	assert_non_null(strstr(err.text, "reading was interrupted"));
	left = 1;
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &reading, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "reading was interrupted"));
	left = 1000000;
	assert_int_equal(xfp_digests_check_all(opened->digests, opened->team, &reading, &err), XFP_OK);
	assert_true(left < 1000000);
}

/* Open the bundle and read every tensor like xfp eval, or check all of it like xfp generate. */
static enum xfp_status use(const char *path, bool all)
{
	enum xfp_status status;
	void *source = NULL;
	char *config = NULL;

	if ((status = xfp_weights_open_bundle(path, &source, &config, &err)))
		return status;
	if (all)
		status = xfp_weights_of_bundle.check_all(source, opened->team, NULL, NULL, &err);
	for (uint32_t t = 0; !all && !status && t < opened->f.ledger.tensor_count; t++)
		status = xfp_weights_of_bundle.check(source, opened->f.tensors[t].name, NULL, NULL, &err);
	xfp_weights_of_bundle.close(source);
	free(config);
	return status;
}

static void refused_by_all(const char *path, size_t byte, unsigned bit)
{
	if (fixture_accept(path, &err) != XFP_BAD_INPUT)
		fail_msg("verify accepts a flip of bit %u of byte %zu", bit, byte);
	if (use(path, false) != XFP_BAD_INPUT)
		fail_msg("eval accepts a flip of bit %u of byte %zu", bit, byte);
	if (use(path, true) != XFP_BAD_INPUT)
		fail_msg("generate accepts a flip of bit %u of byte %zu", bit, byte);
}

/* Flip one bit of each zero byte (padding), every bit of the other bytes of tar headers, and a bit of every seventh
 * byte covered by a digest. */
static void verify_eval_and_generate_refuse_the_same_flips(void **state)
{
	size_t size;
	uint8_t *map, *covered;
	int fd;

	(void)state;
	free(fixture_read(opened->f.out, &size));
	assert_non_null(covered = calloc(1, size));
	fd = open(opened->f.out, O_RDWR);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(use(opened->f.out, false), XFP_OK);
	assert_int_equal(use(opened->f.out, true), XFP_OK);
	for (uint32_t m = 0; m < opened->members; m++) {
		struct xfp_member_info info;
		const uint8_t *at;

		assert_true(xfp_bundle_member(opened->bundle, m, &info));
		if (info.bytes && (at = memmem(map, size, info.data, info.bytes)))
			memset(covered + (at - map), 1, info.bytes);
	}
	for (size_t i = 0; i < size; i++) {
		unsigned first = covered[i] || !map[i] ? i % 8 : 0, last = covered[i] || !map[i] ? first : 7;

		for (unsigned bit = first; bit <= last && !(covered[i] && i % 7); bit++) {
			map[i] ^= (uint8_t)(1u << bit);
			refused_by_all(opened->f.out, i, bit);
			map[i] ^= (uint8_t)(1u << bit);
		}
	}
	assert_int_equal(use(opened->f.out, false), XFP_OK);
	assert_int_equal(use(opened->f.out, true), XFP_OK);
	munmap(map, size);
	close(fd);
	free(covered);
}

PROGRAM("test_digests")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_member_is_held_against_its_digest, begin, end),
		cmocka_unit_test_setup_teardown(all_together_name_the_first, begin, end),
		cmocka_unit_test_setup_teardown(wrong_once_is_no_damage, begin, end),
		cmocka_unit_test_setup_teardown(who_watches_may_end_it, begin, end),
		cmocka_unit_test_setup_teardown(verify_eval_and_generate_refuse_the_same_flips, begin_small, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
