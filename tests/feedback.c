/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback - encode a matrix with error feedback (kernels/feedback/feedback.h), for tests/feedback_reference.py.
 *
 *     feedback SET CASE RESULT
 *
 * CASE and RESULT are arrays of numbers, one after the other, as the reference writes and reads them: for each block
 * H, R, the order and the codes. Exits with 77 if the machine lacks the instruction set.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/scale.h"
#include "kernels/encode/encode.h"
#include "kernels/feedback/feedback.h"

struct header {
	uint32_t cols, blocks, group, k, entries, rows, inputs, stack_inputs, tried, passes, batch;
};

static FILE *file;
static void *buffers[512]; /* all that were allocated */
static size_t buffer_count;

static void *new_zeros(size_t bytes)
{
	void *buffer = aligned_alloc(64, (bytes + 64) / 64 * 64);

	if (!buffer || buffer_count == sizeof buffers / sizeof *buffers)
		abort();
	buffers[buffer_count++] = buffer;
	return memset(buffer, 0, (bytes + 64) / 64 * 64);
}

static void *get(size_t bytes)
{
	void *buffer = new_zeros(bytes);

	if (bytes && fread(buffer, bytes, 1, file) != 1)
		abort();
	return buffer;
}

static void put(const void *from, size_t bytes)
{
	if (bytes && fwrite(from, bytes, 1, file) != 1)
		abort();
}

/* The moments of columns [first, first + cols), and the diagonal of all; NULL without inputs. */
static float *moments(const struct header *h, const uint16_t *x, size_t rows, size_t first, size_t cols)
{
	const size_t values = xfp_triangle_values(cols), panels = (cols + XFP_LANES - 1) / XFP_LANES;
	double *sum = new_zeros(values * sizeof *sum);
	float *scratch = new_zeros(xfp_feedback_moments_scratch(cols) * sizeof *scratch);

	if (!rows)
		return NULL;
	/* In two parts, each shared by two threads. */
	for (size_t part = 0; part < 2; part++) {
		const size_t from = rows / 3 * part, count = part ? rows - from : rows / 3;

		for (size_t half = 0; half < 2; half++)
			xfp_feedback_moments_add(sum, x + from * h->cols + first, h->cols, count, cols,
						 half ? panels / 2 : 0, half ? panels : panels / 2, scratch);
	}
	xfp_feedback_moments_mean(sum, values, rows, (float *)(void *)sum);
	return (float *)(void *)sum;
}

static float *squares(const struct header *h, const uint16_t *x, size_t rows)
{
	double *sum = new_zeros(h->cols * sizeof *sum);
	float *mean = new_zeros(h->cols * sizeof *mean);

	if (!rows)
		return NULL;
	xfp_feedback_squares_add(sum, x, h->cols, rows, h->cols);
	xfp_feedback_moments_mean(sum, h->cols, rows, mean);
	return mean;
}

static void encode_rows(const struct header *h, const struct xfp_feedback *f, const struct xfp_compact_book *book,
			const float *x, const uint8_t *marked, const uint8_t *d)
{
	const size_t groups = f->padded / f->group;
	uint8_t *byte = new_zeros(h->rows * groups), *index = new_zeros(h->rows * f->padded);
	uint16_t *residual = new_zeros(h->rows * f->padded * sizeof *residual);
	uint16_t *bits = new_zeros(f->padded / 8 + 2);
	float *row = new_zeros((f->padded + XFP_LANES) * sizeof *row);

	for (size_t first = 0; first < h->rows; first += h->batch) {
		const size_t count = h->rows - first < h->batch ? h->rows - first : h->batch;
		void *buffer = new_zeros(xfp_feedback_batch_bytes(f, count));
		struct xfp_feedback_batch batch;

		xfp_feedback_batch_init(&batch, f, buffer, count);
		for (size_t r = 0; r < count; r++) {
			const size_t at = (first + r) * h->cols + f->first;

			memcpy(row, x + at, f->cols * sizeof *row);
			memset(bits, 0, f->padded / 8);
			for (size_t c = 0; c < f->cols; c++)
				bits[c / 16] |= (uint16_t)(marked[at + c] << c % 16);
			xfp_feedback_load(&batch, r, row, bits, xfp_compact_row(d[first + r]));
		}
		xfp_feedback_encode(&batch, book, h->tried);
		for (uint32_t pass = 0; pass < h->passes; pass++)
			xfp_feedback_pass(&batch, book);
		for (size_t r = 0; r < count; r++)
			xfp_feedback_store(&batch, r, book, byte + (first + r) * groups,
					   index + (first + r) * f->padded, residual + (first + r) * f->padded);
	}
	put(byte, h->rows * groups);
	put(index, h->rows * f->padded);
	put(residual, h->rows * f->padded * sizeof *residual);
}

int main(int argc, char **argv)
{
	struct xfp_compact_book *book;
	const uint16_t *x, *stack, *code;
	const uint8_t *balance, *marked, *d;
	const float *w, *own, *all;
	struct header *h;

	if (argc != 4 || !xfp_encoder_use(argv[1]))
		return argc == 4 ? 77 : 2;
	file = fopen(argv[2], "rb");
	if (!file)
		abort();
	book = new_zeros(sizeof *book);
	h = get(sizeof *h);
	x = get((size_t)h->inputs * h->cols * sizeof *x);
	stack = get((size_t)h->stack_inputs * h->cols * sizeof *stack);
	balance = get(h->cols);
	code = get((((size_t)h->entries << h->k) + 256 / h->entries) * sizeof *code);
	d = get(h->rows);
	w = get((size_t)h->rows * h->cols * sizeof *w);
	marked = get((size_t)h->rows * h->cols);
	fclose(file);
	file = fopen(argv[3], "wb");
	if (!file)
		abort();
	xfp_compact_open(book, h->k, h->group, h->entries, code);
	own = squares(h, x, h->inputs);
	all = squares(h, stack, h->stack_inputs);
	for (uint32_t b = 0; b < h->blocks; b++) {
		const size_t first = xfp_feedback_first(h->cols, h->group, h->blocks, b);
		struct xfp_feedback_source source = { own, all, h->inputs, h->cols, balance };
		const float scale = xfp_feedback_scale(&source);
		struct xfp_feedback f = { .first = first, .group = h->group };
		double *scratch;
		size_t bad;

		f.cols = xfp_feedback_first(h->cols, h->group, h->blocks, b + 1) - first;
		f.padded = xfp_compact_groups_of(f.cols, f.group) * f.group;
		f.column = new_zeros(f.padded * sizeof *f.column);
		f.h = new_zeros(xfp_triangle_values(f.padded) * sizeof *f.h);
		f.factor = new_zeros(xfp_triangle_values(f.padded) * sizeof *f.factor);
		f.diagonal = new_zeros(f.padded * sizeof *f.diagonal);
		f.pivot = new_zeros(f.padded * sizeof *f.pivot);
		source.own = moments(h, x, h->inputs, first, f.cols);
		source.stack = moments(h, stack, h->stack_inputs, first, f.cols);
		source.balance = balance + first;
		xfp_feedback_prepare(&f, &source, scale);
		put(f.column, f.padded * sizeof *f.column);
		put(f.h, xfp_triangle_values(f.padded) * sizeof *f.h);
		scratch = new_zeros(xfp_feedback_scratch(f.padded) * sizeof *scratch);
		if (!xfp_feedback_factor(&f, scratch, &bad))
			return 1;
		put(f.factor, xfp_triangle_values(f.padded) * sizeof *f.factor);
		xfp_feedback_divide(&f);
		encode_rows(h, &f, book, w, marked, d);
	}
	while (buffer_count)
		free(buffers[--buffer_count]);
	return fclose(file) != 0;
}
