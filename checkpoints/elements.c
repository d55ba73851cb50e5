/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.c - read a whole tensor from front to back, packed or not.
 *
 * A packed tensor is read by lines of its last dimension, through the same reader as matrices. Lines at the beginning
 * and the end of a read may be partial.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/filesystem.h"
#include "checkpoints/checkpoint.h"
#include "schemas/recipe/recipe.h"

struct xfp_element_reader {
	struct xfp_matrix_source source; /* the view is the matrix that `matrix` reads */
	int fd;
	struct xfp_matrix_reader *matrix; /* for a packed tensor */
	uint64_t number;                  /* number of that matrix in the tensor */
	uint64_t matrix_rows;
	uint64_t line; /* bytes per row of it */
	unsigned char *lines;
	size_t capacity;
};

/* Open matrix `number` of a packed tensor, whose lines are the rows of consecutive matrices. */
static enum xfp_status open_matrix(struct xfp_element_reader *r, uint64_t number, struct xfp_error *err)
{
	const struct xfp_recipe *recipe = r->source.recipe;
	uint64_t rows = recipe->transposed ? recipe->cols : recipe->rows;
	uint64_t cols = recipe->transposed ? recipe->transposed : recipe->cols;

	xfp_matrix_close(r->matrix);
	r->matrix = NULL;
	r->number = number;
	r->matrix_rows = rows;
	r->line = cols * (xfp_dtype_bits(r->source.dtype) / 8);
	r->source.view = (struct xfp_view){ number * rows * cols, rows, cols, cols, 1 };
	return xfp_matrix_open(&r->source, &r->matrix, err);
}

enum xfp_status xfp_elements_open(const struct xfp_matrix_source *source, struct xfp_element_reader **out,
				  struct xfp_error *err)
{
	struct xfp_element_reader *r = calloc(1, sizeof *r);
	enum xfp_status status;
	struct stat st;

	if (!r)
		return xfp_no_memory_for(err, source->path);
	r->source = *source;
	r->fd = -1;
	status = source->recipe ? open_matrix(r, 0, err)
				: xfp_open_identified(source->path, source->identity, &r->fd, &st, err);
	if (status) {
		xfp_elements_close(r);
		return status;
	}
	*out = r;
	return XFP_OK;
}

void xfp_elements_close(struct xfp_element_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	xfp_matrix_close(r->matrix);
	free(r->lines);
	free(r);
}

static enum xfp_status read_packed(struct xfp_element_reader *r, uint64_t offset, uint64_t size, unsigned char *buf,
				   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint64_t some; !status && size; offset += some, buf += some, size -= some) {
		uint64_t row = offset / r->line, skip = offset % r->line, first = row % r->matrix_rows;
		uint64_t rows = (skip + size + r->line - 1) / r->line;

		if (rows > r->matrix_rows - first)
			rows = r->matrix_rows - first;
		some = rows * r->line - skip < size ? rows * r->line - skip : size;
		if (rows * r->line > r->capacity) {
			free(r->lines);
			r->capacity = 0;
			if (!(r->lines = malloc(rows * r->line)))
				return xfp_no_memory_for(err, r->source.path);
			r->capacity = rows * r->line;
		}
		if (row / r->matrix_rows != r->number)
			status = open_matrix(r, row / r->matrix_rows, err);
		if (!status && !(status = xfp_matrix_read(r->matrix, first, rows, r->lines, err)))
			memcpy(buf, r->lines + skip, some);
	}
	return status;
}

enum xfp_status xfp_elements_read(struct xfp_element_reader *r, uint64_t offset, uint64_t size, void *buf,
				  struct xfp_error *err)
{
	if (offset > r->source.bytes || size > r->source.bytes - offset)
		return xfp_fail(err, XFP_FAILED, "%s: tensor %s: read past its end", r->source.path,
				xfp_printable(r->source.tensor).text);
	if (r->source.recipe)
		return read_packed(r, offset, size, buf, err);
	return xfp_pread(r->fd, buf, size, r->source.offset + offset, r->source.path, err);
}

struct xfp_matrix_source xfp_checkpoint_source(const struct xfp_checkpoint *checkpoint,
					       const struct xfp_source_tensor *tensor)
{
	return (struct xfp_matrix_source){
		.path = checkpoint->files[tensor->file].path,
		.tensor = tensor->name,
		.dtype = tensor->dtype,
		.offset = tensor->offset,
		.bytes = tensor->bytes,
		.recipe = tensor->recipe,
		.files = checkpoint->files,
	};
}
