/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device images of everything that a bundle can contain, and of slices: read bit by bit, as kernels/cuda/abi.h
 * documents, they decode to the bundle's weights.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "runtime/cuda/image.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/lane_bits.h"

#define BASE UINT64_C(0x7f1200000000)

static struct xfp_error err;

/* ---- an image in memory ------------------------------------------------------------------------ */

/* A sink with pieces of some size, so that data is split at every kind of place. */
struct pieces {
	struct xfp_cuda_sink sink;
	uint8_t *image;
	uint64_t bytes;
	size_t piece;
};

static enum xfp_status next(struct xfp_cuda_sink *sink, struct xfp_error *error)
{
	struct pieces *p = (struct pieces *)sink;

	(void)error;
	assert_true(p->sink.done < p->bytes);
	p->sink.at = p->image + p->sink.done;
	p->sink.left = p->bytes - p->sink.done < p->piece ? p->bytes - p->sink.done : p->piece;
	return XFP_OK;
}

static enum xfp_status write_image(const struct xfp_cuda_plan *plan, size_t piece, uint8_t **image)
{
	struct pieces p = { .sink = { .next = next }, .bytes = plan->bytes, .piece = piece };
	enum xfp_status status;

	p.image = malloc(plan->bytes);
	memset(p.image, 0xee, plan->bytes);
	status = xfp_cuda_image_write(plan, BASE, &p.sink, &err);
	if (!status)
		assert_int_equal(p.sink.done, plan->bytes);
	*image = p.image;
	return status;
}

/* ---- reading the image, as the header documents ------------------------------------------------- */

struct reader {
	const struct xfp_cuda_plan *plan;
	const uint8_t *image;
	struct xfp_cuda_weights w;
	struct xfp_cuda_matrix m;
	unsigned k;
};

/* Read `bytes` at an address; they must be in the image and, at the start of a part, at a multiple of 16. */
static const uint8_t *at(const struct reader *r, uint64_t address, uint64_t bytes)
{
	assert_true(address >= BASE && bytes <= r->plan->bytes && address - BASE <= r->plan->bytes - bytes);
	return r->image + (address - BASE);
}

static float f32_at(const struct reader *r, uint64_t address, uint64_t i)
{
	float value;

	memcpy(&value, at(r, address + i * 4, 4), 4);
	return value;
}

static uint64_t chunk_of(const struct reader *r)
{
	return lane_slots[r->k][7] ? 512 : lane_slots[r->k][3] ? 256 : 128;
}

/* The location of a row's chunk of `bytes`: in tiles of sixteen rows, by chunk, then by row. */
static uint64_t tile_place(const struct reader *r, uint64_t row, uint64_t c, uint64_t bytes)
{
	uint64_t chunks = (r->w.cols + chunk_of(r) - 1) / chunk_of(r);

	return ((row / 16 * chunks + c / chunk_of(r)) * 16 + row % 16) * bytes;
}

static unsigned index_at(const struct reader *r, uint64_t row, uint64_t c)
{
	uint64_t chunk = chunk_of(r), size = chunk / 8 * r->k;
	const uint8_t *bytes = at(r, r->m.index + tile_place(r, row, c, size), size);
	unsigned index = 0;

	for (unsigned b = 0; b < r->k; b++) {
		size_t bit = lane_bit(r->k, chunk, c % chunk, b);

		index |= (unsigned)(bytes[bit / 8] >> bit % 8 & 1) << b;
	}
	return index;
}

/* The v2c byte for a column: of a group of 16 columns, or of 32 columns of a longer group. */
static unsigned name_at(const struct reader *r, uint64_t row, uint64_t c)
{
	if (r->plan->method == XFP_CUDA_V2C)
		return *at(r, r->m.group + row * r->w.row_groups + c / 16, 1);
	return *at(r, r->m.group + tile_place(r, row, c, chunk_of(r) / 32) + c % chunk_of(r) / 32, 1);
}

/* An entry of a codebook: from two planes, or unchanged. */
static float entry_at(const struct reader *r, uint64_t book, unsigned index)
{
	const uint8_t *bytes = at(r, book, UINT64_C(2) << r->k);

	if (r->k > 4)
		return xfp_half_to_float(xfp_load16(bytes + (size_t)2 * index));
	return xfp_half_to_float((uint16_t)(bytes[index] << 8 | bytes[(1u << r->k) + index]));
}

/* The stored value at a row and a column of the image, without outliers. */
static float stored_at(const struct reader *r, uint64_t row, uint64_t c)
{
	uint64_t g = row * r->w.row_groups + (c >> r->w.group), book;
	const uint8_t *number;
	unsigned name;

	switch (r->plan->method) {
	case XFP_CUDA_F32:
		return f32_at(r, r->m.index + row * r->w.row_bytes, c);
	case XFP_CUDA_F16:
		return xfp_half_to_float(xfp_load16(at(r, r->m.index + row * r->w.row_bytes + c * 2, 2)));
	case XFP_CUDA_BF16:
		return xfp_bf16_to_float(xfp_load16(at(r, r->m.index + row * r->w.row_bytes + c * 2, 2)));
	case XFP_CUDA_FP8:
		return xfp_e4m3_to_float(*at(r, r->m.index + row * r->w.row_bytes + c, 1)) * f32_at(r, r->m.code, row);
	case XFP_CUDA_V2:
		return entry_at(r, r->m.code + (row * 2 << r->k), index_at(r, row, c));
	case XFP_CUDA_V2A:
		number = at(r, r->m.number + g, 1);
		book = r->w.library + ((uint64_t)*number * 2 << r->k);
		return entry_at(r, book, index_at(r, row, c)) *
			       xfp_half_to_float(xfp_load16(at(r, r->m.group + g * 4, 2))) +
		       xfp_half_to_float(xfp_load16(at(r, r->m.group + g * 4 + 2, 2)));
	default:
		name = name_at(r, row, c);
		book = r->w.library + ((uint64_t)(name / (256 / r->w.codebooks)) * 2 << r->k);
		return entry_at(r, book, index_at(r, row, c)) * f32_at(r, r->w.ratio, name % (256 / r->w.codebooks)) *
		       f32_at(r, r->m.row, row);
	}
}

/* The integers of a codebook approximate its entries to half a step; `high` and `low` are its planes. */
static void expect_integers(const struct reader *r, uint64_t address, uint64_t high, uint64_t low, const float *entry)
{
	unsigned entries = 1u << r->k, bits = r->k == 4 ? 7 : 8;
	double step = (double)f32_at(r, address, 0), least = (double)f32_at(r, address, 1);

	assert_int_equal(address % 8 + high % entries + low % entries, 0);
	for (unsigned i = 0; i < entries; i++) {
		unsigned h = *at(r, high + i, 1), l = *at(r, low + i, 1);
		double off = least + step * (h << bits | l) - (double)entry[i];

		assert_true(l >> bits == 0 && h >> (r->k == 4 ? 7 : 8) == 0);
		if (!(off <= 0.5001 * step && -off <= 0.5001 * step))
			fail_msg("%s: %g is off by %g steps of %g", r->plan->name, (double)entry[i], off / step, step);
	}
}

static void expect_integers_of_row(const struct reader *r, uint64_t row)
{
	float entry[16];

	for (unsigned i = 0; i < 1u << r->k; i++)
		entry[i] = entry_at(r, r->m.code + (row * 2 << r->k), i);
	expect_integers(r, r->m.pair + row * 8, r->m.integer + (row * 2 << r->k),
			r->m.integer + (row * 2 << r->k) + (1u << r->k), entry);
}

static void expect_tables(const struct reader *r)
{
	unsigned entries = 1u << r->k, ratios = 256 / r->w.codebooks;

	for (unsigned byte = 0; byte < 256; byte++) {
		uint64_t high = r->w.tables + (r->k == 4 ? (uint64_t)byte * 16 : (uint64_t)byte * 2 * entries);
		float entry[16];

		for (unsigned i = 0; i < entries; i++)
			entry[i] = entry_at(r, r->w.library + ((uint64_t)(byte / ratios) * 2 << r->k), i) *
				   f32_at(r, r->w.ratio, byte % ratios);
		expect_integers(r, r->m.pair, high, high + (r->k == 4 ? 4096 : entries), entry);
	}
}

/* Add a row's outliers. */
static void add_outliers(const struct reader *r, uint64_t row, float *x)
{
	uint32_t first, end, before = 0;

	if (!r->m.pointer)
		return;
	first = xfp_load32(at(r, r->m.pointer + row * 4, 4));
	end = xfp_load32(at(r, r->m.pointer + row * 4 + 4, 4));
	assert_true(first <= end);
	for (uint32_t i = first; i < end; i++) {
		uint32_t c = xfp_load32(at(r, r->m.column + (uint64_t)i * 4, 4));

		assert_true(c >= r->plan->lead && c < r->w.cols && (i == first || c > before));
		before = c;
		x[c] += xfp_half_to_float(xfp_load16(at(r, r->m.residual + (uint64_t)i * 2, 2)));
	}
}

/* Everything past the end of a row is zero, as the header documents. */
static void expect_padding(const struct reader *r, uint64_t row)
{
	uint64_t columns = r->k ? (uint64_t)r->w.row_bytes * 8 / r->k : 0;
	uint64_t groups = (r->w.cols + (UINT64_C(1) << r->w.group) - 1) >> r->w.group;
	uint64_t element = r->plan->method == XFP_CUDA_F32 ? 4 : r->plan->method == XFP_CUDA_FP8 ? 1 : 2;
	bool names = r->plan->method == XFP_CUDA_V2C32;

	if (r->k)
		assert_int_equal(columns % chunk_of(r), 0);
	for (uint64_t c = r->w.cols; r->k && c < columns; c++)
		assert_int_equal(index_at(r, row, c), 0);
	for (uint64_t b = r->w.cols * element; !r->k && b < r->w.row_bytes; b++)
		assert_int_equal(*at(r, r->m.index + row * r->w.row_bytes + b, 1), 0);
	if (names)
		assert_int_equal(r->w.row_groups, columns / 32);
	for (uint64_t c = groups << r->w.group; names && c < columns; c += 32)
		assert_int_equal(name_at(r, row, c), 0);
	for (uint64_t g = groups; !names && r->m.group && g < r->w.row_groups; g++) {
		assert_int_equal(*at(r, (r->m.number ? r->m.number : r->m.group) + row * r->w.row_groups + g, 1), 0);
		if (r->m.number)
			assert_int_equal(xfp_load32(at(r, r->m.group + (row * r->w.row_groups + g) * 4, 4)), 0);
	}
}

/* The padding rows of the last tile are zero: their indices, and bytes of groups. */
static void expect_padding_rows(const struct reader *r)
{
	uint64_t columns = r->k ? (uint64_t)r->w.row_bytes * 8 / r->k : 0, rows = (r->w.rows + UINT64_C(15)) / 16 * 16;

	for (uint64_t row = r->w.rows; row < rows; row++)
		for (uint64_t c = 0; c < columns; c++) {
			assert_int_equal(index_at(r, row, c), 0);
			if (r->plan->method == XFP_CUDA_V2C32 && c % 32 == 0)
				assert_int_equal(name_at(r, row, c), 0);
		}
}

static void expect_expert(const struct xfp_cuda_plan *plan, const uint8_t *image, uint32_t e, const float *expected)
{
	struct reader r = { .plan = plan, .image = image, .k = plan->expert[e].k };
	const struct xfp_slice *s = &plan->slice;
	float *x = malloc((size_t)plan->cols * sizeof *x);

	r.w = xfp_cuda_plan_weights(plan, r.k, BASE);
	memcpy(&r.m, at(&r, r.w.matrix + e * sizeof r.m, sizeof r.m), sizeof r.m);
	assert_int_equal(r.w.cols, s->cols + plan->lead);
	assert_int_equal(r.w.rows, s->rows);
	assert_int_equal(r.m.index % 256 + r.m.code % 256 + r.m.group % 256 + r.m.number % 256 + r.m.row % 256, 0);
	assert_int_equal(r.m.integer % 256 + r.w.tables % 256, 0);
	assert_int_equal(r.m.pair != 0, xfp_cuda_has_integers(plan, r.k));
	assert_int_equal(r.m.pointer % 256 + r.m.column % 256 + r.m.residual % 256, 0);
	if (r.m.pointer) {
		assert_int_equal(xfp_load32(at(&r, r.m.pointer, 4)), 0);
		assert_int_equal(xfp_load32(at(&r, r.m.pointer + s->rows * 4, 4)), plan->expert[e].outliers);
	}
	if (r.m.pair && r.w.tables)
		expect_tables(&r);
	for (uint64_t row = 0; row < s->rows; row++) {
		if (r.m.integer)
			expect_integers_of_row(&r, row);
		for (uint64_t c = 0; c < plan->cols; c++)
			x[c] = stored_at(&r, row, c);
		add_outliers(&r, row, x);
		for (uint64_t c = 0; c < s->cols; c++) {
			float value = x[plan->lead + c] * (plan->down ? f32_at(&r, BASE + plan->down, c) : 1);
			float wanted = expected[(s->first_row + row) * plan->full_cols + s->first_col + c];

			value = (float)(value * r.m.unit);
			if (memcmp(&value, &wanted, sizeof value))
				fail_msg("%s, expert %u, row %u, column %u of the slice: %g, not %g", plan->name, e,
					 (unsigned)row, (unsigned)c, (double)value, (double)wanted);
		}
		expect_padding(&r, row);
	}
	expect_padding_rows(&r);
	free(x);
}

/* ---- units and slices -------------------------------------------------------------------------- */

static void expect_slice(const struct xfp_bundle *bundle, uint32_t u, const struct xfp_slice *slice, size_t piece,
			 float *const *decoded)
{
	struct xfp_cuda_plan plan;
	uint8_t *image;

	if (xfp_cuda_plan_unit(bundle, u, slice, &plan, &err))
		fail_msg("%s", err.text);
	if (write_image(&plan, piece, &image))
		fail_msg("%s", err.text);
	for (uint32_t e = 0; e < plan.experts; e++)
		expect_expert(&plan, image, e, decoded[plan.first_matrix + e]);
	free(image);
	xfp_cuda_plan_free(&plan);
}

static void units_and_slices(void **state)
{
	static const int kinds[] = { 0, 1, 2, 3, 4, FIXTURE_HALF_KEPT, FIXTURE_TWO_SIZES, FIXTURE_TILES };
	uint64_t seed = 17;

	(void)state;
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		struct fixture f;
		struct xfp_bundle *bundle;
		struct xfp_unit_info unit;

		fixture_make_bundle(&f, kinds[kind]);
		bundle = fixture_open(f.out);
		for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
			expect_slice(bundle, u, NULL, 1 << 20, f.decoded);
			expect_slice(bundle, u, NULL, 61, f.decoded);
			for (int i = 0; i < (unit.cols > 10000 ? 4 : 40); i++) {
				struct xfp_slice s = { .first_row = test_random(&seed) % unit.rows,
						       .first_col = test_random(&seed) % unit.cols };

				/* at ends of groups and chunks, and next to them */
				if (i % 3 == 0)
					s.first_col &= ~UINT64_C(127);
				if (i % 3 == 1)
					s.first_col &= ~UINT64_C(15);
				if (i % 2)
					s.rows = 1 + test_random(&seed) % (unit.rows - s.first_row);
				if (i % 4)
					s.cols = 1 + test_random(&seed) % (unit.cols - s.first_col);
				expect_slice(bundle, u, &s, 1 + test_random(&seed) % 5000, f.decoded);
			}
		}
		xfp_bundle_close(bundle);
		fixture_free(&f);
	}
}

/* Compare the tiles of a slice byte by byte: those of whole chunks have the bundle's bytes, in another order. */
static void tiles(void **state)
{
	static const struct {
		const char *name;
		struct xfp_slice slice;
	} cases[] = { { "t.a", { 0, 0, 256, 0 } },    { "t.a", { 3, 33, 0, 512 } }, { "t.b", { 18, 1, 0, 0 } },
		      { "t.e", { 5, 17, 512, 512 } }, { "t.g", { 1, 0, 128, 0 } },  { "t.i", { 0, 0, 0, 256 } } };
	struct fixture f;
	struct xfp_bundle *bundle;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	bundle = fixture_open(f.out);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct xfp_slice *s = &cases[i].slice;
		uint64_t size, from_bytes;
		struct reader r = { .plan = NULL };
		struct xfp_matrix_info matrix;
		struct xfp_cuda_plan plan;
		uint8_t *image, zero[512 / 8 * 3] = { 0 };

		assert_int_equal(
			xfp_cuda_plan_unit(bundle, xfp_bundle_find_unit(bundle, cases[i].name, NULL), s, &plan, &err),
			XFP_OK);
		assert_true(xfp_bundle_matrix(bundle, plan.first_matrix, &matrix));
		assert_int_equal(write_image(&plan, 1000, &image), XFP_OK);
		r = (struct reader){ .w = xfp_cuda_plan_weights(&plan, matrix.k, BASE), .k = matrix.k };
		size = chunk_of(&r) / 8 * matrix.k;
		from_bytes = ((matrix.cols + 31) / 32 * 4 * matrix.k + 15) / 16 * 16;
		assert_int_equal(s->first_col % chunk_of(&r), 0);
		assert_int_equal(r.w.row_bytes, r.w.chunks * size);
		for (uint64_t row = 0; row < (r.w.rows + 15) / 16 * 16; row++)
			for (uint64_t c = 0; c < r.w.chunks; c++) {
				const uint8_t *here = image + plan.expert[0].index +
						      ((row / 16 * r.w.chunks + c) * 16 + row % 16) * size;
				const uint8_t *from = (const uint8_t *)matrix.index +
						      (s->first_row + row) * from_bytes +
						      (s->first_col / chunk_of(&r) + c) * size;

				if (row >= r.w.rows)
					assert_memory_equal(here, zero, size);
				else if ((c + 1) * chunk_of(&r) <= r.w.cols)
					assert_memory_equal(here, from, size);
			}
		free(image);
		xfp_cuda_plan_free(&plan);
	}
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void tensors(void **state)
{
	struct xfp_slice slices[] = { { 0, 8, 0, 5 }, { 2, 5, 1, 3 } };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_tensor_info tensor;
	struct xfp_cuda_plan plan;
	uint8_t *image;
	float w[40];

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	assert_true(xfp_bundle_tensor(bundle, xfp_bundle_find_tensor(bundle, "embed"), &tensor));
	xfp_to_float(XFP_BFLOAT16, tensor.data, 40, w);
	for (int i = 0; i < 4; i++) {
		uint32_t number = xfp_bundle_find_tensor(bundle, i / 2 ? "tied" : "embed");

		assert_int_equal(xfp_cuda_plan_tensor(bundle, number, &slices[i % 2], &plan, &err), XFP_OK);
		assert_int_equal(plan.method, XFP_CUDA_BF16);
		assert_int_equal(write_image(&plan, 100, &image), XFP_OK);
		expect_expert(&plan, image, 0, w);
		free(image);
		xfp_cuda_plan_free(&plan);
	}
	/* a tensor that is one unit */
	assert_int_equal(
		xfp_cuda_plan_tensor(bundle, xfp_bundle_find_tensor(bundle, "a_head.weight"), NULL, &plan, &err),
		XFP_OK);
	assert_int_equal(plan.method, XFP_CUDA_FP8);
	assert_null(plan.tensor);
	xfp_cuda_plan_free(&plan);
	assert_int_equal(xfp_cuda_plan_tensor(bundle, xfp_bundle_find_tensor(bundle, "ids"), NULL, &plan, &err),
			 XFP_USAGE);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- damage ------------------------------------------------------------------------------------ */

/* Change a byte of a part of a unit; the image, or the plan of a slice, detects it. */
static void expect_damage(struct fixture *f, const char *name, const void *place_in(const struct xfp_matrix_info *),
			  size_t offset, uint8_t value, const struct xfp_slice *slice, const char *text)
{
	size_t size, where;
	uint8_t *file = fixture_read(f->out, &size), *image = NULL;
	struct xfp_bundle *bundle = fixture_open(f->out);
	struct xfp_bundle_info info;
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;
	struct xfp_cuda_plan plan;
	enum xfp_status status;
	uint32_t u = xfp_bundle_find_unit(bundle, name, NULL);

	/* the offset in the file: the map and the file have json after the first header */
	xfp_bundle_describe(bundle, &info);
	assert_true(xfp_bundle_unit(bundle, u, &unit));
	assert_true(xfp_bundle_matrix(bundle, unit.first_matrix + unit.experts - 1, &matrix));
	where = (size_t)((const char *)place_in(&matrix) - (info.json - 512)) + offset;
	xfp_bundle_close(bundle);
	file[where] = value;
	fixture_write(f->out, file, size);
	bundle = fixture_open(f->out);
	if (!(status = xfp_cuda_plan_unit(bundle, u, slice, &plan, &err))) {
		status = write_image(&plan, 1000, &image);
		xfp_cuda_plan_free(&plan);
	}
	assert_int_equal(status, XFP_BAD_INPUT);
	if (!strstr(err.text, text) || !strstr(err.text, f->out) || !strstr(err.text, name))
		fail_msg("%s", err.text);
	xfp_bundle_close(bundle);
	free(image);
	free(file);
}

static const void *outlier_columns(const struct xfp_matrix_info *m)
{
	return (const uint8_t *)m->outlier + (m->outliers <= m->rows ? m->outliers : m->rows + 1) * 4;
}

static const void *outlier_rows(const struct xfp_matrix_info *m)
{
	return m->outlier;
}

static const void *group_numbers(const struct xfp_matrix_info *m)
{
	return (const uint8_t *)m->group + m->rows * ((m->cols + m->group_size - 1) / m->group_size) * 4;
}

static void damage(void **state)
{
	static const struct xfp_slice some = { .rows = 2, .cols = 5 };
	struct fixture f;

	(void)state;
	for (int sliced = 0; sliced < 2; sliced++) {
		const struct xfp_slice *slice = sliced ? &some : NULL;

		fixture_make_bundle(&f, 1); /* 3 rows of 11 columns, a list */
		expect_damage(&f, "q.weight", outlier_columns, 0, 200, slice,
			      "outliers outside the matrix or out of order");
		fixture_free(&f);
		fixture_make_bundle(&f, 4); /* row pointers */
		expect_damage(&f, "q.weight", outlier_rows, 4, 200, slice,
			      "outliers outside the matrix or out of order");
		fixture_free(&f);
		fixture_make_bundle(&f, 2); /* a library of four */
		expect_damage(&f, "q.weight", group_numbers, 1, 4, slice,
			      "row 1: a group has an invalid codebook number");
		fixture_free(&f);
	}
	/* a row that does not exist: detected only if the last row is requested, as on the CPU */
	fixture_make_bundle(&f, 1);
	expect_damage(&f, "q.weight", outlier_rows, 0, 3, NULL, "row 2: outliers outside the matrix or out of order");
	fixture_free(&f);
}

/* ---- infinities and NaN ------------------------------------------------------------------------ */

/* If kernels would read an infinity or NaN in a codebook, neither image nor plan uses the integer path. */
static void expect_finite(struct fixture *f, const char *name, uint64_t number, uint16_t half,
			  const struct xfp_slice *slice, bool finite)
{
	size_t size, where;
	uint8_t *file = fixture_read(f->out, &size), *image;
	struct xfp_bundle *bundle = fixture_open(f->out);
	uint32_t u = xfp_bundle_find_unit(bundle, name, NULL);
	struct xfp_cuda_matrix in_image, m;
	struct xfp_matrix_info matrix;
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;
	struct xfp_cuda_plan plan;
	uint8_t before[2];

	xfp_bundle_describe(bundle, &info);
	assert_true(xfp_bundle_unit(bundle, u, &unit));
	assert_true(xfp_bundle_matrix(bundle, unit.first_matrix, &matrix));
	where = (size_t)((const char *)matrix.code - (info.json - 512)) + 2 * number;
	xfp_bundle_close(bundle);
	memcpy(before, file + where, 2);
	xfp_store16(file + where, half);
	fixture_write(f->out, file, size);
	bundle = fixture_open(f->out);
	assert_int_equal(xfp_cuda_plan_unit(bundle, u, slice, &plan, &err), XFP_OK);
	assert_int_equal(plan.expert[0].integers, finite);
	assert_true(plan.expert[0].pair); /* it has a location in either case */
	m = xfp_cuda_plan_matrix(&plan, 0, BASE);
	assert_int_equal(m.pair, finite ? BASE + plan.expert[0].pair : 0);
	assert_int_equal(write_image(&plan, 1000, &image), XFP_OK);
	memcpy(&in_image, image, sizeof in_image);
	assert_memory_equal(&in_image, &m, sizeof m);
	free(image);
	xfp_cuda_plan_free(&plan);
	xfp_bundle_close(bundle);
	memcpy(file + where, before, 2);
	fixture_write(f->out, file, size);
	free(file);
}

static void not_finite(void **state)
{
	static const struct xfp_slice first = { .rows = 9 }, last = { .first_row = 10 };
	struct fixture f;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	/* v2: row 9's last entry of four, and the slices before and after it */
	expect_finite(&f, "t.a", 39, 0x7c00, NULL, false);
	expect_finite(&f, "t.a", 39, 0xfc00, NULL, false);
	expect_finite(&f, "t.a", 39, 0x7e01, NULL, false);
	expect_finite(&f, "t.a", 39, 0x7bff, NULL, true);
	expect_finite(&f, "t.a", 39, 0x7c00, &first, true);
	expect_finite(&f, "t.a", 39, 0x7c00, &last, true);
	expect_finite(&f, "t.a", 40, 0x7c00, &last, false);
	expect_finite(&f, "t.a", 35, 0x7c00, &first, false);
	/* v2c: four codebooks of four entries, and 64 ratios; all slices share them */
	expect_finite(&f, "t.d", 0, 0x7c00, &last, false);
	expect_finite(&f, "t.d", 15, 0xfc00, NULL, false);
	expect_finite(&f, "t.d", 16, 0x7c00, NULL, false);
	expect_finite(&f, "t.d", 79, 0x7fff, &first, false);
	expect_finite(&f, "t.d", 79, 0x3c00, &first, true);
	fixture_free(&f);
}

PROGRAM("test_cuda_image")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_and_slices), cmocka_unit_test(tiles),  cmocka_unit_test(tensors),
		cmocka_unit_test(not_finite),       cmocka_unit_test(damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
