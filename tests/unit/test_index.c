/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/common/lane_index.h"
#include "schemas/layout/bundle_layout.h"
#include "tests/unit/lane_bits.h"

static void sizes_are_dense_and_padded(void **state)
{
	(void)state;
	assert_int_equal(xfp_index_row_bytes(0, 3), 0);
	assert_int_equal(xfp_index_row_bytes(1, 2), 16);
	assert_int_equal(xfp_index_row_bytes(33, 3), 32);
	assert_int_equal(xfp_index_row_bytes(64, 6), 48);
	assert_int_equal(xfp_index_row_bytes(4096, 5), 4096 * 5 / 8);
}

/* The example in xfp(5). */
static void the_example_of_the_manual(void **state)
{
	static const uint8_t row[32] = {
		0x88, 0x5a, 0xec, 0x46, 0x11, 0xa3, 0x35, 0x88, 0x1a, 0xac, 0x06, 0x11,
		0x63, 0xf5, 0x08, 0x1a, 0x6c, 0x06, 0x11, 0x63, 0x35, 0x08, 0x5a, 0x6c,
	};
	uint8_t index[60], out[32];

	(void)state;
	for (unsigned c = 0; c < 60; c++)
		index[c] = (uint8_t)(c % 7);
	memset(out, 0xff, sizeof out);
	xfp_lane_index_pack(3, index, 60, out);
	assert_memory_equal(out, row, sizeof row);
}

static void every_bit_is_where_it_is_said(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		for (size_t cols = 1; cols < 1700; cols += 1 + cols / 40) {
			size_t bytes = xfp_index_row_bytes(cols, k);
			uint8_t *packed = malloc(bytes), *expected = calloc(bytes, 1);
			uint8_t *index = malloc(cols), *back = malloc(cols);

			memset(packed, 0xff, bytes);
			for (size_t c = 0; c < cols; c++) {
				index[c] = (uint8_t)(test_random(&seed) >> 20 & ((1u << k) - 1));
				for (unsigned bit = 0; bit < k; bit++) {
					size_t at = lane_bit(k, cols, c, bit);

					assert_true(at / 8 < bytes);
					expected[at / 8] |= (uint8_t)((index[c] >> bit & 1) << at % 8);
				}
			}
			xfp_lane_index_pack(k, index, cols, packed);
			assert_memory_equal(packed, expected, bytes);
			xfp_lane_index_unpack(k, packed, cols, back);
			assert_memory_equal(index, back, cols);
			free(packed);
			free(expected);
			free(index);
			free(back);
		}
	}
}

/* A decoder unpacks a row in pieces: whole chunks, and the rest. */
static void a_row_unpacks_in_pieces(void **state)
{
	uint8_t index[2500], packed[2500], back[2500];
	uint64_t seed = 9;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		size_t chunk = xfp_chunk_columns(k), done = 0;

		for (size_t c = 0; c < sizeof index; c++)
			index[c] = (uint8_t)(test_random(&seed) >> 20 & ((1u << k) - 1));
		xfp_lane_index_pack(k, index, sizeof index, packed);
		for (; done + chunk <= sizeof index; done += chunk)
			xfp_lane_index_unpack(k, packed + done / 8 * k, chunk, back + done);
		xfp_lane_index_unpack(k, packed + done / 8 * k, sizeof index - done, back + done);
		assert_memory_equal(index, back, sizeof index);
	}
}

PROGRAM("test_index")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_dense_and_padded),
		cmocka_unit_test(the_example_of_the_manual),
		cmocka_unit_test(every_bit_is_where_it_is_said),
		cmocka_unit_test(a_row_unpacks_in_pieces),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
