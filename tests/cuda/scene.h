/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scene.h - a unit on the stand-in device, with vectors, results, and the expected results: the bundle's decoded
 * weights times the vectors, within the bound of xfp_cuda.h.
 */
#ifndef XFP_TEST_SCENE_H
#define XFP_TEST_SCENE_H

#include <math.h>

#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "runtime/xfp_cuda.h"
#include "tests/cuda/machine.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/vectors.h"

static struct xfp_error err;
static struct machine cu;
static struct xfp_cuda *cuda;
static struct xfp_cuda_queue queue; /* of the default stream */

static inline void check(enum xfp_status status)
{
	if (status)
		fail_msg("%s", err.text);
}

static inline void refused(enum xfp_status status, const char *part)
{
	assert_int_equal(status, XFP_USAGE);
	if (!strstr(err.text, part))
		fail_msg("%s", err.text);
}

static inline size_t type_bytes(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? 4 : 2;
}

/* ---- a unit, its vectors and its results on the device -------------------------------------------- */

struct scene {
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_linear_info info;
	uint64_t memory, x, room, y;
	size_t count, x_stride, y_stride;
	float *vectors; /* in the element type */
	struct xfp_cuda_input in;
	struct xfp_cuda_output out;
	struct xfp_cuda_prepared prepared;
};

static inline void open_scene(struct scene *s, const struct xfp_bundle *bundle, uint32_t u,
			      const struct xfp_slice *slice, size_t count, enum xfp_float type, enum xfp_float y_type)
{
	uint64_t bytes;
	uint8_t *held, *fill;

	*s = (struct scene){ .count = count };
	check(xfp_cuda_linear_bytes(bundle, u, slice, &bytes, &err));
	s->memory = machine_alloc(&cu, bytes);
	check(xfp_cuda_linear_open(cuda, bundle, u, slice, s->memory, bytes, NULL, &s->linear, &err));
	xfp_cuda_linear_describe(s->linear, &s->info);
	s->x_stride = s->info.cols + 3;
	s->y_stride = s->info.rows + 2;
	s->vectors = test_vectors(count * s->x_stride);
	held = malloc(count * s->x_stride * 4);
	xfp_from_float((int)type, s->vectors, count * s->x_stride, held);
	xfp_to_float((int)type, held, count * s->x_stride, s->vectors);
	s->x = machine_copy(&cu, held, ((count - 1) * s->x_stride + s->info.cols) * type_bytes(type));
	s->room = machine_alloc(&cu, xfp_cuda_prepared_bytes(s->linear, count));
	fill = malloc(count * s->y_stride * 4);
	memset(fill, 0x11, count * s->y_stride * 4);
	s->y = machine_copy(&cu, fill, count * s->y_stride * type_bytes(y_type));
	s->in = (struct xfp_cuda_input){ s->x, type, count, s->x_stride };
	s->out = (struct xfp_cuda_output){ s->y, y_type, count, s->y_stride };
	check(xfp_cuda_prepare(s->linear, &s->in, s->room, xfp_cuda_prepared_bytes(s->linear, count), &queue,
			       &s->prepared, &err));
	free(held);
	free(fill);
}

static inline void close_scene(struct scene *s)
{
	xfp_cuda_linear_close(s->linear);
	free(s->vectors);
	assert_int_equal(cu.cuMemFree(s->memory) + cu.cuMemFree(s->x) + cu.cuMemFree(s->room) + cu.cuMemFree(s->y), 0);
}

static inline uint8_t *results(const struct scene *s)
{
	size_t bytes = s->count * s->y_stride * type_bytes(s->out.type);
	uint8_t *y = malloc(bytes);

	assert_int_equal(cu.cuMemcpyDtoH(y, s->y, bytes), SUCCESS);
	return y;
}

static inline float result_of(const struct scene *s, const uint8_t *y, size_t m, size_t r)
{
	float value;

	xfp_to_float((int)s->out.type, y + (m * s->y_stride + r) * type_bytes(s->out.type), 1, &value);
	return value;
}

/* ---- expected results ----------------------------------------------------------------------------- */

/* A decoded matrix, and the divisors of its columns. */
struct subject {
	const float *w;
	uint64_t cols;
	struct xfp_slice slice;
	const uint8_t *balance;
	struct xfp_matrix_info matrix;
	const char *mode;
	bool integers; /* it uses the integer path */
};

static inline struct subject subject_of(const struct xfp_bundle *bundle, uint32_t number, const struct xfp_slice *slice,
					const struct scene *s, float *const *decoded)
{
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;

	assert_true(xfp_bundle_matrix(bundle, number, &matrix));
	assert_true(xfp_bundle_unit(bundle, matrix.unit, &unit));
	return (struct subject){ .w = decoded[number],
				 .cols = matrix.cols,
				 .slice = { slice ? slice->first_row : 0, s->info.rows, slice ? slice->first_col : 0,
					    s->info.cols },
				 .balance = matrix.balance,
				 .matrix = matrix,
				 .mode = unit.mode_name };
}

static inline double largest_of(const uint8_t *half, size_t count)
{
	double largest = 0;

	for (size_t i = 0; i < count; i++)
		largest =
			fmax(largest, fabs((double)xfp_half_to_float((uint16_t)(half[2 * i] | half[2 * i + 1] << 8))));
	return largest;
}

/* The largest possible |entry| of a row on the integer path; otherwise 0. */
static inline double entry_of(const struct subject *w, uint64_t r)
{
	const struct xfp_matrix_info *m = &w->matrix;
	size_t entries = (size_t)1 << m->k, row = w->slice.first_row + r;
	double unit = ldexp(1, -m->exponent), entry;

	if (!w->integers || !m->k || m->k > 4 || w->slice.cols > 65536)
		return 0;
	if (!m->group_size)
		return unit * largest_of((const uint8_t *)m->code + 2 * row * entries, entries);
	if (strcmp(w->mode, "v2c") != 0 || m->group_size < 32)
		return 0;
	entry = largest_of(m->code, m->library_size * entries);
	entry *= largest_of((const uint8_t *)m->code + 2 * m->library_size * entries, 256 / m->library_size);
	return unit * entry * 0x1p14 *
	       (double)xfp_balance_down(
		       ((const uint8_t *)m->group)[m->rows * ((m->cols + m->group_size - 1) / m->group_size) + row]);
}

/* Row r times a vector, and the error bound of the result. */
static inline double product(const struct subject *w, uint64_t r, const float *x, double *bound)
{
	const float *row = w->w + (w->slice.first_row + r) * w->cols + w->slice.first_col;
	double sum = 0, size = 0, largest = 0, entry = 0, all = 0, most = entry_of(w, r);

	for (uint64_t c = 0; c < w->slice.cols; c++) {
		double down = w->balance ? (double)xfp_balance_down(w->balance[w->slice.first_col + c]) : 1;

		sum += (double)row[c] * x[c];
		size += fabs((double)row[c] * x[c]);
		largest = fmax(largest, fabs(x[c] * down));
		all += fabs(x[c] * down);
		entry = fmax(entry, fabs(row[c] / down));
	}
	*bound = ((double)w->slice.cols / 4 + 64) * 0x1p-24 * size + (double)w->slice.cols * 0x1p-40 * largest * entry;
	*bound += most * (all * (w->matrix.k == 4 ? 0x1p-14 : 0x1p-16) + (double)w->slice.cols * 0x1p-21 * largest);
	return sum;
}

static inline double rounding(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? 0 : type == XFP_FLOAT16 ? 0x1p-11 : 0x1p-8;
}

/* ---- setup of a group of tests -------------------------------------------------------------------- */

static inline int scene_begin(void **state)
{
	(void)state;
	machine_load(&cu, "90");
	machine_begin(&cu);
	check(xfp_cuda_open(&cuda, &err));
	check(xfp_cuda_queue_open(cuda, NULL, machine_alloc(&cu, XFP_CUDA_WORKSPACE), XFP_CUDA_WORKSPACE, &queue,
				  &err));
	return 0;
}

static inline int scene_end(void **state)
{
	(void)state;
	cu.cuMemFree(queue.workspace);
	xfp_cuda_close(cuda);
	return 0;
}

#endif
