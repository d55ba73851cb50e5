/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static void published_values(void **state)
{
	static const uint8_t abc[32] = {
		0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
		0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
	};
	static const uint8_t nothing[32] = {
		0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
		0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
	};
	uint8_t digest[32];

	(void)state;
	xfp_sha256("abc", 3, digest);
	assert_memory_equal(digest, abc, 32);
	xfp_sha256("", 0, digest);
	assert_memory_equal(digest, nothing, 32);
}

static void every_length_agrees_with_libcrypto(void **state)
{
	uint8_t data[400], ours[32], theirs[32];
	uint64_t seed = 3;

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)test_random(&seed);
	for (size_t size = 0; size <= sizeof data; size++) {
		xfp_sha256(data, size, ours);
		assert_true(EVP_Digest(data, size, theirs, NULL, EVP_sha256(), NULL));
		assert_memory_equal(ours, theirs, 32);
		xfp_sha256_plain(data, size, ours);
		assert_memory_equal(ours, theirs, 32);
	}
}

static void pieces_make_the_whole(void **state)
{
	uint8_t data[1000], ours[32], theirs[32];
	uint64_t seed = 5;

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)test_random(&seed);
	assert_true(EVP_Digest(data, sizeof data, theirs, NULL, EVP_sha256(), NULL));
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
		xfp_sha256_final(&sha, ours);
		assert_memory_equal(ours, theirs, 32);
	}
}

static void a_megabyte_at_any_alignment(void **state)
{
	size_t size = (1 << 20) + 17;
	uint8_t *data = malloc(size + 3), ours[32], theirs[32];
	uint64_t seed = 4;

	(void)state;
	for (size_t i = 0; i < size + 3; i++)
		data[i] = (uint8_t)test_random(&seed);
	for (size_t shift = 0; shift < 4; shift++) {
		xfp_sha256(data + shift, size, ours);
		assert_true(EVP_Digest(data + shift, size, theirs, NULL, EVP_sha256(), NULL));
		assert_memory_equal(ours, theirs, 32);
	}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_values),
		cmocka_unit_test(every_length_agrees_with_libcrypto),
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(a_megabyte_at_any_alignment),
	};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
