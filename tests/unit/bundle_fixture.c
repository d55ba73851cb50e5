/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/bundle_fixture.h"
#include "tests/unit/bundle_fixture_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "kernels/common/number.h"

#define PART_OFFSET 100 /* offset of a part in its fake artifact */

/* ---- tensors ----------------------------------------------------------------------------------- */

static uint32_t add_tensor(struct fixture *f, const char *name, enum xfp_dtype dtype, enum xfp_class class_,
			   enum xfp_fate fate, uint32_t rank, const uint64_t *shape)
{
	uint32_t t = f->ledger.tensor_count++;
	struct xfp_ledger_tensor *tensor = &f->tensors[t];

	*tensor = (struct xfp_ledger_tensor){ .name = (char *)name,
					      .reason = (char *)"by the test",
					      .dtype = dtype,
					      .class_ = class_,
					      .fate = fate,
					      .rank = rank,
					      .tied = UINT32_MAX };
	tensor->bytes = xfp_dtype_bits(dtype) / 8;
	for (uint32_t i = 0; i < rank; i++) {
		tensor->shape[i] = shape[i];
		tensor->bytes *= shape[i];
	}
	f->data[t] = calloc(tensor->bytes + 1, 1);
	for (uint64_t i = 0; i < tensor->bytes; i++)
		f->data[t][i] = (uint8_t)(test_random(&f->random) & 0x3f); /* finite in every dtype */
	return t;
}

static float get_element(const uint8_t *data, enum xfp_dtype dtype, uint64_t i)
{
	double wide;
	float value;

	switch (dtype) {
	case XFP_F64:
		memcpy(&wide, data + 8 * i, 8);
		return (float)wide;
	case XFP_F32:
		memcpy(&value, data + 4 * i, 4);
		return value;
	case XFP_F16:
		return xfp_half_to_float(xfp_load16(data + 2 * i));
	default:
		return xfp_bf16_to_float(xfp_load16(data + 2 * i));
	}
}

static void set_element(uint8_t *data, enum xfp_dtype dtype, uint64_t i, float value)
{
	double wide = value;

	switch (dtype) {
	case XFP_F64:
		memcpy(data + 8 * i, &wide, 8);
		break;
	case XFP_F32:
		memcpy(data + 4 * i, &value, 4);
		break;
	case XFP_F16:
		xfp_store16(data + 2 * i, xfp_float_to_half(value));
		break;
	default:
		xfp_store16(data + 2 * i, xfp_float_to_bf16(value));
	}
}

/* ---- units ------------------------------------------------------------------------------------- */

static uint64_t element(const struct xfp_ledger_matrix *m, uint64_t r, uint64_t c)
{
	return m->base + r * m->row_stride + c * m->col_stride;
}

/* The checkpoint's weights: close to what the parts decode to (equal for KEEP, which is made last). */
static void make_source(struct fixture *f, const struct xfp_ledger_matrix *m, const float *decoded)
{
	const struct xfp_ledger_tensor *tensor = &f->tensors[m->tensor];

	for (uint64_t r = 0; r < m->rows; r++)
		for (uint64_t c = 0; c < m->cols; c++)
			set_element(f->data[m->tensor], tensor->dtype, element(m, r, c),
				    decoded[r * m->cols + c] * (1 + 0.02f * test_gaussian(&f->random)));
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Compute cosines and error from their definitions. */
static void measure(struct fixture *f, uint32_t u)
{
	const struct xfp_ledger_unit *unit = &f->units[u];
	uint64_t count = unit->experts * unit->rows, done = 0;
	double *cosine = malloc(count * sizeof *cosine), error = 0, norm = 0;

	for (uint32_t i = 0; i < unit->experts; i++) {
		const struct xfp_ledger_matrix *m = &f->matrices[unit->first_matrix + i];

		for (uint64_t r = 0; r < m->rows; r++) {
			double ab = 0, aa = 0, bb = 0;

			for (uint64_t c = 0; c < m->cols; c++) {
				double a = get_element(f->data[m->tensor], unit->dtype, element(m, r, c));
				double b = f->decoded[unit->first_matrix + i][r * m->cols + c];

				ab += a * b;
				aa += a * a;
				bb += b * b;
				error += (a - b) * (a - b);
			}
			norm += aa;
			cosine[done++] = ab / sqrt(aa * bb);
		}
	}
	qsort(cosine, count, sizeof *cosine, ascending);
	f->packed[u].cos_median = cosine[(count - 1) / 2];
	f->packed[u].cos_p5 = cosine[(count * 5 + 99) / 100 - 1];
	f->packed[u].error = error / norm;
	free(cosine);
}

static void digest_source(struct fixture *f, const struct xfp_ledger_matrix *m, enum xfp_dtype dtype, uint8_t out[16])
{
	XXH3_state_t *state = XXH3_createState();
	size_t size = xfp_dtype_bits(dtype) / 8;
	XXH128_canonical_t canonical;

	XXH3_128bits_reset(state);
	for (uint64_t r = 0; r < m->rows; r++)
		for (uint64_t c = 0; c < m->cols; c++)
			XXH3_128bits_update(state, f->data[m->tensor] + element(m, r, c) * size, size);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	memcpy(out, canonical.digest, 16);
	XXH3_freeState(state);
}

/* Store parts in a fake artifact, and fill in the writer's description of them. */
static void publish(struct fixture *f, uint32_t u, const struct fixture_buffer part[XFP_PARTS])
{
	struct xfp_bundle_unit *out = &f->bundle_units[u];
	struct xfp_packed *packed = &f->packed[u];
	struct fixture_buffer file = { 0 };
	char name[32];

	*out = (struct xfp_bundle_unit){ .unit = &f->units[u], .packed = packed, .floor = 0.5, .met = true };
	if (packed->mode == XFP_MODE_FP8) /* requested explicitly */
		out->floor = 0;
	for (int p = 0; p < XFP_PARTS; p++) {
		for (int i = 0; i < PART_OFFSET; i++)
			fixture_append(&file, "?", 1);
		out->offset[p] = file.size;
		fixture_append(&file, part[p].data, part[p].size);
		packed->bytes[p] = part[p].size;
		if (part[p].size) {
			XXH128_canonical_t xxh3;

			xfp_sha256(part[p].data, part[p].size, packed->digest[p].sha256);
			XXH128_canonicalFromHash(&xxh3, XXH3_128bits(part[p].data, part[p].size));
			memcpy(packed->digest[p].xxh3, xxh3.digest, sizeof xxh3.digest);
		}
		free(part[p].data);
	}
	snprintf(name, sizeof name, "packed-%u", u);
	out->path = xfp_path(f->folder, name);
	fixture_write(out->path, file.data, file.size);
	free(file.data);
}

struct shape {
	uint32_t tensor, experts;
	uint64_t rows, cols;
	uint64_t base, step; /* base of the first matrix; step to the next */
	uint64_t row_stride, col_stride;
	uint32_t group, library; /* log2 */
};

/* `outliers`: for the last matrix, 0 none, 1 few, 2 more than it has rows. */
static void add_unit(struct fixture *f, const char *name, const char *role, enum xfp_mode mode, unsigned k, int balance,
		     int outliers, const struct shape *shape)
{
	uint32_t u = f->ledger.unit_count++;
	struct xfp_ledger_unit *unit = &f->units[u];
	struct xfp_packed *packed = &f->packed[u];
	struct fixture_buffer part[XFP_PARTS] = { 0 };

	*unit = (struct xfp_ledger_unit){ .name = (char *)name,
					  .role = (char *)role,
					  .experts = shape->experts,
					  .class_ = f->tensors[shape->tensor].class_,
					  .rows = shape->rows,
					  .dtype = f->tensors[shape->tensor].dtype,
					  .cols = shape->cols,
					  .first_matrix = f->ledger.matrix_count };
	*packed = (struct xfp_packed){ .mode = mode,
				       .k = k,
				       .group = shape->group,
				       .library = shape->library,
				       .matrices = shape->experts,
				       .rows = shape->rows,
				       .cols = shape->cols,
				       .matrix = f->packed_matrices[u] };
	for (uint64_t c = 0; balance && c < shape->cols; c++) {
		uint8_t d = (uint8_t)(test_random(&f->random) % 24);

		fixture_append(&part[XFP_PART_BALANCE], &d, 1);
	}
	if (mode == XFP_MODE_V2A || mode == XFP_MODE_V2C)
		fixture_make_library(f, packed, part);
	for (uint32_t i = 0; i < shape->experts; i++) {
		struct xfp_ledger_matrix *m = &f->matrices[f->ledger.matrix_count];
		struct xfp_packed_matrix *matrix = &packed->matrix[i];
		float *out = calloc(shape->rows * shape->cols, sizeof *out);

		f->decoded[f->ledger.matrix_count++] = out;
		*m = (struct xfp_ledger_matrix){ shape->tensor,     shape->base + i * shape->step,
						 shape->rows,       shape->cols,
						 shape->row_stride, shape->col_stride };
		*matrix = (struct xfp_packed_matrix){ .mode = mode, .k = k - i % 2 * f->less };
		if (mode == XFP_MODE_V2)
			fixture_make_v2(f, packed, matrix, part, i + 1 == shape->experts ? outliers : 0, out);
		else if (mode == XFP_MODE_V2A || mode == XFP_MODE_V2C)
			fixture_make_groups(f, packed, matrix, part, i + 1 == shape->experts ? outliers : 0, out);
		else if (mode == XFP_MODE_FP8)
			fixture_make_fp8(f, packed, matrix, part, out);
		else
			for (uint64_t j = 0; j < shape->rows * shape->cols; j++)
				out[j] = 8.0f * test_gaussian(&f->random);
		make_source(f, m, out);
		if (mode == XFP_MODE_KEEP) {
			size_t size = xfp_dtype_bits(unit->dtype) / 8;

			matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
			for (uint64_t j = 0; j < shape->rows * shape->cols; j++) {
				uint64_t at = element(m, j / shape->cols, j % shape->cols);

				fixture_append(&part[XFP_PART_INDEX], f->data[m->tensor] + at * size, size);
				out[j] = get_element(f->data[m->tensor], unit->dtype, at);
			}
		}
		digest_source(f, m, unit->dtype, matrix->source);
		packed->outliers += matrix->outliers;
	}
	measure(f, u);
	if (mode == XFP_MODE_KEEP)
		packed->cos_median = packed->cos_p5 = 1;
	publish(f, u, part);
}

/* ---- the checkpoint ---------------------------------------------------------------------------- */

static void write_checkpoint(struct fixture *f)
{
	struct fixture_buffer file = { 0 };
	uint64_t offset = 0, header;
	char line[512];

	fixture_append(&file, &offset, 8);
	fixture_append(&file, "{", 1);
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++) {
		struct xfp_ledger_tensor *tensor = &f->tensors[t];
		int length = snprintf(line, sizeof line, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", t ? "," : "",
				      tensor->name, xfp_dtype_name(tensor->dtype));

		for (uint32_t i = 0; i < tensor->rank; i++)
			length += snprintf(line + length, sizeof line - (size_t)length, "%s%llu", i ? "," : "",
					   (unsigned long long)tensor->shape[i]);
		length += snprintf(line + length, sizeof line - (size_t)length, "],\"data_offsets\":[%llu,%llu]}",
				   (unsigned long long)offset, (unsigned long long)(offset + tensor->bytes));
		fixture_append(&file, line, (size_t)length);
		offset += tensor->bytes;
	}
	fixture_append(&file, "}", 1);
	header = file.size - 8;
	memcpy(file.data, &header, 8);
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++) {
		f->tensors[t].offset = file.size;
		fixture_append(&file, f->data[t], f->tensors[t].bytes);
	}
	fixture_write(f->file.path, file.data, file.size);
	free(file.data);
}

static void add_file(struct fixture *f, const char *name, const char *text)
{
	char *path = xfp_path(f->model, name);

	f->extras[f->ledger.extra_count++] = (char *)name;
	fixture_write(path, text, strlen(text));
	free(path);
}

static void make_small(struct fixture *f, int small)
{
	static const enum xfp_mode modes[] = { XFP_MODE_V2, XFP_MODE_V2A, XFP_MODE_V2C, XFP_MODE_V2 };
	struct shape shape = { .experts = 1, .rows = 3, .cols = 11, .row_stride = 11, .col_stride = 1 };
	uint32_t q =
		add_tensor(f, "q.weight", XFP_F32, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 11 });

	add_tensor(f, "table", XFP_BF16, XFP_CLASS_EMBEDDING, XFP_FATE_KEPT, 1, (uint64_t[]){ 5 });
	shape.tensor = q;
	if (modes[small - 1] != XFP_MODE_V2) { /* one group per row */
		shape.group = 4;
		shape.library = 2;
	}
	add_unit(f, "q.weight", "q", modes[small - 1], 2, 1, small == 4 ? 2 : 1, &shape);
	add_file(f, "config.json", "{}\n");
}

/* One tensor, of one type, whose first rows have codebooks and whose last rows are kept at source precision. */
static void make_half_kept(struct fixture *f)
{
	uint32_t qk =
		add_tensor(f, "qk.weight", XFP_BF16, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 5, 11 });

	add_unit(f, "qk.weight", "k", XFP_MODE_KEEP, 0, 0, 0, &(struct shape){ qk, 1, 2, 11, 33, 0, 11, 1, 0, 0 });
	add_unit(f, "qk.weight", "q", XFP_MODE_V2, 2, 1, 1, &(struct shape){ qk, 1, 3, 11, 0, 0, 11, 1, 0, 0 });
	add_file(f, "config.json", "{}\n");
}

static void make_two_sizes(struct fixture *f)
{
	uint32_t up =
		add_tensor(f, "up", XFP_F32, XFP_CLASS_ROUTED_EXPERT, XFP_FATE_QUANTIZED, 3, (uint64_t[]){ 3, 7, 300 });

	f->less = 1;
	add_unit(f, "up", "up", XFP_MODE_V2, 4, 0, 0, &(struct shape){ up, 3, 7, 300, 0, 2100, 300, 1, 0, 0 });
	add_file(f, "config.json", "{}\n");
}

/* More rows than a tile of libxfp-cuda, not a multiple of it; columns with and without whole chunks; groups of 16 and
 * more columns. */
static void make_tiles(struct fixture *f)
{
	static const struct {
		const char *name;
		enum xfp_mode mode;
		uint64_t rows, cols;
		uint32_t k, group, library; /* the last two: log2 */
	} units[] = {
		{ "t.a", XFP_MODE_V2, 37, 700, 2, 0, 0 },   { "t.b", XFP_MODE_V2, 19, 1024, 3, 0, 0 },
		{ "t.c", XFP_MODE_V2A, 20, 300, 4, 5, 2 },  { "t.d", XFP_MODE_V2C, 17, 700, 2, 6, 2 },
		{ "t.e", XFP_MODE_V2C, 37, 1100, 3, 6, 4 }, { "t.f", XFP_MODE_V2C, 33, 449, 4, 6, 3 },
		{ "t.g", XFP_MODE_V2C, 70, 1536, 4, 5, 3 }, { "t.h", XFP_MODE_V2C, 18, 600, 5, 6, 3 },
		{ "t.i", XFP_MODE_V2C, 18, 300, 6, 5, 2 },  { "t.j", XFP_MODE_V2C, 18, 300, 3, 4, 2 },
		{ "t.k", XFP_MODE_V2, 3, 65536, 4, 0, 0 },
	};

	for (uint32_t i = 0; i < sizeof units / sizeof *units; i++) {
		uint64_t rows = units[i].rows, cols = units[i].cols;
		uint32_t tensor = add_tensor(f, units[i].name, XFP_BF16, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2,
					     (uint64_t[]){ rows, cols });

		add_unit(f, units[i].name, "q", units[i].mode, units[i].k, i % 2, cols < 65536 ? (int)i % 3 : 0,
			 &(struct shape){ tensor, 1, rows, cols, 0, 0, cols, 1, .group = units[i].group,
					  .library = units[i].library });
	}
	add_file(f, "config.json", "{}\n");
}

static void make_full(struct fixture *f)
{
	uint32_t head = add_tensor(f, "a_head.weight", XFP_F16, XFP_CLASS_LM_HEAD, XFP_FATE_QUANTIZED, 2,
				   (uint64_t[]){ 4, 33 });
	uint32_t down = add_tensor(f, "b.down", XFP_F64, XFP_CLASS_ROUTED_EXPERT, XFP_FATE_QUANTIZED, 3,
				   (uint64_t[]){ 2, 20, 4 });
	uint32_t gate_up = add_tensor(f, "c.gate_up", XFP_F32, XFP_CLASS_ROUTED_EXPERT, XFP_FATE_QUANTIZED, 3,
				      (uint64_t[]){ 2, 37, 6 });
	uint32_t q = add_tensor(f, "d $(touch pwned) \xc3\xa9.q_proj", XFP_F32, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED,
				2, (uint64_t[]){ 5, 70 });
	uint32_t k = add_tensor(f, "e.k_proj.weight", XFP_BF16, XFP_CLASS_ATTENTION, XFP_FATE_KEPT, 2,
				(uint64_t[]){ 6, 40 });
	uint32_t table = add_tensor(f, "embed", XFP_BF16, XFP_CLASS_EMBEDDING, XFP_FATE_KEPT, 2, (uint64_t[]){ 8, 5 });
	uint32_t tied, wide;

	add_tensor(f, "empty", XFP_F32, XFP_CLASS_OTHER, XFP_FATE_KEPT, 2, (uint64_t[]){ 0, 3 });
	add_tensor(f, "ids", XFP_I64, XFP_CLASS_OTHER, XFP_FATE_KEPT, 1, (uint64_t[]){ 3 });
	add_tensor(f, "inv_freq", XFP_F32, XFP_CLASS_OTHER, XFP_FATE_DROPPED, 1, (uint64_t[]){ 4 });
	add_tensor(f, "scalar", XFP_U8, XFP_CLASS_OTHER, XFP_FATE_KEPT, 0, NULL);
	tied = add_tensor(f, "tied", XFP_BF16, XFP_CLASS_LM_HEAD, XFP_FATE_TIED, 2, (uint64_t[]){ 8, 5 });
	memcpy(f->data[tied], f->data[table], f->tensors[table].bytes);
	f->tensors[tied].tied = table;
	wide = add_tensor(f, "wide", XFP_BF16, XFP_CLASS_DENSE_MLP, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 70000 });

	add_unit(f, "a_head.weight", "lm_head", XFP_MODE_FP8, 0, 0, 0,
		 &(struct shape){ head, 1, 4, 33, 0, 0, 33, 1, 0, 0 });
	/* stored transposed, [expert, in, out] */
	add_unit(f, "b.down", "down", XFP_MODE_V2, 5, 0, 1, &(struct shape){ down, 2, 4, 20, 0, 80, 1, 4, 0, 0 });
	/* [expert, in, 2 * out], gate and up interleaved */
	add_unit(f, "c.gate_up", "gate", XFP_MODE_V2, 2, 1, 0,
		 &(struct shape){ gate_up, 2, 3, 37, 0, 222, 2, 6, 0, 0 });
	add_unit(f, "c.gate_up", "up", XFP_MODE_V2, 4, 1, 2, &(struct shape){ gate_up, 2, 3, 37, 1, 222, 2, 6, 0, 0 });
	add_unit(f, f->tensors[q].name, "q", XFP_MODE_V2, 3, 1, 1, &(struct shape){ q, 1, 5, 70, 0, 0, 70, 1, 0, 0 });
	add_unit(f, "e.k_proj.weight", "k", XFP_MODE_KEEP, 0, 0, 0, &(struct shape){ k, 1, 6, 40, 0, 0, 40, 1, 0, 0 });
	add_unit(f, "wide", "down", XFP_MODE_V2, 6, 1, 2, &(struct shape){ wide, 1, 3, 70000, 0, 0, 70000, 1, 0, 0 });

	add_file(f, "1_Pooling/config.json", "{\"word_embedding_dimension\": 8}\n");
	add_file(f, "config.json", "{\"model_type\": \"test\", \"torch_dtype\": \"bfloat16\"}\n");
	add_file(f, "empty.txt", "");
	add_file(f, "\xd1\x81\xd0\xbb\xd0\xbe\xd0\xb2\xd0\xb0.txt", "words\n");
}

/* Groups that do and do not divide a row, groups longer than a row, and the extremes of each size. */
static void make_libraries(struct fixture *f)
{
	uint32_t gate = add_tensor(f, "x.gate", XFP_F32, XFP_CLASS_ROUTED_EXPERT, XFP_FATE_QUANTIZED, 3,
				   (uint64_t[]){ 2, 5, 100 });
	uint32_t k = add_tensor(f, "x.k", XFP_BF16, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 40 });
	uint32_t o = add_tensor(f, "x.o", XFP_F32, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 2100 });
	uint32_t up = add_tensor(f, "y.up", XFP_F64, XFP_CLASS_ROUTED_EXPERT, XFP_FATE_QUANTIZED, 3,
				 (uint64_t[]){ 3, 100, 5 });
	uint32_t q = add_tensor(f, "y.q", XFP_F16, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 50 });
	uint32_t v = add_tensor(f, "y.v", XFP_F32, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 1104 });
	uint32_t wide =
		add_tensor(f, "z.wide", XFP_BF16, XFP_CLASS_DENSE_MLP, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 65537 });

	add_unit(f, "x.gate", "gate", XFP_MODE_V2A, 3, 1, 2,
		 &(struct shape){ gate, 2, 5, 100, 0, 500, 100, 1, .group = 4, .library = 2 });
	add_unit(f, "x.k", "k", XFP_MODE_V2A, 5, 0, 0, &(struct shape){ k, 1, 3, 40, 0, 0, 40, 1, .group = 6 });
	add_unit(f, "x.o", "o", XFP_MODE_V2A, 4, 1, 0,
		 &(struct shape){ o, 1, 3, 2100, 0, 0, 2100, 1, .group = 10, .library = 8 });
	add_unit(f, "y.up", "up", XFP_MODE_V2C, 3, 1, 1,
		 &(struct shape){ up, 3, 5, 100, 0, 500, 1, 5, .group = 5, .library = 4 });
	add_unit(f, "y.q", "q", XFP_MODE_V2C, 6, 0, 2,
		 &(struct shape){ q, 1, 3, 50, 0, 0, 50, 1, .group = 6, .library = 2 });
	add_unit(f, "y.v", "v", XFP_MODE_V2C, 5, 0, 0,
		 &(struct shape){ v, 1, 3, 1104, 0, 0, 1104, 1, .group = 4, .library = 3 });
	add_unit(f, "z.wide", "up", XFP_MODE_V2, 2, 0, 1, &(struct shape){ wide, 1, 3, 65537, 0, 0, 65537, 1, 0, 0 });
}

void fixture_make(struct fixture *f, int small)
{
	const char *base = getenv("TMPDIR");
	char *pooling;

	memset(f, 0, sizeof *f);
	f->random = 42;
	snprintf(f->folder, sizeof f->folder, "%s/xfp-test-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
	assert_non_null(mkdtemp(f->folder));
	f->model = xfp_path(f->folder, "model");
	f->out = xfp_path(f->folder, "out.xfp");
	pooling = xfp_path(f->model, "1_Pooling");
	assert_int_equal(xfp_mkdirs(pooling, NULL), XFP_OK);
	free(pooling);
	f->file = (struct xfp_source_file){ .name = (char *)"model.safetensors",
					    .path = xfp_path(f->model, "model.safetensors") };
	f->ledger = (struct xfp_ledger){ .model = f->model,
					 .family = (char *)"test",
					 .format = (char *)"safetensors",
					 .files = &f->file,
					 .tensors = f->tensors,
					 .units = f->units,
					 .matrices = f->matrices,
					 .extras = f->extras,
					 .file_count = 1 };
	if (small == FIXTURE_HALF_KEPT) {
		make_half_kept(f);
	} else if (small == FIXTURE_TWO_SIZES) {
		make_two_sizes(f);
	} else if (small == FIXTURE_TILES) {
		make_tiles(f);
	} else if (small) {
		make_small(f, small);
	} else {
		make_full(f);
		make_libraries(f);
	}
	write_checkpoint(f);
	f->input = (struct xfp_bundle_input){ .json = "{\n  \"format\": \"xfp\"\n}\n",
					      .ledger = &f->ledger,
					      .units = f->bundle_units };
}

void fixture_free(struct fixture *f)
{
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++)
		free(f->data[t]);
	for (uint32_t m = 0; m < f->ledger.matrix_count; m++)
		free(f->decoded[m]);
	for (uint32_t u = 0; u < f->ledger.unit_count; u++)
		free((char *)f->bundle_units[u].path);
	free(f->file.path);
	free(f->model);
	free(f->out);
	fixture_remove(f->folder);
}
