/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVFP4, MXFP4 and FP8 with tiles, as published.
 */
#include "tests/unit/peers.h"

#include "kernels/common/number.h"

static void shared_scales_are_counted(void **state)
{
	(void)state;
	assert_int_equal(xfp_peer_matrix_size(peer_of("Q4_K"), 100, 300), 118 * 144);
	assert_int_equal(xfp_peer_matrix_size(peer_of("MXFP4"), 100, 300), 938 * 17);
	assert_int_equal(xfp_peer_matrix_size(peer_of("NVFP4"), 100, 300), 1875 * 9 + 4);
	assert_int_equal(xfp_peer_matrix_size(peer_of("FP8-128x128"), 128, 256), 128 * 256 + 2 * 4);
	assert_int_equal(xfp_peer_matrix_size(peer_of("FP8-128x128"), 129, 257), 129 * 257 + 2 * 3 * 4);
	assert_int_equal(xfp_peer_matrix_size(peer_of("FP8-128x128"), 1u << 20, 1u << 14),
			 (1ull << 34) + (1ull << 13) * (1ull << 7) * 4);
}

static void four_bit_floats_are_read_as_written_down(void **state)
{
	static const float value[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6 };
	uint8_t block[34] = { 0 };
	float x[64];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		block[1 + i] = block[18 + i] = (uint8_t)(2 * i | (2 * i + 1) << 4);
	block[0] = 0x41;         /* E4M3: 2.25 */
	block[9] = 0x01;         /* the next block: 2^-9 */
	block[9 + 1 + 7] = 0x90; /* its last weight: -0.5 */
	xfp_peer_decode(peer_of("NVFP4"), 6 * 448 * 0.125f, block, 32, x);
	for (unsigned i = 0; i < 16; i++)
		assert_true(x[i] == value[i] * 2.25f * 0.125f);
	assert_true(x[31] == -0.5f * 0x1p-12f && x[30] == 0);

	block[0] = 130;
	block[17] = 0;
	xfp_peer_decode(peer_of("MXFP4"), 0, block, 64, x);
	for (unsigned i = 0; i < 16; i++)
		assert_true(x[i] == value[i] * 8 && x[32 + i] == value[i] * 0x1p-127f);
}

static void fp8_is_read_as_written_down(void **state)
{
	static const uint8_t block[] = { 0x7e, 0xfe, 0x38, 0x01, 0x08, 0x00 };
	float x[6];

	(void)state;
	xfp_peer_decode(peer_of("FP8-128x128"), 448 * 0.5f, block, 6, x);
	assert_true(x[0] == 224 && x[1] == -224 && x[2] == 0.5f && x[3] == 0x1p-10f && x[4] == 0x1p-7f && x[5] == 0);
}

/* ---- published encoders, reimplemented by trying all codes ---------------------------------------- */

struct elements {
	unsigned count;
	float value[127];
};

static const struct elements e2m1 = { 8, { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 } };

static struct elements e4m3(void)
{
	struct elements elements = { .count = 127 };

	for (unsigned code = 0; code < 127; code++)
		elements.value[code] =
			code < 8 ? ldexpf((float)code, -9) : ldexpf((float)(8 + code % 8), (int)(code / 8) - 10);
	return elements;
}

/* The nearest value; for ties, the even code. */
static float nearest(float y, const struct elements *elements)
{
	double best = INFINITY;
	float value = 0;

	for (unsigned code = 0; code < elements->count; code++) {
		double off = fabs((double)elements->value[code] - fabs((double)y));

		if (off < best || (off == best && code % 2 == 0)) {
			best = off;
			value = elements->value[code];
		}
	}
	return y < 0 ? -value : value;
}

static void reference_nvfp4(const float *x, size_t n, float *back)
{
	struct elements scales = e4m3();
	float scale = peak_of(x, n) / (6 * 448);

	for (size_t at = 0; at < n; at += 16) {
		float own = nearest(fmaxf(peak_of(x + at, 16) / (6 * scale), 0x1p-9f), &scales);

		for (size_t i = at; i < at + 16; i++)
			back[i] = nearest(x[i] / (own * scale), &e2m1) * (own * scale);
	}
}

static void reference_mxfp4(const float *x, size_t n, float *back)
{
	for (size_t at = 0; at < n; at += 32) {
		float peak = peak_of(x + at, 32), scale = peak > 0 ? ldexpf(1, ilogbf(peak) - 2) : 1;

		for (size_t i = at; i < at + 32; i++)
			back[i] = nearest(x[i] / scale, &e2m1) * scale;
	}
}

static void reference_fp8(const float *x, size_t n, float *back)
{
	struct elements elements = e4m3();
	float scale = peak_of(x, n) / 448;

	for (size_t i = 0; i < n; i++)
		back[i] = nearest(x[i] / scale, &elements) * scale;
}

/* Weights of a model, some in 16 bits, where ties are frequent; groups of very different magnitude. */
static void published_encoders_do_as_published(void **state)
{
	static const struct {
		const char *name;
		void (*reference)(const float *x, size_t n, float *back);
	} published[] = { { "NVFP4", reference_nvfp4 },
			  { "MXFP4", reference_mxfp4 },
			  { "FP8-128x128", reference_fp8 } };
	enum { COUNT = 64 * 256 };
	static float x[COUNT], back[COUNT], expected[COUNT];
	static uint8_t code[COUNT];
	uint64_t seed = 17;

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		for (size_t i = 0; i < COUNT; i++) {
			x[i] = test_gaussian(&seed);
			x[i] *= kind & 1 ? ldexpf(0.01f, -(int)(i / 512)) : 0.02f;
			x[i] = kind & 2 ? xfp_bf16_to_float(xfp_float_to_bf16(x[i])) : x[i];
		}
		memset(x + 64, 0, 32 * sizeof *x);
		for (size_t p = 0; p < sizeof published / sizeof *published; p++) {
			const struct xfp_peer *peer = peer_of(published[p].name);

			xfp_peer_encode(peer, peak_of(x, COUNT), x, COUNT, code);
			xfp_peer_decode(peer, peak_of(x, COUNT), code, COUNT, back);
			published[p].reference(x, COUNT, expected);
			for (size_t i = 0; i < COUNT; i++)
				if (back[i] != expected[i])
					fail_msg("%s: %g becomes %g, not %g", peer->name, x[i], back[i], expected[i]);
		}
	}
}

/* Ties go to the even code; values above the largest become the largest. */
static void ties_are_broken_to_even(void **state)
{
	static const float tie[32] = { 6,      0.25f,  0.75f,  1.25f,  1.75f, 2.5f,  3.5f, 5,
				       -0.25f, -0.75f, -1.25f, -1.75f, -2.5f, -3.5f, -5,   -6 };
	static const float even[16] = { 6, 0, 1, 1, 2, 2, 4, 4, 0, -1, -1, -2, -2, -4, -4, -6 };
	float x[32], back[32];
	uint8_t block[34];

	(void)state;
	xfp_peer_encode(peer_of("NVFP4"), 6 * 448, tie, 16, block);
	assert_int_equal(block[0], 0x38);
	xfp_peer_decode(peer_of("NVFP4"), 6 * 448, block, 16, back);
	for (int i = 0; i < 16; i++)
		assert_true(back[i] == even[i]);
	xfp_peer_encode(peer_of("MXFP4"), 0, tie, 32, block);
	assert_int_equal(block[0], 127);
	xfp_peer_decode(peer_of("MXFP4"), 0, block, 32, back);
	for (int i = 0; i < 16; i++)
		assert_true(back[i] == even[i]);
	memcpy(x, tie, sizeof x);
	x[0] = 7.99f; /* keeps the scale */
	xfp_peer_encode(peer_of("MXFP4"), 0, x, 32, block);
	xfp_peer_decode(peer_of("MXFP4"), 0, block, 32, back);
	assert_true(block[0] == 127 && back[0] == 6);
	for (int i = 0; i < 3; i++)
		x[i] = 3 * (float[]){ 17, -19, 0x1p-10f }[i];
	xfp_peer_encode(peer_of("FP8-128x128"), 3 * 448, x, 3, block);
	xfp_peer_decode(peer_of("FP8-128x128"), 3 * 448, block, 3, back);
	assert_true(back[0] == 3 * 16 && back[1] == -3 * 20 && back[2] == 0);
}

/* The peak of another matrix, or tile, gives other codes. */
static void peaks_are_looked_at(void **state)
{
	const float x[16] = { 1, 0.4f, -0.3f };
	uint8_t low[16], high[16];

	(void)state;
	xfp_peer_encode(peer_of("NVFP4"), 1, x, 16, low);
	xfp_peer_encode(peer_of("NVFP4"), 8, x, 16, high);
	assert_int_equal(low[0], 0x7e);
	assert_int_equal(high[0], 0x66); /* 56 */
	assert_memory_equal(low + 1, high + 1, 8);
	xfp_peer_encode(peer_of("FP8-128x128"), 1, x, 16, low);
	xfp_peer_encode(peer_of("FP8-128x128"), 8, x, 16, high);
	assert_int_equal(low[0], 0x7e);
	assert_int_equal(high[0], 0x66);
	xfp_peer_encode(peer_of("FP8-128x128"), 1e30f, x, 16, high); /* like everything above 2^30 */
	assert_int_equal(high[0], 0);
}

PROGRAM("test_peer_floats")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_scales_are_counted),
		cmocka_unit_test(four_bit_floats_are_read_as_written_down),
		cmocka_unit_test(fp8_is_read_as_written_down),
		cmocka_unit_test(published_encoders_do_as_published),
		cmocka_unit_test(ties_are_broken_to_even),
		cmocka_unit_test(peaks_are_looked_at),
	};

	return cmocka_run_group_tests_name("peer_floats", tests, NULL, NULL);
}
