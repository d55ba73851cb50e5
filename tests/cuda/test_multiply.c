/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on the stand-in device for everything that a bundle can contain, from upload to result, compared with the
 * bundle's decoded weights, within the bound of xfp_cuda.h.
 */
#include "tests/cuda/scene.h"

/* ---- everything ----------------------------------------------------------------------------------- */

static void try_unit(const struct xfp_bundle *bundle, uint32_t u, const struct xfp_slice *slice, size_t count,
		     enum xfp_float type, float *const *decoded)
{
	enum xfp_float y_type = XFP_FLOAT32 + (type + count) % 3;
	struct xfp_unit_info unit;
	struct scene s;

	assert_true(xfp_bundle_unit(bundle, u, &unit));
	open_scene(&s, bundle, u, slice, count, type, y_type);
	for (uint32_t e = 0; e < unit.experts; e++) {
		struct subject w = subject_of(bundle, unit.first_matrix + e, slice, &s, decoded);
		uint8_t *y;

		check(xfp_cuda_multiply(s.linear, e, count, &s.prepared, &s.out, &queue, &err));
		y = results(&s);
		for (size_t m = 0; m < count; m++) {
			for (uint64_t r = 0; r < s.info.rows; r++) {
				double bound, sum;

				w.integers = count <= 4;
				sum = product(&w, r, s.vectors + m * s.x_stride, &bound);
				bound += fabs(sum) * rounding(y_type) + (y_type == XFP_FLOAT16 ? 0x1p-25 : 0);
				if (!(fabs((double)result_of(&s, y, m, r) - sum) <= bound))
					fail_msg("%s: expert %u, row %u of vector %zu is %g, not %g (%g)", unit.name, e,
						 (unsigned)r, m, (double)result_of(&s, y, m, r), sum, bound);
			}
			/* the memory between two results must be unchanged */
			for (size_t b = s.info.rows * type_bytes(y_type); b < s.y_stride * type_bytes(y_type); b++)
				assert_int_equal(y[m * s.y_stride * type_bytes(y_type) + b], 0x11);
		}
		free(y);
	}
	close_scene(&s);
}

static void units(void **state)
{
	static const int kinds[] = { 0, 1, 2, 3, 4, FIXTURE_HALF_KEPT, FIXTURE_TWO_SIZES, FIXTURE_TILES };
	static const size_t counts[] = { 1, 3, 4, 5, 16, 17, 31, 32, 33, 70, 8 };
	uint64_t seed = 23;
	size_t turn = 0;

	(void)state;
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		struct fixture f;
		struct xfp_bundle *bundle;
		struct xfp_unit_info unit;

		fixture_make_bundle(&f, kinds[kind]);
		bundle = fixture_open(f.out);
		for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
			bool wide = unit.cols > 10000;

			for (size_t i = 0; i < (wide ? 1 : 3); i++, turn++) {
				struct xfp_slice s = { .first_row = test_random(&seed) % unit.rows,
						       .first_col = test_random(&seed) % unit.cols };

				if (wide || i == 2)
					s.cols = 1 + test_random(&seed) % (unit.cols - s.first_col < 3000
										   ? unit.cols - s.first_col
										   : 3000);
				try_unit(bundle, u, wide || i ? &s : NULL, wide ? 1 : counts[turn % 11],
					 XFP_FLOAT32 + turn % 3, f.decoded);
			}
		}
		xfp_bundle_close(bundle);
		fixture_free(&f);
	}
}

/* ---- lists ---------------------------------------------------------------------------------------- */

static void lists(void **state)
{
	/* some y have two products, one has none; one expert and one vector do not exist */
	const struct xfp_product products[] = { { 1, 0, 0, 0.5f },  { 2, 3, 3, 1 },     { 0, 1, 0, -2 },
						{ 7, 0, 1, 1 },     { 0, 9, 1, 1 },     { 1, 2, 1, 1 },
						{ 2, 2, 0, 0.25f }, { 0, 0, 3, 0.125f } };
	const size_t count = sizeof products / sizeof *products, outputs = 5;
	static const char *const names[] = { "y.up", "b.down", "x.gate" };
	struct fixture f;
	struct xfp_bundle *bundle;
	uint64_t list = machine_copy(&cu, products, sizeof products);

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	for (size_t n = 0; n < 3; n++) {
		uint32_t u = xfp_bundle_find_unit(bundle, names[n], NULL);
		struct xfp_unit_info unit;
		struct scene s;
		uint8_t *y;

		assert_true(xfp_bundle_unit(bundle, u, &unit));
		open_scene(&s, bundle, u, NULL, outputs, XFP_FLOAT32, XFP_FLOAT32);
		check(xfp_cuda_multiply_experts(s.linear, list, count, &s.prepared, &s.out, &queue, &err));
		y = results(&s);
		for (size_t m = 0; m < outputs; m++)
			for (uint64_t r = 0; r < s.info.rows; r++) {
				double sum = 0, bound = 0, left;
				bool any = false;

				for (size_t i = 0; i < count; i++) {
					const struct xfp_product *p = &products[i];
					struct subject w;
					double one;

					if (p->y != m || p->expert >= unit.experts || p->x >= outputs)
						continue;
					any = true;
					w = subject_of(bundle, unit.first_matrix + p->expert, NULL, &s, f.decoded);
					w.integers = true;
					one = product(&w, r, s.vectors + p->x * s.x_stride, &left) * (double)p->weight;
					sum += one;
					bound += fabs((double)p->weight) * left + 4 * 0x1p-24 * fabs(one);
				}
				if (!any)
					assert_int_equal(y[(m * s.y_stride + r) * 4], 0x11);
				else if (!(fabs((double)result_of(&s, y, m, r) - sum) <= bound))
					fail_msg("%s: row %u of y %zu is %g, not %g (%g)", unit.name, (unsigned)r, m,
						 (double)result_of(&s, y, m, r), sum, bound);
			}
		free(y);
		close_scene(&s);
	}
	cu.cuMemFree(list);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- infinities and NaN --------------------------------------------------------------------------- */

/* Copy vectors to the device, and prepare them. */
static void prepare_again(struct scene *s)
{
	assert_int_equal(s->in.type, XFP_FLOAT32);
	assert_int_equal(cu.cuMemcpyHtoD(s->x, s->vectors, ((s->count - 1) * s->x_stride + s->info.cols) * 4), SUCCESS);
	check(xfp_cuda_prepare(s->linear, &s->in, s->room, xfp_cuda_prepared_bytes(s->linear, s->count), &queue,
			       &s->prepared, &err));
}

/* On the integer path, all results of a vector that is not finite are NaN; those of other vectors keep their bits. */
static void vectors_not_finite(void **state)
{
	static const char *const names[] = { "t.a", "t.b", "t.d", "t.f" };
	static const float bad[] = { INFINITY, NAN, -INFINITY, NAN };
	struct fixture f;
	struct xfp_bundle *bundle;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	bundle = fixture_open(f.out);
	for (size_t count = 1; count <= 4; count++) {
		struct scene s;
		uint8_t *good, *y;

		open_scene(&s, bundle, xfp_bundle_find_unit(bundle, names[count - 1], NULL), NULL, count, XFP_FLOAT32,
			   XFP_FLOAT32);
		check(xfp_cuda_multiply(s.linear, 0, count, &s.prepared, &s.out, &queue, &err));
		good = results(&s);
		for (size_t v = 0; v < count; v++) {
			float *place = &s.vectors[v * s.x_stride + (v * 97 + 5) % s.info.cols], before = *place;

			*place = bad[v];
			prepare_again(&s);
			*place = before;
			check(xfp_cuda_multiply(s.linear, 0, count, &s.prepared, &s.out, &queue, &err));
			y = results(&s);
			for (size_t m = 0; m < count; m++)
				for (size_t r = 0; r < s.info.rows; r++) {
					if (m != v)
						assert_memory_equal(y + (m * s.y_stride + r) * 4,
								    good + (m * s.y_stride + r) * 4, 4);
					else if (!isnan(result_of(&s, y, m, r)))
						fail_msg("row %zu is %g", r, (double)result_of(&s, y, m, r));
				}
			free(y);
		}
		free(good);
		close_scene(&s);
	}
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* An infinity in a v2 row's codebook: the matrix does not use the integer path, and other rows keep their results. */
static void codebooks_not_finite(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_matrix_info matrix;
	struct xfp_bundle_info info;
	struct subject w;
	struct scene s;
	size_t size, where;
	uint8_t *file, *y;
	double bound, sum;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	bundle = fixture_open(f.out);
	xfp_bundle_describe(bundle, &info);
	assert_true(xfp_bundle_matrix(bundle, 0, &matrix));
	where = (size_t)((const char *)matrix.code - (info.json - 512)) + 2 * (9 * 4 + 1);
	xfp_bundle_close(bundle);
	file = fixture_read(f.out, &size);
	file[where] = 0;
	file[where + 1] = 0x7c;
	fixture_write(f.out, file, size);
	bundle = fixture_open(f.out);
	open_scene(&s, bundle, 0, NULL, 3, XFP_FLOAT32, XFP_FLOAT32);
	assert_string_equal(s.info.kernel, "xfp_multiply_v2_k2_m1");
	check(xfp_cuda_multiply(s.linear, 0, 3, &s.prepared, &s.out, &queue, &err));
	y = results(&s);
	w = subject_of(bundle, 0, NULL, &s, f.decoded);
	for (size_t m = 0; m < 3; m++)
		for (size_t r = 0; r < s.info.rows; r++) {
			sum = product(&w, r, s.vectors + m * s.x_stride, &bound);
			if (r == 9)
				assert_false(isfinite(result_of(&s, y, m, r)));
			else if (!(fabs((double)result_of(&s, y, m, r) - sum) <= bound))
				fail_msg("row %zu of vector %zu is %g, not %g", r, m, (double)result_of(&s, y, m, r),
					 sum);
		}
	free(y);
	free(file);
	close_scene(&s);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- kept tensors, graphs, shared vectors ------------------------------------------------------------ */

static void a_kept_tensor(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_tensor_info tensor;
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_prepared prepared;
	float w[40], *x = test_vectors(10), y[16];
	struct subject subject = { .w = w, .cols = 5, .slice = { 0, 8, 0, 5 } };
	uint64_t bytes, memory, room = machine_alloc(&cu, 65536), there = machine_copy(&cu, x, 40),
				to = machine_alloc(&cu, sizeof y);
	struct xfp_cuda_input in = { there, XFP_FLOAT32, 2, 5 };
	struct xfp_cuda_output out = { to, XFP_FLOAT32, 2, 8 };
	uint32_t number;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	number = xfp_bundle_find_tensor(bundle, "tied");
	check(xfp_cuda_linear_bytes_tensor(bundle, number, NULL, &bytes, &err));
	memory = machine_alloc(&cu, bytes);
	check(xfp_cuda_linear_open_tensor(cuda, bundle, number, NULL, memory, bytes, NULL, &linear, &err));
	assert_true(xfp_bundle_tensor(bundle, xfp_bundle_find_tensor(bundle, "embed"), &tensor));
	xfp_to_float(XFP_BFLOAT16, tensor.data, 40, w);
	/* the bundle is not needed any more */
	xfp_bundle_close(bundle);
	fixture_free(&f);
	check(xfp_cuda_prepare(linear, &in, room, 65536, &queue, &prepared, &err));
	check(xfp_cuda_multiply(linear, 0, 2, &prepared, &out, &queue, &err));
	assert_int_equal(cu.cuMemcpyDtoH(y, to, sizeof y), SUCCESS);
	for (size_t i = 0; i < 16; i++) {
		double bound, sum = product(&subject, i % 8, x + i / 8 * 5, &bound);

		assert_true(fabs((double)y[i] - sum) <= bound);
	}
	xfp_cuda_linear_close(linear);
	cu.cuMemFree(memory);
	cu.cuMemFree(room);
	cu.cuMemFree(there);
	cu.cuMemFree(to);
	free(x);
}

static void graphs(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct scene s;
	struct stream *stream;
	struct xfp_cuda_queue own;
	struct graph *graph, *run;
	uint64_t workspace = machine_alloc(&cu, XFP_CUDA_WORKSPACE);
	uint8_t *first, *again;
	size_t bytes;

	(void)state;
	fixture_make_bundle(&f, 3);
	bundle = fixture_open(f.out);
	open_scene(&s, bundle, 0, NULL, 20, XFP_FLOAT16, XFP_FLOAT32);
	check(xfp_cuda_multiply(s.linear, 0, 20, &s.prepared, &s.out, &queue, &err));
	first = results(&s);
	bytes = s.count * s.y_stride * 4;
	assert_int_equal(cu.cuStreamCreate(&stream, 0), SUCCESS);
	check(xfp_cuda_queue_open(cuda, stream, workspace, XFP_CUDA_WORKSPACE, &own, &err));
	assert_int_equal(cu.cuStreamBeginCapture(stream, 0), SUCCESS);
	check(xfp_cuda_prepare(s.linear, &s.in, s.room, xfp_cuda_prepared_bytes(s.linear, 20), &own, &s.prepared,
			       &err));
	check(xfp_cuda_multiply(s.linear, 0, 20, &s.prepared, &s.out, &own, &err));
	assert_int_equal(cu.cuStreamEndCapture(stream, &graph), SUCCESS);
	assert_int_equal(cu.cuGraphInstantiateWithFlags(&run, graph, 0), SUCCESS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cu.cuMemsetD8(s.y, 0x11, bytes), SUCCESS);
		assert_int_equal(cu.cuMemsetD8(s.room, 0, xfp_cuda_prepared_bytes(s.linear, 20)), SUCCESS);
		assert_int_equal(cu.cuGraphLaunch(run, stream), SUCCESS);
		assert_int_equal(cu.cuStreamSynchronize(stream), SUCCESS);
		again = results(&s);
		assert_memory_equal(again, first, bytes);
		free(again);
	}
	cu.cuGraphDestroy(graph);
	cu.cuGraphExecDestroy(run);
	cu.cuStreamDestroy(stream);
	cu.cuMemFree(workspace);
	free(first);
	close_scene(&s);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* Vectors can be shared if columns and balance are equal, and only then. */
static void sharing(void **state)
{
	static const struct xfp_slice some = { .cols = 4 }, same = { .first_row = 1 };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct scene one, other, less;
	uint8_t *y, *shared;

	(void)state;
	fixture_make_bundle(&f, 1);
	bundle = fixture_open(f.out);
	open_scene(&one, bundle, 0, NULL, 2, XFP_FLOAT32, XFP_FLOAT32);
	open_scene(&other, bundle, 0, &same, 2, XFP_FLOAT32, XFP_FLOAT32);
	open_scene(&less, bundle, 0, &some, 2, XFP_FLOAT32, XFP_FLOAT32);
	check(xfp_cuda_multiply(other.linear, 0, 2, &other.prepared, &other.out, &queue, &err));
	y = results(&other);
	check(xfp_cuda_multiply(other.linear, 0, 2, &one.prepared, &other.out, &queue, &err));
	shared = results(&other);
	assert_memory_equal(y, shared, 2 * other.y_stride * 4);
	refused(xfp_cuda_multiply(less.linear, 0, 2, &one.prepared, &less.out, &queue, &err),
		"q.weight: the vectors were prepared for other columns or another balance");
	close_scene(&one);
	close_scene(&other);
	close_scene(&less);
	free(y);
	free(shared);
	xfp_bundle_close(bundle);
	fixture_free(&f);

	/* a stack and a matrix with other columns; two with different balances */
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	open_scene(&one, bundle, xfp_bundle_find_unit(bundle, "c.gate_up", "gate"), NULL, 1, XFP_FLOAT32, XFP_FLOAT32);
	open_scene(&other, bundle, xfp_bundle_find_unit(bundle, "c.gate_up", "up"), NULL, 1, XFP_FLOAT32, XFP_FLOAT32);
	refused(xfp_cuda_multiply(other.linear, 0, 1, &one.prepared, &other.out, &queue, &err), "another balance");
	close_scene(&one);
	close_scene(&other);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void what_cannot_be(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct scene s;
	struct xfp_cuda_input in;
	struct xfp_cuda_output out;
	uint64_t room;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TWO_SIZES);
	bundle = fixture_open(f.out);
	open_scene(&s, bundle, 0, NULL, 2, XFP_FLOAT16, XFP_FLOAT16);
	room = xfp_cuda_prepared_bytes(s.linear, 2);
	refused(xfp_cuda_multiply_experts(s.linear, s.x, 1, &s.prepared, &s.out, &queue, &err),
		"experts have indices of different numbers of bits; multiply by one expert at a time");
	refused(xfp_cuda_multiply(s.linear, 3, 1, &s.prepared, &s.out, &queue, &err),
		"by expert 3; there are 3 experts");
	refused(xfp_cuda_multiply(s.linear, 0, 3, &s.prepared, &s.out, &queue, &err), "3 vectors");
	check(xfp_cuda_multiply(s.linear, 0, 0, &s.prepared, &s.out, &queue, &err));
#define IN(field, value, part) \
	in = s.in;             \
	in.field = value;      \
	refused(xfp_cuda_prepare(s.linear, &in, s.room, room, &queue, &s.prepared, &err), part)
#define OUT(field, value, part) \
	out = s.out;            \
	out.field = value;      \
	refused(xfp_cuda_multiply(s.linear, 0, 1, &s.prepared, &out, &queue, &err), part)
	IN(data, 0, "the address of inputs, 0, is null");
	IN(data, s.x + 1, "is not a multiple of their size");
	IN(type, 4, "inputs have an unknown type, 4");
	IN(stride, s.info.cols - 1, "have a stride of");
	IN(count, 3, "3 prepared vectors need");
	OUT(data, 0, "the address of outputs, 0, is null");
	OUT(data, s.y + 1, "is not a multiple of their size");
	OUT(type, 0, "outputs have an unknown type, 0");
	OUT(stride, 1, "have a stride of 1 elements");
	refused(xfp_cuda_prepare(s.linear, &s.in, s.room + 64, room, &queue, &s.prepared, &err),
		"not a multiple of 256");
	refused(xfp_cuda_prepare(s.linear, &s.in, 0, room, &queue, &s.prepared, &err), "is null");
	refused(xfp_cuda_prepare(s.linear, &s.in, s.room, room - 1, &queue, &s.prepared, &err), "but got ");
	close_scene(&s);
	xfp_bundle_close(bundle);
	fixture_free(&f);

	fixture_make_bundle(&f, 1);
	bundle = fixture_open(f.out);
	open_scene(&s, bundle, 0, NULL, 1, XFP_FLOAT32, XFP_FLOAT32);
	refused(xfp_cuda_multiply_experts(s.linear, 0, 1, &s.prepared, &s.out, &queue, &err),
		"the address of the list, 0, is null");
	refused(xfp_cuda_multiply_experts(s.linear, s.x + 2, 1, &s.prepared, &s.out, &queue, &err),
		"not a multiple of 4");
	refused(xfp_cuda_multiply_experts(s.linear, s.x, (size_t)1 << 31, &s.prepared, &s.out, &queue, &err),
		"2147483648 products are too many for one call");
	check(xfp_cuda_multiply_experts(s.linear, 0, 0, &s.prepared, &s.out, &queue, &err));
	close_scene(&s);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units),
		cmocka_unit_test(lists),
		cmocka_unit_test(a_kept_tensor),
		cmocka_unit_test(graphs),
		cmocka_unit_test(sharing),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(vectors_not_finite),
		cmocka_unit_test(codebooks_not_finite),
	};

	return cmocka_run_group_tests(tests, scene_begin, scene_end);
}
