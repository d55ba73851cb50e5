/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a tensor's rows and many activations: some rows are read, all threads multiply them, the next are read.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "model/forward/parts.h"
#include "model/forward/product.h"
#include "runtime/team.h"

float *xfp_floats(size_t tokens, size_t width)
{
	uint64_t count, bytes;

	return xfp_mul(tokens, width, &count) && xfp_mul(count, sizeof(float), &bytes) && bytes <= PTRDIFF_MAX
		       ? malloc(bytes ? bytes : 1)
		       : NULL;
}

void xfp_body_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, const char *name)
{
	snprintf(text, XFP_TENSOR_NAME, "%s%s", names->body, name);
}

void xfp_embedding_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names)
{
	xfp_body_tensor(text, names, names->encoder ? "embeddings.word_embeddings.weight" : "embed_tokens.weight");
}

void xfp_layer_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, uint32_t layer,
		      const char *name)
{
	snprintf(text, XFP_TENSOR_NAME, "%s%s.%u.%s", names->body, names->encoder ? "encoder.layer" : "layers",
		 (unsigned)layer, name);
}

void xfp_mlp_tensor(char text[XFP_TENSOR_NAME], const struct xfp_description *description,
		    const struct xfp_tensor_names *names, uint32_t layer, const char *name)
{
	snprintf(text, XFP_TENSOR_NAME, "%slayers.%u.%s.%s", names->body, (unsigned)layer, description->mlp, name);
}

void xfp_expert_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, uint32_t layer,
		       const char *name, uint32_t expert)
{
	const char *number = strstr(name, "%u");

	snprintf(text, XFP_TENSOR_NAME, "%slayers.%u.%.*s%u%s", names->body, (unsigned)layer, (int)(number - name),
		 name, (unsigned)expert, number + 2);
}

void xfp_rms_norm(const float *x, size_t count, size_t size, const float *weight, double epsilon, float *y)
{
	for (; count; count--, x += size, y += size) {
		double sum = 0, scale;

		for (size_t i = 0; i < size; i++)
			sum += (double)x[i] * x[i];
		scale = 1 / sqrt(sum / (double)size + epsilon);
		for (size_t i = 0; i < size; i++)
			y[i] = (float)(x[i] * scale * (weight ? weight[i] : 1));
	}
}

enum xfp_status xfp_forward_row(const struct xfp_forward *forward, const char *tensor, const struct xfp_view *row,
				float *out, struct xfp_error *err)
{
	struct xfp_weight_rows *rows;
	enum xfp_status status = xfp_weight_rows_open(forward->weights, tensor, row, &rows, err);

	if (!status)
		status = xfp_weight_rows_read(rows, 0, 1, out, err);
	xfp_weight_rows_close(rows);
	return status;
}

enum xfp_status xfp_forward_vector(const struct xfp_forward *forward, const char *tensor, size_t size, float *out,
				   struct xfp_error *err)
{
	struct xfp_view all = { .rows = 1, .cols = size, .row_stride = size, .col_stride = 1 };

	return xfp_forward_row(forward, tensor, &all, out, err);
}

enum xfp_status xfp_forward_norm_weights(const struct xfp_forward *forward, const char *tensor, size_t size, float *out,
					 struct xfp_error *err)
{
	enum xfp_status status = xfp_forward_vector(forward, tensor, size, out, err);

	for (size_t i = 0; !status && i < size; i++)
		out[i] = (float)(out[i] + forward->description->norm_offset);
	return status;
}

struct map_task {
	struct xfp_team *team;
	const float *weights, *panels;
	size_t rows, cols, count;
	float *y; /* of the first of the rows */
	size_t stride;
	size_t each, items; /* rows of a work item; items of all rows */
};

/* One work item: some rows and some vectors. */
static void multiply_item(void *context, unsigned thread, size_t i)
{
	const struct map_task *task = context;
	size_t row = i % task->items * task->each, first = i / task->items * XFP_PRODUCT_VECTORS;
	size_t rows = task->rows - row < task->each ? task->rows - row : task->each;
	size_t count = task->count - first < XFP_PRODUCT_VECTORS ? task->count - first : XFP_PRODUCT_VECTORS;

	xfp_product_rows(task->weights + row * task->cols, rows, task->cols, task->panels + first * task->cols, count,
			 xfp_team_own(task->team, thread), task->y + first * task->stride + row, task->stride);
}

/* The sums are rounded before the bias is added. */
static enum xfp_status add_bias(const struct xfp_forward *forward, const struct xfp_linear_map *map, size_t count,
				float *y, struct xfp_error *err)
{
	float *bias = xfp_floats(1, map->rows);
	enum xfp_status status = !bias            ? xfp_no_memory(err)
				 : map->bias_part ? xfp_forward_row(forward, map->bias, map->bias_part, bias, err)
						  : xfp_forward_vector(forward, map->bias, map->rows, bias, err);

	for (size_t t = 0; !status && t < count; t++) {
		for (size_t r = 0; r < map->rows; r++)
			y[t * map->rows + r] += bias[r];
	}
	free(bias);
	return status;
}

static enum xfp_status multiply_all(const struct xfp_forward *forward, const struct xfp_linear_map *map,
				    struct xfp_weight_rows *rows, const float *panels, size_t count, float *y,
				    struct xfp_error *err)
{
	size_t block = XFP_BLOCK_BYTES / sizeof(float) / map->cols / XFP_PRODUCT_ROWS * XFP_PRODUCT_ROWS;
	size_t min = XFP_PRODUCT_ROWS, groups = (count + XFP_PRODUCT_VECTORS - 1) / XFP_PRODUCT_VECTORS;
	enum xfp_status status = XFP_OK;
	float *weights;

	block = block < min ? min : block > map->rows ? map->rows : block;
	if (!(weights = xfp_floats(block, map->cols)))
		return xfp_no_memory(err);
	for (size_t first = 0; !status && first < map->rows; first += block) {
		struct map_task task = { .team = forward->team,
					 .weights = weights,
					 .panels = panels,
					 .rows = map->rows - first < block ? map->rows - first : block,
					 .cols = map->cols,
					 .count = count,
					 .y = y + first,
					 .stride = map->rows,
					 .each = count > XFP_PANEL ? XFP_PRODUCT_ROWS : XFP_PRODUCT_ROWS / 4 };

		task.items = (task.rows + task.each - 1) / task.each;
		if ((status = xfp_weight_rows_read(rows, map->first + first, task.rows, weights, err)) ||
		    (status = xfp_team_enter(forward->team, 0, XFP_PRODUCT_SCRATCH * sizeof(double), err)))
			break;
		xfp_team_run(forward->team, task.items * groups, multiply_item, &task);
		xfp_team_leave(forward->team);
	}
	free(weights);
	return status;
}

static enum xfp_status multiply_exactly(const struct xfp_forward *forward, const struct xfp_linear_map *map,
					const struct xfp_view *view, const float *x, size_t count, float *y,
					struct xfp_error *err)
{
	float *panels = xfp_floats(xfp_panels_size(count, map->cols), 1);
	struct xfp_weight_rows *rows = NULL;
	enum xfp_status status = panels ? XFP_OK : xfp_no_memory(err);

	if (!status)
		status = xfp_weight_rows_open(forward->weights, map->tensor, view, &rows, err);
	if (!status) {
		xfp_panels(x, map->cols, count, map->cols, panels);
		status = multiply_all(forward, map, rows, panels, count, y, err);
	}
	xfp_weight_rows_close(rows);
	free(panels);
	return status;
}

static enum xfp_status observe(const struct xfp_forward *forward, const struct xfp_linear_map *map, const float *x,
			       size_t count, struct xfp_error *err)
{
	struct xfp_observed product = { .tensor = map->tensor,
					.input = map->input,
					.expert = XFP_NOT_AN_EXPERT,
					.count = count,
					.cols = map->cols,
					.x = x };

	if (!forward->observer)
		return XFP_OK;
	if (map->expert) {
		product.expert = map->expert->expert;
		product.stacked = map->expert->stacked;
		product.tokens = map->expert->tokens;
	}
	return forward->observer->observe(forward->observer->context, &product, err);
}

/* Only some rows may be needed, but the matrix is opened with all of them. */
static struct xfp_view view_of(const struct xfp_forward *forward, const struct xfp_linear_map *map)
{
	struct xfp_view view = {
		.rows = map->first + map->rows, .cols = map->cols, .row_stride = map->cols, .col_stride = 1
	};
	uint64_t shape[XFP_MAX_RANK];
	uint32_t rank;

	if (map->part)
		return *map->part;
	if (xfp_weights_shape(forward->weights, map->tensor, &rank, shape) && rank == 2)
		view.rows = shape[0];
	return view;
}

enum xfp_status xfp_forward_maps(const struct xfp_forward *forward, const struct xfp_linear_map *maps,
				 float *const *outputs, size_t map_count, const float *x, size_t count,
				 struct xfp_error *err)
{
	struct xfp_weight_product products[XFP_WEIGHT_PRODUCTS];
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < map_count; i++) {
		const struct xfp_linear_map *map = &maps[i];

		products[i] = (struct xfp_weight_product){ .tensor = map->tensor,
							   .view = view_of(forward, map),
							   .first = map->first,
							   .rows = map->rows,
							   .x = x,
							   .count = count,
							   .y = outputs[i],
							   .stride = map->rows };
		status = observe(forward, map, x, count, err);
		if (!status && count && forward->arithmetic != XFP_FAST)
			status = multiply_exactly(forward, map, &products[i].view, x, count, outputs[i], err);
	}
	if (!status && count && forward->arithmetic == XFP_FAST)
		status = xfp_weights_multiply(forward->weights, forward->team, products, map_count, err);
	for (size_t i = 0; !status && count && i < map_count; i++)
		if (maps[i].bias)
			status = add_bias(forward, &maps[i], count, outputs[i], err);
	return status;
}

enum xfp_status xfp_forward_map(const struct xfp_forward *forward, const struct xfp_linear_map *map, const float *x,
				size_t count, float *y, struct xfp_error *err)
{
	return xfp_forward_maps(forward, map, &y, 1, x, count, err);
}
