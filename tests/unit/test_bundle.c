/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include "bundle_fixture.h"
#include "sha256.h"
#include "xfp.h"

static struct xfp_error err;

static enum xfp_status write_bundle(struct fixture *f)
{
	char sha256[65];

	return xfp_bundle_write(f->out, &f->input, sha256, &err);
}

static void make(struct fixture *f, int small)
{
	fixture_make(f, small);
	if (write_bundle(f))
		fail_msg("%s", err.text);
}

/* Open and check whole, as verify does. */
static enum xfp_status accept(const char *path)
{
	struct xfp_bundle *bundle;
	enum xfp_status status = xfp_bundle_open(path, &bundle, &err);

	if (status) {
		assert_null(bundle);
		return status;
	}
	status = xfp_bundle_check(bundle, NULL, NULL, &err);
	xfp_bundle_close(bundle);
	return status;
}

static struct xfp_bundle *open_bundle(const char *path)
{
	struct xfp_bundle *bundle;

	if (xfp_bundle_open(path, &bundle, &err))
		fail_msg("%s", err.text);
	return bundle;
}

/* ---- writing and reading ----------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_file_info file;

	(void)state;
	make(&f, 0);
	assert_int_equal(accept(f.out), XFP_OK);
	bundle = open_bundle(f.out);
	xfp_bundle_info(bundle, &info);
	assert_string_equal(info.family, "test");
	assert_int_equal(info.json_bytes, strlen(f.input.json));
	assert_memory_equal(info.json, f.input.json, info.json_bytes);
	assert_int_equal(info.units, f.ledger.unit_count);
	assert_int_equal(info.tensors, f.ledger.tensor_count);
	assert_int_equal(info.files, f.ledger.extra_count);
	assert_int_equal(xfp_bundle_members(bundle), 4 + 2 + 3 + 3 + 4 + 4 + 1 + 4 + 4);

	for (uint32_t u = 0; u < info.units; u++) {
		const struct xfp_ledger_unit *unit = &f.units[u];
		const struct xfp_packed *packed = &f.packed[u];
		struct xfp_unit_info got;

		assert_true(xfp_bundle_unit(bundle, u, &got));
		assert_string_equal(got.name, unit->name);
		assert_string_equal(got.role, unit->role);
		assert_string_equal(got.class_name, xfp_class_name(unit->class_));
		assert_string_equal(got.mode_name, xfp_mode_name(packed->mode));
		assert_int_equal(got.k, packed->k);
		assert_int_equal(got.experts, unit->experts);
		assert_int_equal(got.rows, unit->rows);
		assert_int_equal(got.cols, unit->cols);
		assert_int_equal(got.outliers, packed->outliers);
		assert_int_equal(got.bytes, packed->bytes[0] + packed->bytes[1] + packed->bytes[2] + packed->bytes[3]);
		assert_memory_equal(&got.cos_median, &packed->cos_median, sizeof(double));
		assert_memory_equal(&got.cos_p5, &packed->cos_p5, sizeof(double));
		assert_memory_equal(&got.error, &packed->error, sizeof(double));
		assert_true(got.floor == 0.5 && got.met);
		assert_int_equal(xfp_bundle_find_unit(bundle, unit->name), u);
		for (uint32_t e = 0; e < unit->experts; e++) {
			struct xfp_matrix_info matrix;

			assert_true(xfp_bundle_matrix(bundle, got.first_matrix + e, &matrix));
			assert_int_equal(matrix.unit, u);
			assert_int_equal(matrix.expert, e);
			assert_int_equal(matrix.tensor, f.matrices[got.first_matrix + e].tensor);
			assert_int_equal(matrix.base, f.matrices[got.first_matrix + e].base);
			assert_int_equal(matrix.exponent, packed->matrix[e].exponent);
			assert_memory_equal(matrix.source, packed->matrix[e].source, 16);
			assert_int_equal(e ? 0 : (uintptr_t)matrix.index % 4096, 0);
		}
	}
	for (uint32_t t = 0; t < info.tensors; t++) {
		const struct xfp_ledger_tensor *tensor = &f.tensors[t];
		struct xfp_tensor_info got;

		assert_true(xfp_bundle_tensor(bundle, t, &got));
		assert_string_equal(got.name, tensor->name);
		assert_string_equal(got.reason, tensor->reason);
		assert_string_equal(got.dtype_name, xfp_dtype_name(tensor->dtype));
		assert_int_equal(got.fate, tensor->fate);
		assert_int_equal(got.rank, tensor->rank);
		assert_memory_equal(got.shape, tensor->shape, sizeof got.shape);
		assert_int_equal(got.tied, tensor->tied);
		assert_int_equal(xfp_bundle_find_tensor(bundle, tensor->name), t);
		assert_int_equal(!got.data, tensor->fate != XFP_FATE_KEPT || !strcmp(tensor->name, "e.k_proj.weight"));
		if (got.data) {
			XXH128_canonical_t digest;

			assert_int_equal((uintptr_t)got.data % 4096, 0);
			assert_int_equal(got.bytes, tensor->bytes);
			assert_memory_equal(got.data, f.data[t], tensor->bytes);
			XXH128_canonicalFromHash(&digest, XXH3_128bits(f.data[t], tensor->bytes));
			assert_memory_equal(got.source, digest.digest, 16);
		}
	}
	assert_true(xfp_bundle_file(bundle, xfp_bundle_find_file(bundle, "1_Pooling/config.json"), &file));
	assert_int_equal(file.bytes, strlen("{\"word_embedding_dimension\": 8}\n"));
	assert_memory_equal(file.data, "{\"word_embedding_dimension\": 8}\n", file.bytes);
	assert_true(xfp_bundle_file(bundle, xfp_bundle_find_file(bundle, f.extras[3]), &file));
	assert_memory_equal(file.data, "words\n", 6);
	assert_int_equal(xfp_bundle_find_file(bundle, "none"), XFP_NOT_FOUND);
	assert_int_equal(xfp_bundle_find_tensor(bundle, "zzz"), XFP_NOT_FOUND);
	assert_false(xfp_bundle_unit(bundle, info.units, &(struct xfp_unit_info){ 0 }));
	assert_false(xfp_bundle_matrix(bundle, info.matrices, &(struct xfp_matrix_info){ 0 }));
	assert_false(xfp_bundle_tensor(bundle, info.tensors, &(struct xfp_tensor_info){ 0 }));
	assert_false(xfp_bundle_file(bundle, info.files, &(struct xfp_file_info){ 0 }));
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void decoding_agrees_with_the_plain_way(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;

	(void)state;
	make(&f, 0);
	bundle = open_bundle(f.out);
	for (uint32_t m = 0; m < f.ledger.matrix_count; m++) {
		uint64_t rows = f.matrices[m].rows, cols = f.matrices[m].cols;
		float *out = malloc(rows * cols * sizeof *out);

		assert_int_equal(xfp_bundle_dequantize(bundle, m, 0, rows, out, &err), XFP_OK);
		assert_memory_equal(out, f.decoded[m], rows * cols * sizeof *out);
		/* a few rows at a time */
		assert_int_equal(xfp_bundle_dequantize(bundle, m, 1, 2, out, &err), XFP_OK);
		assert_memory_equal(out, f.decoded[m] + cols, 2 * cols * sizeof *out);
		assert_int_equal(xfp_bundle_dequantize(bundle, m, rows, 0, out, &err), XFP_OK);
		assert_int_equal(xfp_bundle_dequantize(bundle, m, 1, rows, out, &err), XFP_USAGE);
		assert_int_equal(xfp_bundle_dequantize(bundle, m, rows + 1, 0, out, &err), XFP_USAGE);
		free(out);
	}
	assert_int_equal(xfp_bundle_dequantize(bundle, f.ledger.matrix_count, 0, 0, NULL, &err), XFP_USAGE);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void the_same_description_gives_the_same_bytes(void **state)
{
	struct fixture f;
	size_t first_size, second_size;
	uint8_t *first, *second, digest[32];
	char sha256[65], hex[65];

	(void)state;
	make(&f, 0);
	first = fixture_read(f.out, &first_size);
	assert_int_equal(xfp_bundle_write(f.out, &f.input, sha256, &err), XFP_OK);
	second = fixture_read(f.out, &second_size);
	assert_int_equal(first_size, second_size);
	assert_memory_equal(first, second, first_size);
	xfp_sha256(second, second_size, digest);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(sha256, hex);
	free(first);
	free(second);
	fixture_free(&f);
}

static void a_bundle_of_nothing(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	f.ledger.unit_count = f.ledger.tensor_count = f.ledger.matrix_count = f.ledger.extra_count = 0;
	assert_int_equal(write_bundle(&f), XFP_OK);
	assert_int_equal(accept(f.out), XFP_OK);
	f.ledger.unit_count = f.ledger.tensor_count = f.ledger.matrix_count = 1; /* back, for fixture_free */
	f.ledger.tensor_count = 2;
	fixture_free(&f);
}

/* ---- what can be wrong with the sources -------------------------------------------------------- */

static void nothing_is_left(const struct fixture *f)
{
	char *pattern = xfp_format("ls -A '%s' | grep -c -e out -e tmp >/dev/null", f->folder);

	assert_int_not_equal(system(pattern), 0);
	free(pattern);
}

static void a_damaged_artifact_is_named(void **state)
{
	struct fixture f;
	size_t size;
	uint8_t *data;

	(void)state;
	fixture_make(&f, 1);
	data = fixture_read(f.bundle_units[0].path, &size);
	data[f.bundle_units[0].offset[XFP_PART_CODE] + 1] ^= 4;
	fixture_write(f.bundle_units[0].path, data, size);
	free(data);
	assert_int_equal(write_bundle(&f), XFP_DAMAGED);
	assert_non_null(strstr(err.text, f.bundle_units[0].path));
	nothing_is_left(&f);
	fixture_free(&f);
}

static void parts_of_the_wrong_size_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	for (int p = 0; p < XFP_PARTS; p++) {
		fixture_make(&f, 1);
		f.packed[0].bytes[p] += 16;
		assert_int_equal(write_bundle(&f), XFP_DAMAGED);
		nothing_is_left(&f);
		fixture_free(&f);
	}
}

static void a_source_that_became_shorter_is_named(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	assert_int_equal(truncate(f.file.path, (off_t)(f.tensors[1].offset + 2)), 0);
	assert_int_equal(write_bundle(&f), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "model.safetensors"));
	nothing_is_left(&f);
	fixture_free(&f);
}

static void a_missing_source_is_named(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	assert_int_equal(unlink(f.file.path), 0);
	assert_int_equal(write_bundle(&f), XFP_FAILED);
	assert_non_null(strstr(err.text, "model.safetensors"));
	nothing_is_left(&f);
	fixture_free(&f);
}

static void a_full_disk_leaves_nothing(void **state)
{
	struct rlimit before, limit;
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	for (limit.rlim_cur = 0; limit.rlim_cur < 24000; limit.rlim_cur += 1999) {
		enum xfp_status status;

		setrlimit(RLIMIT_FSIZE, &limit);
		status = write_bundle(&f);
		setrlimit(RLIMIT_FSIZE, &before);
		assert_int_equal(status, XFP_FAILED);
		nothing_is_left(&f);
	}
	fixture_free(&f);
}

static void a_name_that_is_not_utf8_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make(&f, 1);
	f.tensors[0].name = (char *)"\xff\xfe";
	assert_int_equal(write_bundle(&f), XFP_BAD_INPUT);
	nothing_is_left(&f);
	fixture_free(&f);
}

/* ---- what can be wrong with a bundle ----------------------------------------------------------- */

static void every_flipped_byte_is_found(void **state)
{
	struct fixture f;
	size_t size;
	uint8_t *map;
	int fd;

	(void)state;
	make(&f, 1);
	free(fixture_read(f.out, &size));
	fd = open(f.out, O_RDWR);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(accept(f.out), XFP_OK);
	for (size_t i = 0; i < size; i++) {
		map[i] ^= (uint8_t)(1u << i % 8);
		if (accept(f.out) != XFP_BAD_INPUT)
			fail_msg("byte %zu of %zu may be anything", i, size);
		map[i] ^= (uint8_t)(1u << i % 8);
	}
	assert_int_equal(accept(f.out), XFP_OK);
	munmap(map, size);
	close(fd);
	fixture_free(&f);
}

static void every_other_length_is_refused(void **state)
{
	struct fixture f;
	size_t size;
	uint8_t *data;
	int fd;

	(void)state;
	make(&f, 1);
	data = fixture_read(f.out, &size);
	fd = open(f.out, O_WRONLY | O_APPEND);
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(write(fd, "", 1), 1);
		if (i < 600 || i % 512 == 511 || i == 4095)
			assert_int_equal(accept(f.out), XFP_BAD_INPUT);
	}
	for (size_t length = size; length-- > 0;) {
		assert_int_equal(ftruncate(fd, (off_t)length), 0);
		assert_int_equal(accept(f.out), XFP_BAD_INPUT);
	}
	close(fd);
	free(data);
	fixture_free(&f);
}

static void what_is_no_bundle_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, 1);
	assert_int_equal(accept(f.folder), XFP_BAD_INPUT);
	assert_int_equal(accept(f.file.path), XFP_BAD_INPUT);
	assert_int_equal(accept("/dev/null"), XFP_BAD_INPUT);
	assert_int_equal(accept("/nonexistent/x.xfp"), XFP_FAILED);
	fixture_free(&f);
}

/* ---- a hostile index --------------------------------------------------------------------------- */

/* A bundle in memory, for changes that its digests then confirm. */
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

/* Make the digest right and see what the reader says; decode everything if it says yes. */
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
	xfp_bundle_info(bundle, &info);
	for (uint32_t m = 0; m < info.matrices; m++) {
		struct xfp_matrix_info matrix;
		float *out;

		assert_true(xfp_bundle_matrix(bundle, m, &matrix));
		out = malloc(matrix.rows * matrix.cols * sizeof *out + 1);
		xfp_bundle_dequantize(bundle, m, 0, matrix.rows, out, &err);
		free(out);
	}
	xfp_bundle_check(bundle, NULL, NULL, &err);
	xfp_bundle_close(bundle);
	return XFP_OK;
}

/* Every 1, 2, 4 and 8 bytes of the index, at every place, as various absurd numbers: refused, or read
 * without harm (under the sanitizers, that says something). Nearly all must be refused. */
static void no_number_of_the_index_is_trusted(void **state)
{
	static const uint64_t absurd[] = { 0, 1, 0xff, 0x7fffffff, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 40 };
	struct fixture f;
	struct forgery g;
	uint64_t end, strings;
	unsigned harmless = 0, refused = 0;

	(void)state;
	make(&f, 1);
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
		g.index[i] ^= 0x80; /* neither UTF-8 nor a NUL where one must be */
		assert_int_equal(try_forgery(&g), XFP_BAD_INPUT);
		g.index[i] ^= 0x80;
	}
	assert_int_equal(try_forgery(&g), XFP_OK);
	/* what may be anything: digests, cosines, floor, error, class, fate, exponents within reason */
	assert_true(refused > harmless);
	free(g.data);
	fixture_free(&f);
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
	make(&f, 0);
	g = forge(f.out);
	header = (struct xfp_idx_header *)g.index;
	matrices = (struct xfp_idx_matrix *)(g.index + header->table[XFP_TABLE_MATRICES].offset);
	parts = (struct xfp_idx_part *)(g.index + header->table[XFP_TABLE_PARTS].offset);
	files = (struct xfp_idx_file *)(g.index + header->table[XFP_TABLE_FILES].offset);
	assert_int_equal(try_forgery(&g), XFP_OK);
	REFUSE(&g, header->magic[0], 'X');
	REFUSE(&g, header->version, 1);
	assert_non_null(strstr(err.text, "version 1"));
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
	REFUSE(&g, unit_of(&g, 0)->reserved[1], 1);
	REFUSE(&g, unit_of(&g, 0)->met, 2);
	REFUSE(&g, unit_of(&g, 1)->experts, 1);
	REFUSE(&g, unit_of(&g, 0)->experts, 0);
	REFUSE(&g, unit_of(&g, 1)->first_matrix, 0);
	REFUSE(&g, unit_of(&g, 1)->rows, UINT64_MAX);
	REFUSE(&g, unit_of(&g, 1)->rows, UINT64_C(1) << 47);
	REFUSE(&g, unit_of(&g, 1)->cols, 21);
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
	REFUSE(&g, tensor_of(&g, 10)->tied, 8);  /* dropped */
	REFUSE(&g, tensor_of(&g, 10)->tied, 7);  /* of another size */
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

static void names_must_be_unique_and_safe(void **state)
{
	struct fixture f;
	struct forgery g;
	char *name;

	(void)state;
	make(&f, 0);
	g = forge(f.out);
	name = memmem(g.data, g.size, "c.gate\0", 7);
	assert_non_null(name);
	memcpy(name, "b.down", 6);
	assert_int_equal(try_forgery(&g), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "b.down"));
	memcpy(name, "c.gate", 6);
	name = memmem(g.index, g.idx_bytes, "empty.txt", 9);
	memcpy(name, "../../etc", 9);
	assert_int_equal(try_forgery(&g), XFP_BAD_INPUT);
	memcpy(name, "/etc/pass", 9);
	assert_int_equal(try_forgery(&g), XFP_BAD_INPUT);
	memcpy(name, "empty.txt", 9);
	assert_int_equal(try_forgery(&g), XFP_OK);
	free(g.data);
	fixture_free(&f);
}

static void outliers_outside_the_matrix_are_refused(void **state)
{
	static const struct { size_t at; uint32_t value; size_t bytes; } lies[] = {
		{ 0, 1, 4 }, { 4, 4, 4 }, { 4, UINT32_MAX, 4 }, { 8, 4, 4 }, { 12, 2, 4 }, { 12, 4, 4 },
		{ 16, 11, 2 }, { 18, 0xffff, 2 }, { 20, 11, 2 },
	};
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_matrix_info matrix;
	float out[33];

	(void)state;
	make(&f, 1); /* 3 rows of 11: row pointers 0, 0, 1, 3 */
	bundle = open_bundle(f.out);
	xfp_bundle_matrix(bundle, 0, &matrix);
	assert_int_equal(matrix.outliers, 3);
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct xfp_unit_info unit;
		struct forgery g = forge(f.out);
		uint8_t *at = memmem(g.data, g.size, matrix.outlier, matrix.outlier_bytes), before[4];
		int fd = open(f.out, O_WRONLY);

		assert_true(xfp_bundle_unit(bundle, 0, &unit));
		assert_non_null(at);
		memcpy(before, at + lies[i].at, 4);
		/* the bundle is mapped shared, so it changes under the reader's eyes */
		assert_true(pwrite(fd, &lies[i].value, lies[i].bytes, at - g.data + (off_t)lies[i].at) > 0);
		assert_int_equal(xfp_bundle_dequantize(bundle, 0, 0, 3, out, &err), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "q.weight"));
		assert_true(pwrite(fd, before, 4, at - g.data + (off_t)lies[i].at) > 0);
		assert_int_equal(xfp_bundle_dequantize(bundle, 0, 0, 3, out, &err), XFP_OK);
		close(fd);
		free(g.data);
	}
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static bool stop(void *context, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	return --*(int *)context > 0;
}

static void a_check_reports_and_can_be_stopped(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	int left = 3;

	(void)state;
	make(&f, 1);
	bundle = open_bundle(f.out);
	assert_int_equal(xfp_bundle_check(bundle, stop, &left, &err), XFP_FAILED);
	assert_int_equal(left, 0);
	left = 100;
	assert_int_equal(xfp_bundle_check(bundle, stop, &left, &err), XFP_OK);
	assert_int_equal(left, 100 - (int)xfp_bundle_members(bundle));
	assert_int_equal(xfp_bundle_check_member(bundle, xfp_bundle_members(bundle), &err), XFP_USAGE);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(decoding_agrees_with_the_plain_way),
		cmocka_unit_test(the_same_description_gives_the_same_bytes),
		cmocka_unit_test(a_bundle_of_nothing),
		cmocka_unit_test(a_damaged_artifact_is_named),
		cmocka_unit_test(parts_of_the_wrong_size_are_refused),
		cmocka_unit_test(a_source_that_became_shorter_is_named),
		cmocka_unit_test(a_missing_source_is_named),
		cmocka_unit_test(a_full_disk_leaves_nothing),
		cmocka_unit_test(a_name_that_is_not_utf8_is_refused),
		cmocka_unit_test(every_flipped_byte_is_found),
		cmocka_unit_test(every_other_length_is_refused),
		cmocka_unit_test(what_is_no_bundle_is_refused),
		cmocka_unit_test(no_number_of_the_index_is_trusted),
		cmocka_unit_test(each_lie_is_refused),
		cmocka_unit_test(names_must_be_unique_and_safe),
		cmocka_unit_test(outliers_outside_the_matrix_are_refused),
		cmocka_unit_test(a_check_reports_and_can_be_stopped),
	};

	return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
