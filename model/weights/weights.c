/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/weights/fast_product.h"

#define ROWS_BYTES 0x200000 /* rows that are read and multiplied at a time */

struct xfp_weights {
	const struct xfp_weights_source *kind;
	void *source;
	char *path, *config;
	bool (*watch)(void *context, uint64_t numbers); /* may be NULL */
	void *watch_context;
	uint64_t *bytes; /* that products have read */
};

struct xfp_weight_rows {
	const struct xfp_weights *weights;
	uint64_t cols;
	void *matrix;
};

/* A bundle is a tar archive, which no checkpoint is. A file that cannot be read is left to the next function that opens
 * it. */
static bool is_bundle(const char *path)
{
	char head[262] = { 0 };
	FILE *file = fopen(path, "rb");
	bool is = file && fread(head, 1, sizeof head, file) == sizeof head && !memcmp(head + 257, "ustar", 5);

	if (file)
		fclose(file);
	return is;
}

enum xfp_status xfp_weights_open(const char *path, struct xfp_weights **out, struct xfp_error *err)
{
	struct xfp_weights *weights = calloc(1, sizeof *weights);
	enum xfp_status status;

	*out = NULL;
	if (!weights || !(weights->path = strdup(path)) || !(weights->bytes = calloc(1, sizeof *weights->bytes))) {
		xfp_weights_close(weights);
		return xfp_no_memory_for(err, path);
	}
	if (is_bundle(path)) {
		weights->kind = &xfp_weights_of_bundle;
		status = xfp_weights_open_bundle(path, &weights->source, &weights->config, err);
	} else {
		weights->kind = &xfp_weights_of_checkpoint;
		status = xfp_weights_open_checkpoint(path, &weights->source, &weights->config, err);
	}
	if (status)
		xfp_weights_close(weights);
	else
		*out = weights;
	return status;
}

void xfp_weights_close(struct xfp_weights *weights)
{
	if (!weights)
		return;
	if (weights->source)
		weights->kind->close(weights->source);
	free(weights->path);
	free(weights->config);
	free(weights->bytes);
	free(weights);
}

const char *xfp_weights_path(const struct xfp_weights *weights)
{
	return weights->path;
}

const char *xfp_weights_config(const struct xfp_weights *weights)
{
	return weights->config;
}

enum xfp_status xfp_weights_file(const struct xfp_weights *weights, const char *name, char **bytes, size_t *size,
				 struct xfp_error *err)
{
	*bytes = NULL;
	return weights->kind->file(weights->source, name, bytes, size, err);
}

bool xfp_weights_is_bundle(const struct xfp_weights *weights)
{
	return weights->kind == &xfp_weights_of_bundle;
}

bool xfp_weights_has_crcs(const struct xfp_weights *weights)
{
	return weights->kind->has_crcs && weights->kind->has_crcs(weights->source);
}

void xfp_weights_index_digest(const struct xfp_weights *weights, char hex[65])
{
	*hex = '\0';
	if (weights->kind->index_digest)
		weights->kind->index_digest(weights->source, hex);
}

enum xfp_status xfp_weights_identify(const struct xfp_weights *weights, struct xfp_sha256 *sha, struct xfp_error *err)
{
	if (weights->config)
		xfp_sha256_update(sha, weights->config, strlen(weights->config) + 1);
	return weights->kind->identify(weights->source, sha, err);
}

void xfp_weights_release_pages(struct xfp_weights *weights)
{
	if (weights->kind->release_pages)
		weights->kind->release_pages(weights->source);
}

void xfp_weights_watch(struct xfp_weights *weights, bool (*watch)(void *context, uint64_t numbers), void *context)
{
	weights->watch = watch;
	weights->watch_context = context;
}

enum xfp_status xfp_weights_check(const struct xfp_weights *weights, struct xfp_team *team, struct xfp_error *err)
{
	if (!weights->kind->check_all)
		return XFP_OK;
	return weights->kind->check_all(weights->source, team, weights->watch, weights->watch_context, err);
}

static enum xfp_status check_tensor(const struct xfp_weights *weights, const char *tensor, struct xfp_error *err)
{
	if (!weights->kind->check)
		return XFP_OK;
	return weights->kind->check(weights->source, tensor, weights->watch, weights->watch_context, err);
}

const char *xfp_weights_name(const struct xfp_weights *weights, uint32_t number)
{
	return weights->kind->name(weights->source, number);
}

bool xfp_weights_shape(const struct xfp_weights *weights, const char *tensor, uint32_t *rank,
		       uint64_t shape[XFP_MAX_RANK])
{
	return weights->kind->shape(weights->source, tensor, rank, shape);
}

enum xfp_status xfp_weight_rows_open(const struct xfp_weights *weights, const char *tensor, const struct xfp_view *view,
				     struct xfp_weight_rows **out, struct xfp_error *err)
{
	struct xfp_weight_rows *rows = calloc(1, sizeof *rows);
	enum xfp_status status;

	*out = NULL;
	if (!rows)
		return xfp_no_memory_for(err, weights->path);
	rows->weights = weights;
	rows->cols = view->cols;
	if ((status = check_tensor(weights, tensor, err)) ||
	    (status = weights->kind->open_rows(weights->source, tensor, view, &rows->matrix, err)))
		free(rows);
	else
		*out = rows;
	return status;
}

void xfp_weight_rows_close(struct xfp_weight_rows *rows)
{
	if (!rows)
		return;
	rows->weights->kind->close_rows(rows->matrix);
	free(rows);
}

enum xfp_status xfp_weight_rows_read(struct xfp_weight_rows *rows, uint64_t first, uint64_t count, float *out,
				     struct xfp_error *err)
{
	const struct xfp_weights *weights = rows->weights;

	if (weights->watch && !weights->watch(weights->watch_context, count * rows->cols))
		return xfp_fail(err, XFP_FAILED, "%s: reading was interrupted", weights->path);
	return weights->kind->read_rows(rows->matrix, first, count, out, err);
}

/* ---- products ---------------------------------------------------------------------------------- */

/* Read some rows at a time as f32, and multiply them. */
static enum xfp_status multiply_rows(const struct xfp_weights *weights, struct xfp_team *team,
				     const struct xfp_weight_product *p, struct xfp_error *err)
{
	size_t block = ROWS_BYTES / sizeof(float) / p->view.cols + 1;
	float *w = malloc((block < p->rows ? block : p->rows) * p->view.cols * sizeof *w);
	struct xfp_weight_rows *rows = NULL;
	enum xfp_status status = w ? xfp_weight_rows_open(weights, p->tensor, &p->view, &rows, err)
				   : xfp_no_memory_for(err, weights->path);

	for (uint64_t done = 0, some; !status && done < p->rows; done += some) {
		some = p->rows - done < block ? p->rows - done : block;
		if (!(status = weights->kind->read_rows(rows->matrix, p->first + done, some, w, err)))
			status = xfp_fast_product(team, XFP_F32, w, some, p->view.cols, p->x, p->count, p->y + done,
						  p->stride, err);
	}
	xfp_weight_rows_close(rows);
	free(w);
	return status;
}

enum xfp_status xfp_weights_multiply(const struct xfp_weights *weights, struct xfp_team *team,
				     const struct xfp_weight_product *products, size_t count, struct xfp_error *err)
{
	uint64_t bytes[XFP_WEIGHT_PRODUCTS] = { 0 }, numbers = 0;
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; i < count; i++)
		numbers += products[i].rows * products[i].view.cols;
	if (weights->watch && !weights->watch(weights->watch_context, numbers))
		return xfp_fail(err, XFP_FAILED, "%s: reading was interrupted", weights->path);
	for (size_t i = 0; !status && i < count; i++)
		status = check_tensor(weights, products[i].tensor, err);
	if (!status)
		status = weights->kind->multiply(weights->source, team, products, count, bytes, err);
	for (size_t i = 0; !status && i < count; i++) {
		if (!bytes[i]) {
			bytes[i] = products[i].rows * products[i].view.cols * sizeof(float);
			status = multiply_rows(weights, team, &products[i], err);
		}
		*weights->bytes += bytes[i];
	}
	return status;
}

bool xfp_weights_stacked(const struct xfp_weights *weights, const char *tensor, const struct xfp_view *view,
			 uint32_t *stack, uint32_t *expert)
{
	return weights->kind->stacked && weights->kind->stacked(weights->source, tensor, view, stack, expert);
}

enum xfp_status xfp_weights_multiply_experts(const struct xfp_weights *weights, struct xfp_team *team,
					     const struct xfp_stack_products *products, struct xfp_error *err)
{
	uint64_t bytes = 0, numbers = products->expert_count * products->x.stride * products->y.stride;
	enum xfp_status status;

	if (weights->watch && !weights->watch(weights->watch_context, numbers))
		return xfp_fail(err, XFP_FAILED, "%s: reading was interrupted", weights->path);
	status = weights->kind->multiply_experts(weights->source, team, products, weights->watch,
						 weights->watch_context, &bytes, err);
	*weights->bytes += bytes;
	return status;
}

uint64_t xfp_weights_bytes(const struct xfp_weights *weights)
{
	return *weights->bytes;
}
