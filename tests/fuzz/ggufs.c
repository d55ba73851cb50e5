/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/ggufs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/names.h"
#include "checkpoints/packed/ggml.h"
#include "schemas/recipe/recipe.h"
#include "tests/fuzz/read_back.h"

#define MAX_TENSORS 12
#define MAX_BYTES 4096u /* of a tensor */
#define MAX_FILE (MAX_TENSORS * (MAX_BYTES + 512) + 4096)

struct gguf_input {
	const uint8_t *at, *end;
};

static uint8_t next(struct gguf_input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* ---- a file -------------------------------------------------------------------------------------- */

struct gguf_image {
	unsigned char bytes[MAX_FILE];
	size_t size;
};

static void put(struct gguf_image *image, const void *data, size_t size)
{
	memcpy(image->bytes + image->size, data, size);
	image->size += size;
}

static void put32(struct gguf_image *image, uint32_t value)
{
	put(image, &value, sizeof value);
}

static void put64(struct gguf_image *image, uint64_t value)
{
	put(image, &value, sizeof value);
}

static void put_text(struct gguf_image *image, const char *text)
{
	put64(image, strlen(text));
	put(image, text, strlen(text));
}

static const char *const architectures[] = { "llama",  "qwen2",  "qwen3", "qwen3moe", "qwen3next", "gemma",
					     "gemma2", "gemma3", "phi3",  "gpt-oss",  "glm4moe",   "mamba" };
static const char *const names[] = {
	"token_embd.weight",
	"output_norm.weight",
	"output.weight",
	"rope_freqs.weight",
	"rope_factors_long.weight",
	"rope_factors_short.weight",
	"blk.0.attn_q.weight",
	"blk.0.attn_k.weight",
	"blk.0.attn_q.bias",
	"blk.0.attn_qkv.weight",
	"blk.0.attn_gate.weight",
	"blk.0.attn_qkv.bias",
	"blk.0.ffn_gate_exps.weight",
	"blk.0.ffn_up_exps.weight",
	"blk.0.ffn_down_exps.weight",
	"blk.0.ffn_gate_exps.bias",
	"blk.0.ffn_up_exps.bias",
	"blk.0.ffn_gate_up_exps.weight",
	"blk.0.ffn_down_exps.scale",
	"blk.0.attn_q.scale",
	"blk.0.attn_q.input_scale",
	"blk.0.ssm_a",
	"blk.0.ssm_conv1d.weight",
	"blk.0.ffn_gate_inp_shexp.weight",
	"blk.1.nextn.eh_proj.weight",
	"blk.1.attn_q.weight",
	"blk.0.ffn_down.2.weight",
	"blk.0.attn_norm.weight",
	"blk.00.attn_q.weight",
	"x",
};
static const char *const numbers[] = {
	"attention.head_count", "attention.head_count_kv", "block_count",     "embedding_length",
	"expert_count",         "ssm.group_count",         "ssm.state_size",  "ssm.time_step_rank",
	"ssm.inner_size",       "expert_used_count",       "ssm.conv_kernel", "expert_feed_forward_length",
};
static const uint32_t values[] = { 2, 1, 4, 0, 3, 8, 16, UINT32_MAX };
static const uint32_t types[] = { XFP_GGML_F32,  XFP_GGML_F16,   XFP_GGML_BF16, XFP_GGML_Q8_0,
				  XFP_GGML_Q4_K, XFP_GGML_NVFP4, XFP_GGML_I8,   16 };
static const uint64_t sizes[] = { 4, 1, 2, 3, 8, 16, 32, 64, 256, 0, 12, 6 };

#define COUNT(of) (sizeof(of) / sizeof *(of))

/* Keys of an architecture; one byte per key selects its form, or omits it. */
static uint64_t put_keys(struct gguf_image *image, struct gguf_input *in)
{
	const char *architecture = architectures[next(in) % COUNT(architectures)];
	uint8_t odd = next(in);
	uint64_t count = 1;
	char key[64];

	put_text(image, "general.architecture");
	put32(image, XFP_GGUF_TEXT);
	put_text(image, architecture);
	if (odd & 1) {
		put_text(image, "general.alignment");
		put32(image, XFP_GGUF_U32);
		put32(image, values[next(in) % COUNT(values)]);
		count++;
	}
	if (odd & 2) {
		snprintf(key, sizeof key, "%s.feed_forward_length", architecture);
		put_text(image, key);
		put32(image, XFP_GGUF_ARRAY);
		put32(image, XFP_GGUF_I32);
		put64(image, 2);
		put32(image, next(in));
		put32(image, next(in));
		count++;
	}
	for (size_t i = 0; i < COUNT(numbers); i++) {
		uint8_t how = next(in);

		if (how & 128)
			continue;
		snprintf(key, sizeof key, "%s.%s", architecture, numbers[i]);
		put_text(image, key);
		put32(image, how & 64 ? XFP_GGUF_I32 : XFP_GGUF_U32);
		put32(image, values[how % COUNT(values)]);
		count++;
	}
	return count;
}

/* Build complete files, most of which can be opened. */
static void build(struct gguf_image *image, struct gguf_input *in)
{
	uint64_t tensors = 1 + next(in) % MAX_TENSORS, data = 0, keys;

	put(image, "GGUF", 4);
	put32(image, 3);
	put64(image, tensors);
	put64(image, 0);
	keys = put_keys(image, in);
	xfp_store64(image->bytes + 16, keys);
	for (uint64_t t = 0; t < tensors; t++) {
		const char *name = names[next(in) % COUNT(names)];
		uint32_t number = types[next(in) % COUNT(types)], rank = next(in) % 5;
		const struct xfp_ggml_type *type = xfp_ggml_type(number);
		uint64_t elements = 1, size;

		put_text(image, name);
		put32(image, rank);
		for (uint32_t d = 0; d < rank; d++) {
			size = sizes[next(in) % COUNT(sizes)];
			if (!d)
				size *= type->elements;
			if (elements * size * type->bytes / type->elements > MAX_BYTES)
				size = d ? 1 : type->elements;
			elements *= size;
			put64(image, size);
		}
		put32(image, number);
		put64(image, data);
		data = xfp_align(data + elements / type->elements * type->bytes, 32);
	}
	image->size = xfp_align(image->size, 32);
	for (uint64_t i = 0; i < data && image->size < MAX_FILE; i++)
		image->bytes[image->size++] = (unsigned char)(i * 37 + (i >> 7) * 11);
}

/* Change some bytes. */
static void patch(struct gguf_image *image, struct gguf_input *in)
{
	while (in->end - in->at >= 3 && image->size) {
		size_t at = (size_t)next(in) << 8;

		at |= next(in);
		image->bytes[at % image->size] = next(in);
	}
}

/* ---- results ------------------------------------------------------------------------------------- */

static char path[] = "/tmp/xfp-gguf-XXXXXX.gguf";

static void remove_file(void)
{
	unlink(path);
}

static void write_image(const struct gguf_image *image)
{
	static int fd = -1;

	if (fd < 0) {
		fd = mkstemps(path, 5);
		fuzz_must(fd >= 0);
		atexit(remove_file);
	}
	fuzz_must(!ftruncate(fd, 0) && pwrite(fd, image->bytes, image->size, 0) == (ssize_t)image->size);
}

static void read_tensor(const struct xfp_checkpoint *c, const struct xfp_source_tensor *t)
{
	struct xfp_matrix_source source = xfp_checkpoint_source(c, t);
	uint64_t bytes = xfp_dtype_bits(t->dtype) / 8;
	unsigned char *whole, *pieces;

	for (uint32_t d = 0; d < t->rank; d++)
		bytes *= t->shape[d];
	fuzz_must(bytes == t->bytes && t->file < c->file_count);
	if (!bytes || t->unread)
		return;
	source.identity = &c->files[t->file].identity;
	whole = fuzz_read_elements(&source, t->bytes);
	pieces = fuzz_read_elements(&source, 7 * (xfp_dtype_bits(t->dtype) / 8) + 3);
	fuzz_must(!memcmp(whole, pieces, t->bytes));
	/* Interleaved biases are not a matrix. */
	if (t->rank >= 2 && (!t->recipe || t->recipe->transposed || t->recipe->cols == t->shape[t->rank - 1]))
		fuzz_read_matrices(source, t, whole, (const uint8_t[FUZZ_VIEWS]){ 0, 1, 2, 3 });
	free(whole);
	free(pieces);
}

int fuzz_gguf(const uint8_t *data, size_t size)
{
	static struct gguf_image image;
	struct gguf_input in = { data, data + size };
	struct xfp_checkpoint *c;
	int tensors;

	memset(&image, 0, sizeof image);
	if (next(&in) & 128)
		put(&image, in.at, (size_t)(in.end - in.at) < MAX_FILE ? (size_t)(in.end - in.at) : MAX_FILE);
	else {
		build(&image, &in);
		patch(&image, &in);
	}
	write_image(&image);
	if (xfp_checkpoint_open(path, &c, NULL))
		return -1;
	for (uint32_t t = 0; t < c->tensor_count; t++) {
		fuzz_must(!t || strcmp(c->tensors[t - 1].name, c->tensors[t].name) < 0);
		read_tensor(c, &c->tensors[t]);
	}
	fuzz_must(c->unread || (c->config && c->synthesized_count));
	tensors = (int)c->tensor_count;
	xfp_checkpoint_close(c);
	return tensors;
}
