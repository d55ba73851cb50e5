/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "bundle_fixture.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "bytes.h"
#include "number.h"

#define PART_OFFSET 100 /* where a part begins in its pretended artifact */

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
		f->data[t][i] = (uint8_t)(test_random(&f->random) & 0x3f); /* finite whatever the dtype */
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

/* ---- parts ------------------------------------------------------------------------------------- */

struct buffer {
	uint8_t *data;
	size_t size;
};

static void append(struct buffer *b, const void *data, size_t size)
{
	b->data = realloc(b->data, b->size + size + 1);
	assert_non_null(b->data);
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void append_zeros(struct buffer *b, size_t unit)
{
	while (b->size % unit)
		append(b, "", 1);
}

/* One row of random indices in the paper's words, bit by bit. */
static void random_indices(struct fixture *f, unsigned k, uint64_t cols, uint8_t *index, struct buffer *out)
{
	static const unsigned per_word[] = { 0, 0, 16, 10, 8, 3, 5 }, word_bytes[] = { 0, 0, 4, 4, 4, 2, 4 };
	size_t start = out->size;

	for (uint64_t c = 0; c < cols; c += per_word[k]) {
		uint32_t word = 0;

		for (unsigned i = 0; i < per_word[k] && c + i < cols; i++) {
			index[c + i] = (uint8_t)(test_random(&f->random) >> 40) & (uint8_t)((1u << k) - 1);
			word |= (uint32_t)index[c + i] << (k * i);
		}
		append(out, &word, word_bytes[k]);
	}
	while ((out->size - start) % 16)
		append(out, "", 1);
}

static float random_half(struct fixture *f, double range, uint16_t *half)
{
	*half = xfp_double_to_half(test_gaussian(&f->random) * range);
	return xfp_half_to_float(*half);
}

/* Two rows in three have outliers, three or fewer. */
static void random_outliers(struct fixture *f, uint64_t rows, uint64_t cols, float *x, struct buffer *out,
			    uint64_t *count)
{
	struct buffer pointers = { 0 }, columns = { 0 }, residuals = { 0 };
	uint32_t total = 0;

	append(&pointers, &total, 4);
	for (uint64_t r = 0; r < rows; r++) {
		uint64_t wanted = r % 3, step = cols / (wanted + 1);

		for (uint64_t i = 0; i < wanted && step; i++, total++) {
			uint32_t column = (uint32_t)(cols - 1 - i * step);
			uint16_t half;

			x[r * cols + column] += random_half(f, 9000, &half);
			append(&columns, &column, cols > 65536 ? 4 : 2);
			append(&residuals, &half, 2);
		}
		append(&pointers, &total, 4);
	}
	append_zeros(&columns, 4);
	append(out, pointers.data, pointers.size);
	append(out, columns.data, columns.size);
	append(out, residuals.data, residuals.size);
	append_zeros(out, 16);
	free(pointers.data);
	free(columns.data);
	free(residuals.data);
	*count = total;
}

static int ascending_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void make_v2(struct fixture *f, struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		    struct buffer part[XFP_PARTS], int outliers, float *out)
{
	uint64_t rows = packed->rows, cols = packed->cols;
	uint8_t *index = malloc(cols);

	matrix->exponent = 1 + (int)(test_random(&f->random) % 12);
	matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
	matrix->offset[XFP_PART_CODE] = part[XFP_PART_CODE].size;
	for (uint64_t r = 0; r < rows; r++) {
		float entry[64];

		uint16_t half;

		for (unsigned i = 0; i < 1u << matrix->k; i++)
			entry[i] = random_half(f, 3000, &half);
		qsort(entry, (size_t)1 << matrix->k, sizeof *entry, ascending_floats);
		for (unsigned i = 0; i < 1u << matrix->k; i++) {
			half = xfp_float_to_half(entry[i]);
			append(&part[XFP_PART_CODE], &half, 2);
		}
		random_indices(f, matrix->k, cols, index, &part[XFP_PART_INDEX]);
		for (uint64_t c = 0; c < cols; c++)
			out[r * cols + c] = entry[index[c]];
	}
	if (outliers) {
		matrix->offset[XFP_PART_OUTLIER] = part[XFP_PART_OUTLIER].size;
		random_outliers(f, rows, cols, out, &part[XFP_PART_OUTLIER], &matrix->outliers);
	}
	for (uint64_t r = 0; r < rows; r++) {
		for (uint64_t c = 0; c < cols; c++) {
			float *x = &out[r * cols + c];

			if (part[XFP_PART_BALANCE].size)
				*x *= (float)pow(2, -part[XFP_PART_BALANCE].data[c] / 4.0);
			*x = ldexpf(*x, -matrix->exponent);
		}
	}
	free(index);
}

static void make_fp8(struct fixture *f, struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		     struct buffer part[XFP_PARTS], float *out)
{
	matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
	matrix->offset[XFP_PART_CODE] = part[XFP_PART_CODE].size;
	for (uint64_t r = 0; r < packed->rows; r++) {
		float scale = 0.001f + (float)(test_random(&f->random) % 1000) / 7000;

		append(&part[XFP_PART_CODE], &scale, 4);
		for (uint64_t c = 0; c < packed->cols; c++) {
			uint8_t code = (uint8_t)test_random(&f->random) & 0xbf; /* no NaN */
			int exponent = code >> 3 & 15;
			double value = exponent ? ldexp(8 + (code & 7), exponent - 10) : ldexp(code & 7, -9);

			append(&part[XFP_PART_INDEX], &code, 1);
			out[r * packed->cols + c] = (float)((code & 0x80 ? -value : value) * scale);
		}
	}
}

/* ---- units ------------------------------------------------------------------------------------- */

static uint64_t element(const struct xfp_ledger_matrix *m, uint64_t r, uint64_t c)
{
	return m->base + r * m->row_stride + c * m->col_stride;
}

/* The checkpoint's weights: near what the parts decode to (the same for KEEP, which is made last). */
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

/* Cosines and error by their definitions. */
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

/* Parts into a pretended artifact, and everything that the writer wants to know of them. */
static void publish(struct fixture *f, uint32_t u, const struct buffer part[XFP_PARTS])
{
	struct xfp_bundle_unit *out = &f->bundle_units[u];
	struct xfp_packed *packed = &f->packed[u];
	struct buffer file = { 0 };
	char name[32];

	*out = (struct xfp_bundle_unit){ .unit = &f->units[u], .packed = packed, .floor = 0.5, .met = true };
	for (int p = 0; p < XFP_PARTS; p++) {
		for (int i = 0; i < PART_OFFSET; i++)
			append(&file, "?", 1);
		out->offset[p] = file.size;
		append(&file, part[p].data, part[p].size);
		packed->bytes[p] = part[p].size;
		if (part[p].size) {
			XXH128_canonical_t xxh3;

			EVP_Digest(part[p].data, part[p].size, packed->digest[p].sha256, NULL, EVP_sha256(), NULL);
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
	uint64_t base, step; /* of the first matrix; from one to the next */
	uint64_t row_stride, col_stride;
};

static void add_unit(struct fixture *f, const char *name, const char *role, enum xfp_mode mode, unsigned k, int balance,
		     int outliers, const struct shape *shape)
{
	uint32_t u = f->ledger.unit_count++;
	struct xfp_ledger_unit *unit = &f->units[u];
	struct xfp_packed *packed = &f->packed[u];
	struct buffer part[XFP_PARTS] = { 0 };

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
				       .matrices = shape->experts,
				       .rows = shape->rows,
				       .cols = shape->cols,
				       .matrix = f->packed_matrices[u] };
	for (uint64_t c = 0; balance && c < shape->cols; c++) {
		uint8_t d = (uint8_t)(test_random(&f->random) % 24);

		append(&part[XFP_PART_BALANCE], &d, 1);
	}
	for (uint32_t i = 0; i < shape->experts; i++) {
		struct xfp_ledger_matrix *m = &f->matrices[f->ledger.matrix_count];
		struct xfp_packed_matrix *matrix = &packed->matrix[i];
		float *out = calloc(shape->rows * shape->cols, sizeof *out);

		f->decoded[f->ledger.matrix_count++] = out;
		*m = (struct xfp_ledger_matrix){ shape->tensor,     shape->base + i * shape->step,
						 shape->rows,       shape->cols,
						 shape->row_stride, shape->col_stride };
		*matrix = (struct xfp_packed_matrix){ .mode = mode, .k = k };
		if (mode == XFP_MODE_V2)
			make_v2(f, packed, matrix, part, outliers && i + 1 == shape->experts, out);
		else if (mode == XFP_MODE_FP8)
			make_fp8(f, packed, matrix, part, out);
		else
			for (uint64_t j = 0; j < shape->rows * shape->cols; j++)
				out[j] = 8.0f * test_gaussian(&f->random);
		make_source(f, m, out);
		if (mode == XFP_MODE_KEEP) {
			size_t size = xfp_dtype_bits(unit->dtype) / 8;

			matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
			for (uint64_t j = 0; j < shape->rows * shape->cols; j++) {
				uint64_t at = element(m, j / shape->cols, j % shape->cols);

				append(&part[XFP_PART_INDEX], f->data[m->tensor] + at * size, size);
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
	struct buffer file = { 0 };
	uint64_t offset = 0, header;
	char line[512];

	append(&file, &offset, 8);
	append(&file, "{", 1);
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++) {
		struct xfp_ledger_tensor *tensor = &f->tensors[t];
		int length = snprintf(line, sizeof line, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", t ? "," : "",
				      tensor->name, xfp_dtype_name(tensor->dtype));

		for (uint32_t i = 0; i < tensor->rank; i++)
			length += snprintf(line + length, sizeof line - (size_t)length, "%s%llu", i ? "," : "",
					   (unsigned long long)tensor->shape[i]);
		length += snprintf(line + length, sizeof line - (size_t)length, "],\"data_offsets\":[%llu,%llu]}",
				   (unsigned long long)offset, (unsigned long long)(offset + tensor->bytes));
		append(&file, line, (size_t)length);
		offset += tensor->bytes;
	}
	append(&file, "}", 1);
	header = file.size - 8;
	memcpy(file.data, &header, 8);
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++) {
		f->tensors[t].offset = file.size;
		append(&file, f->data[t], f->tensors[t].bytes);
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

static void make_small(struct fixture *f)
{
	uint32_t q =
		add_tensor(f, "q.weight", XFP_F32, XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, 2, (uint64_t[]){ 3, 11 });

	add_tensor(f, "table", XFP_BF16, XFP_CLASS_EMBEDDING, XFP_FATE_KEPT, 1, (uint64_t[]){ 5 });
	add_unit(f, "q.weight", "q", XFP_MODE_V2, 2, 1, 1, &(struct shape){ q, 1, 3, 11, 0, 0, 11, 1 });
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

	add_unit(f, "a_head.weight", "lm_head", XFP_MODE_FP8, 0, 0, 0, &(struct shape){ head, 1, 4, 33, 0, 0, 33, 1 });
	/* stored transposed, [expert, in, out] */
	add_unit(f, "b.down", "down", XFP_MODE_V2, 5, 0, 1, &(struct shape){ down, 2, 4, 20, 0, 80, 1, 4 });
	/* [expert, in, 2 * out], gate and up interleaved */
	add_unit(f, "c.gate_up", "gate", XFP_MODE_V2, 2, 1, 0, &(struct shape){ gate_up, 2, 3, 37, 0, 222, 2, 6 });
	add_unit(f, "c.gate_up", "up", XFP_MODE_V2, 4, 1, 1, &(struct shape){ gate_up, 2, 3, 37, 1, 222, 2, 6 });
	add_unit(f, f->tensors[q].name, "q", XFP_MODE_V2, 3, 1, 1, &(struct shape){ q, 1, 5, 70, 0, 0, 70, 1 });
	add_unit(f, "e.k_proj.weight", "k", XFP_MODE_KEEP, 0, 0, 0, &(struct shape){ k, 1, 6, 40, 0, 0, 40, 1 });
	add_unit(f, "wide", "down", XFP_MODE_V2, 6, 1, 1, &(struct shape){ wide, 1, 3, 70000, 0, 0, 70000, 1 });

	add_file(f, "1_Pooling/config.json", "{\"word_embedding_dimension\": 8}\n");
	add_file(f, "config.json", "{\"model_type\": \"test\", \"torch_dtype\": \"bfloat16\"}\n");
	add_file(f, "empty.txt", "");
	add_file(f, "\xd1\x81\xd0\xbb\xd0\xbe\xd0\xb2\xd0\xb0.txt", "words\n");
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
	f->file = (struct xfp_ledger_file){ .name = (char *)"model.safetensors",
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
	if (small)
		make_small(f);
	else
		make_full(f);
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
