/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weights/fast_product.h"

#include "kernels/multiply/matvec.h"
#include "runtime/team.h"

#define ROWS 64 /* per work item */

struct fast_task {
	struct xfp_matvec w;
	struct xfp_team *team;
	const float *x;
	size_t count, batches, batch_bytes;
	float *y;
	size_t stride;
};

bool xfp_fast_dtype(enum xfp_dtype dtype)
{
	return dtype == XFP_F32 || dtype == XFP_F16 || dtype == XFP_BF16;
}

static unsigned batch_count(const struct fast_task *task, size_t batch)
{
	size_t left = task->count - batch * XFP_MAX_BATCH;

	return (unsigned)(left < XFP_MAX_BATCH ? left : XFP_MAX_BATCH);
}

/* Vectors follow the table of all batches. */
static struct xfp_matvec_x *prepared(const struct fast_task *task)
{
	return xfp_team_shared(task->team);
}

static void prepare_batch(void *context, unsigned thread, size_t batch)
{
	const struct fast_task *task = context;
	unsigned char *shared = xfp_team_shared(task->team);
	size_t table = (task->batches * sizeof(struct xfp_matvec_x) + 63) / 64 * 64;

	(void)thread;
	xfp_matvec_x_init(&prepared(task)[batch], 0, task->w.cols, batch_count(task, batch), XFP_F32,
			  task->x + batch * XFP_MAX_BATCH * task->w.cols, task->w.cols, NULL,
			  shared + table + batch * task->batch_bytes);
}

static void multiply_block(void *context, unsigned thread, size_t block)
{
	const struct fast_task *task = context;
	size_t first = block * ROWS, rows = task->w.rows - first < ROWS ? task->w.rows - first : ROWS;

	(void)thread;
	for (size_t b = 0; b < task->batches; b++)
		xfp_matvec_rows(&task->w, &prepared(task)[b], first, rows, false,
				task->y + b * XFP_MAX_BATCH * task->stride + first, task->stride);
}

static enum xfp_matvec_mode mode_of(enum xfp_dtype dtype)
{
	return dtype == XFP_F32 ? XFP_MATVEC_F32 : dtype == XFP_F16 ? XFP_MATVEC_F16 : XFP_MATVEC_BF16;
}

enum xfp_status xfp_fast_product(struct xfp_team *team, enum xfp_dtype dtype, const void *w, size_t rows, size_t cols,
				 const float *x, size_t count, float *y, size_t stride, struct xfp_error *err)
{
	struct fast_task task = {
		.w = { .mode = mode_of(dtype), .rows = rows, .cols = cols, .unit = 1, .index = w },
		.team = team,
		.x = x,
		.count = count,
		.batches = (count + XFP_MAX_BATCH - 1) / XFP_MAX_BATCH,
		.batch_bytes = (xfp_matvec_x_bytes(0, cols, XFP_MAX_BATCH) + 63) / 64 * 64,
		.y = y,
		.stride = stride,
	};
	size_t shared = task.batches * (task.batch_bytes + sizeof(struct xfp_matvec_x)) + 64;
	enum xfp_status status = xfp_team_enter(team, shared, 1, err);

	if (status)
		return status;
	xfp_matvec_set_row_layout(&task.w);
	xfp_team_run(team, task.batches, prepare_batch, &task);
	xfp_team_run(team, (rows + ROWS - 1) / ROWS, multiply_block, &task);
	xfp_team_leave(team);
	return XFP_OK;
}
