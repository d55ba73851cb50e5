/* SPDX-License-Identifier: Apache-2.0 */
/* Compact groups: every instruction set gives the bits of plain C, and choices are nearly optimal. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/compact.h"
#include "kernels/encode/encode.h"

#define MAX_COLS 4096 /* columns */
#define MAX_ROWS 64

static const char *sets[4];
static int set_count;

static int find_sets(void **state)
{
	static const char *const names[] = { "plain", "avx2", "avx512", "neon" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		if (xfp_encoder_use(names[i]))
			sets[set_count++] = names[i];
		else
			printf("# this machine or build has no %s: not compared\n", names[i]);
	}
	assert_true(xfp_encoder_use("plain"));
	return 0;
}

/* A matrix, its groups, and the choices for them. */
struct unit {
	size_t rows, cols, per_row, count;
	float *x, *decoded; /* [rows][padded] */
	uint16_t *marked;   /* [rows][padded / 16] */
	uint8_t d[MAX_ROWS];
	struct xfp_compact_groups groups;
	float *weight, *error;
	uint8_t *byte, *index;
};

static void *zeros(size_t count, size_t size)
{
	void *buffer = calloc(count, size);

	assert_non_null(buffer);
	return buffer;
}

static void create(struct unit *u, size_t rows, size_t cols, unsigned group)
{
	const size_t count = rows * xfp_compact_groups_of(cols, group), padded = xfp_padded(cols);

	assert_true(rows <= MAX_ROWS && cols <= MAX_COLS);
	*u = (struct unit){ .rows = rows, .cols = cols, .per_row = count / rows, .count = count };
	u->x = zeros(rows * padded, sizeof *u->x);
	u->decoded = zeros(rows * padded, sizeof *u->decoded);
	u->marked = zeros(rows * padded / 16, sizeof *u->marked);
	u->groups = (struct xfp_compact_groups){
		.group = group,
		.y = zeros(count * group, sizeof(float)),
		.mark = zeros(count * group / 16, sizeof(uint16_t)),
		.code = zeros(count * group, 1),
		.largest = zeros(count, sizeof(float)),
		.square = zeros(count, sizeof(float)),
	};
	u->weight = zeros(count, sizeof *u->weight);
	u->error = zeros(count, sizeof *u->error);
	u->byte = zeros(count, 1);
	u->index = zeros(count, group);
}

static void destroy(struct unit *u)
{
	free(u->x);
	free(u->decoded);
	free(u->marked);
	free(u->groups.y);
	free(u->groups.mark);
	free(u->groups.code);
	free(u->groups.largest);
	free(u->groups.square);
	free(u->weight);
	free(u->error);
	free(u->byte);
	free(u->index);
}

static bool is_marked(const struct unit *u, size_t r, size_t c)
{
	return u->marked[r * xfp_padded(u->cols) / 16 + c / 16] >> c % 16 & 1;
}

static void load(struct unit *u)
{
	const size_t padded = xfp_padded(u->cols);

	for (size_t r = 0; r < u->rows; r++) {
		double square = 0, count = 0;
		float row;

		for (size_t c = 0; c < u->cols; c++) {
			if (is_marked(u, r, c))
				continue;
			square += (double)u->x[r * padded + c] * u->x[r * padded + c];
			count++;
		}
		u->d[r] = xfp_compact_row_byte(count > 0 ? square / count : 0);
		row = xfp_compact_row(u->d[r]);
		xfp_encoder()->compact->load(&u->groups, r * u->per_row, u->x + r * padded, u->marked + r * padded / 16,
					     u->cols, row);
		for (size_t g = 0; g < u->per_row; g++)
			u->weight[r * u->per_row + g] = row * row;
	}
}

static void assign(struct unit *u, const struct xfp_compact_book *book)
{
	for (size_t g = 0; g < u->count; g += u->per_row)
		xfp_encoder()->compact->assign(book, &u->groups, g, u->per_row, u->byte + g,
					       u->index + g * u->groups.group, u->error + g);
}

static void decode(struct unit *u, const struct xfp_compact_book *book)
{
	const size_t padded = xfp_padded(u->cols);

	for (size_t r = 0; r < u->rows; r++)
		xfp_encoder()->compact->decode(&book->library, u->byte + r * u->per_row,
					       u->index + r * u->per_row * u->groups.group, xfp_compact_row(u->d[r]),
					       u->cols, u->decoded + r * padded);
}

static double total(const struct unit *u)
{
	double sum = 0;

	for (size_t g = 0; g < u->count; g++)
		sum += (double)u->weight[g] * u->error[g];
	return sum;
}

static void train(struct unit *u, struct xfp_compact_book *book, bool library)
{
	static struct xfp_compact_sums sums;

	memset(&sums, 0, sizeof sums);
	xfp_compact_prepare(book);
	assign(u, book);
	xfp_compact_train(book, &u->groups, u->count, u->weight, u->byte, u->index, &sums);
	xfp_compact_update(book, &sums, library);
}

static void seed(const struct unit *u, struct xfp_compact_book *book, unsigned k, unsigned entries)
{
	uint64_t peaks[XFP_COMPACT_PEAKS] = { 0 };

	xfp_compact_count(&u->groups, 0, u->count, peaks);
	xfp_compact_seed(book, k, u->groups.group, entries, peaks);
}

/* Round to fp16 and load the stored library again. */
static void finish(struct xfp_compact_book *book)
{
	uint16_t code[XFP_COMPACT_ENTRIES * 64 + XFP_COMPACT_RATIOS];
	struct xfp_compact_library finished;

	xfp_compact_finish(book, code);
	finished = book->library;
	xfp_compact_open(book, finished.k, finished.group, finished.entries, code);
	assert_memory_equal(&book->library, &finished, sizeof finished);
}

/* The usual way. */
static void fit(struct unit *u, struct xfp_compact_book *book, unsigned k, unsigned entries, unsigned rounds)
{
	seed(u, book, k, entries);
	for (unsigned round = 0; round < rounds; round++)
		train(u, book, true);
	finish(book);
	assign(u, book);
}

/* Heavy tails, rows of different size, zeros, and one marked weight in `every`. */
static void fill(struct unit *u, uint64_t *state, unsigned every)
{
	const size_t padded = xfp_padded(u->cols);

	for (size_t r = 0; r < u->rows; r++) {
		float scale = (float)(1 << r % 9);

		for (size_t c = 0; c < u->cols; c++) {
			uint64_t any = test_random(state);
			float x = test_gaussian(state), tail = test_gaussian(state);

			u->x[r * padded + c] = any % 32 == 0 ? 0 : x * (0.3f + tail * tail) * scale;
			if (every && any % every == 1) {
				u->marked[(r * padded + c) / 16] |= (uint16_t)(1 << c % 16);
				u->x[r * padded + c] = 16000;
			}
		}
	}
}

static void every_set_gives_the_same_bits(void **state)
{
	static struct xfp_compact_book book[2];
	uint64_t any = 1;

	(void)state;
	for (unsigned group = 16; group <= 64; group *= 2) {
		for (size_t cols = 1; cols <= 700; cols += cols < 70 ? 7 : 211) {
			struct unit u[2];

			create(&u[0], 9, cols, group);
			create(&u[1], 9, cols, group);
			fill(&u[0], &any, cols % 3 ? 20 : 0);
			memcpy(u[1].x, u[0].x, 9 * xfp_padded(cols) * sizeof(float));
			memcpy(u[1].marked, u[0].marked, 9 * xfp_padded(cols) / 8);
			for (int i = 1; i < set_count; i++) {
				for (unsigned k = 2; k <= 6; k++) {
					const unsigned entries = (unsigned)cols % 2 ? xfp_compact_entries(k) : 4;

					for (int s = 0; s < 2; s++) {
						assert_true(xfp_encoder_use(sets[s ? i : 0]));
						load(&u[s]);
						fit(&u[s], &book[s], k, entries, 2);
						decode(&u[s], &book[s]);
					}
					assert_memory_equal(u[0].groups.y, u[1].groups.y,
							    u->count * group * sizeof(float));
					assert_memory_equal(u[0].groups.mark, u[1].groups.mark, u->count * group / 8);
					assert_memory_equal(u[0].groups.code, u[1].groups.code, u->count * group);
					assert_memory_equal(u[0].groups.largest, u[1].groups.largest,
							    u->count * sizeof(float));
					assert_memory_equal(u[0].groups.square, u[1].groups.square,
							    u->count * sizeof(float));
					assert_memory_equal(&book[0].library, &book[1].library, sizeof book->library);
					assert_memory_equal(u[0].byte, u[1].byte, u->count);
					assert_memory_equal(u[0].index, u[1].index, u->count * group);
					assert_memory_equal(u[0].error, u[1].error, u->count * sizeof(float));
					assert_memory_equal(u[0].decoded, u[1].decoded,
							    9 * xfp_padded(cols) * sizeof(float));
				}
			}
			destroy(&u[0]);
			destroy(&u[1]);
		}
	}
	xfp_encoder_use("plain");
}

/* Stored data is ordered and fp16, each group's error is that of its indices, and a decoded number is the product. */
static void check(struct unit *u, const struct xfp_compact_book *book)
{
	const struct xfp_compact_library *l = &book->library;
	const size_t padded = xfp_padded(u->cols);
	const unsigned size = u->groups.group;
	double square = 0;

	assert_int_equal(l->entries * l->ratios, 256);
	assert_true(l->ratio[0] == 0);
	for (unsigned r = 1; r < l->ratios; r++) {
		assert_true(isfinite(l->ratio[r]) && l->ratio[r] >= l->ratio[r - 1]);
		assert_true(xfp_half_to_float(xfp_float_to_half(l->ratio[r])) == l->ratio[r]);
	}
	for (unsigned e = 0; e < l->entries; e++)
		for (unsigned q = 0; q < 1u << l->k; q++)
			assert_true(isfinite(l->entry[e][q]) && (!q || l->entry[e][q] >= l->entry[e][q - 1]));
	decode(u, book);
	for (size_t g = 0; g < u->count; g++) {
		const size_t r = g / u->per_row, first = g % u->per_row * size;
		const float ratio = l->ratio[u->byte[g] & (l->ratios - 1)], row = xfp_compact_row(u->d[r]);
		const float *entry = l->entry[u->byte[g] >> l->ratio_bits];
		double error = 0;

		for (unsigned c = 0; c < size; c++) {
			const uint8_t q = u->index[g * size + c];
			const float own = entry[q] * ratio, y = u->groups.y[g * size + c];
			const bool out = first + c >= u->cols || is_marked(u, r, first + c);

			assert_true(q < 1u << l->k);
			assert_true(isfinite(y) && (!out || y == 0));
			assert_int_equal(u->groups.mark[(g * size + c) / 16] >> c % 16 & 1, out);
			assert_int_equal(u->groups.code[g * size + c] == 0, out);
			if (first + c < padded)
				assert_true(u->decoded[r * padded + first + c] ==
					    (first + c < u->cols ? own * row : 0));
			error += out ? 0 : ((double)y - own) * ((double)y - own);
		}
		assert_true(isfinite(u->error[g]) && u->error[g] >= 0);
		assert_true(fabs(u->error[g] - error) <= 1e-5 * u->groups.square[g] + 1e-37);
		square += (double)u->weight[g] * u->groups.square[g];
	}
	assert_true(total(u) <= square * 1.0001);
}

static uint64_t noise = 7;

static float of_zeros(size_t r, size_t c)
{
	return r + c > 0 ? 0 : -0.0f;
}

static float of_constants(size_t r, size_t c)
{
	(void)c;
	return r % 2 ? 3000 : -3000;
}

static float of_a_spike(size_t r, size_t c)
{
	return r == 0 && c == 0 ? 16383 : test_gaussian(&noise) * 0x1p-20f;
}

static float of_denormals(size_t r, size_t c)
{
	(void)r;
	return c % 5 ? test_gaussian(&noise) * 100 : 1e-41f;
}

static float of_tiny(size_t r, size_t c)
{
	(void)c;
	return r % 3 ? test_gaussian(&noise) * 0x1p-126f : 0;
}

static float of_any_size(size_t r, size_t c)
{
	(void)c;
	return ldexpf(test_gaussian(&noise), (int)(r % 60) - 48);
}

static float of_any_size_in_a_row(size_t r, size_t c)
{
	(void)r;
	return ldexpf(test_gaussian(&noise), (int)(c / 16 % 60) - 48);
}

static void odd_weights_do_no_harm(void **state)
{
	static const struct {
		size_t rows, cols;
		float (*weight)(size_t r, size_t c);
		unsigned marked; /* one weight in this many */
	} kinds[] = {
		{ 3, 100, of_zeros, 0 },    { 4, 96, of_constants, 0 },
		{ 4, 256, of_a_spike, 0 },  { 5, 77, of_denormals, 3 },
		{ 5, 64, of_tiny, 0 },      { 60, 64, of_any_size, 7 },
		{ 9, 1, of_any_size, 0 },   { 3, 960, of_any_size_in_a_row, 0 },
		{ 3, 40, of_constants, 1 }, { 1, 1, of_zeros, 0 },
		{ 2, 4096, of_a_spike, 0 }, { 7, 33, of_any_size, 2 },
	};
	static struct xfp_compact_book book;

	(void)state;
	assert_true(xfp_encoder_use(sets[set_count - 1]));
	for (unsigned group = 16; group <= 64; group *= 2) {
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
			struct unit u;

			create(&u, kinds[i].rows, kinds[i].cols, group);
			for (size_t r = 0; r < u.rows; r++) {
				for (size_t c = 0; c < u.cols; c++) {
					const size_t at = r * xfp_padded(u.cols) + c;

					u.x[at] = kinds[i].weight(r, c);
					if (kinds[i].marked && (r * 7 + c) % kinds[i].marked == 0)
						u.marked[at / 16] |= (uint16_t)(1 << c % 16);
				}
			}
			load(&u);
			for (unsigned k = 2; k <= 6; k++) {
				for (unsigned entries = 4; entries <= xfp_compact_entries(k); entries *= 2) {
					fit(&u, &book, k, entries, 3);
					check(&u, &book);
				}
			}
			destroy(&u);
		}
	}
	xfp_encoder_use("plain");
}

/* The least error with any byte. */
static double exhaustive(const struct unit *u, const struct xfp_compact_book *book, size_t g)
{
	const struct xfp_compact_library *l = &book->library;
	const float *y = u->groups.y + g * l->group;
	double best = u->groups.square[g];

	for (unsigned e = 0; e < l->entries; e++) {
		for (unsigned r = 1; r < l->ratios; r++) {
			double sum = 0;

			for (unsigned c = 0; c < l->group && sum < best; c++) {
				double d;
				unsigned q = 0;

				for (unsigned step = 1u << (l->k - 1); step; step /= 2)
					q += y[c] > book->edge[e][q + step - 1] * l->ratio[r] ? step : 0;
				d = (double)y[c] - l->entry[e][q] * l->ratio[r];
				sum += u->groups.code[g * l->group + c] ? d * d : 0;
			}
			best = sum < best ? sum : best;
		}
	}
	return best;
}

static void choices_are_nearly_the_best(void **state)
{
	static struct xfp_compact_book book;
	uint64_t any = 3;

	(void)state;
	assert_true(xfp_encoder_use(sets[set_count - 1]));
	for (unsigned group = 16; group <= 64; group *= 2) {
		struct unit u;

		create(&u, 16, 1024, group);
		fill(&u, &any, 50);
		load(&u);
		for (unsigned k = 2; k <= 6; k++) {
			double best = 0;

			fit(&u, &book, k, xfp_compact_entries(k), 3);
			check(&u, &book);
			for (size_t g = 0; g < u.count; g++) {
				double min = exhaustive(&u, &book, g);

				assert_true(u.error[g] >= min * 0.999 - 1e-6 * u.groups.square[g]);
				best += u.weight[g] * min;
			}
			printf("# groups of %u, k = %u: %.4f of the least error\n", group, k, total(&u) / best);
			assert_true(total(&u) < best * 1.1);
		}
		destroy(&u);
	}
	xfp_encoder_use("plain");
}

static void training_lowers_the_error(void **state)
{
	static struct xfp_compact_book book;
	uint64_t any = 4;

	(void)state;
	assert_true(xfp_encoder_use(sets[set_count - 1]));
	for (int library = 0; library < 2; library++) {
		for (unsigned k = 2; k <= 6; k++) {
			double before, after;
			struct unit u;

			create(&u, 64, 1024, 32);
			fill(&u, &any, 50);
			load(&u);
			seed(&u, &book, k, xfp_compact_entries(k));
			train(&u, &book, library);
			before = total(&u);
			for (int round = 0; round < 5; round++)
				train(&u, &book, library);
			after = total(&u);
			assert_true(after < before);
			/* Rounding to fp16 costs next to nothing. */
			finish(&book);
			assign(&u, &book);
			assert_true(total(&u) < before && total(&u) < after * 1.01);
			destroy(&u);
		}
	}
	xfp_encoder_use("plain");
}

static void the_order_of_rows_does_not_matter(void **state)
{
	static struct xfp_compact_book book[2];
	struct unit u[2];
	uint64_t any = 5;

	(void)state;
	create(&u[0], 64, 256, 32);
	create(&u[1], 64, 256, 32);
	fill(&u[0], &any, 50);
	for (size_t r = 0; r < 64; r++) {
		memcpy(u[1].x + r * 256, u[0].x + (63 - r) * 256, 256 * sizeof(float));
		memcpy(u[1].marked + r * 16, u[0].marked + (63 - r) * 16, 16 * sizeof(uint16_t));
	}
	for (int i = 0; i < 2; i++) {
		load(&u[i]);
		seed(&u[i], &book[i], 3, 16);
	}
	assert_memory_equal(&book[0].library, &book[1].library, sizeof book->library);
	for (int i = 0; i < 2; i++)
		train(&u[i], &book[i], true);
	for (size_t g = 0; g < u->count; g++)
		assert_int_equal(u[0].byte[g], u[1].byte[(63 - g / 8) * 8 + g % 8]);
	for (unsigned r = 0; r < 16; r++)
		assert_true(fabsf(book[0].library.ratio[r] - book[1].library.ratio[r]) <=
			    1e-6f * book[0].library.ratio[r]);
	destroy(&u[0]);
	destroy(&u[1]);
}

static void row_bytes_are_the_nearest(void **state)
{
	(void)state;
	for (int d = 0; d <= 255; d++) {
		const double row = xfp_compact_row((uint8_t)d);

		assert_true(fabs(row - exp2(14 - d / 4.0)) < row * 1e-7);
		assert_int_equal(xfp_compact_row_byte(row * row), d);
		assert_int_equal(xfp_compact_row_byte(row * row * exp2(0.2499)), d);
		assert_int_equal(xfp_compact_row_byte(row * row * exp2(-0.2499)), d);
		assert_int_equal(xfp_compact_row_byte(row * row * exp2(0.2501)), d ? d - 1 : 0);
		assert_int_equal(xfp_compact_row_byte(row * row * exp2(-0.2501)), d < 255 ? d + 1 : 255);
	}
	assert_int_equal(xfp_compact_row_byte(0), 255);
	assert_int_equal(xfp_compact_row_byte(0x1p-1060), 255);
	assert_int_equal(xfp_compact_row_byte(0x1p60), 0);
}

PROGRAM("test_compact")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(row_bytes_are_the_nearest), cmocka_unit_test(every_set_gives_the_same_bits),
		cmocka_unit_test(odd_weights_do_no_harm),    cmocka_unit_test(choices_are_nearly_the_best),
		cmocka_unit_test(training_lowers_the_error), cmocka_unit_test(the_order_of_rows_does_not_matter),
	};

	return cmocka_run_group_tests_name("compact", tests, find_sets, NULL);
}
