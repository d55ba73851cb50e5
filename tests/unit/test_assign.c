/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/number.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/cosine.h"

static void indices_are_nearest_and_ties_go_down(void **state)
{
	uint64_t seed = 77;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		uint16_t codebook[64];
		float entry[64], x[2000], value[2000];
		uint8_t index[2000];
		unsigned m = 1u << k;
		struct xfp_quantizer quantizer;

		for (unsigned j = 0; j < m; j++) {
			codebook[j] = xfp_float_to_half(((float)j - (float)m / 2) * 8);
			entry[j] = xfp_half_to_float(codebook[j]);
		}
		for (int i = 0; i < 2000; i++) {
			unsigned j = (unsigned)(test_random(&seed) % (m - 1));
			float middle = (entry[j] + entry[j + 1]) / 2;

			x[i] = i % 4 == 0   ? middle
			       : i % 4 == 1 ? nextafterf(middle, 1e9f)
			       : i % 4 == 2 ? nextafterf(middle, -1e9f)
					    : test_gaussian(&seed) * 400;
		}
		xfp_quantizer_init(&quantizer, k, codebook);
		xfp_assign(&quantizer, x, 2000, value);
		xfp_assign_index(&quantizer, x, 2000, index);
		for (int i = 0; i < 2000; i++) {
			unsigned best = 0;

			for (unsigned j = 1; j < m; j++)
				if (fabs((double)x[i] - entry[j]) < fabs((double)x[i] - entry[best]))
					best = j;
			assert_int_equal(index[i], best);
			assert_true(value[i] == entry[best]);
		}
	}
}

/* Entries whose midpoint is not an f32: fp16 spans 40 bits. */
static void midpoints_between_floats_are_exact(void **state)
{
	const uint16_t codebook[4] = { 0x8001, 0x0001, 0x7bfe, 0x7bff };
	double middle = (0x1p-24 + 65472) / 2;
	float x[16] = { (float)middle, nextafterf((float)middle, 1e9f) };
	struct xfp_quantizer quantizer;
	uint8_t index[16];

	(void)state;
	xfp_quantizer_init(&quantizer, 2, codebook);
	xfp_assign_index(&quantizer, x, 2, index);
	assert_int_equal(index[0], x[0] <= middle ? 1 : 2);
	assert_int_equal(index[1], x[1] <= middle ? 1 : 2);
}

static void residuals_are_rounded_once(void **state)
{
	(void)state;
	assert_int_equal(xfp_residual(10, 4), xfp_float_to_half(6));
	assert_int_equal(xfp_residual(1 + 0x1p-20f, 1), xfp_double_to_half(0x1p-20));
	assert_int_equal(xfp_residual(3, 3), 0);
}

static void fp8_rows_use_the_whole_range(void **state)
{
	const float w[5] = { 0.5f, -2, 1e-4f, 0, 1.999f };
	float back[5], scale;
	uint8_t code[5];

	(void)state;
	scale = xfp_encode_fp8(w, 5, code);
	assert_true(scale == 2.0f / 448);
	assert_int_equal(code[1], 0xfe);
	xfp_decode_fp8(code, scale, 5, back);
	assert_true(fabsf(back[1] + 2) < 1e-6f);
	for (int c = 0; c < 5; c++)
		assert_true(fabsf(back[c] - w[c]) <= fabsf(w[c]) / 16 + scale * 0x1p-10f);
	scale = xfp_encode_fp8((float[2]){ 0, 0 }, 2, code);
	assert_true(scale == 0 && code[0] == 0 && code[1] == 0);
	scale = xfp_encode_fp8((float[2]){ 1e-45f, -1e-45f }, 2, code);
	assert_true(scale == 0 && code[0] == 0 && code[1] == 0);
	scale = xfp_encode_fp8((float[2]){ 3e38f, -1 }, 2, code);
	assert_int_equal(code[0], 0x7e);
}

/* The sums of cosine.h, an element at a time. */
static struct xfp_row_error by_definition(const float *w, const float *r, size_t n)
{
	double norm[16] = { 0 }, error[16] = { 0 }, square[16] = { 0 };
	float unit = 1, largest = 0;

	for (size_t c = 0; c < n; c++)
		largest = fabsf(w[c]) > largest ? fabsf(w[c]) : largest;
	for (; largest * unit >= 2; unit /= 2)
		;
	for (; largest * unit < 1; unit *= 2)
		;
	for (size_t lane = 0; lane < 16; lane++) {
		float e = 0, s = 0;

		for (size_t c = lane, count = 1; c < n; c += 16, count++) {
			float d = w[c] * unit - r[c] * unit;

			norm[lane] += (double)w[c] * w[c];
			e += d * d;
			s += r[c] * unit * (r[c] * unit);
			if (count % XFP_SQUARES && c + 16 < n)
				continue;
			error[lane] += (double)e;
			square[lane] += (double)s;
			e = s = 0;
		}
	}
	for (size_t width = 8; width; width /= 2) {
		for (size_t lane = 0; lane < width; lane++) {
			norm[lane] += norm[lane + width];
			error[lane] += error[lane + width];
			square[lane] += square[lane + width];
		}
	}
	error[0] /= (double)unit * unit;
	square[0] /= (double)unit * unit;
	return (struct xfp_row_error){ (norm[0] + square[0] - error[0]) / 2 / (sqrt(norm[0]) * sqrt(square[0])),
				       error[0], norm[0] };
}

static void cosines_follow_the_definition(void **state)
{
	float w[1000], r[1000];
	uint64_t seed = 4;

	(void)state;
	for (size_t n = 1; n < 1000; n += n < 300 ? 1 : 57) {
		float size = n % 3 ? 1 : n % 2 ? 1e-30f : 1e30f;
		struct xfp_row_error got, want;
		long double dot = 0, ww = 0, rr = 0;

		for (size_t c = 0; c < n; c++) {
			w[c] = test_gaussian(&seed) * size;
			r[c] = w[c] + test_gaussian(&seed) / 8 * size;
			dot += (long double)w[c] * r[c];
			ww += (long double)w[c] * w[c];
			rr += (long double)r[c] * r[c];
		}
		got = xfp_row_compare(w, r, n);
		want = by_definition(w, r, n);
		assert_true(got.error == want.error && got.norm == want.norm);
		assert_true(fabs(got.cosine - want.cosine) < 1e-15);
		/* A square loses at most 2^-25 of itself, and so does each of up to eight sums. */
		assert_true(fabsl(got.cosine - dot / (sqrtl(ww) * sqrtl(rr))) <=
			    9 * 0x1p-25L * (want.error + fabsl(rr - ww)) / sqrtl(ww * rr) + 1e-15L);
	}
	memset(w, 0, sizeof w);
	r[0] = 1;
	assert_true(xfp_row_compare(w, r, 99).cosine == 0);
	assert_true(xfp_row_compare(r, w, 99).cosine == 0);
	assert_true(xfp_row_compare(w, w, 99).cosine == 1);
	assert_true(xfp_row_compare(r, r, 99).cosine == 1);
	w[0] = 1e-40f; /* 1e-40 next to 1 */
	assert_true(xfp_row_compare(w, r, 99).cosine == -1);
	w[0] = 3;
	for (size_t c = 0; c < 99; c++)
		r[c] = -2 * w[c];
	assert_true(xfp_row_compare(w, r, 99).cosine == -1);
}

static void measuring_is_assigning_and_comparing(void **state)
{
	static const uint16_t codebook[] = { 0xc000, 0x0000, 0x3c00, 0x4200 }; /* -2 0 1 3 */
	float x[400] = { 0 }, w[400] = { 0 }, down[400] = { 0 }, value[400];
	struct xfp_quantizer quantizer;
	uint64_t seed = 12;

	(void)state;
	xfp_quantizer_init(&quantizer, 2, codebook);
	for (size_t n = 1; n < 384; n++) {
		struct xfp_row_sums sums, want;

		w[n - 1] = test_gaussian(&seed);
		down[n - 1] = test_random(&seed) % 2 ? 1 : 0.84f;
		x[n - 1] = w[n - 1] / down[n - 1];
		xfp_assign(&quantizer, x, n, value);
		for (size_t c = 0; c < n; c++) {
			assert_true(value[c] == xfp_nearest(&quantizer, x[c]));
			value[c] *= down[c];
		}
		want = xfp_encoder()->rows->compare(w, value, 1, n);
		sums = xfp_quantized_sums(&quantizer, x, down, w, n);
		assert_true(sums.error == want.error && sums.square == want.square);
	}
}

static void summaries_take_the_lower_median_and_the_nearest_rank(void **state)
{
	uint64_t seed = 8;
	double median, p5, c[1000];

	(void)state;
	for (size_t n = 1; n <= 1000; n += n < 50 ? 1 : 37) {
		for (size_t i = 0; i < n; i++)
			c[i] = (double)i - 20; /* sorted value = rank - 20 */
		for (size_t i = n - 1; i > 0; i--) {
			size_t j = (size_t)(test_random(&seed) % (i + 1));
			double swap = c[i];

			c[i] = c[j];
			c[j] = swap;
		}
		xfp_cosine_summary(c, n, &median, &p5);
		assert_true(median == (double)((n - 1) / 2) - 20);
		assert_true(p5 == ceil(n * 5 / 100.0) - 21);
	}
	for (size_t i = 0; i < 1000; i++)
		c[i] = (double)(i % 3);
	xfp_cosine_summary(c, 1000, &median, &p5);
	assert_true(median == 1 && p5 == 0);
	xfp_cosine_summary(c, 0, &median, &p5);
	assert_true(median == 1 && p5 == 1);
}

PROGRAM("test_assign")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_are_nearest_and_ties_go_down),
		cmocka_unit_test(midpoints_between_floats_are_exact),
		cmocka_unit_test(residuals_are_rounded_once),
		cmocka_unit_test(fp8_rows_use_the_whole_range),
		cmocka_unit_test(cosines_follow_the_definition),
		cmocka_unit_test(measuring_is_assigning_and_comparing),
		cmocka_unit_test(summaries_take_the_lower_median_and_the_nearest_rank),
	};

	return cmocka_run_group_tests_name("assign", tests, NULL, NULL);
}
