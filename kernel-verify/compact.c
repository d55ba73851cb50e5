/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - the kernels of compact groups (compact.h).
 */
#include <string.h>

#include "kernel-verify/kernel_verify.h"
#include "kernels/common/number.h"
#include "kernels/encode/compact.h"

/* Buffers for `count` groups. */
static struct xfp_compact_groups new_groups(struct xfp_trial *trial, unsigned group, size_t count)
{
	return (struct xfp_compact_groups){
		.group = group,
		.y = xfp_trial_buffer(trial, "y", count * group * sizeof(float), sizeof(float)),
		.mark = xfp_trial_buffer(trial, "mark", count * group / 16 * sizeof(uint16_t), sizeof(uint16_t)),
		.code = xfp_trial_buffer(trial, "code", count * group, 1),
		.largest = xfp_trial_buffer(trial, "largest", count * sizeof(float), sizeof(float)),
		.square = xfp_trial_buffer(trial, "square", count * sizeof(float), sizeof(float)),
	};
}

/* A row whose marked weights are NaN. Some groups are all zeros, all marked, or far smaller than others. */
static float *marked_row(struct xfp_trial *trial, size_t cols, unsigned group, uint16_t **marked)
{
	size_t words = xfp_padded(cols) / XFP_LANES;
	float *x = xfp_trial_row(trial, "x", cols);

	*marked = NULL;
	if (trial->number % 4) {
		*marked = xfp_trial_buffer(trial, "marked", words * sizeof **marked, sizeof **marked);
		memset(*marked, 0, words * sizeof **marked);
	}
	for (size_t first = 0; first < cols; first += group) {
		unsigned kind = (unsigned)xfp_trial_random_below(trial, 12);
		float scale = kind == 0 ? 0 : kind == 1 ? 0x1p-60f : kind == 2 ? 20000 : 700;

		for (size_t c = first; c < cols && c < first + group; c++) {
			x[c] = xfp_trial_gaussian(trial) * scale;
			if (*marked && (kind == 3 || xfp_trial_random_below(trial, 50) == 0)) {
				(*marked)[c / XFP_LANES] |= (uint16_t)(1u << c % XFP_LANES);
				x[c] = __builtin_nanf("");
			}
		}
	}
	return x;
}

static unsigned group_of(struct xfp_trial *trial)
{
	return trial->timing ? 32 : 16u << xfp_trial_random_below(trial, 3);
}

static void load(struct xfp_trial *trial)
{
	const struct xfp_compact_encoder *encoder = xfp_kernel_encoder(trial->set)->compact;
	size_t cols = xfp_trial_columns(trial, 2000), first = xfp_trial_random_below(trial, 3);
	unsigned group = group_of(trial);
	size_t count = xfp_compact_groups_of(cols, group), before = first * group;
	float row = xfp_compact_row((uint8_t)(30 + xfp_trial_random_below(trial, 40)));
	struct xfp_compact_groups to;
	uint16_t *marked;
	float *x = marked_row(trial, cols, group, &marked);

	xfp_trial_shape(trial, "%zu columns in groups of %u%s", cols, group, marked ? ", some marked" : "");
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	to = new_groups(trial, group, first + count);
	while (xfp_trial_again(trial))
		encoder->load(&to, first, x, marked, cols, row);
	xfp_trial_floats(trial, "y", to.y + before, count * group);
	xfp_trial_record(trial, "mark", 'h', to.mark + before / 16, count * group / 16);
	xfp_trial_bytes(trial, "code", to.code + before, count * group);
	xfp_trial_floats(trial, "largest", to.largest + first, count);
	xfp_trial_floats(trial, "square", to.square + first, count);
}

/* An initial library, and ratios that match the groups. */
static struct xfp_compact_book *make_book(struct xfp_trial *trial, unsigned group,
					  const struct xfp_compact_groups *groups, size_t count)
{
	struct xfp_compact_book *book = xfp_trial_buffer(trial, "book", sizeof *book, 64);
	unsigned entries = xfp_compact_entries(trial->op->k) >> (trial->timing ? 0 : xfp_trial_random_below(trial, 3));
	uint64_t peaks[XFP_COMPACT_PEAKS] = { 0 };
	uint16_t code[XFP_COMPACT_ENTRIES * 64 + XFP_COMPACT_RATIOS];

	memset(book, 0, sizeof *book);
	peaks[100] = 1;
	xfp_compact_count(groups, 0, count, peaks);
	xfp_compact_seed(book, trial->op->k, group, entries < 4 ? 4 : entries, peaks);
	xfp_compact_finish(book, code);
	xfp_compact_prepare(book);
	return book;
}

static void assign(struct xfp_trial *trial)
{
	const struct xfp_compact_encoder *encoder = xfp_kernel_encoder(trial->set)->compact;
	size_t cols = xfp_trial_columns(trial, 2000), first = xfp_trial_random_below(trial, 3);
	unsigned group = group_of(trial);
	size_t all = xfp_compact_groups_of(cols, group), count;
	bool extras = trial->number % 5;
	struct xfp_compact_groups groups;
	struct xfp_compact_book *book;
	uint16_t *marked;
	float *x = marked_row(trial, cols, group, &marked), *error;
	uint8_t *byte, *index;

	first = first < all ? first : 0;
	count = all - first;
	groups = new_groups(trial, group, all);
	xfp_encoder_plain.compact->load(&groups, 0, x, marked, cols, xfp_compact_row(46));
	book = make_book(trial, group, &groups, all);
	xfp_trial_shape(trial, "%zu groups of %u from %zu, %u entries%s", count, group, first, book->library.entries,
			extras ? "" : ", bytes only");
	trial->weights = (double)(count * group);
	xfp_trial_seal(trial);
	byte = xfp_trial_buffer(trial, "byte", count, 1);
	index = xfp_trial_buffer(trial, "index", count * group, 1);
	error = xfp_trial_buffer(trial, "error", count * sizeof *error, sizeof *error);
	while (xfp_trial_again(trial))
		encoder->assign(book, &groups, first, count, byte, extras ? index : NULL, extras ? error : NULL);
	xfp_trial_bytes(trial, "byte", byte, count);
	if (extras) {
		xfp_trial_bytes(trial, "index", index, count * group);
		xfp_trial_floats(trial, "error", error, count);
	}
}

static void propose(struct xfp_trial *trial)
{
	const struct xfp_compact_encoder *encoder = xfp_kernel_encoder(trial->set)->compact;
	unsigned group = group_of(trial);
	size_t count = trial->timing ? XFP_LANES : 1 + xfp_trial_random_below(trial, XFP_LANES);
	size_t first = xfp_trial_random_below(trial, 3), all = first + count;
	struct xfp_compact_groups groups;
	struct xfp_compact_book *book;
	uint16_t *marked;
	float *x = marked_row(trial, all * group, group, &marked);
	uint8_t(*byte)[XFP_LANES];

	groups = new_groups(trial, group, all);
	xfp_encoder_plain.compact->load(&groups, 0, x, marked, all * group, xfp_compact_row(46));
	book = make_book(trial, group, &groups, all);
	memset(groups.code, 0xff, all * group);
	xfp_trial_shape(trial, "%zu groups of %u from %zu, %u entries", count, group, first, book->library.entries);
	trial->weights = (double)(count * group);
	byte = xfp_trial_buffer(trial, "byte", (XFP_COMPACT_TRIED + 1) * sizeof *byte, 1);
	while (xfp_trial_again(trial))
		encoder->propose(book, &groups, first, count, byte);
	for (int i = 0; i <= XFP_COMPACT_TRIED; i++)
		xfp_trial_bytes(trial, i ? "tried" : "best", byte[i], count);
	xfp_trial_bytes(trial, "code", groups.code, all * group);
}

static void decode(struct xfp_trial *trial)
{
	const struct xfp_compact_encoder *encoder = xfp_kernel_encoder(trial->set)->compact;
	size_t cols = xfp_trial_columns(trial, 2000);
	unsigned group = group_of(trial), entries = 4u << xfp_trial_random_below(trial, 3);
	size_t count = xfp_compact_groups_of(cols, group);
	struct xfp_compact_library *library = xfp_trial_buffer(trial, "library", sizeof *library, sizeof(float));
	uint8_t *byte = xfp_trial_buffer(trial, "byte", count, 1), *index = xfp_trial_buffer(trial, "index", cols, 1);
	float row = xfp_compact_row((uint8_t)(30 + xfp_trial_random_below(trial, 40))), *x;

	xfp_trial_shape(trial, "%zu columns in groups of %u, %u entries", cols, group, entries);
	trial->weights = (double)cols;
	*library = (struct xfp_compact_library){
		.k = trial->op->k,
		.group = group,
		.entries = entries,
		.ratios = 256 / entries,
		.ratio_bits = 8 - (unsigned)__builtin_ctz(entries),
	};
	for (unsigned e = 0; e < entries; e++)
		for (unsigned q = 0; q < 1u << trial->op->k; q++)
			library->entry[e][q] = xfp_half_to_float(xfp_float_to_half(xfp_trial_gaussian(trial)));
	for (unsigned r = 1; r < library->ratios; r++)
		library->ratio[r] = xfp_half_to_float(xfp_float_to_half((float)r / 61));
	for (size_t g = 0; g < count; g++)
		byte[g] = (uint8_t)xfp_trial_random(trial);
	for (size_t c = 0; c < cols; c++)
		index[c] = (uint8_t)xfp_trial_random_below(trial, (size_t)1 << trial->op->k);
	xfp_trial_seal(trial);
	x = xfp_trial_buffer(trial, "x", xfp_padded(cols) * sizeof *x, sizeof *x);
	while (xfp_trial_again(trial))
		encoder->decode(library, byte, index, row, cols, x);
	xfp_trial_floats(trial, "x", x, xfp_padded(cols));
}

static void reconstruct(struct xfp_trial *trial)
{
	const struct xfp_compact_encoder *encoder = xfp_kernel_encoder(trial->set)->compact;
	size_t cols = xfp_trial_columns(trial, 2000), first = xfp_trial_random_below(trial, 3);
	unsigned group = group_of(trial);
	size_t count = xfp_compact_groups_of(cols, group);
	float row = xfp_compact_row((uint8_t)(30 + xfp_trial_random_below(trial, 40))), *x, *decoded;
	struct xfp_compact_groups groups;
	struct xfp_compact_book *book;
	uint16_t *marked;
	uint8_t *byte = xfp_trial_buffer(trial, "byte", count, 1);
	uint8_t *index = xfp_trial_buffer(trial, "index", count * group, 1);

	x = marked_row(trial, cols, group, &marked);
	groups = new_groups(trial, group, first + count);
	xfp_encoder_plain.compact->load(&groups, first, x, marked, cols, row);
	book = make_book(trial, group, &groups, first + count);
	decoded = xfp_trial_buffer(trial, "decoded", xfp_padded(cols) * sizeof *decoded, sizeof *decoded);
	xfp_encoder_plain.compact->assign(book, &groups, first, count, byte, index, NULL);
	xfp_encoder_plain.compact->decode(&book->library, byte, index, row, cols, decoded);
	xfp_trial_shape(trial, "%zu columns in groups of %u from %zu, %u entries", cols, group, first,
			book->library.entries);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	x = xfp_trial_buffer(trial, "x", xfp_padded(cols) * sizeof *x, sizeof *x);
	while (xfp_trial_again(trial))
		encoder->reconstruct(book, &groups, first, byte, row, cols, x);
	xfp_trial_floats(trial, "x", x, xfp_padded(cols));
	if (memcmp(x, decoded, xfp_padded(cols) * sizeof *x))
		xfp_trial_fail(trial, "the result is not what decode computes from bytes and indices");
}

static void index_of_bytes(struct xfp_trial *trial)
{
	const struct xfp_compact_encoder *encoder = xfp_kernel_encoder(trial->set)->compact;
	size_t cols = xfp_trial_columns(trial, 2000);
	unsigned group = group_of(trial);
	size_t count = xfp_compact_groups_of(cols, group);
	float row = xfp_compact_row((uint8_t)(30 + xfp_trial_random_below(trial, 40))), *x;
	struct xfp_compact_groups groups;
	struct xfp_compact_book *book;
	uint16_t *marked;
	uint8_t *byte = xfp_trial_buffer(trial, "byte", count, 1), *index;
	uint8_t *assigned = xfp_trial_buffer(trial, "assigned", count * group, 1);

	x = marked_row(trial, cols, group, &marked);
	for (size_t c = 0; marked && c < cols; c++)
		x[c] = marked[c / 16] >> c % 16 & 1 ? 0 : x[c];
	groups = new_groups(trial, group, count);
	xfp_encoder_plain.compact->load(&groups, 0, x, marked, cols, row);
	book = make_book(trial, group, &groups, count);
	xfp_encoder_plain.compact->assign(book, &groups, 0, count, byte, assigned, NULL);
	xfp_trial_shape(trial, "%zu columns in groups of %u, %u entries", cols, group, book->library.entries);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	index = xfp_trial_buffer(trial, "index", xfp_padded(cols), 1);
	while (xfp_trial_again(trial))
		encoder->index(book, x, byte, row, cols, index);
	xfp_trial_bytes(trial, "index", index, cols);
	if (memcmp(index, assigned, cols))
		xfp_trial_fail(trial, "the indices are not those that assign computes with the bytes");
}

void xfp_kernel_ops_compact(struct xfp_kernel_ops *ops)
{
	xfp_kernel_op_add(ops, "encode compact_load", 0, 0, XFP_ENCODER_SETS, load);
	for (unsigned k = 2; k <= 6; k++) {
		xfp_kernel_op_add(ops, "encode compact_assign k=%u", k, 0, XFP_ENCODER_SETS, assign);
		xfp_kernel_op_add(ops, "encode compact_propose k=%u", k, 0, XFP_ENCODER_SETS, propose);
		xfp_kernel_op_add(ops, "encode compact_decode k=%u", k, 0, XFP_ENCODER_SETS, decode);
		xfp_kernel_op_add(ops, "encode compact_reconstruct k=%u", k, 0, XFP_ENCODER_SETS, reconstruct);
		xfp_kernel_op_add(ops, "encode compact_index k=%u", k, 0, XFP_ENCODER_SETS, index_of_bytes);
	}
}
