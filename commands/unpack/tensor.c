/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - decode matrices block by block and write them to their place in the tensor.
 *
 * A tensor may consist of several matrices: experts of a stack, or gate and up, side by side or in alternating rows;
 * each may be stored transposed. Elements of a row or a column of a matrix lie at a constant stride in the tensor; runs
 * along the smaller stride are written piece by piece.
 */
#include "commands/unpack/unpack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/file.h"
#include "kernels/common/number.h"
#include "schemas/layout/classes.h"

#define BLOCK_BYTES ((uint64_t)4 << 20)
#define PIECE_BYTES ((uint64_t)1 << 20)

enum xfp_status xfp_tensor_views(const struct xfp_bundle *bundle, struct xfp_tensor_views *views, struct xfp_error *err)
{
	struct xfp_bundle_info info;
	struct xfp_matrix_info matrix;

	xfp_bundle_describe(bundle, &info);
	views->first = calloc(info.tensors + (size_t)2, sizeof *views->first);
	views->list = calloc(info.matrices + (size_t)1, sizeof *views->list);
	if (!views->first || !views->list) {
		xfp_tensor_views_free(views);
		return xfp_no_memory(err);
	}
	/* Counts are stored one entry further, so that filling the list moves each start to its final value. */
	for (uint32_t m = 0; xfp_bundle_matrix(bundle, m, &matrix); m++)
		views->first[matrix.tensor + 2]++;
	for (uint32_t t = 1; t <= info.tensors; t++)
		views->first[t + 1] += views->first[t];
	for (uint32_t m = 0; xfp_bundle_matrix(bundle, m, &matrix); m++)
		views->list[views->first[matrix.tensor + 1]++] = m;
	return XFP_OK;
}

void xfp_tensor_views_free(struct xfp_tensor_views *views)
{
	free(views->first);
	free(views->list);
	*views = (struct xfp_tensor_views){ 0 };
}

/* ---- values ------------------------------------------------------------------------------------ */

/* Returns false if a value is beyond the range of the dtype. */
static bool encode(const float *w, uint64_t count, enum xfp_dtype dtype, uint8_t *out)
{
	bool fits = true;

	switch (dtype) {
	case XFP_F64:
		for (uint64_t i = 0; i < count; i++) {
			double wide = w[i];

			memcpy(out + 8 * i, &wide, 8);
		}
		return true;
	case XFP_F32:
		memcpy(out, w, count * 4);
		return true;
	case XFP_F16:
		for (uint64_t i = 0; i < count; i++) {
			uint16_t half = xfp_float_to_half(w[i]);

			xfp_store16(out + 2 * i, half);
			fits = fits && ((half & 0x7fff) != 0x7c00 || w[i] - w[i] != 0);
		}
		return fits;
	default:
		for (uint64_t i = 0; i < count; i++) {
			uint16_t bf16 = xfp_float_to_bf16(w[i]);

			xfp_store16(out + 2 * i, bf16);
			fits = fits && ((bf16 & 0x7fff) != 0x7f80 || w[i] - w[i] != 0);
		}
		return fits;
	}
}

/* The tensor's place in the file, and buffers for one block. */
struct target {
	const struct xfp_bundle *bundle;
	const char *name; /* of the tensor */
	enum xfp_dtype dtype;
	size_t element;
	int fd;
	uint64_t offset;
	const char *path;
	float *w;     /* [block weights] */
	uint8_t *out; /* the same, converted to dtype */
	uint8_t *piece;
	struct xfp_signals *signals;
};

/* Decode rows of a matrix into t->out. */
static enum xfp_status fill_block(struct target *t, uint32_t number, const struct xfp_matrix_info *matrix,
				  uint64_t first, uint64_t count, struct xfp_error *err)
{
	uint64_t cols = matrix->cols, chunk = (count + 15) / 16;
	enum xfp_status status = XFP_OK;
	bool fits = true;

	if (matrix->mode == XFP_MODE_KEEP && matrix->index_bytes == matrix->rows * cols * t->element) {
		/* source precision; a fused tensor's dtype may differ, in size too */
		struct xfp_unit_info unit;

		xfp_bundle_unit(t->bundle, matrix->unit, &unit);
		if ((enum xfp_dtype)unit.dtype == t->dtype) {
			memcpy(t->out, (const uint8_t *)matrix->index + first * cols * t->element,
			       count * cols * t->element);
			return XFP_OK;
		}
	}
#pragma omp parallel for schedule(static) reduction(&& : fits)
	for (uint64_t r = 0; r < count; r += chunk) {
		uint64_t rows = count - r < chunk ? count - r : chunk;
		struct xfp_error own;
		enum xfp_status result =
			xfp_bundle_dequantize(t->bundle, number, first + r, rows, XFP_FLOAT32, t->w + r * cols, &own);

		if (result) {
#pragma omp critical(unpack_failure)
			{
				status = result;
				if (err)
					*err = own;
			}
		} else {
			fits = encode(t->w + r * cols, rows * cols, t->dtype, t->out + r * cols * t->element) && fits;
		}
	}
	if (!status && !fits)
		status = xfp_fail(err, XFP_FAILED, "tensor %s: has weights beyond the range of %s; use --dtype f32",
				  xfp_printable(t->name).text, xfp_dtype_name(t->dtype));
	return status;
}

/* ---- places ------------------------------------------------------------------------------------ */

/* Write `count` values, `step` bytes apart, to every `stride`-th element of the tensor from `start` on. */
static enum xfp_status put_run(struct target *t, uint64_t start, uint64_t stride, uint64_t count, const uint8_t *values,
			       size_t step, struct xfp_error *err)
{
	uint64_t max = stride < PIECE_BYTES / t->element ? PIECE_BYTES / t->element / (stride ? stride : 1) : 1;
	enum xfp_status status = XFP_OK;

	if (stride == 1 && step == t->element)
		return xfp_pwrite(t->fd, values, count * t->element, t->offset + start * t->element, t->path, err);
	for (uint64_t done = 0; !status && done < count;) {
		uint64_t some = count - done < max ? count - done : max;
		size_t bytes = ((some - 1) * stride + 1) * t->element;
		uint64_t at = t->offset + (start + done * stride) * t->element;

		if (stride > 1 && some > 1 && (status = xfp_pread(t->fd, t->piece, bytes, at, t->path, err)))
			break;
		for (uint64_t i = 0; i < some; i++)
			memcpy(t->piece + i * stride * t->element, values + (done + i) * step, t->element);
		status = xfp_pwrite(t->fd, t->piece, bytes, at, t->path, err);
		done += some;
	}
	return status;
}

static enum xfp_status put_block(struct target *t, const struct xfp_matrix_info *m, uint64_t first, uint64_t count,
				 struct xfp_error *err)
{
	uint64_t start = m->base + first * m->row_stride, cols = m->cols;
	enum xfp_status status = XFP_OK;

	if (m->col_stride == 1 && m->row_stride == cols)
		return put_run(t, start, 1, count * cols, t->out, t->element, err);
	if (m->col_stride <= m->row_stride)
		for (uint64_t r = 0; !status && r < count; r++)
			status = put_run(t, start + r * m->row_stride, m->col_stride, cols,
					 t->out + r * cols * t->element, t->element, err);
	else
		for (uint64_t c = 0; !status && c < cols; c++)
			status = put_run(t, start + c * m->col_stride, m->row_stride, count, t->out + c * t->element,
					 cols * t->element, err);
	return status;
}

static enum xfp_status check_signals(const struct target *t, struct xfp_error *err)
{
	return xfp_signals_arrived(t->signals) ? xfp_fail(err, XFP_FAILED, "interrupted") : XFP_OK;
}

/* Write bytes unchanged, through a copy: write() would report an unreadable page of the bundle as "bad address". */
static enum xfp_status put_data(const struct target *t, const uint8_t *data, uint64_t bytes, struct xfp_error *err)
{
	uint8_t *copy = malloc(BLOCK_BYTES);
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	for (uint64_t done = 0; !status && done < bytes;) {
		uint64_t some = bytes - done < BLOCK_BYTES ? bytes - done : BLOCK_BYTES;

		memcpy(copy, data + done, some);
		if (!(status = check_signals(t, err)))
			status = xfp_pwrite(t->fd, copy, some, t->offset + done, t->path, err);
		done += some;
	}
	free(copy);
	return status;
}

static enum xfp_status put_matrix(struct target *t, uint32_t number, struct xfp_error *err)
{
	struct xfp_matrix_info matrix;
	enum xfp_status status = XFP_OK;
	uint64_t block;

	if (!xfp_bundle_matrix(t->bundle, number, &matrix) || !matrix.rows || !matrix.cols)
		return XFP_OK;
	block = BLOCK_BYTES / sizeof(float) / matrix.cols;
	block = block > 1 ? block : 1;
	block = block < matrix.rows ? block : matrix.rows;
	t->w = malloc(block * matrix.cols * sizeof(float));
	t->out = malloc(block * matrix.cols * t->element);
	t->piece = malloc(PIECE_BYTES);
	if (!t->w || !t->out || !t->piece)
		status = xfp_no_memory(err);
	for (uint64_t first = 0; !status && first < matrix.rows; first += block) {
		uint64_t count = matrix.rows - first < block ? matrix.rows - first : block;

		if (!(status = check_signals(t, err)) && !(status = fill_block(t, number, &matrix, first, count, err)))
			status = put_block(t, &matrix, first, count, err);
	}
	free(t->w);
	free(t->out);
	free(t->piece);
	return status;
}

enum xfp_status xfp_unpack_tensor(const struct xfp_bundle *bundle, const struct xfp_tensor_views *views,
				  uint32_t number, enum xfp_dtype dtype, int fd, uint64_t offset, const char *path,
				  struct xfp_signals *signals, struct xfp_error *err)
{
	struct target target = { .bundle = bundle,
				 .dtype = dtype,
				 .element = xfp_dtype_bits(dtype) / 8,
				 .fd = fd,
				 .offset = offset,
				 .path = path,
				 .signals = signals };
	enum xfp_status status = XFP_OK;
	struct xfp_tensor_info info;

	if (!xfp_bundle_tensor(bundle, number, &info))
		return xfp_fail(err, XFP_USAGE, "there is no tensor %u", (unsigned)number);
	if (info.data)
		return put_data(&target, info.data, info.bytes, err);
	target.name = info.name;
	for (uint32_t i = views->first[number]; !status && i < views->first[number + 1]; i++)
		status = put_matrix(&target, views->list[i], err);
	return status;
}
