/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a checkpoint, packed or not, by its readers.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoints/crcs.h"
#include "kernels/common/number.h"
#include "model/weights/fast_product.h"
#include "model/weights/weights.h"

#define BLOCK_BYTES 0x200000 /* rows that are multiplied at a time */
#define LARGEST_FILE ((size_t)1 << 30)

struct checkpoint_rows {
	struct xfp_matrix_reader *reader;
	enum xfp_dtype dtype;
	uint64_t cols;
	unsigned char *buffer; /* rows in their stored type */
	uint64_t capacity;
};

static void close_checkpoint(void *source)
{
	xfp_checkpoint_close(source);
}

static const char *name_of(const void *source, uint32_t number)
{
	const struct xfp_checkpoint *checkpoint = source;

	return number < checkpoint->tensor_count ? checkpoint->tensors[number].name : NULL;
}

static bool shape_of(const void *source, const char *tensor, uint32_t *rank, uint64_t shape[XFP_MAX_RANK])
{
	const struct xfp_checkpoint *checkpoint = source;
	int64_t i = xfp_checkpoint_find(checkpoint, tensor);

	if (i < 0)
		return false;
	*rank = checkpoint->tensors[i].rank;
	memcpy(shape, checkpoint->tensors[i].shape, XFP_MAX_RANK * sizeof *shape);
	return true;
}

static void close_rows(void *matrix)
{
	struct checkpoint_rows *rows = matrix;

	if (rows->reader)
		xfp_matrix_close(rows->reader);
	free(rows->buffer);
	free(rows);
}

static enum xfp_status open_rows(const void *source, const char *tensor, const struct xfp_view *view, void **matrix,
				 struct xfp_error *err)
{
	const struct xfp_checkpoint *checkpoint = source;
	int64_t i = xfp_checkpoint_find(checkpoint, tensor);
	struct xfp_matrix_source where;
	struct checkpoint_rows *rows;
	enum xfp_status status;

	if (i < 0)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no tensor %s", checkpoint->folder, tensor);
	where = xfp_checkpoint_source(checkpoint, &checkpoint->tensors[i]);
	where.view = *view;
	where.identity = &checkpoint->files[checkpoint->tensors[i].file].identity;
	if (!xfp_dtype_is_weight(where.dtype))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: %s has type %s, which the model cannot use", where.path,
				tensor, xfp_dtype_name(where.dtype));
	if (!(rows = calloc(1, sizeof *rows)))
		return xfp_no_memory_for(err, where.path);
	rows->dtype = where.dtype;
	rows->cols = view->cols;
	if ((status = xfp_matrix_open(&where, &rows->reader, err)))
		close_rows(rows);
	else
		*matrix = rows;
	return status;
}

static enum xfp_status read_rows(void *matrix, uint64_t first, uint64_t count, float *out, struct xfp_error *err)
{
	struct checkpoint_rows *rows = matrix;
	uint64_t bytes = count * rows->cols * (xfp_dtype_bits(rows->dtype) / 8);
	enum xfp_status status;

	if (bytes > rows->capacity) {
		free(rows->buffer);
		rows->capacity = 0;
		if (!(rows->buffer = malloc(bytes)))
			return xfp_no_memory(err);
		rows->capacity = bytes;
	}
	if (!(status = xfp_matrix_read(rows->reader, first, count, rows->buffer, err)))
		xfp_to_float(rows->dtype, rows->buffer, count * rows->cols, out);
	return status;
}

/* Multiply rows in their stored type, some at a time, if there are kernels for it. */
static enum xfp_status multiply_one(void *source, struct xfp_team *team, const struct xfp_weight_product *p,
				    uint64_t *bytes, struct xfp_error *err)
{
	struct checkpoint_rows *rows;
	void *opened = NULL;
	enum xfp_status status = open_rows(source, p->tensor, &p->view, &opened, err);
	size_t row;

	if (status)
		return status;
	rows = opened;
	row = p->view.cols * (xfp_dtype_bits(rows->dtype) / 8);
	if (xfp_fast_dtype(rows->dtype)) {
		uint64_t block = BLOCK_BYTES / row + 1;

		*bytes = p->rows * row;
		if (!(rows->buffer = malloc(block * row)))
			status = xfp_no_memory(err);
		for (uint64_t done = 0, some; !status && done < p->rows; done += some) {
			some = p->rows - done < block ? p->rows - done : block;
			if (!(status = xfp_matrix_read(rows->reader, p->first + done, some, rows->buffer, err)))
				status = xfp_fast_product(team, rows->dtype, rows->buffer, some, p->view.cols, p->x,
							  p->count, p->y + done, p->stride, err);
		}
	}
	close_rows(rows);
	return status;
}

static enum xfp_status multiply(void *source, struct xfp_team *team, const struct xfp_weight_product *products,
				size_t count, uint64_t *bytes, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < count; i++)
		status = multiply_one(source, team, &products[i], &bytes[i], err);
	return status;
}

/* A file that the reader synthesizes, or one next to the weights. */
static enum xfp_status copy_file(const void *source, const char *name, char **bytes, size_t *size,
				 struct xfp_error *err)
{
	const struct xfp_checkpoint *checkpoint = source;
	enum xfp_status status = XFP_OK;
	char *path;

	for (uint32_t i = 0; i < checkpoint->synthesized_count; i++) {
		const struct xfp_synthesized_file *synthesized = &checkpoint->synthesized[i];

		if (strcmp(synthesized->name, name))
			continue;
		if (!(*bytes = malloc(synthesized->size + 1)))
			return xfp_no_memory_for(err, checkpoint->folder);
		memcpy(*bytes, synthesized->bytes, synthesized->size + 1);
		*size = synthesized->size;
		return XFP_OK;
	}
	if (checkpoint->apart)
		return XFP_OK;
	if (!(path = xfp_path(checkpoint->folder, name)))
		return xfp_no_memory_for(err, checkpoint->folder);
	if (!access(path, F_OK))
		status = xfp_slurp_regular(path, LARGEST_FILE, bytes, size, err);
	free(path);
	return status;
}

static bool has_crcs(const void *source)
{
	return xfp_crcs_in(((const struct xfp_checkpoint *)source)->format);
}

static enum xfp_status identify(const void *source, struct xfp_sha256 *sha, struct xfp_error *err)
{
	const struct xfp_checkpoint *checkpoint = source;

	(void)err;
	for (uint32_t i = 0; i < checkpoint->file_count; i++) {
		const struct xfp_source_file *file = &checkpoint->files[i];

		xfp_sha256_update(sha, file->name, strlen(file->name) + 1);
		xfp_sha256_update(sha, &file->identity, sizeof file->identity);
	}
	return XFP_OK;
}

const struct xfp_weights_source xfp_weights_of_checkpoint = {
	.close = close_checkpoint,
	.name = name_of,
	.shape = shape_of,
	.open_rows = open_rows,
	.read_rows = read_rows,
	.close_rows = close_rows,
	.has_crcs = has_crcs,
	.identify = identify,
	.file = copy_file,
	.multiply = multiply,
};

enum xfp_status xfp_weights_open_checkpoint(const char *path, void **source, char **config, struct xfp_error *err)
{
	struct xfp_checkpoint *checkpoint;
	enum xfp_status status = xfp_checkpoint_open(path, &checkpoint, err);

	if (status)
		return status;
	if (checkpoint->config && !(*config = strdup(checkpoint->config))) {
		xfp_checkpoint_close(checkpoint);
		return xfp_no_memory_for(err, path);
	}
	*source = checkpoint;
	return XFP_OK;
}
