/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-weights - write a bf16 checkpoint of any size, quickly, the same bytes on every machine.
 *
 * make-checkpoint draws each weight separately; here a weight is one of 65,536 draws of Student's t, picked by 16 bits
 * of a counter, times the scales of its row and column. Rows are generated in blocks, each row from its own stream, so
 * the result does not depend on the number of threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "tests/generated-weights.h"
#include "tests/program.h"

#define DRAWS 65536
#define BLOCK 4194304 /* weights */

struct shape {
	uint64_t experts, rows, cols, count; /* experts 0: dense */
};

struct tensor {
	char name[96];
	uint64_t experts, rows, cols; /* experts 0: a matrix; cols 0: a vector of ones */
};

struct model {
	struct shape shapes[16];
	unsigned shape_count;
	bool split;
	uint64_t seed;
	const char *folder;
	struct tensor *tensors;
	size_t count, capacity;
	uint64_t layers, hidden, experts, intermediate;
};

/* ---- which tensors ------------------------------------------------------------------------------ */

static struct tensor *add(struct model *m, uint64_t experts, uint64_t rows, uint64_t cols)
{
	struct tensor *t;

	if (m->count == m->capacity) {
		m->capacity = m->capacity ? m->capacity * 2 : 256;
		m->tensors = allocate(m->tensors, m->capacity, sizeof *m->tensors);
	}
	t = &m->tensors[m->count++];
	*t = (struct tensor){ .experts = experts, .rows = rows, .cols = cols };
	return t;
}

#define ADD(experts, rows, cols, ...) snprintf(add(m, experts, rows, cols)->name, sizeof m->tensors->name, __VA_ARGS__)

static void add_norms(struct model *m, uint64_t hidden)
{
	ADD(0, hidden, 0, "model.layers.%" PRIu64 ".input_layernorm.weight", m->layers);
	ADD(0, hidden, 0, "model.layers.%" PRIu64 ".post_attention_layernorm.weight", m->layers);
}

/* Add `count` matrices, seven per layer, with Llama's names. */
static void add_dense(struct model *m, const struct shape *s)
{
	static const char *const roles[] = { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
					     "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
					     "mlp.down_proj" };

	for (uint64_t i = 0; i < s->count; i++) {
		if (i % 7 == 0)
			add_norms(m, s->cols);
		ADD(0, s->rows, s->cols, "model.layers.%" PRIu64 ".%s.weight", m->layers, roles[i % 7]);
		m->layers += i % 7 == 6 || i + 1 == s->count;
	}
	m->intermediate = m->intermediate ? m->intermediate : s->rows;
}

/* Add `count` layers of experts: gate and up [rows, cols], down [cols, rows]. */
static void add_stacks(struct model *m, const struct shape *s)
{
	static const char *const roles[] = { "gate", "up", "down" };

	for (uint64_t i = 0; i < s->count; i++, m->layers++) {
		add_norms(m, s->cols);
		ADD(0, s->experts, s->cols, "model.layers.%" PRIu64 ".mlp.gate.weight", m->layers);
		if (!m->split) {
			ADD(s->experts, 2 * s->rows, s->cols, "model.layers.%" PRIu64 ".mlp.experts.gate_up_proj",
			    m->layers);
			ADD(s->experts, s->cols, s->rows, "model.layers.%" PRIu64 ".mlp.experts.down_proj", m->layers);
			continue;
		}
		for (uint64_t e = 0; e < s->experts; e++)
			for (int k = 0; k < 3; k++)
				ADD(0, k == 2 ? s->cols : s->rows, k == 2 ? s->rows : s->cols,
				    "model.layers.%" PRIu64 ".mlp.experts.%" PRIu64 ".%s_proj.weight", m->layers, e,
				    roles[k]);
	}
	m->experts = s->experts;
	m->intermediate = s->rows;
}

static void list_tensors(struct model *m)
{
	for (unsigned i = 0; i < m->shape_count; i++)
		if (m->shapes[i].experts || !m->hidden)
			m->hidden = m->shapes[i].cols;
	ADD(0, 8, m->hidden, "model.embed_tokens.weight");
	for (unsigned i = 0; i < m->shape_count; i++)
		(m->shapes[i].experts ? add_stacks : add_dense)(m, &m->shapes[i]);
	ADD(0, m->hidden, 0, "model.norm.weight");
}

static uint64_t elements(const struct tensor *t)
{
	return (t->experts ? t->experts : 1) * t->rows * (t->cols ? t->cols : 1);
}

/* ---- weights ------------------------------------------------------------------------------------ */

static uint16_t narrow(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void fill_row(const float *draws, const float *columns, uint64_t cols, uint64_t state, uint16_t *out)
{
	float row = (float)(0.0127 * scale(&state, 4, 0.5));
	uint64_t c = 0;

	for (; c + 4 <= cols; c += 4) {
		uint64_t bits = next(&state);

		for (int i = 0; i < 4; i++)
			out[c + i] = narrow(draws[bits >> 16 * i & 0xffff] * columns[c + i] * row);
	}
	for (; c < cols; c++)
		out[c] = narrow(draws[next(&state) & 0xffff] * columns[c] * row);
}

static void write_tensor(const struct model *m, const struct tensor *t, const float *draws, FILE *file)
{
	uint64_t rows = (t->experts ? t->experts : 1) * t->rows, cols = t->cols ? t->cols : 1;
	uint64_t block = BLOCK / cols + 1, base = stream(m->seed, t->name), state = base;
	uint16_t *out = allocate(NULL, block * cols, sizeof *out);
	float *columns = allocate(NULL, cols, sizeof *columns);

	for (uint64_t c = 0; c < cols; c++)
		columns[c] = (float)scale(&state, 6, 0.8);
	for (uint64_t first = 0; first < rows; first += block) {
		uint64_t count = rows - first < block ? rows - first : block;

#pragma omp parallel for
		for (uint64_t r = 0; r < count; r++) {
			if (t->cols)
				fill_row(draws, columns, cols, base ^ (first + r + 1) * 0xd1342543de82ef95u,
					 out + r * cols);
			else
				out[r] = 0x3f80;
		}
		if (fwrite(out, cols * sizeof *out, count, file) != count)
			die(m->folder, strerror(errno));
	}
	free(columns);
	free(out);
}

/* ---- files -------------------------------------------------------------------------------------- */

static FILE *create(const struct model *m, const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", m->folder, name);
	file = fopen(path, "wb");
	if (!file)
		die(path, strerror(errno));
	return file;
}

static void finish(const struct model *m, FILE *file)
{
	if (ferror(file) | fclose(file))
		die(m->folder, "cannot write");
}

static void write_header(const struct model *m, FILE *file)
{
	char *header = NULL;
	uint64_t offset = 0, size;
	size_t length;
	FILE *text = open_memstream(&header, &length);

	if (!text)
		die("memory", "out of it");
	fputs("{\"__metadata__\":{\"format\":\"pt\"}", text);
	for (size_t i = 0; i < m->count; i++) {
		const struct tensor *t = &m->tensors[i];

		fprintf(text, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[", t->name);
		if (t->experts)
			fprintf(text, "%" PRIu64 ",", t->experts);
		fprintf(text, "%" PRIu64, t->rows);
		if (t->cols)
			fprintf(text, ",%" PRIu64, t->cols);
		fprintf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + 2 * elements(t));
		offset += 2 * elements(t);
	}
	fputc('}', text);
	finish(m, text);
	size = (length + 7) / 8 * 8;
	fwrite(&size, sizeof size, 1, file);
	fprintf(file, "%-*s", (int)size, header);
	free(header);
}

static void write_weights(const struct model *m)
{
	uint64_t state = stream(m->seed, "draws");
	float *draws = allocate(NULL, DRAWS, sizeof *draws);
	FILE *file = create(m, "model.safetensors");

	for (int i = 0; i < DRAWS; i++)
		draws[i] = (float)student5(&state);
	write_header(m, file);
	for (size_t i = 0; i < m->count; i++)
		write_tensor(m, &m->tensors[i], draws, file);
	finish(m, file);
	free(draws);
}

static void write_config(const struct model *m)
{
	FILE *file = create(m, "config.json");
	uint64_t head = m->hidden % 128 ? m->hidden : 128;

	fprintf(file, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\",\n",
		m->experts ? "Qwen3MoeForCausalLM" : "LlamaForCausalLM", m->experts ? "qwen3_moe" : "llama");
	fprintf(file, "  \"hidden_size\": %" PRIu64 ",\n  \"num_hidden_layers\": %" PRIu64 ",\n", m->hidden, m->layers);
	fprintf(file, "  \"num_attention_heads\": %" PRIu64 ",\n  \"num_key_value_heads\": %" PRIu64 ",\n",
		m->hidden / head, m->hidden / head);
	fprintf(file, "  \"head_dim\": %" PRIu64 ",\n  \"intermediate_size\": %" PRIu64 ",\n", head, m->intermediate);
	if (m->experts)
		fprintf(file, "  \"num_experts\": %" PRIu64 ",\n  \"moe_intermediate_size\": %" PRIu64 ",\n",
			m->experts, m->intermediate);
	fputs("  \"vocab_size\": 8,\n  \"max_position_embeddings\": 1024,\n  \"rms_norm_eps\": 1e-06,\n"
	      "  \"tie_word_embeddings\": true,\n  \"torch_dtype\": \"bfloat16\"\n}\n",
	      file);
	finish(m, file);
}

/* ---- command line ------------------------------------------------------------------------------- */

static const char usage[] = "Usage: make-weights [OPTION]... FOLDER\n"
			    "Write a generated bf16 checkpoint of any size, block by block; print its weights.\n"
			    "\n"
			    "  --dense NxK[:COUNT]     COUNT matrices of N rows and K columns, seven a layer\n"
			    "  --stack ExIxH[:LAYERS]  layers of E experts: gate and up [I,H], down [H,I]\n"
			    "  --split                 experts one by one; otherwise fused, [E,2I,H] and [E,H,I]\n"
			    "  --seed N (0)            --dense and --stack may be repeated\n";

static uint64_t parse_number(const char *option, const char **text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno || end == *text || **text < '0' || **text > '9' || value > 1u << 30)
		die(option, "not a number, or too large");
	*text = end;
	return value;
}

static void parse_shape(struct model *m, const char *option, const char *text)
{
	unsigned wanted = strcmp(option, "--stack") ? 2 : 3, have = 0;
	uint64_t number[3] = { 0 }, count = 1;

	for (; have < wanted; have++) {
		number[have] = parse_number(option, &text);
		if (!number[have] || (have + 1 < wanted && *text++ != 'x'))
			die(option, wanted == 2 ? "is NxK or NxK:COUNT" : "is ExIxH or ExIxH:LAYERS");
	}
	if (*text == ':') {
		text++;
		count = parse_number(option, &text);
	}
	if (*text || m->shape_count == sizeof m->shapes / sizeof *m->shapes)
		die(option, *text ? "has something behind its shape" : "too many shapes");
	m->shapes[m->shape_count++] = wanted == 2 ? (struct shape){ 0, number[0], number[1], count }
						  : (struct shape){ number[0], number[1], number[2], count };
}

static bool parse(struct model *m, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (more && (!strcmp(argv[i], "--dense") || !strcmp(argv[i], "--stack"))) {
			parse_shape(m, argv[i], argv[i + 1]);
			i++;
		} else if (more && !strcmp(argv[i], "--seed")) {
			const char *text = argv[++i];

			m->seed = parse_number("--seed", &text);
		} else if (!strcmp(argv[i], "--split")) {
			m->split = true;
		} else if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			exit(0);
		} else if (argv[i][0] == '-' || m->folder) {
			return false;
		} else {
			m->folder = argv[i];
		}
	}
	return m->folder && m->shape_count;
}

PROGRAM("make-weights")
{
	struct model m = { 0 };
	uint64_t weights = 0;

	if (!parse(&m, argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	list_tensors(&m);
	if (mkdir(m.folder, 0777) && errno != EEXIST)
		die(m.folder, strerror(errno));
	write_weights(&m);
	write_config(&m);
	for (size_t i = 0; i < m.count; i++)
		weights += elements(&m.tensors[i]);
	printf("%" PRIu64 "\n", weights);
	free(m.tensors);
	return fflush(stdout) ? 1 : 0;
}
