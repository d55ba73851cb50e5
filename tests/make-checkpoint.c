/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-checkpoint - write a checkpoint in the Hugging Face layout, the same bytes on every machine.
 *
 * Each matrix has a random stream of its own that follows from the seed and the name it has when experts
 * are stored one by one, so neither the layout of the experts nor the sharding changes a weight.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/generated-weights.h"

enum family { LLAMA, QWEN3, QWEN3_MOE, BERT };
enum experts { SPLIT, FUSED, TRANSPOSED };

static const char *const family_names[] = { "llama", "qwen3", "qwen3-moe", "bert", NULL };
static const char *const experts_names[] = { "split", "fused", "transposed", NULL };
static const char *const dtype_options[] = { "bf16", "f16", "f32", "f64", NULL };
static const char *const dtype_names[] = { "BF16", "F16", "F32", "F64", "I64" };
static const char *const torch_dtypes[] = { "bfloat16", "float16", "float32", "float64" };
static const unsigned dtype_bytes[] = { 2, 2, 4, 8, 8 };

struct options {
	uint64_t family, experts, dtype; /* enums */
	uint64_t layers, hidden, intermediate, heads, kv_heads, head_dim, num_experts, vocab, seed, shards;
	bool tie;
	const char *folder;
};

enum kind { MATRIX, NORM, BIAS, POSITIONS, GATE_UP, DOWN };

struct tensor {
	char name[96];
	enum kind kind;
	enum dtype dtype;
	unsigned rank;
	uint64_t shape[3];
	uint64_t layer; /* of a stack of experts */
	unsigned shard;
};

struct plan {
	struct tensor *tensors;
	size_t count, capacity;
};

/* ---- which tensors ------------------------------------------------------------------------------ */

/* Trailing dimensions of 0 do not exist. */
static struct tensor *add(struct plan *p, const struct options *o, enum kind kind, uint64_t a, uint64_t b, uint64_t c,
			  const char *format, ...)
{
	unsigned rank = c ? 3 : b ? 2 : 1;
	struct tensor *t;
	va_list args;

	if (p->count == p->capacity) {
		p->capacity = p->capacity ? p->capacity * 2 : 256;
		p->tensors = allocate(p->tensors, p->capacity, sizeof *p->tensors);
	}
	t = &p->tensors[p->count++];
	*t = (struct tensor){ .kind = kind, .dtype = (enum dtype)o->dtype, .rank = rank, .shape = { a, b, c } };
	va_start(args, format);
	vsnprintf(t->name, sizeof t->name, format, args);
	va_end(args);
	return t;
}

#define ADD_MATRIX(a, b, ...) add(p, o, MATRIX, a, b, 0, __VA_ARGS__)
#define ADD_NORM(a, ...) add(p, o, NORM, a, 0, 0, __VA_ARGS__)
#define ADD_BIAS(a, ...) add(p, o, BIAS, a, 0, 0, __VA_ARGS__)

static void plan_experts(struct plan *p, const struct options *o, uint64_t n)
{
	uint64_t e = o->num_experts, i = o->intermediate, h = o->hidden;
	bool transposed = o->experts == TRANSPOSED;

	if (o->experts == SPLIT) {
		for (uint64_t k = 0; k < e; k++) {
			ADD_MATRIX(i, h, "model.layers.%" PRIu64 ".mlp.experts.%" PRIu64 ".gate_proj.weight", n, k);
			ADD_MATRIX(i, h, "model.layers.%" PRIu64 ".mlp.experts.%" PRIu64 ".up_proj.weight", n, k);
			ADD_MATRIX(h, i, "model.layers.%" PRIu64 ".mlp.experts.%" PRIu64 ".down_proj.weight", n, k);
		}
		return;
	}
	add(p, o, GATE_UP, e, transposed ? h : 2 * i, transposed ? 2 * i : h,
	    "model.layers.%" PRIu64 ".mlp.experts.gate_up_proj", n)
		->layer = n;
	add(p, o, DOWN, e, transposed ? i : h, transposed ? h : i, "model.layers.%" PRIu64 ".mlp.experts.down_proj", n)
		->layer = n;
}

static void plan_decoder(struct plan *p, const struct options *o)
{
	uint64_t h = o->hidden, q = o->heads * o->head_dim, kv = o->kv_heads * o->head_dim;

	ADD_MATRIX(o->vocab, h, "model.embed_tokens.weight");
	for (uint64_t n = 0; n < o->layers; n++) {
		ADD_NORM(h, "model.layers.%" PRIu64 ".input_layernorm.weight", n);
		ADD_MATRIX(q, h, "model.layers.%" PRIu64 ".self_attn.q_proj.weight", n);
		ADD_MATRIX(kv, h, "model.layers.%" PRIu64 ".self_attn.k_proj.weight", n);
		ADD_MATRIX(kv, h, "model.layers.%" PRIu64 ".self_attn.v_proj.weight", n);
		ADD_MATRIX(h, q, "model.layers.%" PRIu64 ".self_attn.o_proj.weight", n);
		if (o->family != LLAMA) {
			ADD_NORM(o->head_dim, "model.layers.%" PRIu64 ".self_attn.q_norm.weight", n);
			ADD_NORM(o->head_dim, "model.layers.%" PRIu64 ".self_attn.k_norm.weight", n);
		}
		ADD_NORM(h, "model.layers.%" PRIu64 ".post_attention_layernorm.weight", n);
		if (o->family == QWEN3_MOE) {
			ADD_MATRIX(o->num_experts, h, "model.layers.%" PRIu64 ".mlp.gate.weight", n);
			plan_experts(p, o, n);
		} else {
			ADD_MATRIX(o->intermediate, h, "model.layers.%" PRIu64 ".mlp.gate_proj.weight", n);
			ADD_MATRIX(o->intermediate, h, "model.layers.%" PRIu64 ".mlp.up_proj.weight", n);
			ADD_MATRIX(h, o->intermediate, "model.layers.%" PRIu64 ".mlp.down_proj.weight", n);
		}
	}
	ADD_NORM(h, "model.norm.weight");
	if (!o->tie)
		ADD_MATRIX(o->vocab, h, "lm_head.weight");
}

static void plan_bert(struct plan *p, const struct options *o)
{
	static const char *const dense[] = { "attention.self.query", "attention.self.key", "attention.self.value",
					     "attention.output.dense" };
	uint64_t h = o->hidden, i = o->intermediate;

	add(p, o, POSITIONS, 1, 512, 0, "embeddings.position_ids")->dtype = I64;
	ADD_MATRIX(o->vocab, h, "embeddings.word_embeddings.weight");
	ADD_MATRIX(512, h, "embeddings.position_embeddings.weight");
	ADD_MATRIX(2, h, "embeddings.token_type_embeddings.weight");
	ADD_NORM(h, "embeddings.LayerNorm.weight");
	ADD_BIAS(h, "embeddings.LayerNorm.bias");
	for (uint64_t n = 0; n < o->layers; n++) {
		for (int k = 0; k < 4; k++) {
			ADD_MATRIX(h, h, "encoder.layer.%" PRIu64 ".%s.weight", n, dense[k]);
			ADD_BIAS(h, "encoder.layer.%" PRIu64 ".%s.bias", n, dense[k]);
		}
		ADD_NORM(h, "encoder.layer.%" PRIu64 ".attention.output.LayerNorm.weight", n);
		ADD_BIAS(h, "encoder.layer.%" PRIu64 ".attention.output.LayerNorm.bias", n);
		ADD_MATRIX(i, h, "encoder.layer.%" PRIu64 ".intermediate.dense.weight", n);
		ADD_BIAS(i, "encoder.layer.%" PRIu64 ".intermediate.dense.bias", n);
		ADD_MATRIX(h, i, "encoder.layer.%" PRIu64 ".output.dense.weight", n);
		ADD_BIAS(h, "encoder.layer.%" PRIu64 ".output.dense.bias", n);
		ADD_NORM(h, "encoder.layer.%" PRIu64 ".output.LayerNorm.weight", n);
		ADD_BIAS(h, "encoder.layer.%" PRIu64 ".output.LayerNorm.bias", n);
	}
	ADD_MATRIX(h, h, "pooler.dense.weight");
	ADD_BIAS(h, "pooler.dense.bias");
}

static uint64_t elements(const struct tensor *t)
{
	uint64_t count = 1;

	for (unsigned i = 0; i < t->rank; i++)
		count *= t->shape[i];
	return count;
}

static uint64_t bytes(const struct tensor *t)
{
	return elements(t) * dtype_bytes[t->dtype];
}

/* A stack of experts, with the streams that they have when stored one by one. */
static void fill_stack(const struct options *o, const struct tensor *t, double *out)
{
	static const char *const roles[] = { "gate", "up", "down" };
	unsigned first = t->kind == DOWN ? 2 : 0, parts = t->kind == DOWN ? 1 : 2;
	uint64_t rows = t->kind == DOWN ? o->hidden : o->intermediate;
	uint64_t cols = t->kind == DOWN ? o->intermediate : o->hidden;
	bool transposed = o->experts == TRANSPOSED;

	for (uint64_t e = 0; e < o->num_experts; e++) {
		for (unsigned k = 0; k < parts; k++) {
			double *at = out + e * parts * rows * cols + k * (transposed ? rows : rows * cols);
			char name[128];

			snprintf(name, sizeof name, "model.layers.%" PRIu64 ".mlp.experts.%" PRIu64 ".%s_proj.weight",
				 t->layer, e, roles[first + k]);
			if (transposed)
				fill_matrix(o->seed, name, rows, cols, at, 1, parts * rows);
			else
				fill_matrix(o->seed, name, rows, cols, at, cols, 1);
		}
	}
}

static void fill(const struct options *o, const struct tensor *t, double *out)
{
	uint64_t count = elements(t);

	switch (t->kind) {
	case MATRIX:
		fill_matrix(o->seed, t->name, t->shape[0], t->shape[1], out, t->shape[1], 1);
		break;
	case NORM:
		fill_vector(o->seed, t->name, count, 1, 0.1, out);
		break;
	case BIAS:
		fill_vector(o->seed, t->name, count, 0, 0.02, out);
		break;
	case POSITIONS:
		for (uint64_t i = 0; i < count; i++)
			out[i] = (double)i;
		break;
	case GATE_UP:
	case DOWN:
		fill_stack(o, t, out);
		break;
	}
}

/* ---- files -------------------------------------------------------------------------------------- */

static FILE *create(const struct options *o, const char *name, char path[4096])
{
	FILE *file;

	snprintf(path, 4096, "%s/%s", o->folder, name);
	file = fopen(path, "wb");
	if (!file)
		die(path, strerror(errno));
	return file;
}

static void finish(FILE *file, const char *path)
{
	if (ferror(file) | fclose(file))
		die(path, "cannot write");
}

static void shard_name(const struct options *o, unsigned shard, char name[64])
{
	if (o->shards == 1)
		snprintf(name, 64, "model.safetensors");
	else
		snprintf(name, 64, "model-%05u-of-%05" PRIu64 ".safetensors", shard + 1, o->shards);
}

/* About the same number of bytes in each shard, in order, and none empty. */
static uint64_t assign_shards(const struct options *o, struct plan *p)
{
	uint64_t total = 0, so_far = 0;
	unsigned shard = 0;

	if (p->count < o->shards)
		die("--shards", "more than there are tensors");
	for (size_t i = 0; i < p->count; i++)
		total += bytes(&p->tensors[i]);
	for (size_t i = 0, left; i < p->count; i++) {
		p->tensors[i].shard = shard;
		so_far += bytes(&p->tensors[i]);
		left = p->count - i - 1;
		if (shard + 1 < o->shards && (left == o->shards - shard - 1 ||
					      (double)so_far >= (double)total * (shard + 1) / (double)o->shards))
			shard++;
	}
	return total;
}

static void write_shard(const struct options *o, const struct plan *p, unsigned shard)
{
	char *header = NULL, name[64], path[4096];
	uint64_t offset = 0, size;
	size_t length;
	FILE *text = open_memstream(&header, &length), *file;

	if (!text)
		die("memory", "out of it");
	fputs("{\"__metadata__\":{\"format\":\"pt\"}", text);
	for (size_t i = 0; i < p->count; i++) {
		const struct tensor *t = &p->tensors[i];

		if (t->shard != shard)
			continue;
		fprintf(text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, dtype_names[t->dtype]);
		for (unsigned k = 0; k < t->rank; k++)
			fprintf(text, "%s%" PRIu64, k ? "," : "", t->shape[k]);
		fprintf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + bytes(t));
		offset += bytes(t);
	}
	fputc('}', text);
	finish(text, "header");

	shard_name(o, shard, name);
	file = create(o, name, path);
	size = (length + 7) / 8 * 8;
	fwrite(&size, sizeof size, 1, file);
	fprintf(file, "%-*s", (int)size, header);
	free(header);
	for (size_t i = 0; i < p->count; i++) {
		const struct tensor *t = &p->tensors[i];
		double *values;
		unsigned char *data;

		if (t->shard != shard)
			continue;
		values = allocate(NULL, elements(t), sizeof *values);
		data = allocate(NULL, bytes(t), 1);
		fill(o, t, values);
		encode(values, elements(t), t->dtype, data);
		fwrite(data, 1, bytes(t), file);
		free(values);
		free(data);
	}
	finish(file, path);
}

static void write_index(const struct options *o, const struct plan *p, uint64_t total)
{
	char name[64], path[4096];
	FILE *file = create(o, "model.safetensors.index.json", path);

	fprintf(file, "{\n  \"metadata\": {\"total_size\": %" PRIu64 "},\n  \"weight_map\": {", total);
	for (size_t i = 0; i < p->count; i++) {
		shard_name(o, p->tensors[i].shard, name);
		fprintf(file, "%s\n    \"%s\": \"%s\"", i ? "," : "", p->tensors[i].name, name);
	}
	fputs("\n  }\n}\n", file);
	finish(file, path);
}

static void write_config(const struct options *o)
{
	static const char *const types[] = { "llama", "qwen3", "qwen3_moe", "bert" };
	static const char *const classes[] = { "LlamaForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM",
					       "BertModel" };
	bool moe = o->family == QWEN3_MOE;
	char path[4096];
	FILE *file = create(o, "config.json", path);

	fprintf(file, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\",\n", classes[o->family],
		types[o->family]);
	fprintf(file, "  \"hidden_size\": %" PRIu64 ",\n  \"num_hidden_layers\": %" PRIu64 ",\n", o->hidden, o->layers);
	fprintf(file, "  \"num_attention_heads\": %" PRIu64 ",\n  \"vocab_size\": %" PRIu64 ",\n", o->heads, o->vocab);
	fprintf(file, "  \"intermediate_size\": %" PRIu64 ",\n", moe ? 3 * o->intermediate : o->intermediate);
	if (o->family == BERT) {
		fputs("  \"max_position_embeddings\": 512,\n  \"type_vocab_size\": 2,\n  \"hidden_act\": \"gelu\",\n"
		      "  \"layer_norm_eps\": 1e-12,\n  \"pad_token_id\": 0,\n  \"attention_probs_dropout_prob\": 0.1,\n"
		      "  \"hidden_dropout_prob\": 0.1,\n  \"position_embedding_type\": \"absolute\",\n",
		      file);
	} else {
		fprintf(file, "  \"num_key_value_heads\": %" PRIu64 ",\n  \"head_dim\": %" PRIu64 ",\n", o->kv_heads,
			o->head_dim);
		fputs("  \"max_position_embeddings\": 1024,\n  \"hidden_act\": \"silu\",\n  \"rms_norm_eps\": 1e-06,\n"
		      "  \"rope_theta\": 10000.0,\n  \"attention_bias\": false,\n  \"bos_token_id\": 0,\n"
		      "  \"eos_token_id\": 0,\n",
		      file);
		fprintf(file, "  \"tie_word_embeddings\": %s,\n", o->tie ? "true" : "false");
	}
	if (o->family == LLAMA)
		fputs("  \"mlp_bias\": false,\n", file);
	if (moe) {
		fprintf(file, "  \"num_experts\": %" PRIu64 ",\n  \"num_experts_per_tok\": %d,\n", o->num_experts,
			o->num_experts > 1 ? 2 : 1);
		fprintf(file, "  \"moe_intermediate_size\": %" PRIu64 ",\n", o->intermediate);
		fputs("  \"norm_topk_prob\": true,\n  \"decoder_sparse_step\": 1,\n  \"mlp_only_layers\": [],\n", file);
	}
	fprintf(file, "  \"torch_dtype\": \"%s\"\n}\n", torch_dtypes[o->dtype]);
	finish(file, path);

	if (o->family == BERT)
		return;
	file = create(o, "generation_config.json", path);
	fputs("{\n  \"bos_token_id\": 0,\n  \"eos_token_id\": 0,\n  \"do_sample\": false\n}\n", file);
	finish(file, path);
}

/* ---- command line ------------------------------------------------------------------------------- */

static const char usage[] =
	"usage: make-checkpoint [OPTION]... FOLDER\n"
	"Write a generated checkpoint in the Hugging Face layout.\n"
	"\n"
	"  --family llama|qwen3|qwen3-moe|bert   default qwen3-moe\n"
	"  --experts split|fused|transposed      [I,H] one by one; [E,2I,H]; [E,H,2I]\n"
	"  --dtype bf16|f16|f32|f64              default bf16\n"
	"  --layers N (4)   --hidden N (256)   --intermediate N (256)   --heads N (4)   --kv-heads N (2)\n"
	"  --head-dim N (hidden / heads)   --num-experts N (8)   --vocab N (2048)   --seed N (0)\n"
	"  --shards N (1)   --tie                no lm_head, tie_word_embeddings\n";

static uint64_t parse_value(const char *option, const char *text, const char *const names[], uint64_t min)
{
	uint64_t value = 0;
	char *end;

	if (names) {
		while (names[value] && strcmp(names[value], text))
			value++;
		if (!names[value])
			die(option, "unknown value");
		return value;
	}
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || value < min)
		die(option, "not a number, or too small");
	return value;
}

static struct options parse(int argc, char **argv)
{
	struct options o = { .family = QWEN3_MOE,
			     .layers = 4,
			     .hidden = 256,
			     .intermediate = 256,
			     .heads = 4,
			     .kv_heads = 2,
			     .num_experts = 8,
			     .vocab = 2048,
			     .shards = 1 };
	const struct {
		const char *option;
		uint64_t *value;
		const char *const *names;
		uint64_t min;
	} fields[] = {
		{ "--family", &o.family, family_names, 0 }, { "--experts", &o.experts, experts_names, 0 },
		{ "--dtype", &o.dtype, dtype_options, 0 },  { "--layers", &o.layers, NULL, 1 },
		{ "--hidden", &o.hidden, NULL, 1 },         { "--intermediate", &o.intermediate, NULL, 1 },
		{ "--heads", &o.heads, NULL, 1 },           { "--kv-heads", &o.kv_heads, NULL, 1 },
		{ "--head-dim", &o.head_dim, NULL, 1 },     { "--num-experts", &o.num_experts, NULL, 1 },
		{ "--vocab", &o.vocab, NULL, 1 },           { "--seed", &o.seed, NULL, 0 },
		{ "--shards", &o.shards, NULL, 1 },
	};
	const size_t known = sizeof fields / sizeof *fields;

	for (int i = 1; i < argc; i++) {
		size_t k = 0;

		while (k < known && strcmp(argv[i], fields[k].option))
			k++;
		if (k < known && i + 1 < argc) {
			*fields[k].value = parse_value(argv[i], argv[i + 1], fields[k].names, fields[k].min);
			i++;
		} else if (!strcmp(argv[i], "--tie")) {
			o.tie = true;
		} else if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			exit(0);
		} else if (argv[i][0] == '-' || o.folder) {
			o.folder = NULL;
			break;
		} else {
			o.folder = argv[i];
		}
	}
	if (!o.folder) {
		fputs(usage, stderr);
		exit(2);
	}
	if (!o.head_dim)
		o.head_dim = o.hidden / o.heads;
	if (!o.head_dim)
		die("--heads", "more than hidden");
	return o;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct plan plan = { 0 };
	uint64_t total;

	if (o.family == BERT)
		plan_bert(&plan, &o);
	else
		plan_decoder(&plan, &o);
	total = assign_shards(&o, &plan);
	if (mkdir(o.folder, 0777) && errno != EEXIST)
		die(o.folder, strerror(errno));
	for (unsigned shard = 0; shard < o.shards; shard++)
		write_shard(&o, &plan, shard);
	if (o.shards > 1)
		write_index(&o, &plan, total);
	write_config(&o);
	free(plan.tensors);
	return 0;
}
