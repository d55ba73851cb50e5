/* SPDX-License-Identifier: Apache-2.0 */
#include "lloyd.h"

#include <string.h>

#include "companded.h"
#include "number.h"
#include "round.h"

#define ENTRIES (1u << XFP_MAX_K)
#define RADIX 256

size_t xfp_lloyd_bytes(size_t cols)
{
	return cols * (sizeof(int64_t) + 2 * sizeof(uint32_t)) + (cols + 1) * sizeof(int64_t);
}

void xfp_lloyd_init(struct xfp_lloyd_row *row, size_t cols, void *memory)
{
	row->count = 0;
	row->q = memory;
	row->prefix = row->q + cols;
	row->key[0] = (uint32_t *)(row->prefix + cols + 1);
	row->key[1] = row->key[0] + cols;
}

/* Unsigned keys that order as the floats do, and back. */
static uint32_t key_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static float value_of(uint32_t key)
{
	uint32_t bits = key & 0x80000000 ? key & 0x7fffffff : ~key;
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Radix sort, lowest byte first; bytes that all keys share are passed over. Returns the sorted array. */
static const uint32_t *sort_keys(uint32_t *key[2], size_t count)
{
	uint32_t histogram[4][RADIX] = { { 0 } };
	uint32_t *from = key[0], *to = key[1];

	for (size_t i = 0; i < count; i++)
		for (int byte = 0; byte < 4; byte++)
			histogram[byte][from[i] >> (8 * byte) & 255]++;
	for (int byte = 0; byte < 4; byte++) {
		uint32_t *bucket = histogram[byte], next = 0, *swap;

		if (count && bucket[from[0] >> (8 * byte) & 255] == count)
			continue;
		for (int i = 0; i < RADIX; i++) {
			uint32_t size = bucket[i];

			bucket[i] = next;
			next += size;
		}
		for (size_t i = 0; i < count; i++)
			to[bucket[from[i] >> (8 * byte) & 255]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	return from;
}

static int exponent_of(float value)
{
	uint64_t bits;
	double wide = value;

	memcpy(&bits, &wide, sizeof bits);
	return (int)(bits >> 52 & 2047) - 1023;
}

/* 2^exponent as a double, for exponents that stay normal. */
static double exp2_double(int exponent)
{
	uint64_t bits = (uint64_t)(exponent + 1023) << 52;
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Bits after the point of x / 2^e such that twice the sum of `count` of them stays below 2^63. */
static int fraction_bits(size_t count)
{
	int bits = 39;

	while (bits > 0 && (uint64_t)count > (uint64_t)1 << (61 - bits))
		bits--;
	return bits;
}

void xfp_lloyd_load(struct xfp_lloyd_row *row, const float *x, const uint8_t *marked, size_t cols)
{
	const uint32_t *sorted;
	size_t count = 0;
	float low, high;
	double scale;

	for (size_t c = 0; c < cols; c++) {
		row->key[0][count] = key_of(x[c]);
		count += !(marked && marked[c]);
	}
	row->count = count;
	if (!count)
		return;
	sorted = sort_keys(row->key, count);
	low = value_of(sorted[0]);
	high = value_of(sorted[count - 1]);
	high = -low > high ? -low : high;
	row->shift = fraction_bits(count) - (high > 0 ? exponent_of(high) : 0);
	scale = exp2_double(row->shift);
	row->prefix[0] = 0;
	for (size_t i = 0; i < count; i++) {
		row->q[i] = xfp_round_even(value_of(sorted[i]) * scale);
		row->prefix[i + 1] = row->prefix[i] + row->q[i];
	}
}

static int64_t floor_divide(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* How many of the ascending q[low..count) are <= bound, counted from 0. */
static size_t upper_bound(const int64_t *q, size_t low, size_t count, int64_t bound)
{
	size_t size = count - low;

	while (size) {
		size_t half = size / 2;

		if (q[low + half] <= bound) {
			low += half + 1;
			size -= half + 1;
		} else {
			size = half;
		}
	}
	return low;
}

static void begin(const struct xfp_lloyd_row *row, unsigned k, int start, int64_t *c)
{
	unsigned entries = 1u << k;
	int64_t low = row->q[0], high = row->q[row->count - 1];

	for (unsigned j = 0; j < entries; j++) {
		uint64_t fraction =
			start == XFP_LLOYD_COMPANDED ? xfp_companded[k][j] : (uint64_t)(2 * j + 1) << (31 - k);

		if (start == XFP_LLOYD_MINMAX)
			c[j] = low + (high - low) * j / (entries - 1);
		else
			c[j] = row->q[fraction * row->count >> 32];
	}
}

void xfp_lloyd_fit(const struct xfp_lloyd_row *row, unsigned k, int start, unsigned rounds, uint16_t *codebook)
{
	unsigned entries = 1u << k;
	size_t edge[ENTRIES + 1];
	int64_t c[ENTRIES];
	double scale;

	if (!row->count) {
		memset(codebook, 0, entries * sizeof *codebook);
		return;
	}
	begin(row, k, start, c);
	memset(edge, 0, sizeof edge);
	for (unsigned round = 0; round < rounds; round++) {
		int changed = round == 0;

		for (unsigned j = 0; j + 1 < entries; j++) {
			size_t next = upper_bound(row->q, edge[j], row->count, floor_divide(c[j] + c[j + 1], 2));

			changed |= next != edge[j + 1];
			edge[j + 1] = next;
		}
		edge[entries] = row->count;
		if (!changed)
			break;
		for (unsigned j = 0; j < entries; j++) {
			int64_t n = (int64_t)(edge[j + 1] - edge[j]);

			if (n)
				c[j] = floor_divide(2 * (row->prefix[edge[j + 1]] - row->prefix[edge[j]]) + n, 2 * n);
		}
	}
	scale = exp2_double(-row->shift);
	for (unsigned j = 0; j < entries; j++)
		codebook[j] = xfp_double_to_half((double)c[j] * scale);
}
