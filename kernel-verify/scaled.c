/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled.c - test the kernels of groups with scale and midpoint (scaled.h).
 */
#include <stdlib.h>
#include <string.h>

#include "kernel-verify/kernel_verify.h"
#include "kernels/common/number.h"
#include "kernels/encode/scaled.h"

/* Weights of a group; marked ones are NaN. Sometimes all are zero, or equal. */
struct group_inputs {
	size_t count, padded;
	unsigned unmarked;
	float *x;
	uint16_t *keep;
};

static struct group_inputs make_group(struct xfp_trial *trial)
{
	unsigned kind = trial->timing ? 9 : (unsigned)xfp_trial_random_below(trial, 10);
	float middle = xfp_trial_gaussian(trial) * 300, scale = kind == 0 ? 0 : kind == 1 ? 0x1p-50f : 700;
	struct group_inputs in = { .count = 1 + xfp_trial_random_below(trial, XFP_SCALED_MAX_GROUP) };

	if (trial->number % 2)
		in.count = 1 + xfp_trial_random_below(trial, 128);
	if (trial->timing)
		in.count = 128;
	in.padded = xfp_padded(in.count);
	in.x = xfp_trial_buffer(trial, "x", in.padded * sizeof *in.x, sizeof *in.x);
	in.keep = xfp_trial_buffer(trial, "keep", in.padded / XFP_LANES * sizeof *in.keep, sizeof *in.keep);
	memset(in.keep, 0, in.padded / XFP_LANES * sizeof *in.keep);
	for (size_t i = 0; i < in.count; i++) {
		in.x[i] = xfp_trial_gaussian(trial) * scale + middle;
		if (kind == 2 || (kind != 9 && xfp_trial_random_below(trial, 40) == 0)) {
			in.x[i] = __builtin_nanf("");
			continue;
		}
		in.keep[i / XFP_LANES] |= (uint16_t)(1u << i % XFP_LANES);
		in.unmarked++;
	}
	memset(in.x + in.count, 0, (in.padded - in.count) * sizeof *in.x);
	xfp_trial_shape(trial, "%zu weights, %u of them unmarked", in.count, in.unmarked);
	return in;
}

/* A group as xfp_scaled_row_load passes it to a kernel, which fills in the counts. */
static struct xfp_scaled_group *new_group(struct xfp_trial *trial, const struct group_inputs *in, bool fine,
					  float **centred)
{
	struct xfp_scaled_group *group = xfp_trial_buffer(trial, "group", sizeof *group, sizeof(void *));

	*centred = xfp_trial_buffer(trial, "centred", in->padded * sizeof **centred, 64);
	memset(group, 0, sizeof *group);
	group->x = *centred;
	group->keep = in->keep;
	group->upto = xfp_trial_buffer(trial, "upto", (fine ? 256 : 64) * sizeof *group->upto, 64);
	group->fine = fine;
	group->vectors = (unsigned)(in->padded / XFP_LANES);
	group->count = in->unmarked;
	return group;
}

static void record_group(struct xfp_trial *trial, const struct xfp_scaled_group *group)
{
	const float numbers[] = { group->mean, group->low, group->step, group->share, group->q_mean, group->q_sigma };

	xfp_trial_floats(trial, "mean, low, step, share, q_mean, q_sigma", numbers, 6);
	xfp_trial_record(trial, "upto", 'i', group->upto, group->fine ? 256 : 64);
}

static void load(struct xfp_trial *trial)
{
	const struct xfp_scaled_encoder *encoder = xfp_kernel_encoder(trial->set)->scaled;
	struct group_inputs in = make_group(trial);
	struct xfp_scaled_group *group;
	float *centred;

	trial->weights = (double)in.count;
	xfp_trial_seal(trial);
	group = new_group(trial, &in, trial->op->kind, &centred);
	while (xfp_trial_again(trial))
		encoder->load(group, in.x, in.keep, centred);
	record_group(trial, group);
	xfp_trial_floats(trial, "centred", centred, in.padded);
}

static struct xfp_scaled_group *loaded_group(struct xfp_trial *trial)
{
	struct group_inputs in = make_group(trial);
	float *centred;
	struct xfp_scaled_group *group = new_group(trial, &in, xfp_scaled_fine(trial->op->k), &centred);

	trial->weights = (double)in.count;
	xfp_encoder_plain.scaled->load(group, in.x, in.keep, centred);
	return group;
}

static int ascending(const void *a, const void *b)
{
	float one = *(const float *)a, other = *(const float *)b;

	return one < other ? -1 : one > other;
}

/* Ascending numbers, like entries. */
static void rising(struct xfp_trial *trial, float *to, unsigned count)
{
	xfp_trial_gaussians(trial, to, count, 1);
	qsort(to, count, sizeof *to, ascending);
	for (unsigned j = 0; j < count; j++)
		to[j] = xfp_half_to_float(xfp_float_to_half(to[j]));
}

static void search(struct xfp_trial *trial)
{
	static const unsigned sizes[] = { 1, 8, 16, 32, 64, 256 };
	const struct xfp_scaled_encoder *encoder = xfp_kernel_encoder(trial->set)->scaled;
	unsigned k = trial->op->k, size = trial->timing ? 32 : sizes[xfp_trial_random_below(trial, 6)];
	struct xfp_scaled_group *group = loaded_group(trial);
	size_t entries = (size_t)size << k;
	struct xfp_scaled_library *library = xfp_trial_buffer(trial, "library", xfp_scaled_library_bytes(k, size), 64);
	uint16_t *halves = xfp_trial_buffer(trial, "entries", entries * sizeof *halves, sizeof *halves);
	struct xfp_scaled_moments moments[XFP_SCALED_MAX_LIBRARY];
	struct xfp_scaled_fit fit = { 0 };
	int32_t entry;

	for (unsigned e = 0; e < size; e++) {
		float numbers[64];

		rising(trial, numbers, 1u << k);
		for (unsigned j = 0; j < 1u << k; j++)
			halves[(e << k) + j] = xfp_float_to_half(numbers[j]);
		moments[e] = (struct xfp_scaled_moments){ xfp_trial_gaussian(trial) / 16,
							  0.5f + (float)xfp_trial_random_below(trial, 64) / 128 };
	}
	xfp_scaled_open(library, k, size, halves, moments);
	xfp_trial_seal(trial);
	while (xfp_trial_again(trial))
		encoder->search(library, group, &fit);
	entry = (int32_t)fit.entry;
	xfp_trial_record(trial, "entry", 'i', &entry, 1);
	xfp_trial_floats(trial, "scale", &fit.scale, 1);
	xfp_trial_floats(trial, "midpoint", &fit.midpoint, 1);
}

static void below(struct xfp_trial *trial)
{
	const struct xfp_scaled_encoder *encoder = xfp_kernel_encoder(trial->set)->scaled;
	struct xfp_scaled_group *group = loaded_group(trial);
	size_t stride = xfp_scaled_stride(trial->op->k);
	float *edge = xfp_trial_buffer(trial, "edge", stride * sizeof *edge, 64);
	float s = (float)(1 + xfp_trial_random_below(trial, 40)), m = (float)xfp_trial_random_below(trial, 64);
	int32_t *upto;

	memset(edge, 0, stride * sizeof *edge);
	rising(trial, edge, 1u << trial->op->k);
	xfp_trial_seal(trial);
	upto = xfp_trial_buffer(trial, "below", stride * sizeof *upto, 64);
	while (xfp_trial_again(trial))
		encoder->below(trial->op->k, edge, s, m, group, upto);
	xfp_trial_record(trial, "below", 'i', upto, (size_t)1 << trial->op->k);
}

static void assign(struct xfp_trial *trial)
{
	const struct xfp_scaled_encoder *encoder = xfp_kernel_encoder(trial->set)->scaled;
	size_t cols = trial->timing ? 4096 : 1 + xfp_trial_random_below(trial, XFP_SCALED_MAX_GROUP);
	size_t stride = xfp_scaled_stride(trial->op->k), padded = xfp_padded(cols);
	float *x = xfp_trial_row(trial, "x", cols), *value;
	float *entry = xfp_trial_buffer(trial, "entry", stride * sizeof *entry, 64);
	float s = xfp_half_to_float(xfp_float_to_half(xfp_trial_gaussian(trial) * 300));
	float m = xfp_half_to_float(xfp_float_to_half(xfp_trial_gaussian(trial) * 100));
	unsigned which = trial->timing ? 3 : 1 + (unsigned)xfp_trial_random_below(trial, 3);
	uint8_t *index;

	xfp_trial_shape(trial, "%zu weights, scale %g%s", cols, (double)s,
			which == 1   ? ", indices only"
			: which == 2 ? ", values only"
				     : "");
	trial->weights = (double)cols;
	memset(entry, 0, stride * sizeof *entry);
	rising(trial, entry, 1u << trial->op->k);
	for (size_t c = 0; c < cols; c++) {
		unsigned j = (unsigned)xfp_trial_random_below(trial, (size_t)1 << trial->op->k);

		/* sometimes halfway between two representable values */
		x[c] = xfp_trial_gaussian(trial) * 300 + m;
		if (j && xfp_trial_random_below(trial, 4) == 0)
			x[c] = (entry[j] * s + m) / 2 + (entry[j - 1] * s + m) / 2;
	}
	xfp_trial_seal(trial);
	index = xfp_trial_buffer(trial, "index", padded, 1);
	value = xfp_trial_buffer(trial, "value", padded * sizeof *value, sizeof *value);
	while (xfp_trial_again(trial))
		encoder->assign(trial->op->k, entry, s, m, x, cols, which & 1 ? index : NULL, which & 2 ? value : NULL);
	if (which & 1)
		xfp_trial_bytes(trial, "index", index, cols);
	if (which & 2)
		xfp_trial_floats(trial, "value", value, cols);
}

void xfp_kernel_ops_scaled(struct xfp_kernel_ops *ops)
{
	xfp_kernel_op_add(ops, "encode scaled_load", 0, false, XFP_ENCODER_SETS, load);
	xfp_kernel_op_add(ops, "encode scaled_load fine", 0, true, XFP_ENCODER_SETS, load);
	for (unsigned k = 2; k <= 6; k++) {
		xfp_kernel_op_add(ops, "encode scaled_search k=%u", k, 0, XFP_ENCODER_SETS, search);
		xfp_kernel_op_add(ops, "encode scaled_below k=%u", k, 0, XFP_ENCODER_SETS, below);
		xfp_kernel_op_add(ops, "encode scaled_assign k=%u", k, 0, XFP_ENCODER_SETS, assign);
	}
}
