/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matrix.c - read rows of a matrix, for every layout of unpacked tensors.
 *
 * A contiguous block of rows is one read. All other layouts use a scratch tile: lines along the axis whose elements are
 * closer together (rows of an interleaved tensor, columns of a transposed one) are read to it, many lines per read if
 * the gaps are small, and the elements are picked from there. packed_rows.c reads packed tensors.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/filesystem.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/packed_rows.h"
#include "checkpoints/strided_copy.h"

#define TILE_BYTES ((size_t)1 << 20)
#define ROW_BYTES ((size_t)16 << 10)   /* maximum per row in a tile */
#define COLUMN_BYTES ((size_t)4 << 10) /* per column: a tile has enough columns to write whole cache lines */
#define PAD_BYTES 64                   /* between lines, to avoid cache set conflicts at powers of two */
#define GAP_BYTES 512                  /* elements further apart than this are read one by one */
#define MIN_RUN ((uint64_t)4096)       /* minimum bytes per read in a transposed block */

struct xfp_matrix_reader {
	struct xfp_matrix_source source;
	size_t element; /* bytes per element */
	int fd;
	unsigned char *tile;            /* NULL until needed */
	struct xfp_packed_rows *packed; /* for a packed tensor: decodes every read */
};

/* Compute the element number after the last one of a view; returns false on overflow of it, or of the matrix size. */
static bool view_end(const struct xfp_view *v, uint64_t *end)
{
	uint64_t rows, cols, size;

	if (!v->rows || !v->cols) {
		*end = v->base;
		return true;
	}
	return xfp_mul(v->rows, v->cols, &size) && xfp_mul(size, sizeof(uint64_t), &size) &&
	       xfp_mul(v->rows - 1, v->row_stride, &rows) && xfp_mul(v->cols - 1, v->col_stride, &cols) &&
	       xfp_add(v->base, rows, end) && xfp_add(*end, cols, end) && xfp_add(*end, 1, end);
}

static size_t element_bytes(enum xfp_dtype dtype)
{
	unsigned bits = xfp_dtype_bits(dtype);

	return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
}

/* The stride of a single row or column is irrelevant: set it to the fastest one. */
static struct xfp_view plain(struct xfp_view v)
{
	if (v.cols == 1)
		v.col_stride = 1;
	if (v.rows == 1)
		v.row_stride = v.col_stride;
	return v;
}

/* Return whether elements of a column are closer together than those of a row. */
static bool is_transposed(const struct xfp_view *v)
{
	return v->cols == 1 || v->row_stride < v->col_stride;
}

enum xfp_status xfp_matrix_open(const struct xfp_matrix_source *source, struct xfp_matrix_reader **out,
				struct xfp_error *err)
{
	size_t element = element_bytes(source->dtype);
	struct xfp_matrix_reader *r;
	enum xfp_status status;
	uint64_t end, file_end;
	struct stat st;

	if (!element)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: elements of %s cannot be read one by one",
				source->path, xfp_printable(source->tensor).text, xfp_dtype_name(source->dtype));
	if (!view_end(&source->view, &end) || end > source->bytes / element ||
	    !xfp_add(source->offset, source->bytes, &file_end))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: the matrix in it would reach past its end",
				source->path, xfp_printable(source->tensor).text);
	r = calloc(1, sizeof *r);
	if (!r)
		return xfp_no_memory_for(err, source->path);
	r->source = *source;
	r->source.view = plain(source->view);
	r->element = element;
	r->fd = -1;
	if (source->recipe) {
		if ((status = xfp_packed_rows_open(&r->source, &r->packed, err)))
			goto failed;
		*out = r;
		return XFP_OK;
	}
	if ((status = xfp_open_identified(source->path, source->identity, &r->fd, &st, err)))
		goto failed;
	if ((uint64_t)st.st_size < file_end) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: the file has become shorter; download it again",
				  source->path, xfp_printable(source->tensor).text);
		goto failed;
	}
	*out = r;
	return XFP_OK;

failed:
	xfp_matrix_close(r);
	return status;
}

void xfp_matrix_close(struct xfp_matrix_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	xfp_packed_rows_close(r->packed);
	free(r->tile);
	free(r);
}

/* Read `count` elements from number `first` of the tensor on. */
static enum xfp_status read_elements(struct xfp_matrix_reader *r, uint64_t first, uint64_t count, void *buf,
				     struct xfp_error *err)
{
	enum xfp_status status =
		xfp_pread(r->fd, buf, count * r->element, r->source.offset + first * r->element, r->source.path, err);

	return status ? xfp_context(err, status, "tensor %s", xfp_printable(r->source.tensor).text) : XFP_OK;
}

/* A tile: `lines` lines of `run` elements, `stride` apart within a line and `pitch` between lines. */
struct tile {
	uint64_t lines, run, stride, pitch;
};

/* Read a tile from element `at` on, lines `line_stride` apart in the tensor and `pitch` in the tile. */
static enum xfp_status fill(struct xfp_matrix_reader *r, const struct tile *t, uint64_t at, uint64_t line_stride,
			    struct xfp_error *err)
{
	uint64_t span = (t->run - 1) * t->stride + 1;
	enum xfp_status status = XFP_OK;

	if (t->pitch == line_stride)
		return read_elements(r, at, (t->lines - 1) * t->pitch + span, r->tile, err);
	for (uint64_t i = 0; i < t->lines && !status; i++)
		status = read_elements(r, at + i * line_stride, span, r->tile + i * t->pitch * r->element, err);
	return status;
}

/* Copy a tile to the matrix; `transposed`: its lines are columns. */
static void empty(const struct xfp_matrix_reader *r, const struct tile *t, bool transposed, unsigned char *dst)
{
	uint64_t rows = transposed ? t->run : t->lines, cols = transposed ? t->lines : t->run;
	uint64_t src_i = transposed ? t->stride : t->pitch, src_j = transposed ? t->pitch : t->stride;
	uint64_t step = r->source.view.cols;

	xfp_strided_copy(dst, step, r->tile, src_i, src_j, rows, cols, r->element);
}

static uint64_t at_most(uint64_t n, uint64_t limit)
{
	return n < limit ? n : limit;
}

static enum xfp_status read_tiles(struct xfp_matrix_reader *r, uint64_t first, uint64_t count, unsigned char *buf,
				  struct xfp_error *err)
{
	const struct xfp_view *v = &r->source.view;
	bool transposed = is_transposed(v);
	uint64_t stride = transposed ? v->row_stride : v->col_stride;
	uint64_t line_stride = transposed ? v->col_stride : v->row_stride;
	uint64_t length = transposed ? count : v->cols, lines = transposed ? v->cols : count;
	uint64_t start = v->base + first * v->row_stride;
	uint64_t capacity = TILE_BYTES / r->element, run = 1, span, pitch;
	uint64_t max = (transposed ? COLUMN_BYTES : ROW_BYTES) / r->element;
	enum xfp_status status;

	if (!r->tile && !(r->tile = malloc(TILE_BYTES)))
		return xfp_no_memory_for(err, r->source.path);
	if (stride <= GAP_BYTES / r->element)
		run = at_most(length, stride ? (max - 1) / stride + 1 : length);
	span = (run - 1) * stride + 1;
	pitch = line_stride >= span && line_stride <= 2 * span ? line_stride : span + PAD_BYTES / r->element;
	for (uint64_t line = 0; line < lines;) {
		/* The last line needs only its span, so that a pitch never makes a read pass the matrix. */
		struct tile t = { .lines = at_most(lines - line, (capacity - span) / pitch + 1),
				  .stride = stride,
				  .pitch = pitch };

		for (uint64_t i = 0; i < length; i += t.run) {
			uint64_t row = transposed ? i : line, col = transposed ? line : i;

			t.run = at_most(run, length - i);
			if ((status = fill(r, &t, start + line * line_stride + i * stride, line_stride, err)))
				return status;
			empty(r, &t, transposed, buf + (row * v->cols + col) * r->element);
		}
		line += t.lines;
	}
	return XFP_OK;
}

enum xfp_status xfp_matrix_read(struct xfp_matrix_reader *r, uint64_t first, uint64_t count, void *buf,
				struct xfp_error *err)
{
	const struct xfp_view *v = &r->source.view;

	if (first > v->rows || count > v->rows - first)
		return xfp_fail(err, XFP_FAILED, "%s: tensor %s: read past the matrix's last row", r->source.path,
				xfp_printable(r->source.tensor).text);
	if (!count || !v->cols)
		return XFP_OK;
	if (r->packed)
		return xfp_packed_rows_read(r->packed, first, count, buf, err);
	if (v->col_stride == 1 && (v->row_stride == v->cols || count == 1))
		return read_elements(r, v->base + first * v->row_stride, count * v->cols, buf, err);
	return read_tiles(r, first, count, buf, err);
}

uint64_t xfp_matrix_block_rows(const struct xfp_matrix_source *source, uint64_t bytes)
{
	size_t element = element_bytes(source->dtype);
	struct xfp_view v = plain(source->view);
	uint64_t rows, row_bytes;

	if (!element || !xfp_mul(v.cols, element, &row_bytes) || !row_bytes)
		return v.rows ? v.rows : 1;
	rows = bytes / row_bytes;
	if ((source->recipe ? xfp_packed_rows_transposed(source) : is_transposed(&v)) && rows < MIN_RUN / element)
		rows = MIN_RUN / element;
	if (source->recipe && rows < xfp_packed_rows_block(source))
		rows = xfp_packed_rows_block(source);
	rows = at_most(rows, v.rows);
	return rows ? rows : 1;
}

uint64_t xfp_matrix_reader_bytes(const struct xfp_matrix_source *source)
{
	if (source->recipe)
		return xfp_packed_rows_bytes(source);
	return source->view.col_stride != 1 || source->view.row_stride != source->view.cols ? TILE_BYTES : 0;
}
