/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multiply.c - multiply by a bundle's matrices, and compare with products of its decoded weights.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/walk.h"

#define MANY 33                   /* vectors: enough that weights are decoded first */
#define SMALL ((uint64_t)1 << 10) /* weights; */
#define LARGE ((uint64_t)1 << 18) /* of one weight in 64 */

/* The matrix and the vectors of a product. */
struct trial {
	const struct xfp_bundle *bundle;
	const struct fuzz_file_made *made;
	uint64_t random;
	struct xfp_slice slice; /* only its beginning may be 0 */
	uint32_t experts, first_matrix;
	const struct xfp_tensor_info *tensor; /* NULL: a unit */
	struct xfp_team *team;
	struct xfp_linear *linear;
	bool exact;      /* within the bound of floats */
	double residual; /* largest residual of an outlier */
};

/* A team of the caller's that runs everything in this thread. */
static void run_here(void *pool, void (*task)(void *context, unsigned i), void *context, unsigned threads)
{
	(void)pool;
	while (threads--)
		task(context, threads);
}

static struct xfp_team *some_team(uint64_t *random)
{
	static struct xfp_team *borrowed, *threads;
	unsigned which = fuzz_random(random) % 16;

	if (!borrowed)
		MUST(!xfp_team_borrow(3, run_here, NULL, &borrowed, NULL));
	if (!which && !threads)
		MUST(!xfp_team_start(2, &threads, NULL));
	return which > 8 ? NULL : which ? borrowed : threads;
}

static void choose_instructions(struct trial *t)
{
	static const char *const names[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
	struct xfp_matrix_info matrix;

	while (!xfp_use_instructions(names[fuzz_random(&t->random) % 6]))
		;
	t->exact = strcmp(xfp_instructions(), "avx2") && strcmp(xfp_instructions(), "vbmi") &&
		   strcmp(xfp_instructions(), "dotprod");
	for (uint32_t e = 0; !t->tensor && e < t->experts; e++) {
		MUST(xfp_bundle_matrix(t->bundle, t->first_matrix + e, &matrix));
		t->exact = t->exact && abs(matrix.exponent) <= 40 && (t->made->whole || !matrix.outliers);
		if (matrix.outliers)
			t->residual = fmax(t->residual, ldexp(2, -matrix.exponent)); /* as contents.c makes them */
	}
}

/* ---- the weights ------------------------------------------------------------------------------- */

static float element(const struct xfp_tensor_info *tensor, uint64_t i)
{
	double wide;
	float value;
	uint32_t bits;
	uint16_t half;

	if (tensor->dtype == 0) { /* F64 */
		memcpy(&wide, (const char *)tensor->data + 8 * i, 8);
		return (float)wide;
	}
	if (tensor->dtype == XFP_FLOAT32) {
		memcpy(&value, (const char *)tensor->data + 4 * i, 4);
		return value;
	}
	memcpy(&half, (const char *)tensor->data + 2 * i, 2);
	if (tensor->dtype == XFP_BFLOAT16) {
		bits = (uint32_t)half << 16;
		memcpy(&value, &bits, 4);
		return value;
	}
	value = half >> 10 & 31 ? ldexpf((float)((half & 1023) | 1024), (half >> 10 & 31) - 25)
				: ldexpf((float)(half & 1023), -24);
	value = (half >> 10 & 31) == 31 ? (half & 1023 ? NAN : INFINITY) : value;
	return half >> 15 ? -value : value;
}

/* Decode the slice of an expert's weights; false if that is impossible. */
static bool decode_slice(const struct trial *t, uint32_t expert, uint64_t cols, float *w)
{
	uint64_t count = t->slice.cols;
	float *row = malloc(cols * sizeof *row);
	enum xfp_status status = XFP_OK;

	MUST(row);
	for (uint64_t r = 0; !status && r < t->slice.rows; r++, w += count) {
		uint64_t from = t->slice.first_row + r;

		for (uint64_t c = 0; t->tensor && c < cols; c++)
			row[c] = element(t->tensor, from * cols + c);
		if (!t->tensor)
			status = xfp_bundle_dequantize(t->bundle, t->first_matrix + expert, from, 1, XFP_FLOAT32, row,
						       NULL);
		memcpy(w, row + t->slice.first_col, count * sizeof *w);
	}
	free(row);
	return !status;
}

/* Return whether a product is within the bound, except near the ends of f32's range. An outlier is multiplied
 * separately from the weight that it is added to, and their sum may be much smaller. */
static void compare(const struct trial *t, const float *w, const float *x, uint64_t cols, float y)
{
	double sum = 0, magnitude = 0;

	for (uint64_t c = 0; c < cols; c++) {
		sum += (double)w[c] * x[c];
		magnitude += (fabs((double)w[c]) + 2 * t->residual) * fabs((double)x[c]);
	}
	if (t->exact && magnitude < 0x1p80)
		MUST(fabs(y - sum) <= ((double)cols / 16 + 40) * 0x1p-24 * magnitude + (double)cols * 0x1p-100);
}

/* ---- products ---------------------------------------------------------------------------------- */

/* One expert and `count` vectors. */
static bool multiply(struct trial *t, uint32_t expert, size_t count, const float *x, float *y)
{
	size_t cols = t->slice.cols, rows = t->slice.rows;
	const struct xfp_input in = { x, XFP_FLOAT32, count, cols };
	const struct xfp_output out = { y, XFP_FLOAT32, count, rows };
	struct xfp_error err;
	enum xfp_status status = xfp_multiply(t->team, t->linear, expert, count, &in, &out, &err);

	if (status)
		fuzz_judge(&err, status, t->made);
	MUST(!status || !t->made->whole);
	return !status;
}

static void try_expert(struct trial *t, uint32_t expert, uint64_t all_cols, const float *x)
{
	size_t cols = t->slice.cols, rows = t->slice.rows;
	float *w = malloc(rows * cols * sizeof *w), *few = malloc(3 * rows * sizeof *few);
	float *many = malloc(MANY * rows * sizeof *many);
	size_t count = fuzz_random(&t->random) % 4 ? 1 : MANY;
	bool decoded, some, all;

	MUST(w && few && many);
	decoded = decode_slice(t, expert, all_cols, w);
	some = multiply(t, expert, 3, x, few);
	all = multiply(t, expert, count, x, many);
	MUST((!all || some) && (!decoded || all)); /* for few vectors, the order of a row's outliers is not checked */
	for (size_t m = 0; decoded && m < 3; m++)
		for (size_t r = 0; r < rows; r++)
			compare(t, w + r * cols, x + m * cols, cols, few[m * rows + r]);
	for (size_t m = 0; decoded && m < count; m += 8)
		for (size_t r = 0; r < rows; r++)
			compare(t, w + r * cols, x + m * cols, cols, many[m * rows + r]);
	free(w);
	free(few);
	free(many);
}

/* Two experts, weighted and summed in order, in one call with a separate product. */
static void try_list(struct trial *t, uint64_t all_cols, const float *x)
{
	const struct xfp_product list[] = { { t->experts - 1, 0, 1, 0.5f }, { 0, 1, 1, 0.25f }, { 0, 2, 0, 1 } };
	size_t cols = t->slice.cols, rows = t->slice.rows;
	const struct xfp_input in = { x, XFP_FLOAT32, 3, cols };
	float *y = malloc(2 * rows * sizeof *y), *last = malloc(rows * cols * sizeof *last);
	float *first = malloc(rows * cols * sizeof *first), *both = malloc(2 * cols * sizeof *both);
	const struct xfp_output out = { y, XFP_FLOAT32, 2, rows };
	struct xfp_error err;
	enum xfp_status status;
	bool decoded;

	MUST(y && last && first && both);
	decoded = decode_slice(t, t->experts - 1, all_cols, last) && decode_slice(t, 0, all_cols, first);
	status = xfp_multiply_experts(t->team, t->linear, list, 3, &in, &out, &err);
	if (status)
		fuzz_judge(&err, status, t->made);
	MUST(!decoded || !status);
	for (size_t r = 0; decoded && r < rows; r++) {
		for (size_t c = 0; c < cols; c++) {
			both[c] = last[r * cols + c] * 0.5f;
			both[cols + c] = first[r * cols + c] * 0.25f;
		}
		compare(t, both, x, 2 * cols, y[rows + r]);
		compare(t, first + r * cols, x + 2 * cols, cols, y[r]);
	}
	free(y);
	free(last);
	free(first);
	free(both);
}

/* More products than one round processes, all with one vector and one or two results; experts alternate. */
static void try_long_list(struct trial *t, const float *x)
{
	struct xfp_product list[300];
	size_t rows = t->slice.rows, count = t->slice.cols > 64 ? t->experts : 300;
	bool turns = fuzz_random(&t->random) % 2;
	float *y = malloc(2 * rows * sizeof *y);
	const struct xfp_input in = { x, XFP_FLOAT32, 1, t->slice.cols };
	const struct xfp_output out = { y, XFP_FLOAT32, 2, rows };
	struct xfp_error err;
	enum xfp_status status;

	MUST(y);
	for (uint32_t i = 0; i < count; i++)
		list[i] = (struct xfp_product){ i % t->experts, 0, turns ? i % 2 : i / 270, 0.5f };
	status = xfp_multiply_experts(t->team, t->linear, list, count, &in, &out, &err);
	if (status)
		fuzz_judge(&err, status, t->made);
	MUST(!status || !t->made->whole);
	free(y);
}

/* Other element types, and invalid calls. */
static void try_rest(struct trial *t, const float *x)
{
	size_t cols = t->slice.cols, rows = t->slice.rows;
	uint16_t *y = malloc(2 * rows * sizeof *y);
	struct xfp_input in = { x, XFP_FLOAT16, 2, cols };
	struct xfp_output out = { y, XFP_BFLOAT16, 2, rows };
	struct xfp_error err;

	MUST(y);
	for (int type = XFP_FLOAT16; type <= XFP_BFLOAT16; type++) {
		enum xfp_status status;

		in.type = (enum xfp_float)type;
		status = xfp_multiply(t->team, t->linear, 0, 2, &in, &out, &err);
		if (status)
			fuzz_judge(&err, status, t->made);
	}
	MUST(xfp_multiply(t->team, t->linear, t->experts, 1, &in, &out, &err) == XFP_USAGE);
	MUST(xfp_multiply(t->team, t->linear, 0, 3, &in, &out, &err) == XFP_USAGE);
	MUST(xfp_multiply(t->team, t->linear, 0, 0, &in, &out, &err) == XFP_OK);
	MUST(xfp_multiply(t->team, t->linear, 0, SIZE_MAX, &in, &out, &err) == XFP_USAGE);
	out.stride = rows - 1;
	MUST(!rows || xfp_multiply(t->team, t->linear, 0, 2, &in, &out, &err) == XFP_USAGE);
	in.type = 9;
	MUST(xfp_multiply(t->team, t->linear, 0, 2, &in, &out, &err) == XFP_USAGE);
	free(y);
}

static void try_slice(struct trial *t, uint64_t all_cols)
{
	float *x = malloc(MANY * t->slice.cols * sizeof *x);
	struct xfp_linear_info info;

	MUST(x);
	for (uint64_t i = 0; i < MANY * t->slice.cols; i++)
		x[i] = (float)((double)(int64_t)fuzz_random(&t->random) * 0x1p-62);
	xfp_linear_describe(t->linear, &info);
	MUST(info.experts == t->experts && info.rows == t->slice.rows && info.cols == t->slice.cols);
	choose_instructions(t);
	t->team = some_team(&t->random);
	for (uint32_t e = 0; e<t->experts; e += t->experts> 2 ? t->experts - 1 : 1)
		try_expert(t, e, all_cols, x);
	try_list(t, all_cols, x);
	try_long_list(t, x);
	try_rest(t, x);
	free(x);
}

/* Rows decoded by number equal the decoded matrix, if it can be decoded. */
static void try_row(struct trial *t, uint64_t cols)
{
	uint32_t id = (uint32_t)(fuzz_random(&t->random) % (t->experts * t->slice.rows));
	float *row = malloc(t->slice.cols * sizeof *row), *whole = malloc(cols * sizeof *whole);
	struct xfp_output out = { row, XFP_FLOAT32, 1, t->slice.cols };
	enum xfp_status status;

	MUST(row && whole);
	status = xfp_rows(t->linear, &id, 1, &out, NULL);
	MUST(!status || status == XFP_BAD_INPUT);
	if (!t->tensor && !xfp_bundle_dequantize(t->bundle, t->first_matrix + (uint32_t)(id / t->slice.rows),
						 t->slice.first_row + id % t->slice.rows, 1, XFP_FLOAT32, whole, NULL))
		MUST(!status && !memcmp(row, whole + t->slice.first_col, t->slice.cols * sizeof *row));
	free(row);
	free(whole);
}

/* All rows and columns, or some. */
static void try_all(struct trial *t, uint64_t rows, uint64_t cols, uint32_t number)
{
	const struct xfp_slice *slice = NULL;
	enum xfp_status status;
	struct xfp_error err;

	t->slice = (struct xfp_slice){ 0, rows, 0, cols };
	if (fuzz_random(&t->random) % 2) {
		t->slice.first_row = fuzz_random(&t->random) % rows;
		t->slice.rows = 1 + fuzz_random(&t->random) % (rows - t->slice.first_row);
		t->slice.first_col = fuzz_random(&t->random) % cols;
		t->slice.cols = 1 + fuzz_random(&t->random) % (cols - t->slice.first_col);
		slice = &t->slice;
	}
	status = t->tensor ? xfp_linear_open_tensor(t->bundle, number, slice, &t->linear, &err)
			   : xfp_linear_open(t->bundle, number, slice, &t->linear, &err);
	MUST(!status);
	try_row(t, cols);
	if (t->slice.rows <= (fuzz_random(&t->random) % 64 ? SMALL : LARGE) / (t->slice.cols + 1))
		try_slice(t, cols);
	xfp_linear_close(t->linear);
}

void fuzz_multiply_unit(const struct xfp_bundle *bundle, uint32_t number, const struct fuzz_file_made *made)
{
	struct trial t = { .bundle = bundle, .made = made, .random = made->random + number };
	struct xfp_slice beyond = { 0 };
	struct xfp_unit_info unit;

	MUST(xfp_bundle_unit(bundle, number, &unit));
	if (unit.cols > MAX_COLUMNS)
		return;
	t.experts = unit.experts;
	t.first_matrix = unit.first_matrix;
	try_all(&t, unit.rows, unit.cols, number);
	MUST(xfp_linear_open(bundle, XFP_NOT_FOUND, NULL, &t.linear, NULL) == XFP_USAGE && !t.linear);
	MUST(xfp_linear_open_tensor(bundle, XFP_NOT_FOUND, NULL, &t.linear, NULL) == XFP_USAGE && !t.linear);
	beyond.first_row = unit.rows; /* empty, from the end on */
	MUST(xfp_linear_open(bundle, number, &beyond, &t.linear, NULL) == XFP_USAGE && !t.linear);
	beyond = (struct xfp_slice){ .first_col = unit.cols };
	MUST(xfp_linear_open(bundle, number, &beyond, &t.linear, NULL) == XFP_USAGE && !t.linear);
	beyond.first_row = unit.rows + 1;
	MUST(xfp_linear_open(bundle, number, &beyond, &t.linear, NULL) == XFP_USAGE && !t.linear);
	beyond = (struct xfp_slice){ .first_col = 1, .cols = UINT64_MAX };
	MUST(xfp_linear_open(bundle, number, &beyond, &t.linear, NULL) == XFP_USAGE && !t.linear);
}

void fuzz_multiply_tensor(const struct xfp_bundle *bundle, uint32_t number, const struct fuzz_file_made *made)
{
	struct trial t = { .bundle = bundle, .made = made, .random = made->random + number, .experts = 1 };
	struct xfp_tensor_info tensor;

	MUST(xfp_bundle_tensor(bundle, number, &tensor));
	if (tensor.tied != XFP_NOT_FOUND)
		MUST(xfp_bundle_tensor(bundle, tensor.tied, &tensor));
	/* A tensor that is a unit is tested with the unit; the library decides whether it is one. */
	if (!tensor.data && !xfp_linear_open_tensor(bundle, number, NULL, &t.linear, NULL)) {
		xfp_linear_close(t.linear);
		return;
	}
	t.tensor = &tensor;
	if (tensor.data && tensor.elements && tensor.rank == 2 && tensor.dtype <= XFP_BFLOAT16)
		try_all(&t, tensor.shape[0], tensor.shape[1], number);
	else
		MUST(xfp_linear_open_tensor(bundle, number, NULL, &t.linear, NULL) == XFP_USAGE && !t.linear);
}
