/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles with valid digests and an invalid index, and lists of rows and products that a call overwrites.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sha256.h"
#include "runtime/xfp.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/many_members.h"

static struct xfp_error err;

/* A bundle in memory, to be changed with matching digests. */
struct forgery {
	const char *path;
	uint8_t *data;
	size_t size;
	uint8_t *index;
	uint64_t idx_bytes;
};

static uint64_t member_size(const uint8_t *header)
{
	uint64_t size = 0;

	for (int i = 124; i < 135; i++)
		size = size * 8 + (uint64_t)(header[i] - '0');
	return size;
}

static struct forgery forge(const char *path)
{
	struct forgery g = { .path = path };
	uint64_t idx;

	g.data = fixture_read(path, &g.size);
	idx = 512 + (member_size(g.data) + 511) / 512 * 512;
	g.idx_bytes = member_size(g.data + idx);
	g.index = g.data + idx + 512;
	return g;
}

/* Correct the digest, open the bundle, and if the reader accepts it, decode everything. */
static enum xfp_status try_forgery(struct forgery *g)
{
	uint8_t json[32], idx[32];
	char text[XFP_SUM_BYTES + 1];
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	enum xfp_status status;
	int fd = open(g->path, O_WRONLY);

	xfp_sha256(g->data + 512, member_size(g->data), json);
	xfp_sha256(g->index, g->idx_bytes, idx);
	xfp_sum_text(json, idx, text);
	memcpy(g->data + g->size - 1536, text, XFP_SUM_BYTES);
	assert_int_equal(pwrite(fd, g->data, g->size, 0), (ssize_t)g->size);
	close(fd);
	status = xfp_bundle_open(g->path, &bundle, &err);
	if (status)
		return status;
	xfp_bundle_describe(bundle, &info);
	for (uint32_t m = 0; m < info.matrices; m++) {
		struct xfp_matrix_info matrix;
		float *out;

		assert_true(xfp_bundle_matrix(bundle, m, &matrix));
		out = malloc(matrix.rows * matrix.cols * sizeof *out + 1);
		xfp_bundle_dequantize(bundle, m, 0, matrix.rows, XFP_FLOAT32, out, &err);
		free(out);
	}
	xfp_bundle_check(bundle, NULL, NULL, &err);
	xfp_bundle_close(bundle);
	return XFP_OK;
}

/* Replace every 1, 2, 4 and 8 bytes of the index, at every offset, by various absurd numbers: the bundle is rejected,
 * or read without harm (which the sanitizers check). Nearly all must be rejected. */
static void trust_no_number(int small)
{
	static const uint64_t absurd[] = { 0, 1, 0xff, 0x7fffffff, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 40 };
	struct fixture f;
	struct forgery g;
	uint64_t end, strings;
	unsigned harmless = 0, refused = 0;

	fixture_make_bundle(&f, small);
	g = forge(f.out);
	end = ((struct xfp_idx_header *)g.index)->index_bytes;
	strings = ((struct xfp_idx_header *)g.index)->table[XFP_TABLE_STRINGS].offset;
	for (size_t size = 1; size <= 8; size *= 2) {
		for (uint64_t i = 0; i + size <= strings; i += size) {
			for (size_t a = 0; a < sizeof absurd / sizeof *absurd; a++) {
				uint8_t before[8];

				memcpy(before, g.index + i, size);
				memcpy(g.index + i, &absurd[a], size);
				if (memcmp(before, g.index + i, size)) {
					if (try_forgery(&g))
						refused++;
					else
						harmless++;
				}
				memcpy(g.index + i, before, size);
			}
		}
	}
	for (uint64_t i = strings; i < end; i++) {
		g.index[i] ^= 0x80; /* neither UTF-8 nor the required NUL */
		assert_int_equal(try_forgery(&g), XFP_BAD_INPUT);
		g.index[i] ^= 0x80;
	}
	assert_int_equal(try_forgery(&g), XFP_OK);
	/* fields that may have any value: digests, cosines, floor, error, class, fate, reasonable exponents */
	assert_true(refused > harmless);
	free(g.data);
	fixture_free(&f);
}

static void no_number_of_the_index_is_trusted(void **state)
{
	(void)state;
	for (int small = 1; small <= 3; small++)
		trust_no_number(small);
}

static struct xfp_idx_unit *unit_of(struct forgery *g, uint32_t u)
{
	struct xfp_idx_header *header = (struct xfp_idx_header *)g->index;

	return (struct xfp_idx_unit *)(g->index + header->table[XFP_TABLE_UNITS].offset) + u;
}

static struct xfp_idx_tensor *tensor_of(struct forgery *g, uint32_t t)
{
	struct xfp_idx_header *header = (struct xfp_idx_header *)g->index;

	return (struct xfp_idx_tensor *)(g->index + header->table[XFP_TABLE_TENSORS].offset) + t;
}

static void refuse(struct forgery *g, void *field, const void *value, size_t size)
{
	uint8_t before[64];

	memcpy(before, field, size);
	memcpy(field, value, size);
	assert_int_equal(try_forgery(g), XFP_BAD_INPUT);
	memcpy(field, before, size);
}

#define REFUSE(g, field, value) refuse(g, &(field), &(__typeof__(field)){ value }, sizeof(field))

static void each_lie_is_refused(void **state)
{
	struct fixture f;
	struct forgery g;
	struct xfp_idx_header *header;
	struct xfp_idx_matrix *matrices;
	struct xfp_idx_part *parts;
	struct xfp_idx_file *files;

	(void)state;
	fixture_make_bundle(&f, 0);
	g = forge(f.out);
	header = (struct xfp_idx_header *)g.index;
	matrices = (struct xfp_idx_matrix *)(g.index + header->table[XFP_TABLE_MATRICES].offset);
	parts = (struct xfp_idx_part *)(g.index + header->table[XFP_TABLE_PARTS].offset);
	files = (struct xfp_idx_file *)(g.index + header->table[XFP_TABLE_FILES].offset);
	assert_int_equal(try_forgery(&g), XFP_OK);
	REFUSE(&g, header->magic[0], 'X');
	REFUSE(&g, header->version, 0);
	assert_non_null(strstr(err.text, "version 0"));
	assert_non_null(strstr(err.text, "convert the checkpoint again"));
	REFUSE(&g, header->version, 2);
	assert_non_null(strstr(err.text, "version 2"));
	assert_non_null(strstr(err.text, "use another release"));
	REFUSE(&g, header->header_bytes, 144);
	REFUSE(&g, header->index_bytes, header->index_bytes + 8);
	REFUSE(&g, header->weights, header->weights + 1);
	REFUSE(&g, header->family.length, header->family.length - 1);
	for (int t = 0; t < XFP_TABLES; t++) {
		REFUSE(&g, header->table[t].offset, header->table[t].offset + 8);
		REFUSE(&g, header->table[t].count, UINT32_MAX);
		REFUSE(&g, header->table[t].count, header->table[t].count - 1);
		REFUSE(&g, header->table[t].record, header->table[t].record + 8);
	}
	REFUSE(&g, unit_of(&g, 0)->class_, XFP_CLASSES);
	REFUSE(&g, unit_of(&g, 0)->mode, XFP_MODE_V2C);
	REFUSE(&g, unit_of(&g, 0)->mode, XFP_MODE_KEEP);
	REFUSE(&g, unit_of(&g, 1)->k, 6);
	REFUSE(&g, unit_of(&g, 0)->dtype, XFP_I8);
	REFUSE(&g, unit_of(&g, 0)->reserved, 1);
	REFUSE(&g, unit_of(&g, 0)->reserved2, 1);
	REFUSE(&g, unit_of(&g, 0)->met, 2);
	REFUSE(&g, unit_of(&g, 1)->experts, 1);
	REFUSE(&g, unit_of(&g, 0)->experts, 0);
	REFUSE(&g, unit_of(&g, 1)->first_matrix, 0);
	REFUSE(&g, unit_of(&g, 1)->rows, UINT64_MAX);
	REFUSE(&g, unit_of(&g, 1)->rows, UINT64_C(1) << 47);
	REFUSE(&g, unit_of(&g, 1)->cols, 21);
	REFUSE(&g, unit_of(&g, 1)->cols, 0);
	REFUSE(&g, unit_of(&g, 1)->part[XFP_PART_INDEX], 0);
	REFUSE(&g, unit_of(&g, 1)->part[XFP_PART_INDEX], XFP_NONE);
	REFUSE(&g, unit_of(&g, 1)->part[XFP_PART_BALANCE], 3);
	REFUSE(&g, unit_of(&g, 1)->bytes, 1);
	REFUSE(&g, unit_of(&g, 1)->outliers, 1);
	REFUSE(&g, unit_of(&g, 1)->cos_median, __builtin_nan(""));
	REFUSE(&g, unit_of(&g, 1)->floor, __builtin_inf());
	REFUSE(&g, matrices[1].unit, 2);
	REFUSE(&g, matrices[1].expert, 1);
	REFUSE(&g, matrices[1].mode, XFP_MODE_FP8);
	REFUSE(&g, matrices[1].k, 7);
	REFUSE(&g, matrices[1].k, 6);
	REFUSE(&g, matrices[1].k, 4);
	REFUSE(&g, matrices[1].exponent, 251);
	REFUSE(&g, matrices[1].exponent, -251);
	REFUSE(&g, matrices[1].tensor, 0);
	REFUSE(&g, matrices[1].tensor, 99);
	REFUSE(&g, matrices[1].base, UINT64_MAX);
	REFUSE(&g, matrices[2].base, 81);
	REFUSE(&g, matrices[1].row_stride, UINT64_MAX / 2);
	REFUSE(&g, matrices[1].col_stride, UINT64_C(1) << 40);
	REFUSE(&g, matrices[2].outliers, UINT64_MAX);
	REFUSE(&g, matrices[2].outliers, 1000);
	REFUSE(&g, matrices[1].outliers, 1);
	REFUSE(&g, matrices[2].offset[XFP_PART_INDEX], 0);
	REFUSE(&g, matrices[2].offset[XFP_PART_CODE], UINT64_MAX);
	REFUSE(&g, matrices[2].offset[XFP_PART_BALANCE], 1);
	REFUSE(&g, parts[1].number, 1);
	REFUSE(&g, parts[1].kind, XFP_PARTS);
	REFUSE(&g, parts[1].reserved, 1);
	REFUSE(&g, parts[1].volume, 1);
	REFUSE(&g, parts[1].offset, parts[1].offset + 4096);
	REFUSE(&g, parts[1].offset, UINT64_MAX - 4095);
	REFUSE(&g, parts[1].size, UINT64_MAX);
	REFUSE(&g, parts[1].size, parts[1].size + 1);
	REFUSE(&g, parts[header->table[XFP_TABLE_PARTS].count - 1].size, 2);
	REFUSE(&g, tensor_of(&g, 5)->class_, XFP_CLASSES);
	REFUSE(&g, tensor_of(&g, 5)->dtype, XFP_DTYPES);
	REFUSE(&g, tensor_of(&g, 5)->dtype, XFP_F32);
	REFUSE(&g, tensor_of(&g, 5)->fate, XFP_FATES);
	REFUSE(&g, tensor_of(&g, 5)->fate, XFP_FATE_DROPPED);
	REFUSE(&g, tensor_of(&g, 5)->fate, XFP_FATE_QUANTIZED);
	REFUSE(&g, tensor_of(&g, 1)->fate, XFP_FATE_DROPPED);
	REFUSE(&g, tensor_of(&g, 1)->rank, 9);
	REFUSE(&g, tensor_of(&g, 1)->rank, 2);
	REFUSE(&g, tensor_of(&g, 1)->shape[0], 3); /* units do not cover it */
	REFUSE(&g, tensor_of(&g, 1)->shape[0], UINT64_MAX);
	REFUSE(&g, tensor_of(&g, 5)->shape[7], 1);
	REFUSE(&g, tensor_of(&g, 5)->part, 0);
	REFUSE(&g, tensor_of(&g, 5)->part, XFP_NONE);
	REFUSE(&g, tensor_of(&g, 5)->tied, 1);
	REFUSE(&g, tensor_of(&g, 10)->tied, 10); /* itself */
	REFUSE(&g, tensor_of(&g, 10)->tied, 8);  /* a dropped tensor */
	REFUSE(&g, tensor_of(&g, 10)->tied, 7);  /* a tensor of another size */
	REFUSE(&g, tensor_of(&g, 10)->tied, XFP_NONE);
	REFUSE(&g, tensor_of(&g, 10)->tied, 99);
	REFUSE(&g, tensor_of(&g, 5)->reserved, 1);
	REFUSE(&g, tensor_of(&g, 1)->name.offset, 0);
	REFUSE(&g, tensor_of(&g, 1)->name.length, UINT32_MAX);
	REFUSE(&g, files[1].offset, files[1].offset + 512);
	REFUSE(&g, files[1].size, UINT64_MAX);
	REFUSE(&g, files[1].size, files[1].size + 512);
	assert_int_equal(try_forgery(&g), XFP_OK);
	free(g.data);
	fixture_free(&f);
}

/* Groups and libraries: units 7 to 9 are v2a, the others from there on v2c; matrices 10 and 11 belong to unit 7. */
static void lies_about_groups_are_refused(void **state)
{
	struct fixture f;
	struct forgery g;
	struct xfp_idx_header *header;
	struct xfp_idx_matrix *matrices;
	struct xfp_idx_part *parts;
	struct xfp_idx_unit *v2a, *v2c;

	(void)state;
	fixture_make_bundle(&f, 0);
	g = forge(f.out);
	header = (struct xfp_idx_header *)g.index;
	matrices = (struct xfp_idx_matrix *)(g.index + header->table[XFP_TABLE_MATRICES].offset);
	parts = (struct xfp_idx_part *)(g.index + header->table[XFP_TABLE_PARTS].offset);
	v2a = unit_of(&g, 7);
	v2c = unit_of(&g, 10);
	assert_int_equal(v2a->mode, XFP_MODE_V2A);
	assert_int_equal(v2c->mode, XFP_MODE_V2C);
	/* other modes have no groups */
	for (uint32_t u = 0; u < 7; u++) {
		REFUSE(&g, unit_of(&g, u)->group, 4);
		REFUSE(&g, unit_of(&g, u)->library, 2);
	}
	/* wrong size, or parts of the wrong size */
	for (unsigned log2 = 0; log2 < 256; log2 = log2 < 12 ? log2 + 1 : log2 + 49) {
		if (log2 != v2a->group)
			REFUSE(&g, v2a->group, (uint8_t)log2);
		if (log2 != v2c->group)
			REFUSE(&g, v2c->group, (uint8_t)log2);
		if (log2 != v2a->library)
			REFUSE(&g, v2a->library, (uint8_t)log2);
		if (log2 != v2c->library)
			REFUSE(&g, v2c->library, (uint8_t)log2);
		if (log2 > 10) { /* a group longer than the row may have any valid size */
			REFUSE(&g, unit_of(&g, 8)->group, (uint8_t)log2);
			REFUSE(&g, unit_of(&g, 9)->group, (uint8_t)log2);
		}
		if (log2 > 8)
			REFUSE(&g, unit_of(&g, 9)->library, (uint8_t)log2);
		if (log2 > 6)
			REFUSE(&g, unit_of(&g, 11)->group, (uint8_t)log2);
		if (log2 < 2 || log2 > 4)
			REFUSE(&g, unit_of(&g, 11)->library, (uint8_t)log2);
	}
	REFUSE(&g, v2a->mode, XFP_MODE_V2);
	REFUSE(&g, v2a->mode, XFP_MODE_V2C);
	REFUSE(&g, v2c->mode, XFP_MODE_V2A);
	REFUSE(&g, v2a->mode, XFP_MODES);
	for (uint8_t k = 0; k < 10; k++) {
		if (k == v2a->k)
			continue;
		REFUSE(&g, v2a->k, k);
		REFUSE(&g, matrices[10].k, k);
		REFUSE(&g, matrices[11].k, k);
	}
	for (int p = 0; p < XFP_PARTS; p++) {
		uint32_t part = v2a->part[p];

		REFUSE(&g, v2a->part[p], XFP_NONE);
		REFUSE(&g, v2a->part[p], part + 1);
		REFUSE(&g, parts[part].size, parts[part].size + 16);
		REFUSE(&g, parts[part].size, parts[part].size - 16);
		REFUSE(&g, matrices[10].offset[p], 16);
		REFUSE(&g, matrices[11].offset[p], matrices[11].offset[p] + 16);
	}
	REFUSE(&g, v2a->bytes, v2a->bytes - 16);
	REFUSE(&g, parts[v2a->part[XFP_PART_GROUP]].kind, XFP_PART_BALANCE);
	assert_int_equal(try_forgery(&g), XFP_OK);
	free(g.data);
	fixture_free(&f);
}

/* Rows without columns need almost no bytes, or none in other modes, so their number would be unlimited. */
static void a_unit_without_weights_is_refused(void **state)
{
	struct many many = { .units = 1, .experts = 1, .rows = 1000, .cols = 64 };
	int file = memfd_create("hostile", MFD_CLOEXEC);
	struct xfp_bundle *bundle;
	uint64_t index_bytes;
	char path[40];

	(void)state;
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	many_members(file, &many, &index_bytes);
	assert_int_equal(xfp_bundle_open(path, &bundle, &err), XFP_OK);
	xfp_bundle_close(bundle);
	many.cols = 0;
	many_members(file, &many, &index_bytes);
	assert_int_equal(xfp_bundle_open(path, &bundle, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "(unit 0)"));
	many.cols = 64;
	many.rows = 0;
	many_members(file, &many, &index_bytes);
	assert_int_equal(xfp_bundle_open(path, &bundle, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "(unit 0)"));
	close(file);
}

static void names_must_be_unique(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make_bundle(&f, 0);
	f.units[0].name = f.units[1].name; /* of another role */
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_int_equal(fixture_accept(f.out, &err), XFP_OK);
	f.units[0].role = f.units[1].role;
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_int_equal(fixture_accept(f.out, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "'b.down' occurs twice"));
	fixture_free(&f);
	fixture_make_bundle(&f, 0);
	f.tensors[6].name = f.tensors[9].name;
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_int_equal(fixture_accept(f.out, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "'scalar' occurs twice"));
	fixture_free(&f);
	fixture_make_bundle(&f, 0);
	f.extras[2] = f.extras[0];
	assert_int_equal(fixture_write_bundle(&f, &err), XFP_OK);
	assert_int_equal(fixture_accept(f.out, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "'1_Pooling/config.json' occurs twice"));
	fixture_free(&f);
}

static void names_of_files_stay_in_their_folder(void **state)
{
	static const char *const names[] = { "../../etc", "/etc/pass", "a/../b/cd", "a//bcdefg", "abcdefgh/" };
	struct fixture f;
	struct forgery g;
	char *name;

	(void)state;
	fixture_make_bundle(&f, 0);
	g = forge(f.out);
	name = memmem(g.index, g.idx_bytes, "empty.txt", 9);
	assert_non_null(name);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		memcpy(name, names[i], 9);
		assert_int_equal(try_forgery(&g), XFP_BAD_INPUT);
	}
	memcpy(name, "empty.txt", 9);
	assert_int_equal(try_forgery(&g), XFP_OK);
	free(g.data);
	fixture_free(&f);
}

/* A first or second member that claims to be larger than the file, by blocks or not. */
static void members_larger_than_the_file_are_refused(void **state)
{
	struct fixture f;
	uint8_t *data;
	size_t size, idx;

	(void)state;
	fixture_make_bundle(&f, 1);
	data = fixture_read(f.out, &size);
	idx = 512 + (member_size(data) + 511) / 512 * 512;
	for (int second = 0; second < 2; second++) {
		size_t at = second ? idx : 0;
		uint64_t sizes[] = { size - at - 512 + 1, size - at, size + 512 * 100000 + 1, UINT64_C(1) << 32 };
		uint8_t before[512];

		memcpy(before, data + at, sizeof before);
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			xfp_tar_header(second ? XFP_MEMBER_IDX : XFP_MEMBER_JSON, sizes[i], data + at);
			fixture_write(f.out, data, size);
			assert_int_equal(fixture_accept(f.out, &err), XFP_BAD_INPUT);
		}
		memcpy(data + at, before, sizeof before);
	}
	fixture_write(f.out, data, size);
	assert_int_equal(fixture_accept(f.out, &err), XFP_OK);
	free(data);
	fixture_free(&f);
}

/* The list is in memory that the call writes: results are undefined, but no access is out of bounds. */
static void lists_that_overlap_outputs(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;
	struct xfp_linear_info info;
	const size_t count = 12;
	float *x, *y;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	assert_int_equal(
		xfp_linear_open(bundle, xfp_bundle_find_unit(bundle, "e.k_proj.weight", NULL), NULL, &linear, &err),
		XFP_OK);
	xfp_linear_describe(linear, &info);
	x = calloc(count, info.cols * sizeof *x);
	y = calloc(count, info.cols * sizeof *y + sizeof(struct xfp_product));
	assert_true(x && y);
	for (size_t i = 0; i < count * info.cols; i++)
		x[i] = 1;
	for (uint32_t i = 0; i < count; i++)
		((struct xfp_product *)(void *)y)[i] = (struct xfp_product){ 0, i, count - 1 - i, 1 };
	xfp_multiply_experts(NULL, linear, (struct xfp_product *)(void *)y, count,
			     &(struct xfp_input){ x, XFP_FLOAT32, count, info.cols },
			     &(struct xfp_output){ y, XFP_FLOAT32, count, info.rows }, &err);
	for (uint32_t i = 0; i < count; i++)
		((uint32_t *)(void *)y)[i] = 0;
	assert_int_equal(xfp_rows(linear, (uint32_t *)(void *)y, count,
				  &(struct xfp_output){ y, XFP_FLOAT32, count, info.cols }, &err),
			 XFP_USAGE);
	assert_non_null(strstr(err.text, "does not exist"));
	assert_int_equal(xfp_multiply_experts(NULL, linear, NULL, 1, &(struct xfp_input){ x, XFP_FLOAT32, 1, 1 },
					      &(struct xfp_output){ y, XFP_FLOAT32, 1, 1 }, &err),
			 XFP_USAGE);
	free(x);
	free(y);
	xfp_linear_close(linear);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

PROGRAM("test_bundle_hostile")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_larger_than_the_file_are_refused),
		cmocka_unit_test(no_number_of_the_index_is_trusted),
		cmocka_unit_test(each_lie_is_refused),
		cmocka_unit_test(lies_about_groups_are_refused),
		cmocka_unit_test(a_unit_without_weights_is_refused),
		cmocka_unit_test(names_must_be_unique),
		cmocka_unit_test(names_of_files_stay_in_their_folder),
		cmocka_unit_test(lists_that_overlap_outputs),
	};

	return cmocka_run_group_tests_name("bundle_hostile", tests, NULL, NULL);
}
