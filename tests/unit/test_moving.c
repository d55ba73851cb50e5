/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units that move into a pending bundle: the record of progress, receipts, and the file itself.
 */
#include "cache/key.h"
#include "stages/work/moving.h"
#include "stages/work/receipts.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

/* ---- the record -------------------------------------------------------------------------------- */

static const struct xfp_moving some = { .layout = "0123456789abcdef0123456789abcdef",
					.decided = "fedcba9876543210fedcba9876543210",
					.units = 12 };

static bool read_record(void **state, struct xfp_moving *moving)
{
	bool found;

	assert_int_equal(xfp_moving_read(*state, moving, &found, &err), XFP_OK);
	return found;
}

static void record(void **state)
{
	struct xfp_moving read;

	assert_false(read_record(state, &read));
	assert_int_equal(xfp_moving_write(*state, &some, &err), XFP_OK);
	assert_true(read_record(state, &read));
	assert_string_equal(read.layout, some.layout);
	assert_string_equal(read.decided, some.decided);
	assert_int_equal(read.units, 12);
	assert_string_equal(read.sha256, "");
	xfp_moving_acknowledge(*state, 12);
	assert_int_equal(xfp_moving_restart(*state, &err), XFP_OK);
	assert_true(read_record(state, &read));
	assert_int_equal(read.units, 0);
	assert_false(xfp_moving_acknowledged(*state, 1)); /* recorded by the previous run */
	/* A complete record is read back unchanged. */
	memset(read.sha256, 'a', 64);
	read.units = 3;
	assert_int_equal(xfp_moving_write(*state, &read, &err), XFP_OK);
	assert_int_equal(xfp_moving_restart(*state, &err), XFP_OK);
	assert_true(read_record(state, &read));
	assert_int_equal(read.units, 3);
	assert_int_equal(strlen(read.sha256), 64);
	xfp_moving_remove(*state);
	assert_false(read_record(state, &read));
}

/* The seal covers every byte. */
static void damaged_record(void **state)
{
	char *path = scratch_path(state, XFP_MOVING_FILE), *text;
	struct xfp_moving read;
	size_t size;

	assert_int_equal(xfp_moving_write(*state, &some, &err), XFP_OK);
	assert_int_equal(xfp_slurp(path, 1000, &text, &size, &err), XFP_OK);
	for (size_t at = 0; at < size; at++) {
		text[at] ^= 1;
		assert_int_equal(xfp_write_file(path, text, size, false, &err), XFP_OK);
		assert_false(read_record(state, &read));
		text[at] ^= 1;
		assert_int_equal(xfp_write_file(path, text, at, false, &err), XFP_OK);
		assert_false(read_record(state, &read));
	}
	free(text);
	free(path);
}

/* A read error is not damage. */
static void no_record(void **state)
{
	char *file = scratch_path(state, "file");
	struct xfp_moving read;
	bool found;

	scratch_mkdir(state, XFP_MOVING_FILE);
	assert_int_equal(xfp_moving_read(*state, &read, &found, &err), XFP_FAILED);
	assert_false(found);
	scratch_write(state, "file", "", 0);
	assert_int_equal(xfp_receipts_sync(file, 0, 1, &err), XFP_FAILED);
	free(file);
	/* nor does a receipt that cannot be opened count as missing */
	file = scratch_path(state, "u000000-receipt");
	assert_int_equal(symlink("u000000-receipt", file), 0);
	assert_int_equal(xfp_receipts_sync(*state, 0, 1, &err), XFP_FAILED);
	free(file);
}

static void receipt_keys(void **state)
{
	struct xfp_receipt receipt = { 0 };
	char key[XFP_STAMPS][33] = { "" };
	char *good, *bad;

	(void)state;
	strcpy(key[XFP_STAMP_PACKED], "0123456789abcdef0123456789abcdef");
	assert_non_null(good = receipt.keys = xfp_receipt_keys_text(key));
	assert_true(xfp_receipt_keys(&receipt, key));
	assert_non_null(bad = receipt.keys = xfp_formatted("%s -", good)); /* one too many */
	assert_false(xfp_receipt_keys(&receipt, key));
	free(bad);
	receipt.keys = bad = strdup(good);
	bad[strlen(bad) - 1] = '\0'; /* a digit too few */
	assert_false(xfp_receipt_keys(&receipt, key));
	free(bad);
	receipt.keys = good;
	good[strlen(good) - 1] = 'g';
	assert_false(xfp_receipt_keys(&receipt, key));
	free(good);
}

static void seen(void **state)
{
	assert_false(xfp_moving_acknowledged(*state, 1));
	xfp_moving_acknowledge(*state, 7);
	assert_true(xfp_moving_acknowledged(*state, 7));
	assert_false(xfp_moving_acknowledged(*state, 8));
	xfp_moving_remove(*state);
	assert_false(xfp_moving_acknowledged(*state, 7));
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void kept_file(void **state)
{
	char *out = scratch_path(state, "out.xfp"), *kept = xfp_pending_kept_path(out);
	struct xfp_pending pending, other;

	assert_int_equal(xfp_pending_keep(out, &pending, &err), XFP_OK);
	assert_string_equal(pending.path, kept);
	assert_int_equal(xfp_pwrite(pending.fd, "abc", 3, 0, kept, &err), XFP_OK);
	/* Only one process may write it, and nobody removes it while one does. */
	assert_int_equal(xfp_pending_keep(out, &other, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "another process is writing this file"));
	xfp_pending_discard(&other);
	xfp_pending_kept_remove(out);
	assert_int_equal(access(kept, F_OK), 0);
	/* It is not debris, stays when it is discarded, and is found again with its content. */
	xfp_pending_discard(&pending);
	xfp_sweep_pending(*state);
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(xfp_pending_keep(out, &pending, &err), XFP_OK);
	assert_int_equal(lseek(pending.fd, 0, SEEK_END), 3);
	assert_int_equal(xfp_pending_publish(&pending, true, &err), XFP_OK);
	assert_int_equal(access(out, F_OK), 0);
	assert_int_not_equal(access(kept, F_OK), 0);
	/* A file that cannot be published is kept, too. */
	assert_int_equal(xfp_pending_keep(out, &pending, &err), XFP_OK);
	unlink(out);
	assert_int_equal(xfp_mkdirs(out, &err), XFP_OK);
	assert_int_equal(xfp_pending_publish(&pending, true, &err), XFP_FAILED);
	assert_int_equal(access(kept, F_OK), 0);
	xfp_pending_kept_remove(out);
	assert_int_not_equal(access(kept, F_OK), 0);
	free(kept);
	free(out);
}

/* Outputs whose names differ only at the end have different files, and a name of 255 bytes is possible. */
static void kept_files_of_long_names(void **state)
{
	char name[256], other_name[256];
	struct xfp_pending pending, other;
	char *out, *other_out;

	for (size_t length = 198; length <= 255; length++) {
		memset(name, 'x', length);
		name[length] = 0;
		memcpy(other_name, name, sizeof name);
		other_name[length - 1] = 'y';
		out = scratch_path(state, name);
		other_out = scratch_path(state, other_name);
		assert_int_equal(xfp_pending_keep(out, &pending, &err), XFP_OK);
		if (xfp_pending_keep(other_out, &other, &err))
			fail_msg("of %zu bytes: %s", length, err.text);
		assert_string_not_equal(pending.path, other.path);
		xfp_pending_discard(&pending);
		xfp_pending_discard(&other);
		xfp_pending_kept_remove(out);
		xfp_pending_kept_remove(other_out);
		free(out);
		free(other_out);
	}
}

/* ---- receipts ---------------------------------------------------------------------------------- */

#define KEY "0123456789abcdef0123456789abcdef"

static void leave(void **state, uint32_t unit, bool chosen)
{
	struct xfp_packed_matrix matrix[2] = { { .mode = XFP_MODE_V2, .k = 3, .exponent = -4, .outliers = 5 },
					       { .mode = XFP_MODE_V2, .k = 3, .offset = { 24 }, .outliers = 1 } };
	char key[XFP_STAMPS][33] = { "" };
	struct xfp_receipt receipt = {
		.packed = { .mode = XFP_MODE_V2,
			    .k = 3,
			    .matrices = 2,
			    .rows = 2,
			    .cols = 32,
			    .outliers = 6,
			    .cos_median = .5,
			    .bytes = { 48, 64 },
			    .matrix = matrix },
		.choice = { .candidate = { .mode = XFP_MODE_V2, .k = 3, .bytes = 112, .outliers = 6 },
			    .floor = 980000000,
			    .met = 1,
			    .fit = KEY },
		.chosen = chosen,
		.files = KEY
	};
	const struct xfp_key of = { .hex = KEY, .text = "of a test" };

	memset(receipt.packed.digest[1].sha256, 7, 32);
	strcpy(key[XFP_STAMP_PACKED], KEY);
	assert_non_null(receipt.keys = xfp_receipt_keys_text(key));
	if (xfp_receipt_publish(*state, unit, "a unit", &of, &receipt, &err))
		fail_msg("%s", err.text);
	free(receipt.keys);
}

static void receipts(void **state)
{
	struct xfp_receipt read;
	char of[33], key[XFP_STAMPS][33];

	assert_int_equal(xfp_receipt_find(*state, 3, &read, of, &err), XFP_OK);
	assert_string_equal(of, "");
	leave(state, 3, true);
	assert_int_equal(xfp_receipt_find(*state, 3, &read, of, &err), XFP_OK);
	assert_string_equal(of, KEY);
	assert_true(read.chosen);
	assert_string_equal(read.files, KEY);
	assert_int_equal(read.choice.floor, 980000000);
	assert_int_equal(read.choice.candidate.bytes, 112);
	assert_int_equal(read.packed.bytes[1], 64);
	assert_int_equal(read.packed.digest[1].sha256[31], 7);
	assert_int_equal(read.packed.matrix[0].exponent, -4);
	assert_int_equal(read.packed.matrix[1].offset[0], 24);
	assert_true(xfp_receipt_keys(&read, key));
	assert_string_equal(key[XFP_STAMP_PACKED], KEY);
	assert_string_equal(key[XFP_STAMP_FIT], "");
	xfp_receipt_free(&read);
	leave(state, 4, false);
	assert_int_equal(xfp_receipt_find(*state, 4, &read, of, &err), XFP_OK);
	assert_false(read.chosen);
	xfp_receipt_free(&read);
	assert_int_equal(xfp_receipts_sync(*state, 0, 9, &err), XFP_OK); /* those that exist */
	xfp_receipt_remove(*state, 3);
	assert_false(xfp_receipt_exists(*state, 3));
	assert_true(xfp_receipt_exists(*state, 4));
}

static void damaged_receipt(void **state)
{
	char *path = scratch_path(state, "u000003-receipt"), *text;
	struct xfp_receipt read;
	size_t size;
	char of[33];

	leave(state, 3, true);
	assert_int_equal(xfp_slurp(path, 1 << 20, &text, &size, &err), XFP_OK);
	for (size_t at = 0; at < size; at += at < 60 ? 1 : 97) {
		text[at] ^= 4;
		assert_int_equal(xfp_write_file(path, text, size, false, &err), XFP_OK);
		if (at < 40 || at >= 512)
			assert_int_equal(xfp_receipt_find(*state, 3, &read, of, &err), XFP_DAMAGED);
		text[at] ^= 4;
	}
	assert_int_equal(xfp_write_file(path, text, size / 2, false, &err), XFP_OK);
	assert_int_equal(xfp_receipt_find(*state, 3, &read, of, &err), XFP_DAMAGED);
	free(text);
	free(path);
}

/* ---- the key of a receipt ---------------------------------------------------------------------- */

static void key_with(const char *inputs, const struct xfp_parameters *parameters, const struct xfp_policy *policy,
		     enum xfp_plan plan, uint8_t first, char hex[33])
{
	const uint8_t source[2][16] = { { first }, { 9 } };
	const struct xfp_key_source of = { XFP_BF16, 2, 4, 32, source };
	struct xfp_key key = { 0 };

	assert_int_equal(xfp_key_receipt(&of, plan, inputs, policy, parameters, &key, &err), XFP_OK);
	memcpy(hex, key.hex, 33);
	xfp_key_free(&key);
}

static void key_of(const struct xfp_parameters *parameters, const struct xfp_policy *policy, enum xfp_plan plan,
		   uint8_t first, char hex[33])
{
	key_with(NULL, parameters, policy, plan, first, hex);
}

/* The key changes with everything that may affect the unit's bytes, not with settings of other units. */
static void keys(void **state)
{
	struct xfp_parameters parameters = xfp_parameters_default(), other = parameters;
	struct xfp_policy policy = xfp_policy_of(&parameters, "x", "q", XFP_CLASS_ATTENTION), changed = policy;
	const struct xfp_assignment assigned = { .mode = XFP_MODE_V2, .k = 3 };
	char was[33], now[33];

	(void)state;
	key_of(&parameters, &policy, XFP_PLAN_FIT, 1, was);
	key_of(&parameters, &policy, XFP_PLAN_FIT, 2, now);
	assert_string_not_equal(was, now);
	key_of(&parameters, &policy, XFP_PLAN_FP8, 1, now);
	assert_string_not_equal(was, now);
	changed.floor--;
	key_of(&parameters, &changed, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	changed = policy;
	changed.fixed = !changed.fixed;
	key_of(&parameters, &changed, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	changed = policy;
	changed.format.bits ^= 8;
	key_of(&parameters, &changed, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	changed = policy;
	changed.assigned = &assigned;
	key_of(&parameters, &changed, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	key_with("1", &parameters, &policy, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	key_with("2", &parameters, &policy, XFP_PLAN_FIT, 1, was);
	assert_string_not_equal(was, now);
	key_of(&parameters, &policy, XFP_PLAN_FIT, 1, was);
	other.balance /= 2;
	key_of(&other, &policy, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	other = parameters;
	other.on_miss = XFP_MISS_BEST;
	key_of(&other, &policy, XFP_PLAN_FIT, 1, now);
	assert_string_not_equal(was, now);
	other = parameters;
	other.floor[XFP_CLASS_ROUTED_EXPERT] = 5;
	key_of(&other, &policy, XFP_PLAN_FIT, 1, now);
	assert_string_equal(was, now);
}

PROGRAM("test_moving")
{
	const struct CMUnitTest tests[] = {
		scratch_test(record),
		scratch_test(damaged_record),
		scratch_test(seen),
		scratch_test(kept_file),
		scratch_test(kept_files_of_long_names),
		scratch_test(receipts),
		scratch_test(damaged_receipt),
		cmocka_unit_test(keys),
		scratch_test(no_record),
		cmocka_unit_test(receipt_keys),
	};

	return cmocka_run_group_tests_name("moving", tests, NULL, NULL);
}
