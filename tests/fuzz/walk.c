/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - everything that libxfp does with a bundle, and invariants for any contents.
 *
 * The library maps the file itself, so that a sanitizer knows no bounds within it. They are enforced here: while
 * weights are decoded, only the index and the parts of the matrix may be read.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/walk.h"

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESSES 1
#endif
#endif
#ifdef ADDRESSES
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define MAX_WEIGHTS ((uint64_t)1 << 12) /* decoded at once */

/* A sink, so that reads are not optimized away. */
static volatile uint64_t touched;

static void touch(const void *data, uint64_t bytes)
{
	const uint8_t *p = data;
	uint64_t sum = 0, step = bytes > 8192 ? bytes / 512 : 1;

	for (uint64_t i = 0; i < bytes; i += step)
		sum += p[i];
	if (bytes)
		sum += p[bytes - 1];
	touched += sum;
}

static void touch_text(const char *text)
{
	MUST(text);
	touch(text, strlen(text));
}

/* Check that a message is one line, for people, with the name of the file. */
void fuzz_judge(const struct xfp_error *err, enum xfp_status status, const struct fuzz_file_made *made)
{
	MUST(status == XFP_BAD_INPUT && err->status == status);
	MUST(memchr(err->text, 0, sizeof err->text) && strstr(err->text, made->path));
	MUST(strstr(err->text, "again") ||
	     strstr(err->text, "not a ")); /* a remedy, or the statement that it is not a bundle */
	for (const char *p = err->text; *p; p++)
		MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/* ---- contents ---------------------------------------------------------------------------------- */

static bool within(const struct xfp_bundle_info *info, const void *at, uint64_t bytes)
{
	uint64_t offset = (uint64_t)((const char *)at - (info->json - XFP_TAR_BLOCK));

	return !bytes ? true : at && offset <= info->file_bytes && bytes <= info->file_bytes - offset;
}

static void walk_units(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	struct xfp_unit_info unit;
	uint64_t weights = 0;

	for (uint32_t u = 0; u < info->units; u++) {
		MUST(xfp_bundle_unit(bundle, u, &unit));
		touch_text(unit.name);
		touch_text(unit.role);
		touch_text(unit.class_name);
		touch_text(unit.mode_name);
		touch_text(unit.dtype_name);
		MUST(xfp_bundle_find_unit(bundle, unit.name, unit.role) == u);
		MUST(xfp_bundle_find_unit(bundle, unit.name, NULL) < info->units);
		MUST(xfp_bundle_find_unit(bundle, unit.name, "no such role") == XFP_NOT_FOUND);
		MUST(unit.first_matrix <= info->matrices && unit.experts <= info->matrices - unit.first_matrix);
		weights += unit.weights;
	}
	MUST(weights == info->weights);
	MUST(!xfp_bundle_unit(bundle, info->units, &unit) && !xfp_bundle_unit(bundle, XFP_NOT_FOUND, &unit));
	MUST(xfp_bundle_find_unit(bundle, "no such unit", NULL) == XFP_NOT_FOUND);
}

static void walk_tensors(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	struct xfp_tensor_info tensor;

	for (uint32_t t = 0; t < info->tensors; t++) {
		MUST(xfp_bundle_tensor(bundle, t, &tensor));
		touch_text(tensor.name);
		touch_text(tensor.reason);
		touch_text(tensor.class_name);
		touch_text(tensor.dtype_name);
		touch_text(tensor.fate_name);
		MUST(within(info, tensor.data, tensor.bytes) && tensor.rank <= 8);
		MUST(tensor.tied == XFP_NOT_FOUND || tensor.tied < info->tensors);
		touch(tensor.data, tensor.bytes);
		touch(tensor.source, tensor.source ? 16 : 0);
		MUST(xfp_bundle_find_tensor(bundle, tensor.name) == t);
	}
	MUST(!xfp_bundle_tensor(bundle, info->tensors, &tensor));
	MUST(xfp_bundle_find_tensor(bundle, "no such tensor") == XFP_NOT_FOUND);
}

static void walk_files(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	struct xfp_file_info file;

	for (uint32_t f = 0; f < info->files; f++) {
		MUST(xfp_bundle_file(bundle, f, &file));
		touch_text(file.name);
		MUST(*file.name && *file.name != '/' && !strstr(file.name, "/../") && strncmp(file.name, "../", 3) &&
		     strcmp(file.name, ".."));
		MUST(within(info, file.data, file.bytes));
		touch(file.data, file.bytes);
		MUST(xfp_bundle_find_file(bundle, file.name) == f);
	}
	MUST(!xfp_bundle_file(bundle, info->files, &file));
	MUST(xfp_bundle_find_file(bundle, "no such file") == XFP_NOT_FOUND);
}

/* ---- places ------------------------------------------------------------------------------------ */

struct range {
	const char *at;
	uint64_t bytes;
};

static int by_place(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static size_t add_range(struct range *ranges, size_t count, const void *at, uint64_t bytes)
{
	ranges[count] = (struct range){ at, bytes };
	return count + (bytes > 0);
}

/* No byte belongs to two objects, except data shared by the matrices of a unit. */
static void expect_apart(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	struct range ranges[5 * FUZZ_MATRICES + FUZZ_TENSORS + FUZZ_FILES + 1];
	struct xfp_matrix_info matrix;
	struct xfp_tensor_info tensor;
	struct xfp_file_info file;
	size_t count = 0;

	if (info->matrices > FUZZ_MATRICES || info->tensors > FUZZ_TENSORS || info->files > FUZZ_FILES)
		return;
	for (uint32_t m = 0; m < info->matrices && xfp_bundle_matrix(bundle, m, &matrix); m++) {
		count = add_range(ranges, count, matrix.index, matrix.index_bytes);
		count = add_range(ranges, count, matrix.code, matrix.code_bytes);
		count = add_range(ranges, count, matrix.group, matrix.group_bytes);
		count = add_range(ranges, count, matrix.balance, matrix.balance_bytes);
		count = add_range(ranges, count, matrix.outlier, matrix.outlier_bytes);
	}
	for (uint32_t t = 0; t < info->tensors && xfp_bundle_tensor(bundle, t, &tensor); t++)
		count = add_range(ranges, count, tensor.data, tensor.bytes);
	for (uint32_t f = 0; f < info->files && xfp_bundle_file(bundle, f, &file); f++)
		count = add_range(ranges, count, file.data, file.bytes);
	qsort(ranges, count, sizeof *ranges, by_place);
	for (size_t i = 1; i < count; i++)
		MUST(!by_place(&ranges[i - 1], &ranges[i]) || ranges[i].at >= ranges[i - 1].at + ranges[i - 1].bytes);
}

/* ---- weights ----------------------------------------------------------------------------------- */

/* Rows decoded together equal rows decoded one by one, with the same status. */
static void compare_rows(const struct xfp_bundle *bundle, uint32_t m, const struct xfp_matrix_info *matrix,
			 const struct fuzz_file_made *made)
{
	uint64_t cols = matrix->cols, rows = matrix->rows;
	float *all = malloc(rows * cols * sizeof *all), *one = malloc(cols * sizeof *one);
	struct xfp_error err;
	enum xfp_status status, first = XFP_OK;

	MUST(all && one);
	status = xfp_bundle_dequantize(bundle, m, 0, rows, XFP_FLOAT32, all, &err);
	if (status)
		fuzz_judge(&err, status, made);
	MUST(!status || !made->whole);
	for (uint64_t r = 0; r < rows; r++) {
		enum xfp_status each = xfp_bundle_dequantize(bundle, m, r, 1, XFP_FLOAT32, one, &err);

		if (each)
			fuzz_judge(&err, each, made);
		first = first ? first : each;
		MUST(status || !memcmp(one, all + r * cols, cols * sizeof *one));
	}
	MUST(first == status);
	free(all);
	free(one);
}

static void decode(const struct xfp_bundle *bundle, uint32_t m, const struct xfp_matrix_info *matrix,
		   const struct fuzz_file_made *made)
{
	const uint64_t begin[] = { 0, matrix->rows / 2, matrix->rows - 1 };
	struct xfp_error err;
	float *out;

	MUST(xfp_bundle_dequantize(bundle, m, matrix->rows, 0, XFP_FLOAT32, NULL, &err) == XFP_OK);
	MUST(xfp_bundle_dequantize(bundle, m, matrix->rows, 1, XFP_FLOAT32, NULL, &err) == XFP_USAGE);
	MUST(xfp_bundle_dequantize(bundle, m, UINT64_MAX, 2, XFP_FLOAT32, NULL, &err) == XFP_USAGE);
	MUST(xfp_bundle_dequantize(bundle, m, 0, 0, 0, NULL, &err) == XFP_USAGE);
	if (!matrix->rows || matrix->cols > MAX_COLUMNS)
		return;
	if (matrix->rows <= MAX_WEIGHTS / (matrix->cols + 1)) {
		compare_rows(bundle, m, matrix, made);
		return;
	}
	out = malloc(matrix->cols * sizeof *out);
	MUST(out);
	for (int i = 0; i < 3; i++) {
		enum xfp_status status = xfp_bundle_dequantize(bundle, m, begin[i], 1, XFP_FLOAT32, out, &err);

		if (status)
			fuzz_judge(&err, status, made);
	}
	free(out);
}

/* The beginning of data members. The index is before them and is read all the time. */
static uint64_t data_offset(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	const char *map = info->json - XFP_TAR_BLOCK;
	uint64_t data = info->file_bytes;
	struct xfp_tensor_info tensor;
	struct xfp_matrix_info matrix;
	struct xfp_file_info file;

	if (xfp_bundle_file(bundle, 0, &file))
		return (uint64_t)((const char *)file.data - map);
	for (uint32_t m = 0; m < info->matrices && xfp_bundle_matrix(bundle, m, &matrix); m++)
		if (matrix.index && (uint64_t)((const char *)matrix.index - map) < data)
			data = (uint64_t)((const char *)matrix.index - map);
	for (uint32_t t = 0; t < info->tensors && xfp_bundle_tensor(bundle, t, &tensor); t++)
		if (tensor.data && (uint64_t)((const char *)tensor.data - map) < data)
			data = (uint64_t)((const char *)tensor.data - map);
	return data;
}

/* From now on forbid, or allow, access to data. */
static void forbid(const struct xfp_bundle_info *info, uint64_t data, const struct fuzz_file_made *made)
{
	if (!made->huge)
		ASAN_POISON_MEMORY_REGION(info->json - XFP_TAR_BLOCK + data, info->file_bytes - data);
}

static void allow_all(const struct xfp_bundle_info *info, const struct fuzz_file_made *made)
{
	if (!made->huge)
		ASAN_UNPOISON_MEMORY_REGION(info->json - XFP_TAR_BLOCK, info->file_bytes);
}

/* Except for the parts of this matrix. */
static void allow_matrix(const struct xfp_matrix_info *matrix, const struct fuzz_file_made *made)
{
	if (made->huge)
		return;
	ASAN_UNPOISON_MEMORY_REGION(matrix->index, matrix->index_bytes);
	ASAN_UNPOISON_MEMORY_REGION(matrix->code, matrix->code_bytes);
	ASAN_UNPOISON_MEMORY_REGION(matrix->group, matrix->group_bytes);
	ASAN_UNPOISON_MEMORY_REGION(matrix->balance, matrix->balance_bytes);
	ASAN_UNPOISON_MEMORY_REGION(matrix->outlier, matrix->outlier_bytes);
}

static void look_at_part(const struct xfp_bundle_info *info, const void *at, uint64_t bytes)
{
	MUST(!at == !bytes && within(info, at, bytes));
	touch(at, bytes);
}

static void walk_matrices(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info,
			  const struct fuzz_file_made *made)
{
	uint64_t data = data_offset(bundle, info);
	struct xfp_matrix_info matrix;
	struct xfp_tensor_info tensor;
	struct xfp_unit_info unit;

	for (uint32_t m = 0; m < info->matrices; m++) {
		MUST(xfp_bundle_matrix(bundle, m, &matrix));
		MUST(xfp_bundle_unit(bundle, matrix.unit, &unit));
		MUST(m == unit.first_matrix + matrix.expert && xfp_bundle_tensor(bundle, matrix.tensor, &tensor));
		MUST((unsigned __int128)(matrix.rows - 1) * matrix.row_stride +
			     (unsigned __int128)(matrix.cols - 1) * matrix.col_stride + matrix.base <
		     tensor.elements);
		touch(matrix.source, 16);
		look_at_part(info, matrix.index, matrix.index_bytes);
		look_at_part(info, matrix.code, matrix.code_bytes);
		look_at_part(info, matrix.group, matrix.group_bytes);
		look_at_part(info, matrix.balance, matrix.balance_bytes);
		look_at_part(info, matrix.outlier, matrix.outlier_bytes);
		forbid(info, data, made);
		allow_matrix(&matrix, made);
		decode(bundle, m, &matrix, made);
		allow_all(info, made);
	}
	MUST(!xfp_bundle_matrix(bundle, info->matrices, &matrix));
	MUST(xfp_bundle_dequantize(bundle, info->matrices, 0, 0, XFP_FLOAT32, NULL, NULL) == XFP_USAGE);
}

static void multiply(const struct xfp_bundle *bundle, const struct xfp_bundle_info *info,
		     const struct fuzz_file_made *made)
{
	uint64_t data = data_offset(bundle, info);
	struct xfp_tensor_info tensor;
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;

	for (uint32_t u = 0; u < info->units; u++) {
		MUST(xfp_bundle_unit(bundle, u, &unit));
		forbid(info, data, made);
		for (uint32_t e = 0; e < unit.experts; e++)
			if (xfp_bundle_matrix(bundle, unit.first_matrix + e, &matrix))
				allow_matrix(&matrix, made);
		fuzz_multiply_unit(bundle, u, made);
	}
	for (uint32_t t = 0; t < info->tensors; t++) {
		MUST(xfp_bundle_tensor(bundle, t, &tensor));
		if (tensor.tied != XFP_NOT_FOUND)
			MUST(xfp_bundle_tensor(bundle, tensor.tied, &tensor));
		forbid(info, data, made);
		if (!made->huge)
			ASAN_UNPOISON_MEMORY_REGION(tensor.data, tensor.bytes);
		fuzz_multiply_tensor(bundle, t, made);
	}
	allow_all(info, made);
}

/* ---- integrity --------------------------------------------------------------------------------- */

struct progress {
	uint64_t done;
	int calls, stop; /* at that call */
};

static bool advance(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;

	MUST(done >= progress->done && done <= total);
	progress->done = done;
	return progress->calls++ != progress->stop;
}

static void check(const struct xfp_bundle *bundle, const struct fuzz_file_made *made)
{
	uint32_t members = xfp_bundle_members(bundle);
	struct progress all = { .stop = -1 }, some = { .stop = 1 };
	struct xfp_error err;
	enum xfp_status status, each = XFP_OK;

	if (made->huge)
		return;
	status = xfp_bundle_check(bundle, advance, &all, &err);
	if (status)
		fuzz_judge(&err, status, made);
	MUST(!status || !made->whole);
	MUST(status || !made->spoiled);
	for (uint32_t i = 0; i < members && !each; i++)
		each = xfp_bundle_check_member(bundle, i, &err);
	MUST(each == status);
	if (!status && members > 1)
		MUST(xfp_bundle_check(bundle, advance, &some, &err) == XFP_FAILED && some.calls == 2);
	MUST(xfp_bundle_check_member(bundle, members, &err) == XFP_USAGE);
}

void fuzz_walk(const struct fuzz_file_made *made)
{
	struct xfp_bundle *bundle = (struct xfp_bundle *)&touched;
	struct xfp_bundle_info info;
	struct xfp_error err;
	enum xfp_status status = xfp_bundle_open(made->path, &bundle, &err);

	if (status) {
		fuzz_judge(&err, status, made);
		if (made->whole)
			fprintf(stderr, "%s\n", err.text);
		MUST(!bundle && !made->whole);
		MUST(xfp_bundle_open(made->path, &bundle, NULL) == status);
		return;
	}
	xfp_bundle_describe(bundle, &info);
	MUST(info.file_bytes == made->bytes && !made->wrong);
	touch(info.json, info.json_bytes);
	touch_text(info.family);
	walk_units(bundle, &info);
	walk_tensors(bundle, &info);
	walk_files(bundle, &info);
	expect_apart(bundle, &info);
	walk_matrices(bundle, &info, made);
	multiply(bundle, &info, made);
	check(bundle, made);
	xfp_bundle_close(bundle);
}
