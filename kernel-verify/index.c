/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - test packed indices bit by bit against the layout in lane_index.h.
 */
#include <string.h>

#include "kernel-verify/kernel_verify.h"
#include "kernels/common/lane_index.h"

/* The bits of every slot, lowest first: byte A of a lane's word, bit 0, is A0. */
static const char *const slots[7][8] = {
	[2] = { "A0A1", "A2A3", "A4A5", "A6A7" },
	[3] = { "A0A1A2", "A3A4A5", "B0B1B2", "B3B4B5", "C0C1C2", "C3C4C5", "A6A7C6", "B6B7C7" },
	[4] = { "A0A1A2A3", "A4A5A6A7" },
	[5] = { "A0A1A2A3A4", "B0B1B2B3B4", "C0C1C2C3C4", "D0D1D2D3D4", "E0E1E2E3E4", "A5A6A7D5D6", "B5B6B7E5E6",
		"C5C6C7D7E7" },
	[6] = { "A0A1A2A3A4A5", "B0B1B2B3B4B5", "C0C1C2C3C4C5", "A6A7B6B7C6C7" },
};

/* Position of bit `bit` of column c, in bits from the beginning of the row. */
static size_t bit_of(unsigned k, size_t cols, size_t c, unsigned bit)
{
	size_t chunk = c / xfp_chunk_columns(k), first = chunk * xfp_chunk_columns(k), in = c - first;
	size_t lanes = xfp_chunk_lanes(k, cols - first), vector = in / lanes, lane = in % lanes;
	const char *at = slots[k][vector / 4] + (size_t)2 * bit;
	size_t byte = 4 * ((size_t)(at[0] - 'A') * lanes + lane) + vector % 4;

	return 8 * (first / 32 * 4 * k + byte) + (size_t)(at[1] - '0');
}

static size_t row_bytes(unsigned k, size_t cols)
{
	return ((cols + 31) / 32 * 4 * k + 15) / 16 * 16;
}

static void fill(struct xfp_trial *trial, uint8_t *index, size_t cols)
{
	for (size_t c = 0; c < cols; c++)
		index[c] = (uint8_t)xfp_trial_random_below(trial, (size_t)1 << trial->op->k);
}

static void pack(struct xfp_trial *trial)
{
	unsigned k = trial->op->k;
	size_t cols = xfp_trial_columns(trial, 2500), bytes = row_bytes(k, cols), set = 0, found = 0;
	uint8_t *index = xfp_trial_buffer(trial, "index", cols, 1), *out;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	fill(trial, index, cols);
	xfp_trial_seal(trial);
	out = xfp_trial_buffer(trial, "packed", bytes, 1);
	while (xfp_trial_again(trial))
		xfp_lane_index_pack(k, index, cols, out);
	for (size_t c = 0; c < cols; c++)
		for (unsigned bit = 0; bit < k; bit++) {
			size_t at = bit_of(k, cols, c, bit);
			bool is = out[at / 8] >> (at % 8) & 1, should = index[c] >> bit & 1;

			set += should;
			if (is != should)
				xfp_trial_fail(trial, "bit %u of column %zu is %d, not %d", bit, c, is, should);
		}
	for (size_t i = 0; i < bytes; i++)
		found += (size_t)__builtin_popcount(out[i]);
	if (found != set)
		xfp_trial_fail(trial, "padding is not zero");
	xfp_trial_bytes(trial, "packed", out, bytes);
}

/* Unpack random bytes: bits outside the columns do not count. */
static void unpack(struct xfp_trial *trial)
{
	unsigned k = trial->op->k;
	size_t cols = xfp_trial_columns(trial, 2500), bytes = row_bytes(k, cols);
	uint8_t *packed = xfp_trial_buffer(trial, "packed", bytes, 1), *out;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	for (size_t i = 0; i < bytes; i++)
		packed[i] = (uint8_t)xfp_trial_random(trial);
	xfp_trial_seal(trial);
	out = xfp_trial_buffer(trial, "index", cols, 1);
	while (xfp_trial_again(trial))
		xfp_lane_index_unpack(k, packed, cols, out);
	for (size_t c = 0; c < cols; c++) {
		unsigned should = 0;

		for (unsigned bit = 0; bit < k; bit++) {
			size_t at = bit_of(k, cols, c, bit);

			should |= (packed[at / 8] >> (at % 8) & 1u) << bit;
		}
		if (out[c] != should)
			xfp_trial_fail(trial, "column %zu is %u, not %u", c, out[c], should);
	}
	xfp_trial_bytes(trial, "index", out, cols);
}

void xfp_kernel_ops_index(struct xfp_kernel_ops *ops)
{
	for (unsigned k = 2; k <= 6; k++) {
		xfp_kernel_op_add(ops, "index pack k=%u", k, 0, XFP_ONLY_PLAIN, pack);
		xfp_kernel_op_add(ops, "index unpack k=%u", k, 0, XFP_ONLY_PLAIN, unpack);
	}
}
