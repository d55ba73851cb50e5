/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a bundle, by libxfp.
 */
#include <stdlib.h>
#include <string.h>

#include "base/system/filesystem.h"
#include "kernels/common/number.h"
#include "model/weights/bundle_source.h"
#include "model/weights/pages.h"
#include "runtime/digest.h"

#define AROUND 0x10000 /* bytes around a page that the system usually maps with it */

/* Rows of one or more matrices, or of a kept tensor. */
struct bundle_rows {
	const struct xfp_bundle_source *source;
	uint32_t tensor;
	const uint8_t *data; /* of a kept tensor; NULL: matrices */
	uint64_t bytes;      /* of the kept tensor */
	enum xfp_dtype dtype;
	struct xfp_view view;
};

static void close_bundle(void *source)
{
	struct xfp_bundle_source *s = source;

	for (uint32_t u = 0; s->linears && u < s->info.units; u++)
		xfp_linear_close(s->linears[u]);
	free(s->linears);
	free(s->places);
	free(s->sound);
	xfp_digests_close(s->digests);
	xfp_bundle_close(s->bundle);
	free(s);
}

static const char *name_of(const void *source, uint32_t number)
{
	const struct xfp_bundle_source *s = source;
	struct xfp_tensor_info info;

	return xfp_bundle_tensor(s->bundle, number, &info) ? info.name : NULL;
}

static bool shape_of(const void *source, const char *tensor, uint32_t *rank, uint64_t shape[XFP_MAX_RANK])
{
	struct xfp_tensor_info info;
	uint32_t number;

	if (!xfp_bundle_source_find(source, tensor, &number, &info))
		return false;
	*rank = info.rank;
	memcpy(shape, info.shape, XFP_MAX_RANK * sizeof *shape);
	return true;
}

static bool all_found(const struct xfp_bundle_source *s, uint32_t tensor, const struct xfp_view *view)
{
	struct xfp_bundle_part part;

	for (uint64_t row = 0; row < view->rows; row += part.count) {
		if (!xfp_bundle_find_part(s, tensor, view, row, &part))
			return false;
	}
	return view->rows > 0;
}

static enum xfp_status open_rows(const void *source, const char *tensor, const struct xfp_view *view, void **matrix,
				 struct xfp_error *err)
{
	const struct xfp_bundle_source *s = source;
	struct bundle_rows found = { .source = s, .view = *view };
	struct xfp_tensor_info info;

	if (!xfp_bundle_source_find(s, tensor, &found.tensor, &info))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no tensor %s", s->info.path, tensor);
	found.data = info.data;
	found.bytes = info.bytes;
	found.dtype = (enum xfp_dtype)info.dtype;
	if (!found.data && (!xfp_view_is_within(info.elements, view) || !all_found(s, found.tensor, view)))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: %s (%s) is not stored in rows that the model can use",
				s->info.path, tensor, info.fate_name);
	if (found.data && (!xfp_dtype_is_weight(found.dtype) || !xfp_view_is_within(info.elements, view)))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: %s has type %s, which the model cannot use", s->info.path,
				tensor, info.dtype_name);
	if (!(*matrix = malloc(sizeof found)))
		return xfp_no_memory_for(err, s->info.path);
	memcpy(*matrix, &found, sizeof found);
	return XFP_OK;
}

void xfp_bundle_release_pages(const struct xfp_bundle_source *s, uint32_t matrix)
{
	struct xfp_matrix_info info;

	if (!s->releases_pages || !xfp_bundle_matrix(s->bundle, matrix, &info))
		return;
	xfp_pages_release(info.index, info.index_bytes);
	xfp_pages_release(info.code, info.code_bytes);
	xfp_pages_release(info.group, info.group_bytes);
	xfp_pages_release(info.outlier, info.outlier_bytes);
}

static enum xfp_status read_parts(const struct bundle_rows *m, uint64_t first, uint64_t count, float *out,
				  struct xfp_error *err)
{
	struct xfp_bundle_part part;
	enum xfp_status status;

	for (; count; count -= part.count, first += part.count, out += part.count * m->view.cols) {
		if (!xfp_bundle_find_part(m->source, m->tensor, &m->view, first, &part))
			return xfp_fail(err, XFP_BAD_INPUT, "%s: has no such rows", m->source->info.path);
		if (part.count > count)
			part.count = count;
		if ((status = xfp_bundle_dequantize(m->source->bundle, part.matrix, part.first, part.count, XFP_FLOAT32,
						    out, err)))
			return status;
		xfp_bundle_release_pages(m->source, part.matrix);
	}
	return XFP_OK;
}

/* Release also what the system mapped around the rows: if they are scattered, that is most of it. */
static void release_rows(const struct bundle_rows *m, uint64_t first, uint64_t bytes)
{
	uint64_t begin = first > AROUND ? first - AROUND : 0;
	uint64_t end = first + bytes + AROUND < m->bytes ? first + bytes + AROUND : m->bytes;

	xfp_pages_release(m->data + begin, end - begin);
}

static enum xfp_status read_rows(void *matrix, uint64_t first, uint64_t count, float *out, struct xfp_error *err)
{
	const struct bundle_rows *m = matrix;
	const struct xfp_view *v = &m->view;
	size_t size = xfp_dtype_bits(m->dtype) / 8;

	if (!m->data)
		return read_parts(m, first, count, out, err);
	for (uint64_t r = first; r < first + count; r++) {
		const uint8_t *row = m->data + (v->base + r * v->row_stride) * size;

		if (v->col_stride == 1) {
			xfp_to_float(m->dtype, row, v->cols, out);
			out += v->cols;
			continue;
		}
		for (uint64_t c = 0; c < v->cols; c++)
			xfp_to_float(m->dtype, row + c * v->col_stride * size, 1, out++);
	}
	if (m->source->releases_pages)
		release_rows(m, (v->base + first * v->row_stride) * size, count * v->row_stride * size);
	return XFP_OK;
}

static enum xfp_status copy_file(const void *source, const char *name, char **bytes, size_t *size,
				 struct xfp_error *err)
{
	const struct xfp_bundle_source *s = source;
	uint32_t number = xfp_bundle_find_file(s->bundle, name);
	struct xfp_file_info file;

	if (!xfp_bundle_file(s->bundle, number, &file))
		return XFP_OK;
	if (!(*bytes = malloc(file.bytes + 1)))
		return xfp_no_memory_for(err, s->info.path);
	memcpy(*bytes, file.data, file.bytes);
	(*bytes)[file.bytes] = 0;
	*size = file.bytes;
	return XFP_OK;
}

/* ---- digests ----------------------------------------------------------------------------------- */

/* Check all units that contain a part of the tensor. */
static enum xfp_status check(void *source, const char *tensor, bool (*watch)(void *context, uint64_t numbers),
			     void *context, struct xfp_error *err)
{
	struct xfp_bundle_source *s = source;
	const struct xfp_digest_reading reading = { s->releases_pages, watch, context };
	struct xfp_tensor_info info;
	struct xfp_matrix_info matrix;
	enum xfp_status status;
	uint32_t number;

	if (!xfp_bundle_source_find(s, tensor, &number, &info) || s->sound[number])
		return XFP_OK;
	status = xfp_digests_check_tensor(s->digests, number, &reading, err);
	for (uint32_t i = xfp_bundle_first_place(s, number);
	     !status && i < s->info.matrices && s->places[i].tensor == number; i++) {
		if (xfp_bundle_matrix(s->bundle, s->places[i].matrix, &matrix))
			status = xfp_digests_check_unit(s->digests, matrix.unit, &reading, err);
	}
	s->sound[number] = !status;
	return status;
}

static enum xfp_status check_all(void *source, struct xfp_team *team, bool (*watch)(void *context, uint64_t numbers),
				 void *context, struct xfp_error *err)
{
	struct xfp_bundle_source *s = source;
	const struct xfp_digest_reading reading = { s->releases_pages, watch, context };

	return xfp_digests_check_all(s->digests, team, &reading, err);
}

static void release_pages(void *source)
{
	struct xfp_bundle_source *s = source;

	s->releases_pages = true;
	for (size_t i = 0; i < XFP_MAX_OPEN; i++)
		s->open[i] = XFP_NOT_FOUND;
}

static void index_digest(const void *source, char hex[65])
{
	xfp_bundle_index_digest(((const struct xfp_bundle_source *)source)->bundle, hex);
}

static enum xfp_status identify(const void *source, struct xfp_sha256 *sha, struct xfp_error *err)
{
	const struct xfp_bundle_source *s = source;
	struct xfp_identity identity;
	struct stat st;
	enum xfp_status status = xfp_stat(s->info.path, &st, err);

	if (status)
		return status;
	identity = xfp_identity_at(s->info.path, &st);
	xfp_sha256_update(sha, &identity, sizeof identity);
	return XFP_OK;
}

const struct xfp_weights_source xfp_weights_of_bundle = {
	.close = close_bundle,
	.name = name_of,
	.shape = shape_of,
	.open_rows = open_rows,
	.read_rows = read_rows,
	.close_rows = free,
	.release_pages = release_pages,
	.index_digest = index_digest,
	.identify = identify,
	.file = copy_file,
	.multiply = xfp_bundle_multiply,
	.check = check,
	.check_all = check_all,
	.stacked = xfp_bundle_stacked,
	.multiply_experts = xfp_bundle_multiply_experts,
};

/* Cheap checks before any weights are read: tar headers, padding and small files. */
static enum xfp_status check_small(struct xfp_bundle_source *s, struct xfp_error *err)
{
	enum xfp_status status = xfp_bundle_check_frames(s->bundle, err);

	for (uint32_t file = 0; !status && file < s->info.files; file++)
		status = xfp_digests_check_file(s->digests, file, err);
	return status;
}

enum xfp_status xfp_weights_open_bundle(const char *path, void **source, char **config, struct xfp_error *err)
{
	struct xfp_bundle_source *s = calloc(1, sizeof *s);
	enum xfp_status status;
	size_t size;

	if (!s)
		return xfp_no_memory_for(err, path);
	if ((status = xfp_bundle_open(path, &s->bundle, err)))
		goto done;
	xfp_bundle_describe(s->bundle, &s->info);
	if ((status = xfp_digests_open(s->bundle, &s->digests, err)) || (status = check_small(s, err)))
		goto done;
	s->places = calloc((size_t)s->info.matrices + 1, sizeof *s->places);
	s->linears = calloc((size_t)s->info.units + 1, sizeof *s->linears);
	s->sound = calloc((size_t)s->info.tensors + 1, sizeof *s->sound);
	if (!s->places || !s->linears || !s->sound) {
		status = xfp_no_memory_for(err, path);
		goto done;
	}
	xfp_bundle_places(s->bundle, s->info.matrices, s->places);
	status = copy_file(s, "config.json", config, &size, err);
done:
	if (status)
		close_bundle(s);
	else
		*source = s;
	return status;
}
