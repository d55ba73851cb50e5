/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/rope.h"

#include <math.h>

#include "model/forward/numbers.h"

#define PI 3.14159265358979323846

/* Low frequencies are divided by the factor, high ones are kept, and those between are interpolated. */
static double llama3(const struct xfp_rope *rope, double frequency)
{
	double waves = rope->original_context * frequency / (2 * PI), smooth;

	if (waves < rope->low_frequency)
		return frequency / rope->factor;
	if (waves > rope->high_frequency)
		return frequency;
	smooth = (waves - rope->low_frequency) / (rope->high_frequency - rope->low_frequency);
	return (1 - smooth) * frequency / rope->factor + smooth * frequency;
}

/* The (fractional) pair that completes that many rotations over the original context. */
static double pair_of_rotations(const struct xfp_rope *rope, double times)
{
	return rope->dim * xfp_log(rope->original_context / (times * 2 * PI)) / (2 * xfp_log(rope->theta));
}

static double yarn(const struct xfp_rope *rope, uint32_t pair, double frequency)
{
	double low = pair_of_rotations(rope, rope->beta_fast), high = pair_of_rotations(rope, rope->beta_slow), ramp;

	if (rope->truncate) {
		low = floor(low);
		high = ceil(high);
	}
	low = low < 0 ? 0 : low;
	high = high > rope->dim - 1 ? rope->dim - 1 : high;
	if (low == high)
		high += 0.001;
	ramp = (pair - low) / (high - low);
	ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
	return frequency / rope->factor * ramp + frequency * (1 - ramp);
}

bool xfp_rope_is_long(const struct xfp_rope *rope, size_t length)
{
	return rope->scaling == XFP_ROPE_LONGROPE && (double)length > rope->original_context;
}

static float frequency_of(const struct xfp_rope *rope, uint32_t pair, bool is_long)
{
	double power = (float)xfp_pow(rope->theta, (float)(2.0 * pair / rope->dim)), frequency = (float)(1 / power);

	switch (rope->scaling) {
	case XFP_ROPE_LINEAR:
		return (float)(frequency / rope->factor);
	case XFP_ROPE_LLAMA3:
		return (float)llama3(rope, frequency);
	case XFP_ROPE_YARN:
		return (float)yarn(rope, pair, frequency);
	case XFP_ROPE_LONGROPE:
		return (float)(1 / (power * (is_long ? rope->longer : rope->shorter)[pair]));
	default:
		return (float)frequency;
	}
}

void xfp_rope_table(const struct xfp_rope *rope, size_t count, bool is_long, float *table)
{
	uint32_t pairs = rope->dim / 2;

	for (uint32_t pair = 0; pair < pairs; pair++) {
		float frequency = frequency_of(rope, pair, is_long);

		for (size_t position = 0; position < count; position++) {
			double sine, cosine;

			xfp_sine_cosine((float)position * frequency, &sine, &cosine);
			table[(position * pairs + pair) * 2] = (float)(cosine * rope->attention);
			table[(position * pairs + pair) * 2 + 1] = (float)(sine * rope->attention);
		}
	}
}

void xfp_rope_rotate(const struct xfp_rope *rope, const float *position, float *head)
{
	uint32_t pairs = rope->dim / 2, step = rope->interleaved ? 2 : 1, other = rope->interleaved ? 1 : pairs;

	head += rope->first;
	for (uint32_t i = 0; i < pairs; i++, head += step) {
		float a = head[0], b = head[other], cosine = position[2 * i], sine = position[2 * i + 1];

		head[0] = a * cosine - b * sine;
		head[other] = b * cosine + a * sine;
	}
}
