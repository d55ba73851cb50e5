/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-compact-seeds - print kernels/encode/compact_seed.h: the libraries that fits of compact groups begin with.
 *
 * They are fitted to generated weights, in groups of 32: a third each from a Gaussian, a Laplace and a Student's t
 * distribution with 5 degrees of freedom, without weights beyond 5 sigma; no real model is used. Groups differ most in
 * the asymmetry of their ends, so they are sorted by that first: entries come in pairs, one for groups whose larger end
 * is the upper one and one for the others, from the most uneven to the even.
 */
#include "kernels/encode/compact.h"
#include "kernels/encode/companded.h"
#include "kernels/encode/encode.h"
#include "tests/generated-weights.h"

#define ROWS 384
#define COLS 4096
#define GROUP 32
#define GROUPS (ROWS * COLS / GROUP)
#define SIGMA 1000.0 /* of x, which is at most 2^14 */

static double gaussian(uint64_t *state)
{
	return (normal(state) + normal(state) + normal(state) + normal(state)) * 0.5;
}

static double laplace(uint64_t *state)
{
	double a = gaussian(state) * gaussian(state), b = gaussian(state) * gaussian(state);

	return (a - b) * 0.70710678118654752;
}

static void load(const struct xfp_compact_groups *groups)
{
	uint64_t state = stream(1, "compact seeds");

	for (size_t r = 0; r < ROWS; r++) {
		float x[COLS];
		uint16_t marked[COLS / 16] = { 0 };
		double square = 0;

		for (size_t c = 0; c < COLS; c++) {
			double w = r % 3 == 0   ? gaussian(&state)
				   : r % 3 == 1 ? laplace(&state)
						: student5(&state) * 0.77459666924148338;

			x[c] = (float)(w * SIGMA);
			if (w > 5 || w < -5)
				marked[c / 16] |= (uint16_t)(1 << c % 16);
			else
				square += w * w;
		}
		xfp_encoder()->compact->load(groups, r * (COLS / GROUP), x, marked, COLS,
					     xfp_compact_row(xfp_compact_row_byte(square / COLS * SIGMA * SIGMA)));
	}
}

/* The smaller end of a group in units of its largest magnitude, and whether it is the upper one. */
static float smaller_end(const float *y, float largest, bool *upper)
{
	float low = 0, high = 0;

	for (size_t c = 0; c < GROUP; c++) {
		low = y[c] < low ? y[c] : low;
		high = y[c] > high ? y[c] : high;
	}
	*upper = high < -low;
	return (*upper ? high : -low) / largest;
}

static int ascending(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* The values of groups whose smaller end is in the `part`th of `parts`, sorted, mirrored so that the larger end is the
 * upper one. */
static size_t pool(const struct xfp_compact_groups *groups, unsigned part, unsigned parts, float *value)
{
	float *end = allocate(NULL, GROUPS, sizeof *end), *sorted = allocate(NULL, GROUPS, sizeof *sorted);
	bool *upper = allocate(NULL, GROUPS, sizeof *upper);
	size_t n = 0;

	for (size_t g = 0; g < GROUPS; g++)
		sorted[g] = end[g] = smaller_end(groups->y + g * GROUP, groups->largest[g], &upper[g]);
	qsort(sorted, GROUPS, sizeof *sorted, ascending);
	for (size_t g = 0; g < GROUPS; g++) {
		if (end[g] < sorted[GROUPS / parts * part])
			continue;
		if (part + 1 < parts && end[g] >= sorted[GROUPS / parts * (part + 1)])
			continue;
		for (size_t c = 0; c < GROUP; c++)
			if (groups->code[g * GROUP + c])
				value[n++] = groups->y[g * GROUP + c] / groups->largest[g] * (upper[g] ? -1.0f : 1.0f);
	}
	qsort(value, n, sizeof *value, ascending);
	free(upper);
	free(sorted);
	free(end);
	return n;
}

/* Find a nearly optimal entry for these values. */
static void fit(const float *value, size_t n, unsigned k, float *entry)
{
	const unsigned count = 1u << k;

	for (unsigned q = 0; q < count; q++)
		entry[q] = value[(size_t)(((double)xfp_companded[k][q] * 0x1p-32) * (double)n)];
	for (int round = 0; round < 20; round++) {
		double sum[64] = { 0 };
		size_t in[64] = { 0 };

		for (size_t i = 0, q = 0; i < n; i++) {
			while (q + 1 < count && value[i] > 0.5f * (entry[q] + entry[q + 1]))
				q++;
			sum[q] += value[i];
			in[q]++;
		}
		for (unsigned q = 0; q < count; q++)
			if (in[q])
				entry[q] = (float)(sum[q] / (double)in[q]);
	}
}

static void print(const struct xfp_compact_library *library)
{
	const unsigned n = 1u << library->k;

	printf("\nstatic const int16_t seed_%u[%u][%u] = {\n", library->k, library->entries, n);
	for (unsigned e = 0; e < library->entries; e++) {
		for (unsigned q = 0; q < n; q++) {
			double value = (double)library->entry[e][q] * 1000;

			printf("%s%d,", q % 16 ? " " : q ? "\n\t  " : "\t{ ", (int)(value + (value < 0 ? -0.5 : 0.5)));
		}
		printf(" },\n");
	}
	printf("};\n");
}

int main(void)
{
	struct xfp_compact_groups groups = {
		.group = GROUP,
		.y = allocate(NULL, GROUPS * GROUP, sizeof(float)),
		.mark = allocate(NULL, GROUPS * GROUP / 16, sizeof(uint16_t)),
		.code = allocate(NULL, GROUPS * GROUP, 1),
		.largest = allocate(NULL, GROUPS, sizeof(float)),
		.square = allocate(NULL, GROUPS, sizeof(float)),
	};
	static struct xfp_compact_book book;
	static struct xfp_compact_sums sums;
	uint8_t *byte = allocate(NULL, GROUPS, 1), *index = allocate(NULL, GROUPS * GROUP, 1);
	float *weight = allocate(NULL, GROUPS, sizeof *weight), *value = allocate(NULL, GROUPS * GROUP, sizeof *value);
	uint64_t peaks[XFP_COMPACT_PEAKS] = { 0 };

	load(&groups);
	xfp_compact_count(&groups, 0, GROUPS, peaks);
	for (size_t g = 0; g < GROUPS; g++)
		weight[g] = 1;
	printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
	       "/* Initial libraries for fits of compact groups, in thousandths; generated by tests/make-compact-seeds"
	       ". Pairs of nearly\n * mirrored entries, from the most uneven to the even. */\n"
	       "#ifndef XFP_COMPACT_SEED_H\n#define XFP_COMPACT_SEED_H\n\n#include <stdint.h>\n\n"
	       "/* clang-format off */\n");
	for (unsigned k = 2; k <= 6; k++) {
		const unsigned n = 1u << k, entries = xfp_compact_entries(k), rounds = k <= 4 ? 40 : 120;
		float library[16 * 64];

		for (unsigned e = 0; e < entries; e += 2) {
			size_t count = pool(&groups, e / 2, entries / 2, value);

			fit(value, count, k, library + e * n);
			for (unsigned q = 0; q < n; q++)
				library[(e + 1) * n + q] = -library[e * n + n - 1 - q];
		}
		xfp_compact_start(&book, k, GROUP, entries, library, peaks);
		for (unsigned round = 0; round < rounds; round++) {
			memset(&sums, 0, sizeof sums);
			xfp_compact_prepare(&book);
			xfp_encoder()->compact->assign(&book, &groups, 0, GROUPS, byte, index, NULL);
			xfp_compact_train(&book, &groups, GROUPS, weight, byte, index, &sums);
			xfp_compact_update(&book, &sums, true);
		}
		print(&book.library);
	}
	printf("/* clang-format on */\n\n#endif\n");
	free(groups.y);
	free(groups.mark);
	free(groups.code);
	free(groups.largest);
	free(groups.square);
	free(byte);
	free(index);
	free(weight);
	free(value);
	return fflush(stdout) ? 1 : 0;
}
