/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/common/number.h"

#define PATTERNS 65536
#define CHUNK 65536

/* Central moments of `count` numbers, as sums. */
struct central {
	uint64_t count;
	double mean, m2, m3, m4;
};

struct xfp_distribution_work {
	enum xfp_dtype dtype;
	unsigned pass;
	uint64_t pattern[PATTERNS]; /* 16-bit weights: count of each pattern */
	double chunk[CHUNK];
	double scale; /* weights are multiplied by it, so that fourth powers are finite */
	struct central all;
	struct xfp_distribution found; /* of the scaled weights */
};

struct xfp_distribution_work *xfp_distribution_work_new(void)
{
	return malloc(sizeof(struct xfp_distribution_work));
}

void xfp_distribution_work_free(struct xfp_distribution_work *work)
{
	free(work);
}

static bool is_short(enum xfp_dtype dtype)
{
	return dtype == XFP_F16 || dtype == XFP_BF16;
}

/* F64 needs the range first: without a scale, powers may overflow or underflow. */
unsigned xfp_distribution_passes(enum xfp_dtype dtype)
{
	return is_short(dtype) ? 1 : dtype == XFP_F32 ? 2 : dtype == XFP_F64 ? 3 : 0;
}

/* The task of each pass. */
enum task { COUNT_PATTERNS, FIND_RANGE, ADD_CHUNKS, COUNT_TAILS };

static enum task task_of(const struct xfp_distribution_work *work)
{
	return is_short(work->dtype)                                    ? COUNT_PATTERNS
	       : work->pass + 1 == xfp_distribution_passes(work->dtype) ? COUNT_TAILS
	       : work->pass + 2 == xfp_distribution_passes(work->dtype) ? ADD_CHUNKS
									: FIND_RANGE;
}

/* ---- 16 bits ----------------------------------------------------------------------------------- */

/* Neumaier's sum. */
struct compensated_sum {
	double value, rest;
};

static void add(struct compensated_sum *sum, double term)
{
	double total = sum->value + term;

	sum->rest += fabs(sum->value) >= fabs(term) ? sum->value - total + term : term - total + sum->value;
	sum->value = total;
}

static double total(const struct compensated_sum *sum)
{
	return sum->value + sum->rest;
}

static double value_of(const struct xfp_distribution_work *work, uint32_t pattern)
{
	return (double)(work->dtype == XFP_F16 ? xfp_half_to_float((uint16_t)pattern)
					       : xfp_bf16_to_float((uint16_t)pattern));
}

static void note_range(struct xfp_distribution *m, double value)
{
	if (!m->count || value < m->min)
		m->min = value;
	if (!m->count || value > m->max)
		m->max = value;
}

/* Compute range and mean. NaN and infinity are counted and removed. */
static void find_mean(struct xfp_distribution_work *work)
{
	struct xfp_distribution *m = &work->found;
	struct compensated_sum sum = { 0 };

	for (uint32_t p = 0; p < PATTERNS; p++) {
		uint64_t count = work->pattern[p];
		double value;

		if (!count)
			continue;
		value = value_of(work, p);
		if (isfinite(value)) {
			note_range(m, value);
			m->count += count;
			add(&sum, (double)count * value);
			continue;
		}
		*(isnan(value) ? &m->nans : &m->infinities) += count;
		work->pattern[p] = 0;
	}
	work->all = (struct central){ .count = m->count, .mean = m->count ? total(&sum) / (double)m->count : 0 };
}

static void find_spread(struct xfp_distribution_work *work)
{
	struct compensated_sum second = { 0 }, fourth = { 0 };

	for (uint32_t p = 0; p < PATTERNS; p++)
		if (work->pattern[p]) {
			double d = value_of(work, p) - work->all.mean, square = d * d;

			add(&second, (double)work->pattern[p] * square);
			add(&fourth, (double)work->pattern[p] * (square * square));
		}
	work->all.m2 = total(&second);
	work->all.m4 = total(&fourth);
}

/* ---- 32 and 64 bits ---------------------------------------------------------------------------- */

/* Convert up to CHUNK weights to double. */
static void load(const struct xfp_distribution_work *work, const unsigned char *from, uint64_t count, double *to)
{
	for (uint64_t i = 0; i < count; i++) {
		if (work->dtype == XFP_F32) {
			uint32_t bits = xfp_load32(from + 4 * i);
			float value;

			memcpy(&value, &bits, sizeof value);
			to[i] = (double)value;
		} else {
			uint64_t bits = xfp_load64(from + 8 * i);

			memcpy(&to[i], &bits, sizeof to[i]);
		}
	}
}

static void find_range(struct xfp_distribution *m, const double *value, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (!isfinite(value[i])) {
			*(isnan(value[i]) ? &m->nans : &m->infinities) += 1;
			continue;
		}
		note_range(m, value[i]);
		m->count++;
	}
}

/* Move finite values to the front, scaled. Returns their number. */
static uint64_t pick_numbers(double *value, uint64_t count, double scale)
{
	uint64_t kept = 0;

	for (uint64_t i = 0; i < count; i++)
		if (isfinite(value[i]))
			value[kept++] = value[i] * scale;
	return kept;
}

static struct central central_of(const double *value, uint64_t count)
{
	struct central c = { .count = count };
	double sum = 0, off = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += value[i];
	c.mean = sum / (double)count;
	/* Correct the mean's rounding error. */
	for (uint64_t i = 0; i < count; i++)
		off += value[i] - c.mean;
	c.mean += off / (double)count;
	for (uint64_t i = 0; i < count; i++) {
		double d = value[i] - c.mean, square = d * d;

		c.m2 += square;
		c.m3 += square * d;
		c.m4 += square * square;
	}
	return c;
}

static void add_chunk(struct central *a, const struct central *b)
{
	double na = (double)a->count, nb = (double)b->count, n = na + nb, d = b->mean - a->mean, e = d / n;
	struct central sum = { .count = a->count + b->count };

	if (!a->count) {
		*a = *b;
		return;
	}
	sum.mean = a->mean + e * nb;
	sum.m2 = a->m2 + b->m2 + d * e * na * nb;
	sum.m3 = a->m3 + b->m3 + d * e * e * na * nb * (na - nb) + 3 * e * (na * b->m2 - nb * a->m2);
	sum.m4 = a->m4 + b->m4 + d * e * e * e * na * nb * (na * na - na * nb + nb * nb) +
		 6 * e * e * (na * na * b->m2 + nb * nb * a->m2) + 4 * e * (na * b->m3 - nb * a->m3);
	*a = sum;
}

/* ---- both -------------------------------------------------------------------------------------- */

/* Derive sigma and kurtosis from the moments. */
static void find_shape(struct xfp_distribution_work *work)
{
	const struct central *all = &work->all;
	struct xfp_distribution *m = &work->found;
	double n = (double)all->count;

	m->sigma = m->kurtosis = m->largest = NAN;
	m->mean = all->count ? all->mean / work->scale : NAN;
	if (!all->count)
		m->min = m->max = NAN;
	/* If all weights are equal, sigma must not be a rounding error. */
	if (all->count && !(m->min < m->max))
		m->mean = m->min;
	if (all->count < 2)
		return;
	m->sigma = m->min < m->max ? sqrt(all->m2 / (n - 1)) / work->scale : 0;
	if (!(m->sigma > 0))
		return;
	m->kurtosis = n * all->m4 / (all->m2 * all->m2);
	m->largest = fmax(m->max - m->mean, m->mean - m->min) / m->sigma;
}

static void count_tails(struct xfp_distribution *m, double value, uint64_t count)
{
	double far = fabs(value - m->mean);

	if (far > 3 * m->sigma)
		m->beyond_3 += count;
	if (far > 4 * m->sigma)
		m->beyond_4 += count;
}

void xfp_distribution_begin(struct xfp_distribution_work *work, enum xfp_dtype dtype, unsigned pass)
{
	int exponent;

	work->dtype = dtype;
	work->pass = pass;
	if (!pass) {
		work->found = (struct xfp_distribution){ .measured = true };
		work->all = (struct central){ 0 };
		work->scale = 1;
		memset(work->pattern, 0, sizeof work->pattern);
	}
	if (task_of(work) == ADD_CHUNKS && pass) {
		frexp(fmax(fabs(work->found.min), fabs(work->found.max)), &exponent);
		work->scale = ldexp(1, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
	}
	if (task_of(work) == COUNT_TAILS)
		find_shape(work);
}

static void add_numbers(struct xfp_distribution_work *work, const unsigned char *from, uint64_t count)
{
	double *value = work->chunk;
	struct central chunk;

	load(work, from, count, value);
	if (task_of(work) == FIND_RANGE || (task_of(work) == ADD_CHUNKS && !work->pass))
		find_range(&work->found, value, count);
	if (task_of(work) == ADD_CHUNKS && (count = pick_numbers(value, count, work->scale))) {
		chunk = central_of(value, count);
		add_chunk(&work->all, &chunk);
	} else if (task_of(work) == COUNT_TAILS) {
		for (uint64_t i = 0; i < count; i++)
			if (isfinite(value[i]))
				count_tails(&work->found, value[i], 1);
	}
}

void xfp_distribution_add(struct xfp_distribution_work *work, const void *block, uint64_t bytes)
{
	const unsigned char *from = block;
	uint64_t size = xfp_dtype_bits(work->dtype) / 8, count = bytes / size;

	if (task_of(work) == COUNT_PATTERNS) {
		for (uint64_t i = 0; i < count; i++)
			work->pattern[xfp_load16(from + 2 * i)]++;
		return;
	}
	for (uint64_t i = 0; i < count; i += CHUNK)
		add_numbers(work, from + i * size, count - i < CHUNK ? count - i : CHUNK);
}

struct xfp_distribution xfp_distribution_end(struct xfp_distribution_work *work)
{
	if (task_of(work) != COUNT_PATTERNS)
		return work->found;
	find_mean(work);
	find_spread(work);
	find_shape(work);
	for (uint32_t p = 0; work->found.sigma > 0 && p < PATTERNS; p++)
		if (work->pattern[p])
			count_tails(&work->found, value_of(work, p), work->pattern[p]);
	return work->found;
}

/* ---- several ----------------------------------------------------------------------------------- */

/* Squares of very large or small sigmas overflow or underflow, so sum squares relative to the largest sigma. */
static void add_variance(struct xfp_distribution_sum *sum, uint64_t count, double sigma)
{
	sum->spread += count;
	if (sigma > sum->sigma) {
		sum->variance *= sum->sigma / sigma * (sum->sigma / sigma);
		sum->sigma = sigma;
	}
	if (sum->sigma > 0)
		sum->variance += (double)count * (sigma / sum->sigma * (sigma / sum->sigma));
}

void xfp_distribution_sum_add(struct xfp_distribution_sum *sum, const struct xfp_distribution *one)
{
	double n = (double)one->count;

	sum->tensors += one->measured;
	sum->nans += one->nans;
	sum->infinities += one->infinities;
	if (!one->count)
		return;
	sum->min = !sum->count || one->min < sum->min ? one->min : sum->min;
	sum->max = !sum->count || one->max > sum->max ? one->max : sum->max;
	sum->mean += n * one->mean;
	sum->count += one->count;
	sum->beyond_3 += one->beyond_3;
	sum->beyond_4 += one->beyond_4;
	if (!isnan(one->sigma))
		add_variance(sum, one->count, one->sigma);
	if (!isnan(one->kurtosis)) {
		sum->largest = !sum->tailed || one->largest > sum->largest ? one->largest : sum->largest;
		sum->tailed += one->count;
		sum->kurtosis += n * one->kurtosis;
	}
}

struct xfp_distribution xfp_distribution_sum_end(const struct xfp_distribution_sum *sum)
{
	return (struct xfp_distribution){
		.measured = sum->tensors > 0,
		.count = sum->count,
		.nans = sum->nans,
		.infinities = sum->infinities,
		.min = sum->count ? sum->min : NAN,
		.max = sum->count ? sum->max : NAN,
		.mean = sum->count ? sum->mean / (double)sum->count : NAN,
		.sigma = sum->spread ? sum->sigma * sqrt(sum->variance / (double)sum->spread) : NAN,
		.kurtosis = sum->tailed ? sum->kurtosis / (double)sum->tailed : NAN,
		.beyond_3 = sum->beyond_3,
		.beyond_4 = sum->beyond_4,
		.largest = sum->tailed ? sum->largest : NAN,
	};
}
