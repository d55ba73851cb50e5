/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "bundle_layout.h"
#include "decode.h"
#include "index.h"
#include "number.h"

/* The bytes of bundle_layout.h, spelled out. */
static void words_are_the_papers(void **state)
{
	const uint8_t index[11] = { 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3 };
	uint8_t out[16];

	(void)state;
	xfp_index_pack(2, index, 11, out);
	assert_int_equal(out[0], 1 | 2 << 2 | 3 << 4);
	assert_int_equal(out[1], 1 | 2 << 2 | 3 << 4);
	assert_int_equal(out[2], 1 | 2 << 2 | 3 << 4);
	for (int i = 3; i < 16; i++)
		assert_int_equal(out[i], 0);
	xfp_index_pack(3, index, 11, out); /* ten in the first word, one in the second */
	assert_int_equal(out[0], (1 | 2 << 3 | 3 << 6) & 255);
	assert_int_equal(out[3] >> 6, 0);
	assert_int_equal(out[4], 3);
	xfp_index_pack(5, index, 11, out); /* three in 16 bits */
	assert_int_equal(out[0] | out[1] << 8, 1 | 2 << 5 | 3 << 10);
	assert_int_equal(out[2] | out[3] << 8, 0 | 1 << 5 | 2 << 10);
	xfp_index_pack(6, index, 11, out); /* five in 32 bits */
	assert_int_equal(out[4] | out[5] << 8, (2 | 3 << 6 | 0 << 12) & 0xffff);
}

static void every_length_survives_a_round_trip(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		for (size_t cols = 1; cols < 200; cols++) {
			uint64_t bytes = xfp_v2_row_bytes(cols, k);
			uint8_t *packed = malloc(bytes), *index = malloc(cols), *back = malloc(cols);

			assert_int_equal(bytes % 16, 0);
			memset(packed, 0xff, bytes);
			for (size_t c = 0; c < cols; c++)
				index[c] = (uint8_t)(test_random(&seed) & ((1u << k) - 1));
			xfp_index_pack(k, index, cols, packed);
			xfp_index_unpack(k, packed, cols, back);
			assert_memory_equal(index, back, cols);
			free(packed);
			free(index);
			free(back);
		}
	}
}

static void decoding_looks_entries_up(void **state)
{
	uint64_t seed = 9;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		for (size_t cols = 470; cols < 1000; cols += 53) {
			uint8_t index[1000], packed[1000 * 2];
			uint16_t codebook[64], residual[2] = { 0x3c00, 0xb800 };
			uint16_t column[2] = { 3, 469 };
			float x[1000];

			for (unsigned j = 0; j < 64; j++)
				codebook[j] = xfp_float_to_half((float)j * 3 - 17);
			for (size_t c = 0; c < cols; c++)
				index[c] = (uint8_t)(test_random(&seed) & ((1u << k) - 1));
			xfp_index_pack(k, index, cols, packed);
			xfp_decode_v2(k, packed, codebook, cols, x);
			for (size_t c = 0; c < cols; c++)
				assert_true(x[c] == (float)index[c] * 3 - 17);
			xfp_decode_outliers(column, 0, residual, 2, x);
			assert_true(x[3] == (float)index[3] * 3 - 16);
			assert_true(x[469] == (float)index[469] * 3 - 17.5f);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_the_papers),
		cmocka_unit_test(every_length_survives_a_round_trip),
		cmocka_unit_test(decoding_looks_entries_up),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
