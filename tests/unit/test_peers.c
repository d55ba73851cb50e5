/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/peers.h"

#include <stdlib.h>

#include "kernels/common/number.h"

static void put_half(uint8_t *at, float value)
{
	uint16_t half = xfp_float_to_half(value);

	memcpy(at, &half, sizeof half);
}

/* Relative to the squares of the weights. */
static double error_of(const struct xfp_peer *peer, const float *x, size_t n)
{
	uint8_t *block = malloc(xfp_peer_size(peer, n));
	float *back = malloc(n * sizeof *back);
	double error = 0, square = 0;
	float peak = peak_of(x, n);

	assert_non_null(block);
	assert_non_null(back);
	xfp_peer_encode(peer, peak, x, n, block);
	xfp_peer_decode(peer, peak, block, n, back);
	for (size_t i = 0; i < n; i++) {
		assert_true(isfinite(back[i]));
		error += ((double)x[i] - back[i]) * ((double)x[i] - back[i]);
		square += (double)x[i] * x[i];
	}
	free(block);
	free(back);
	return square > 0 ? error / square : error;
}

/* Published sizes, and errors for nearly Gaussian weights: ours, with a margin of one percent. */
static const struct {
	const char *name;
	unsigned weights, bytes;
	double bits, gaussian;
} known[] = {
	{ "int4-32", 32, 18, 4.5, 0.00712 },    { "int4-128", 128, 66, 4.125, 0.01007 },
	{ "int4z-32", 64, 37, 4.625, 0.00643 }, { "int4z-128", 256, 133, 4.15625, 0.00967 },
	{ "Q4_0", 32, 18, 4.5, 0.00631 },       { "Q2_K", 256, 84, 2.625, 0.0661 },
	{ "Q3_K", 256, 110, 3.4375, 0.0201 },   { "Q4_K", 256, 144, 4.5, 0.0047 },
	{ "Q5_K", 256, 176, 5.5, 0.00114 },     { "Q6_K", 256, 210, 6.5625, 0.000264 },
	{ "IQ4_XS", 256, 136, 4.25, 0.00534 },  { "NVFP4", 16, 9, 4.5, 0.00913 },
	{ "MXFP4", 32, 17, 4.25, 0.0129 },      { "FP8-128x128", 1, 1, 8, 0.000708 },
};

static void sizes_and_bits_are_known(void **state)
{
	(void)state;
	assert_int_equal(XFP_PEERS, sizeof known / sizeof *known);
	for (size_t i = 0; i < XFP_PEERS; i++) {
		const struct xfp_peer *peer = peer_of(known[i].name);

		assert_int_equal(peer->weights, known[i].weights);
		assert_int_equal(peer->bytes, known[i].bytes);
		assert_true(peer->bytes * 8.0 / peer->weights == known[i].bits);
		assert_true(peer->weights <= XFP_PEER_WEIGHTS);
		assert_true(xfp_peer_size(peer, XFP_PEER_WEIGHTS) <= XFP_PEER_BYTES);
		assert_int_equal(xfp_peer_size(peer, 0), 0);
		assert_int_equal(xfp_peer_size(peer, 1), peer->bytes);
		assert_int_equal(xfp_peer_size(peer, peer->weights), peer->bytes);
		assert_int_equal(xfp_peer_size(peer, peer->weights + 1), 2 * peer->bytes);
	}
}

static void gaussian_weights_have_the_known_errors(void **state)
{
	enum { COUNT = 256 * 256 };
	float *x = malloc(COUNT * sizeof *x);
	uint64_t seed = 11;

	(void)state;
	assert_non_null(x);
	for (size_t i = 0; i < COUNT; i++)
		x[i] = test_gaussian(&seed) * 0.02f;
	for (size_t i = 0; i < XFP_PEERS; i++) {
		double error = error_of(&xfp_peers[i], x, COUNT);

		if (error > known[i].gaussian || error < 0.97 * known[i].gaussian)
			fail_msg("%s: %g", xfp_peers[i].name, error);
	}
	free(x);
}

/* ---- layouts: hand-made bytes --------------------------------------------------------------------- */

static void int4_is_read_as_written_down(void **state)
{
	uint8_t block[XFP_PEER_BYTES] = { 0 };
	float x[XFP_PEER_WEIGHTS];

	(void)state;
	put_half(block, 0.5f);
	block[2] = 0x2f;  /* weights 0 and 16 */
	block[17] = 0x80; /* weights 15 and 31 */
	for (int i = 0; i < 2; i++) {
		xfp_peer_decode(peer_of(i ? "Q4_0" : "int4-32"), 0, block, 32, x);
		assert_true(x[0] == 3.5f && x[16] == -3 && x[15] == -4 && x[31] == 0 && x[1] == -4);
	}
	xfp_peer_decode(peer_of("int4-128"), 0, block, 128, x);
	assert_true(x[0] == 3.5f && x[64] == -3 && x[15] == -4 && x[79] == 0);

	put_half(block, 0.5f);
	put_half(block + 2, 2);
	block[4] = 0x53; /* z: 3 and 5 */
	memset(block + 5, 0, sizeof block - 5);
	block[5] = 0x2f;
	block[5 + 31] = 0x91; /* int4z-32: the last byte of the second group */
	xfp_peer_decode(peer_of("int4z-32"), 0, block, 64, x);
	assert_true(x[0] == 6 && x[16] == -0.5f && x[1] == -1.5f);
	assert_true(x[32] == -10 && x[47] == -8 && x[63] == 8);
	block[5 + 64] = 0x91;
	xfp_peer_decode(peer_of("int4z-128"), 0, block, 256, x);
	assert_true(x[0] == 6 && x[64] == -0.5f && x[31] == -1 && x[95] == 3);
	assert_true(x[128] == -8 && x[192] == 8 && x[255] == -10);
}

static void q2_k_is_read_as_written_down(void **state)
{
	uint8_t block[84] = { 0 };
	float x[256];

	(void)state;
	put_half(block + 80, 0.5f);
	put_half(block + 82, 0.25f);
	block[0] = 0x21;       /* weights 0-15: 0.5 q - 0.5 */
	block[15] = 0x0f;      /* weights 240-255: 7.5 q */
	block[3] = 0x40;       /* weights 48-63: -1 */
	block[16] = 0x03;      /* weight 0, and 32, 64, 96 */
	block[16 + 63] = 0x80; /* weight 255, and 159, 191, 223 */
	xfp_peer_decode(peer_of("Q2_K"), 0, block, 256, x);
	assert_true(x[0] == 1 && x[1] == -0.5f && x[15] == -0.5f && x[16] == 0);
	assert_true(x[255] == 15 && x[254] == 0 && x[48] == -1 && x[63] == -1 && x[64] == 0);
}

static void q3_k_is_read_as_written_down(void **state)
{
	uint8_t block[110] = { 0 };
	float x[256];

	(void)state;
	put_half(block + 108, 0.5f);
	/* All numbers are -32 as yet. Group 1 gets 5, in low and high bits 37 = 5 | 2 << 4; group 14 gets -1, 31 = 15 |
	 * 1 << 4. */
	block[96 + 1] = 5;
	block[104 + 1] = 2;
	block[96 + 6] = 0xf0;
	block[104 + 2] = 1 << 6;
	block[16] = 1;           /* high bit of weight 16 */
	block[32 + 16] = 3;      /* its low ones */
	block[0] = 1 << 7;       /* high bit of weight 224, the first of group 14 */
	block[32 + 32] = 2 << 6; /* its low ones */
	xfp_peer_decode(peer_of("Q3_K"), 0, block, 256, x);
	assert_true(x[16] == 7.5f && x[17] == -10); /* 2.5 * 3, 2.5 * -4 */
	assert_true(x[224] == -1 && x[225] == 2);   /* -0.5 * 2, -0.5 * -4 */
	assert_true(x[0] == 64 && x[255] == 64);    /* -16 * -4 */
}

static void put_six_bits(uint8_t *block, size_t low)
{
	put_half(block, 0.5f);
	put_half(block + 2, 0.25f);
	block[4 + 1] = 33 | 2 << 6;        /* scale of group 1; group 5's has 2 on top */
	block[4 + 4 + 1] = 7 | 3 << 6;     /* minimum of group 1; group 5's has 3 on top */
	block[4 + 8 + 1] = 0x3 | 0x9 << 4; /* group 5: scale 3 | 2 << 4 = 35, minimum 9 | 3 << 4 = 57 */
	block[low] = 0xa0;                 /* weight 32, the first of group 1 */
	block[low + 64 + 31] = 0x40;       /* weight 191, the last of group 5 */
}

static void q4_k_and_q5_k_are_read_as_written_down(void **state)
{
	uint8_t block[176] = { 0 };
	float x[256];

	(void)state;
	put_six_bits(block, 16);
	xfp_peer_decode(peer_of("Q4_K"), 0, block, 256, x);
	assert_true(x[32] == 16.5f * 10 - 1.75f && x[33] == -1.75f);
	assert_true(x[191] == 17.5f * 4 - 14.25f && x[190] == -14.25f);
	assert_true(x[0] == 0 && x[64] == 0 && x[255] == 0);

	memset(block, 0, sizeof block);
	put_six_bits(block, 48);
	block[16] = 1 << 1;      /* weight 32 */
	block[16 + 30] = 1 << 5; /* weight 190 */
	xfp_peer_decode(peer_of("Q5_K"), 0, block, 256, x);
	assert_true(x[32] == 16.5f * 26 - 1.75f && x[33] == -1.75f);
	assert_true(x[191] == 17.5f * 4 - 14.25f && x[190] == 17.5f * 16 - 14.25f);
}

static void q6_k_is_read_as_written_down(void **state)
{
	uint8_t block[210] = { 0 };
	float x[256];

	(void)state;
	put_half(block + 208, 0.5f);
	block[192 + 2] = 3;            /* weights 32-47 */
	block[192 + 13] = (uint8_t)-2; /* weights 208-223 */
	block[32] = 0x05;              /* weights 32 and 96 */
	block[128] = 3 << 2;           /* weight 32 */
	block[64 + 16] = 0xc0;         /* weights 144 and 208 */
	block[128 + 32 + 16] = 1 << 4; /* weight 208 */
	xfp_peer_decode(peer_of("Q6_K"), 0, block, 256, x);
	assert_true(x[32] == 1.5f * (53 - 32) && x[33] == 1.5f * -32);
	assert_true(x[208] == 4 && x[209] == 32); /* 28 - 32, 0 - 32, times -1 */
	assert_true(x[0] == 0 && x[96] == 0 && x[144] == 0);
}

static void iq4_xs_is_read_as_written_down(void **state)
{
	uint8_t block[136] = { 0 };
	float x[256];

	(void)state;
	put_half(block, 0.5f);
	block[2] = 2 << 2; /* group 1: 35 = 3 | 2 << 4 */
	block[4] = 3 << 4;
	block[3] = 1 << 4; /* group 6: 30 = 14 | 1 << 4 */
	block[4 + 3] = 14;
	block[8 + 16] = 0xf8;      /* weights 32 and 48 */
	block[8 + 96 + 15] = 0x70; /* weights 207 and 223 */
	xfp_peer_decode(peer_of("IQ4_XS"), 0, block, 256, x);
	assert_true(x[32] == 1.5f && x[48] == 1.5f * 113 && x[33] == 1.5f * -127);
	assert_true(x[207] == 127 && x[223] == 10 && x[0] == -16 * -127);
}

/* ---- encoders ------------------------------------------------------------------------------------- */

static void zeros_stay_zeros(void **state)
{
	const float zero[300] = { 0 };

	(void)state;
	for (size_t i = 0; i < XFP_PEERS; i++)
		assert_true(error_of(&xfp_peers[i], zero, 300) == 0);
}

/* One group of zeros among others, and constant weights of either sign. */
static void constants_are_kept(void **state)
{
	float x[256];
	uint64_t seed = 5;

	(void)state;
	for (size_t p = 0; p < XFP_PEERS; p++) {
		const struct xfp_peer *peer = &xfp_peers[p];
		uint8_t block[16 * XFP_PEER_BYTES];
		float back[256];

		for (int sign = -1; sign <= 1; sign += 2) {
			for (size_t i = 0; i < 256; i++)
				x[i] = 0.3f * (float)sign;
			/* A power of two as scale causes 0.25. */
			if (error_of(peer, x, 256) > (strcmp(peer->name, "MXFP4") ? 1e-5 : 0.0278))
				fail_msg("%s: %g", peer->name, error_of(peer, x, 256));
		}
		for (size_t i = 0; i < 256; i++)
			x[i] = i / 32 == 3 ? 0 : test_gaussian(&seed);
		xfp_peer_encode(peer, peak_of(x, 256), x, 256, block);
		xfp_peer_decode(peer, peak_of(x, 256), block, 256, back);
		for (size_t i = 96; i < 128 && peer->weights != 128 && strcmp(peer->name, "int4z-128"); i++)
			assert_true(back[i] == 0);
	}
}

/* Nothing becomes NaN or infinite, and representable numbers are kept. */
static void magnitudes_of_any_size_are_finite(void **state)
{
	static const float unit[] = { 1e-45f, 1e-38f, 1e-20f, 1e-9f, 1e-7f, 1e3f, 1e5f, 1e9f, 1e20f, 3.4e38f };
	float x[256];
	uint64_t seed = 3;

	(void)state;
	for (size_t p = 0; p < XFP_PEERS; p++) {
		for (size_t u = 0; u < sizeof unit / sizeof *unit; u++) {
			double error;

			for (size_t i = 0; i < 256; i++)
				x[i] = (float)((int)(test_random(&seed) % 2001) - 1000) / 1000 * unit[u];
			error = error_of(&xfp_peers[p], x, 256);
			if (error > 1.0001 || (unit[u] == 1e3f && error > 0.07))
				fail_msg("%s, %g: %g", xfp_peers[p].name, unit[u], error);
		}
		for (size_t i = 0; i < 256; i++) /* one far from all others */
			x[i] = i == 100 ? -1e4f : test_gaussian(&seed);
		/* IQ4_XS has no level at zero; MXFP4 has 8192, and then 12288. */
		assert_true(error_of(&xfp_peers[p], x, 256) < (strcmp(xfp_peers[p].name, "MXFP4") ? 3e-3 : 0.033));
		x[7] = NAN;
		x[8] = INFINITY;
		x[9] = -INFINITY;
		error_of(&xfp_peers[p], x, 256);
	}
}

/* As if zeros followed; nothing past the end is modified. */
static void tails_are_filled_with_zeros(void **state)
{
	uint64_t seed = 8;
	float x[512] = { 0 };

	(void)state;
	for (size_t i = 0; i < 300; i++)
		x[i] = test_gaussian(&seed);
	for (size_t p = 0; p < XFP_PEERS; p++) {
		const struct xfp_peer *peer = &xfp_peers[p];
		size_t whole = (300 + peer->weights - 1) / peer->weights * peer->weights;
		uint8_t a[16 * XFP_PEER_BYTES], b[16 * XFP_PEER_BYTES];
		float back[512], padded[512], peak = peak_of(x, 300);

		memset(a, 0xee, sizeof a);
		xfp_peer_encode(peer, peak, x, 300, a);
		assert_int_equal(a[xfp_peer_size(peer, 300)], 0xee);
		xfp_peer_encode(peer, peak, x, whole, b);
		assert_memory_equal(a, b, xfp_peer_size(peer, 300));
		back[300] = 77;
		xfp_peer_decode(peer, peak, a, 300, back);
		xfp_peer_decode(peer, peak, a, whole, padded);
		assert_memory_equal(back, padded, 300 * sizeof *back);
		assert_true(back[300] == 77);
	}
}

/* Encoding decoded weights gives the same bytes if the scale follows from the largest weight; otherwise nearly the same
 * weights. */
static void a_second_time_loses_little(void **state)
{
	enum { COUNT = 32 * 256 };
	static float x[COUNT], once[COUNT];
	static uint8_t first[COUNT], second[COUNT];
	uint64_t seed = 21;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		x[i] = test_gaussian(&seed);
	for (size_t p = 0; p < XFP_PEERS; p++) {
		const struct xfp_peer *peer = &xfp_peers[p];
		double error = error_of(peer, x, COUNT), again;

		xfp_peer_encode(peer, peak_of(x, COUNT), x, COUNT, first);
		xfp_peer_decode(peer, peak_of(x, COUNT), first, COUNT, once);
		xfp_peer_encode(peer, peak_of(once, COUNT), once, COUNT, second);
		again = error_of(peer, once, COUNT);
		if (!strncmp(peer->name, "int4-", 5))
			assert_memory_equal(first, second, xfp_peer_size(peer, COUNT));
		if (again > 0.1 * error)
			fail_msg("%s: %g after %g", peer->name, again, error);
	}
}

/* FNV hashes of the bytes of every format for some weights, the same for any compiler and flags. */
static void bytes_are_the_same_everywhere(void **state)
{
	enum { COUNT = 64 * 256 };
	static float x[COUNT];
	static uint8_t out[COUNT];
	uint64_t seed = 99, hash = 0xcbf29ce484222325;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		float a = test_gaussian(&seed);

		x[i] = a * a * a * 0.01f; /* some tails */
	}
	for (size_t p = 0; p < XFP_PEERS; p++) {
		xfp_peer_encode(&xfp_peers[p], peak_of(x, COUNT), x, COUNT, out);
		for (size_t i = 0; i < xfp_peer_size(&xfp_peers[p], COUNT); i++)
			hash = (hash ^ out[i]) * 0x100000001b3;
	}
	if (hash != 0x6329d81ed1d25316)
		fail_msg("0x%016llx", (unsigned long long)hash);
}

PROGRAM("test_peers")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_bits_are_known),
		cmocka_unit_test(gaussian_weights_have_the_known_errors),
		cmocka_unit_test(int4_is_read_as_written_down),
		cmocka_unit_test(q2_k_is_read_as_written_down),
		cmocka_unit_test(q3_k_is_read_as_written_down),
		cmocka_unit_test(q4_k_and_q5_k_are_read_as_written_down),
		cmocka_unit_test(q6_k_is_read_as_written_down),
		cmocka_unit_test(iq4_xs_is_read_as_written_down),
		cmocka_unit_test(zeros_stay_zeros),
		cmocka_unit_test(constants_are_kept),
		cmocka_unit_test(magnitudes_of_any_size_are_finite),
		cmocka_unit_test(tails_are_filled_with_zeros),
		cmocka_unit_test(a_second_time_loses_little),
		cmocka_unit_test(bytes_are_the_same_everywhere),
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
