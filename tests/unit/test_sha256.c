/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_digest(const uint8_t digest[32], const char *want)
{
	char hex[65];

	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, want);
}

/* The examples of FIPS 180-4, and the empty message. */
static void published_values(void **state)
{
	static const struct {
		const char *message, *digest;
	} published[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklm"
		  "ghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	uint8_t digest[32];

	(void)state;
	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		xfp_sha256(published[i].message, strlen(published[i].message), digest);
		assert_digest(digest, published[i].digest);
		xfp_sha256_plain(published[i].message, strlen(published[i].message), digest);
		assert_digest(digest, published[i].digest);
	}
}

static void a_million_times_a(void **state)
{
	const size_t size = 1000000;
	char *data = malloc(size);
	uint8_t digest[32];

	(void)state;
	memset(data, 'a', size);
	xfp_sha256(data, size, digest);
	assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	xfp_sha256_plain(data, size, digest);
	assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(data);
}

/* Hash the first 0, 1, 2, ... 400 of the bytes 0, 1, 2, ..., 250, 0, 1, ...: plain C and the SHA instructions agree,
 * and the digest of all these digests is the one that Python's hashlib gives. */
static void every_length(void **state)
{
	uint8_t data[400], digest[sizeof data + 1][32], plain[32], all[32];

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i % 251);
	for (size_t size = 0; size <= sizeof data; size++) {
		xfp_sha256(data, size, digest[size]);
		xfp_sha256_plain(data, size, plain);
		assert_memory_equal(digest[size], plain, 32);
	}
	xfp_sha256(digest, sizeof digest, all);
	assert_digest(all, "e262ac5ec9565f750657dbe05ab5339c87dd532a58d935a7f9cc7e8a53ee6168");
}

static void pieces_make_the_whole(void **state)
{
	uint8_t data[1000], pieces[32], whole[32];
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)test_random(&seed);
	xfp_sha256_plain(data, sizeof data, whole);
	for (int round = 0; round < 200; round++) {
		struct xfp_sha256 sha;
		size_t done = 0;

		xfp_sha256_init(&sha);
		while (done < sizeof data) {
			size_t piece = (size_t)(test_random(&seed) % (round < 100 ? 70 : 300));

			piece = piece < sizeof data - done ? piece : sizeof data - done;
			xfp_sha256_update(&sha, data + done, piece);
			done += piece;
		}
		xfp_sha256_final(&sha, pieces);
		assert_memory_equal(pieces, whole, 32);
	}
}

static void a_megabyte_at_any_alignment(void **state)
{
	size_t size = (1 << 20) + 17;
	uint8_t *data = malloc(size + 3), digest[32], plain[32];
	uint64_t seed = 4;

	(void)state;
	for (size_t i = 0; i < size + 3; i++)
		data[i] = (uint8_t)test_random(&seed);
	for (size_t shift = 0; shift < 4; shift++) {
		xfp_sha256(data + shift, size, digest);
		xfp_sha256_plain(data + shift, size, plain);
		assert_memory_equal(digest, plain, 32);
	}
	free(data);
}

PROGRAM("test_sha256")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_values),
		cmocka_unit_test(a_million_times_a),
		cmocka_unit_test(every_length),
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(a_megabyte_at_any_alignment),
	};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
