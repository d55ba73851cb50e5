/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/folds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/filesystem.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/open/fold.h"
#include "tests/fuzz/read_back.h"

#define MAX_TENSORS 10
#define MAX_BYTES 8192u /* of a tensor */
#define FILES 3

struct input {
	const uint8_t *at, *end;
};

static uint8_t next(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* The paths of the weights and config.json, created once and removed at exit. */
static char folder[] = "/tmp/xfp-folds-XXXXXX";
static char paths[FILES + 2][64];
static const char *const names[FILES + 2] = { "a.safetensors", "b.safetensors", "c.safetensors", "config.json",
					      "hf_quant_config.json" };
static const uint64_t sizes[] = { 1, 2, 3, 16, 17, 32, 33, 64, 5, 0, 4, 8, 12 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static void remove_folder(void)
{
	for (int i = 0; i < FILES + 2; i++)
		unlink(paths[i]);
	rmdir(folder);
}

/* The contents of small tensors: at 16 * n the shape [sizes[n / SIZES], sizes[n % SIZES]]; after these, groups of 32
 * columns, in order and not, no groups, a scale, 32 columns in reverse order, and a 4-bit group that begins at 0. */
static void fill_numbers(unsigned char *bytes)
{
	memset(bytes, 0, 16 * SIZES * SIZES + 1024);
	for (size_t n = 0; n < SIZES * SIZES; n++)
		for (size_t i = 0; i < 2; i++)
			bytes[16 * n + 8 * i] = (unsigned char)sizes[i ? n % SIZES : n / SIZES];
	bytes += 16 * SIZES * SIZES;
	for (size_t i = 0; i < 64; i++) {
		bytes[4 * i] = (unsigned char)(i / 32);
		bytes[256 + 4 * i] = (unsigned char)(i % 2);
	}
	memset(bytes + 512, 0xff, 256);
	memcpy(bytes + 768, &(float){ 0.5f }, 4);
	for (size_t i = 0; i < 32; i++)
		bytes[832 + 4 * i] = (unsigned char)(31 - i);
	bytes[960] = 4;
}

/* Files large enough for all tensors; the bytes are valid codes and scales. */
static void make_folder(void)
{
	static unsigned char bytes[(MAX_TENSORS + 1) * MAX_BYTES];

	if (*paths[0])
		return;
	if (!mkdtemp(folder))
		abort();
	/* After them, groups of inputs that all name the first group. */
	for (size_t i = 0; i < MAX_TENSORS * MAX_BYTES; i++)
		bytes[i] = (unsigned char)(i * 37 + (i >> 7) * 11);
	for (int i = 0; i < FILES + 2; i++) {
		if (i == 2)
			fill_numbers(bytes);
		snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
		if (xfp_write_file(paths[i], i < FILES ? bytes : (const unsigned char *)"{}",
				   i < FILES ? sizeof bytes : 2, false, NULL))
			abort();
	}
	atexit(remove_folder);
}

/* ---- a checkpoint -------------------------------------------------------------------------------- */

/* AWQ and GPTQ: numbers, the name of the codes' form, and other deciding members. */
static char *make_grouped(struct input *in)
{
	static const char *const methods[] = { "gptq", "awq" };
	static const char *const bits[] = { "4", "2", "3", "8", "5", "\"4\"", "4", "4" };
	static const char *const groups[] = { "16", "32", "-1", "64", "128", "1", "0", "5" };
	static const char *const forms[] = { "gptq", "gptq_v2", "GEMM", "gemv", "gemv_fast", "marlin", "gptq", "gemm" };
	char text[400];
	uint8_t what = next(in), size = next(in);

	snprintf(text, sizeof text,
		 "{\"quantization_config\": {%s%s%s\"bits\": %s, \"group_size\": %s, \"%s\": \"%s\"%s%s}}",
		 what & 64 ? "" : "\"quant_method\": \"", what & 64 ? "" : methods[what & 1], what & 64 ? "" : "\", ",
		 bits[size >> 3 & 7], groups[size & 7], what & 1 ? "version" : "checkpoint_format",
		 forms[what >> 1 & 7], what & 16 ? ", \"desc_act\": true" : "",
		 what & 32 ? ", \"dynamic\": {\"-:x\": {}}" : "");
	return strdup(text);
}

/* A quantization_config of methods whose parameters have many forms; false: no such method. */
static bool make_groups(struct input *in, uint8_t what, char *inner, size_t size)
{
	static const char *const bits[] = { "1", "2", "3", "4", "5", "6", "7", "8", "0", "\"4\"" };
	static const char *const ways[] = {
		"\"strategy\": \"tensor\"",
		"\"strategy\": \"channel\"",
		"\"group_size\": 16",
		"\"group_size\": 32",
		"\"strategy\": \"block\", \"block_structure\": [16, 16]",
		"\"strategy\": \"block\", \"block_structure\": \"3x2\"",
		"\"group_size\": -1",
		"\"strategy\": \"group\"",
	};
	static const char *const formats[] = { "", ", \"format\": \"pack-quantized\"",
					       ", \"format\": \"mixed-precision\"", ", \"format\": \"marlin-24\"" };
	static const char *const algorithms[] = { "NVFP4", "FP8", "MIXED_PRECISION", "FP8_PB_WO", "MXFP8",
						  "W8A16", "NONE" };
	size_t length;
	uint8_t how;

	if (what % 8 == 6) {
		how = next(in);
		snprintf(inner, size, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"%s\", \"group_size\": %d}",
			 algorithms[how % 7], how >> 4 ? how & 0x70 : 16);
		return true;
	}
	if (what % 8 != 7)
		return false;
	length = (size_t)snprintf(inner, size, "{\"quant_method\": \"compressed-tensors\"%s, \"config_groups\": {",
				  formats[what >> 3 & 3]);
	for (int g = 0; g < 2; g++) {
		how = next(in);
		length += (size_t)snprintf(inner + length, size - length,
					   "%s\"g%d\": {\"weights\": {\"num_bits\": %s, \"type\": \"%s\", "
					   "\"symmetric\": %s, %s}}",
					   g ? ", " : "", g, bits[how % 10], how & 16 ? "float" : "int",
					   how & 32 ? "true" : "false", ways[next(in) % 8]);
	}
	snprintf(inner + length, size - length, "}}");
	return true;
}

static char *make_config(struct input *in)
{
	static const char *const methods[] = { "fp8", "fbgemm_fp8", "mxfp4", "exl3" };
	static const char *const numbers[] = {
		"128", "1", "2", "16", "0", "-1", "1e3", "\"8\"", "9223372036854775807"
	};
	static const char *const places[] = { "{\"quantization_config\": %s}",
					      "{\"text_config\": {\"quantization_config\": %s}}",
					      "{\"compression_config\": %s}", "{\"quantization_config\": [%s]}" };
	char inner[512], text[640];
	uint8_t what = next(in);
	size_t length = 0;

	if (what < 8)
		return NULL;
	if (what < 12)
		return make_grouped(in);
	if (what < 16) { /* any text */
		while (length < sizeof text - 1 && (text[length] = (char)next(in)))
			length++;
		text[length] = 0;
		return strdup(text);
	}
	if (!make_groups(in, what, inner, sizeof inner))
		snprintf(inner, sizeof inner, "{\"quant_method\": \"%s\"%s%s%s%s%s%s}", methods[what % 4],
			 what & 16 ? ", \"weight_block_size\": [" : "", what & 16 ? numbers[next(in) % 9] : "",
			 what & 16 ? ", " : "", what & 16 ? numbers[next(in) % 9] : "", what & 16 ? "]" : "",
			 what & 32 ? ", \"fmt\": \"e4m3\"" : "");
	snprintf(text, sizeof text, places[what >> 6], inner);
	return strdup(text);
}

static void make_name(struct input *in, char name[64])
{
	static const char *const stems[] = { "m.q_proj", "m.experts.gate_up_proj", "m.down_proj", "z" };
	static const char *const endings[] = { ".weight",      ".weight_scale_inv", ".weight_scale", "_scale_inv",
					       "_scale",       "_blocks",           "_scales",       "",
					       ".input_scale", ".qweight",          ".qzeros",       ".scales",
					       ".g_idx",       ".q_weight",         ".q_scale",      ".q_scale_max",
					       ".q_groups",    ".q_invperm",        ".q_perm" };
	static const char *const of_weights[] = { "_packed", "_scale",        "_zero_point", "_shape",
						  "_g_idx",  "_global_scale", "_scale_2" };
	uint8_t what = next(in);

	if (what < 180)
		snprintf(name, 64, "%s%s", stems[what % 4], endings[what / 4 % 19]);
	else
		snprintf(name, 64, "%s.weight%s", stems[what % 4], of_weights[what / 4 % 7]);
}

/* A shape of at most MAX_BYTES; larger ones are cut. */
static void make_shape(struct input *in, struct xfp_source_tensor *t)
{
	uint64_t bits = xfp_dtype_bits(t->dtype);

	t->rank = next(in) % 5;
	t->bytes = bits / 8;
	for (uint32_t d = 0; d < t->rank; d++) {
		t->shape[d] = sizes[next(in) % SIZES];
		if (t->bytes * t->shape[d] > MAX_BYTES)
			t->shape[d] = 1;
		t->bytes *= t->shape[d];
	}
}

static struct xfp_checkpoint *make_checkpoint(struct input *in)
{
	static const enum xfp_dtype dtypes[] = { XFP_F8_E4M3, XFP_F32, XFP_U8,  XFP_BF16, XFP_F8_E5M2, XFP_F16,
						 XFP_F8_E8M0, XFP_I64, XFP_I32, XFP_I16,  XFP_I8 };
	struct xfp_checkpoint *c = calloc(1, sizeof *c);
	uint32_t wanted = 1 + next(in) % MAX_TENSORS;
	struct stat config;

	c->folder = strdup(folder);
	c->format = "safetensors";
	c->config = make_config(in);
	if (stat(paths[FILES], &config))
		abort();
	c->config_identity = xfp_identity_at(paths[FILES], &config);
	c->files = calloc(FILES, sizeof *c->files);
	for (; c->file_count < FILES; c->file_count++) {
		struct stat st;

		c->files[c->file_count] = (struct xfp_source_file){ .name = strdup(names[c->file_count]),
								    .path = strdup(paths[c->file_count]) };
		if (stat(paths[c->file_count], &st))
			abort();
		c->files[c->file_count].identity = xfp_identity_at(paths[c->file_count], &st);
	}
	c->tensors = calloc(wanted, sizeof *c->tensors);
	for (uint32_t i = 0; i < wanted; i++) {
		struct xfp_source_tensor t = { .offset = i * MAX_BYTES };
		uint32_t at = c->tensor_count;
		char name[64];

		make_name(in, name);
		t.dtype = dtypes[next(in) % 11];
		t.file = next(in) % FILES;
		make_shape(in, &t);
		if (t.file == 2)
			t.offset = 16 * (next(in) % (SIZES * SIZES + 64));
		else if (strstr(name, ".g_idx"))
			t.offset = MAX_TENSORS * MAX_BYTES;
		/* Sorted by name and unique, as a container provides them. */
		while (at && strcmp(c->tensors[at - 1].name, name) > 0)
			at--;
		if (at && !strcmp(c->tensors[at - 1].name, name))
			continue;
		memmove(c->tensors + at + 1, c->tensors + at, (c->tensor_count - at) * sizeof *c->tensors);
		t.name = strdup(name);
		c->tensors[at] = t;
		c->tensor_count++;
	}
	return c;
}

/* ---- results ------------------------------------------------------------------------------------- */

/* Groups of inputs are only read with the first weights, and checked then. */
static bool groups_are_sound(const struct xfp_matrix_source *source)
{
	struct xfp_element_reader *reader;
	struct xfp_error err;
	enum xfp_status status;
	unsigned char first;

	fuzz_must(!xfp_elements_open(source, &reader, NULL));
	status = xfp_elements_read(reader, 0, 1, &first, &err);
	fuzz_must(!status || (status == XFP_BAD_INPUT && (strstr(err.text, "g_idx") || strstr(err.text, "q_groups") ||
							  strstr(err.text, "q_invperm"))));
	xfp_elements_close(reader);
	return !status;
}

static void read_tensor(const struct xfp_checkpoint *c, const struct xfp_source_tensor *t, struct input *in)
{
	struct xfp_matrix_source source = xfp_checkpoint_source(c, t);
	uint64_t bytes = xfp_dtype_bits(t->dtype) / 8;
	unsigned char *whole, *pieces, some[FUZZ_VIEWS];

	for (uint32_t d = 0; d < t->rank; d++)
		bytes *= t->shape[d];
	fuzz_must(bytes == t->bytes && bytes && t->rank >= 2 && xfp_source_stored_bytes(t));
	source.identity = &c->files[t->file].identity;
	if (xfp_recipe_component(&t->recipe->parts[0], XFP_COMPONENT_GROUPS) && !groups_are_sound(&source))
		return;
	whole = fuzz_read_elements(&source, t->bytes);
	pieces = fuzz_read_elements(&source, 1 + next(in) * 3u);
	fuzz_must(!memcmp(whole, pieces, t->bytes));
	for (size_t i = 0; i < sizeof some; i++)
		some[i] = next(in);
	fuzz_read_matrices(source, t, whole, some);
	free(whole);
	free(pieces);
}

int fuzz_fold(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	struct xfp_checkpoint *c;
	int packed = -1;

	make_folder();
	c = make_checkpoint(&in);
	if (!xfp_checkpoint_fold(c, NULL)) {
		packed = 0;
		for (uint32_t t = 0; t < c->tensor_count; t++) {
			fuzz_must(!t || strcmp(c->tensors[t - 1].name, c->tensors[t].name) < 0);
			if (!c->tensors[t].recipe)
				continue;
			packed++;
			read_tensor(c, &c->tensors[t], &in);
		}
		fuzz_must(!packed == !c->packed);
	}
	xfp_checkpoint_close(c);
	return packed;
}
