/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GGUF: keys and values of every kind, truncated headers, names, numbers in config.json, and conversions that are
 * undone. Complete models: tests/cli/gguf.bats.
 */
#include <math.h>

#include "base/bytes.h"
#include "base/system/filesystem.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/config.h"
#include "checkpoints/gguf/header.h"
#include "checkpoints/gguf/names.h"
#include "checkpoints/packed/decoder.h"
#include "checkpoints/packed/elementary.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

/* ---- a file -------------------------------------------------------------------------------------- */

static unsigned char image[8192];
static size_t used;

static void put(const void *data, size_t size)
{
	memcpy(image + used, data, size);
	used += size;
}

static void put64(uint64_t value)
{
	put(&value, sizeof value);
}

static void put32(uint32_t value)
{
	put(&value, sizeof value);
}

static void put_text(const char *text)
{
	put64(strlen(text));
	put(text, strlen(text));
}

static void put_key(const char *key, uint32_t kind)
{
	put_text(key);
	put32(kind);
}

static void begin(uint64_t tensors, uint64_t keys)
{
	used = 0;
	put("GGUF\2\0\0\0", 8);
	put64(tensors);
	put64(keys);
}

/* One key of each kind, and arrays; two tensors. */
static void make_file(void **state)
{
	double number = -2.5;

	begin(2, 16);
	put_key("z.u8", XFP_GGUF_U8);
	put("\377", 1);
	put_key("i8", XFP_GGUF_I8);
	put("\377", 1);
	put_key("u16", XFP_GGUF_U16);
	put("\377\377", 2);
	put_key("i16", XFP_GGUF_I16);
	put("\1\0", 2);
	put_key("a.u32", XFP_GGUF_U32);
	put32(UINT32_MAX);
	put_key("a.i32", XFP_GGUF_I32);
	put32(7);
	put_key("f32", XFP_GGUF_F32);
	put(&(float){ 0.5f }, 4);
	put_key("true", XFP_GGUF_BOOL);
	put("\1", 1);
	put_key("text", XFP_GGUF_TEXT);
	put_text("llama");
	put_key("u64", XFP_GGUF_U64);
	put64(UINT64_C(1) << 40);
	put_key("i64", XFP_GGUF_I64);
	put64(UINT64_C(1) << 41);
	put_key("f64", XFP_GGUF_F64);
	put(&number, sizeof number);
	put_key("texts", XFP_GGUF_ARRAY);
	put32(XFP_GGUF_TEXT);
	put64(3);
	put_text("a");
	put_text("");
	put64(3);
	put("b\0c", 3);
	put_key("numbers", XFP_GGUF_ARRAY);
	put32(XFP_GGUF_I32);
	put64(2);
	put32(5);
	put32((uint32_t)-5);
	put_key("none", XFP_GGUF_ARRAY);
	put32(XFP_GGUF_TEXT);
	put64(0);
	put_key("general.alignment", XFP_GGUF_U32);
	put32(64);
	put_text("weight");
	put32(2);
	put64(3);
	put64(5);
	put32(XFP_GGML_F16);
	put64(0);
	put_text("scalar");
	put32(0);
	put32(XFP_GGML_F32);
	put64(64);
	used = xfp_align(used, 64);
	put(&(unsigned char[68]){ 1 }, 68);
	scratch_write(state, "x.gguf", image, used);
}

static void kinds(void **state)
{
	char *path = scratch_path(state, "x.gguf");
	const struct xfp_place whole = xfp_place_of_file(path);
	const struct xfp_gguf_metadata *m;
	struct xfp_gguf_file file;
	struct xfp_gguf_text text;
	uint64_t integer = 99, at = 0;
	double real;
	bool flag;

	make_file(state);
	assert_int_equal(xfp_gguf_read(&whole, &file, &err), XFP_OK);
	m = &file.metadata;
	assert_int_equal(m->count, 16);
	assert_true(xfp_gguf_integer(xfp_gguf_find_in(m, "z", "u8"), 0, &integer) && integer == 255);
	assert_false(xfp_gguf_integer(xfp_gguf_find(m, "i8"), 0, &integer));
	assert_true(xfp_gguf_integer(xfp_gguf_find(m, "u16"), 0, &integer) && integer == 65535);
	assert_true(xfp_gguf_integer(xfp_gguf_find(m, "i16"), 0, &integer) && integer == 1);
	assert_true(xfp_gguf_integer(xfp_gguf_find(m, "a.u32"), 0, &integer) && integer == UINT32_MAX);
	assert_true(xfp_gguf_integer(xfp_gguf_find_in(m, "a", "i32"), 0, &integer) && integer == 7);
	assert_true(xfp_gguf_integer(xfp_gguf_find(m, "u64"), 0, &integer) && integer == UINT64_C(1) << 40);
	assert_true(xfp_gguf_integer(xfp_gguf_find(m, "i64"), 0, &integer) && integer == UINT64_C(1) << 41);
	assert_true(xfp_gguf_real(xfp_gguf_find(m, "i64"), 0, &real) && real == 0x1p41);
	assert_true(xfp_gguf_real(xfp_gguf_find(m, "f32"), 0, &real) && real == 0.5);
	assert_true(xfp_gguf_real(xfp_gguf_find(m, "f64"), 0, &real) && real == -2.5);
	assert_false(xfp_gguf_integer(xfp_gguf_find(m, "f64"), 0, &integer));
	assert_true(xfp_gguf_flag(xfp_gguf_find(m, "true"), 0, &flag) && flag);
	assert_false(xfp_gguf_flag(xfp_gguf_find(m, "z.u8"), 0, &flag));
	assert_true(xfp_gguf_text_is(xfp_gguf_find(m, "text"), "llama"));
	assert_false(xfp_gguf_text_is(xfp_gguf_find(m, "text"), "llam"));
	assert_null(xfp_gguf_find(m, "tex"));
	assert_null(xfp_gguf_find_in(m, "a", "u3"));
	assert_null(xfp_gguf_find_in(m, "z", "u88"));
	assert_true(xfp_gguf_integer(xfp_gguf_find(m, "numbers"), 0, &integer) && integer == 5);
	assert_false(xfp_gguf_integer(xfp_gguf_find(m, "numbers"), 1, &integer));
	assert_false(xfp_gguf_integer(xfp_gguf_find(m, "numbers"), 2, &integer));
	assert_true(xfp_gguf_next_text(xfp_gguf_find(m, "texts"), &at, &text) && text.length == 1);
	assert_true(xfp_gguf_next_text(xfp_gguf_find(m, "texts"), &at, &text) && text.length == 0);
	assert_true(xfp_gguf_next_text(xfp_gguf_find(m, "texts"), &at, &text) && !memcmp(text.bytes, "b\0c", 3));
	assert_false(xfp_gguf_next_text(xfp_gguf_find(m, "texts"), &at, &text));
	at = 0;
	assert_false(xfp_gguf_next_text(xfp_gguf_find(m, "none"), &at, &text));
	assert_false(xfp_gguf_next_text(xfp_gguf_find(m, "text"), &at, &text));
	assert_int_equal(file.count, 2);
	assert_string_equal(file.tensors[0].name, "weight");
	assert_int_equal(file.tensors[0].rank, 2);
	assert_int_equal(file.tensors[0].shape[0], 5);
	assert_int_equal(file.tensors[0].shape[1], 3);
	assert_int_equal(file.tensors[0].bytes, 30);
	assert_int_equal(file.tensors[0].offset, used - 68);
	assert_int_equal(file.tensors[1].offset, used - 4);
	assert_int_equal(file.tensors[1].bytes, 4);
	xfp_gguf_free(&file);
	free(path);
}

/* A truncated file is refused by name, at any length. */
static void cut(void **state)
{
	char *path = scratch_path(state, "x.gguf");
	const struct xfp_place whole = xfp_place_of_file(path);
	struct xfp_gguf_file file;

	make_file(state);
	for (size_t size = 0; size < used; size++) {
		scratch_write(state, "x.gguf", image, size);
		assert_int_equal(xfp_gguf_read(&whole, &file, &err), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, path));
	}
	scratch_write(state, "x.gguf", image, used);
	assert_int_equal(xfp_gguf_read(&whole, &file, &err), XFP_OK);
	xfp_gguf_free(&file);
	free(path);
}

/* ---- names --------------------------------------------------------------------------------------- */

static void is_named(enum xfp_gguf_architecture architecture, const char *theirs, const char *ours,
		     enum xfp_gguf_transform transform)
{
	struct xfp_gguf_place place = xfp_gguf_place(architecture, 4, theirs);

	assert_string_equal(place.name, ours);
	assert_int_equal(place.transform, transform);
}

static void named(void **state)
{
	(void)state;
	is_named(XFP_GGUF_LLAMA, "blk.12.attn_q.weight", "model.layers.12.self_attn.q_proj.weight", XFP_GGUF_QUERY);
	is_named(XFP_GGUF_QWEN2, "blk.12.attn_q.bias", "model.layers.12.self_attn.q_proj.bias", XFP_GGUF_AS_IS);
	is_named(XFP_GGUF_GEMMA2, "blk.0.ffn_norm.weight", "model.layers.0.pre_feedforward_layernorm.weight",
		 XFP_GGUF_NORM);
	is_named(XFP_GGUF_LLAMA, "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight",
		 XFP_GGUF_AS_IS);
	is_named(XFP_GGUF_GPT_OSS, "blk.0.ffn_norm.weight", "blk.0.ffn_norm.weight", XFP_GGUF_UNKNOWN);
	is_named(XFP_GGUF_MIXTRAL, "blk.3.ffn_down.7.weight", "model.layers.3.block_sparse_moe.experts.7.w2.weight",
		 XFP_GGUF_AS_IS);
	is_named(XFP_GGUF_QWEN3NEXT, "blk.4.attn_q_norm.weight", "mtp.layers.0.self_attn.q_norm.weight", XFP_GGUF_NORM);
	is_named(XFP_GGUF_QWEN3NEXT, "blk.4.nextn.eh_proj.weight", "mtp.fc.weight", XFP_GGUF_AS_IS);
	is_named(XFP_GGUF_QWEN3NEXT, "blk.3.nextn.eh_proj.weight", "blk.3.nextn.eh_proj.weight", XFP_GGUF_UNKNOWN);
	is_named(XFP_GGUF_QWEN3NEXT, "blk.1.ssm_norm.weight", "model.layers.1.linear_attn.norm.weight", XFP_GGUF_AS_IS);
	is_named(XFP_GGUF_LLAMA, "blk.01.attn_q.weight", "blk.01.attn_q.weight", XFP_GGUF_UNKNOWN);
	is_named(XFP_GGUF_LLAMA, "blk.1.attn_q.weights", "blk.1.attn_q.weights", XFP_GGUF_UNKNOWN);
	is_named(XFP_GGUF_ARCHITECTURES, "token_embd.weight", "token_embd.weight", XFP_GGUF_UNKNOWN);
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static void is_printed(double number, const char *as)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	assert_non_null(out);
	xfp_gguf_print_real(out, number);
	assert_true(xfp_text_end(&text));
	assert_string_equal(text.bytes, as);
	free(text.bytes);
}

static void printed(void **state)
{
	(void)state;
	is_printed((double)1e-5f, "1e-05");
	is_printed((double)1e-6f, "1e-06");
	is_printed(10000, "10000.0");
	is_printed(1e6, "1e+06");
	is_printed((double)1.1f, "1.1");
	is_printed((double)1.0000001f, "1.0000001");
	is_printed(0.1, "0.1");
	is_printed(-0.25, "-0.25");
	is_printed(0, "0.0");
}

static void elementary(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		double unit = (double)(test_random(&seed) >> 11) * 0x1p-53, x = ldexp(unit + 0x1p-60, i % 200 - 100);

		assert_true(fabs(xfp_ln(x) - log(x)) <= 4e-16 * (1 + fabs(log(x))));
		x = (unit - 0.5) * (i % 2 ? 1400 : 2);
		assert_true(fabs(xfp_exp(x) - exp(x)) <= 1e-13 * exp(x));
	}
	assert_true(xfp_ln(1) == 0 && xfp_exp(0) == 1);
}

/* ---- undone conversions -------------------------------------------------------------------------- */

#define MANY 65536

static void reverse(void **state, enum xfp_reversed transform, const float *stored, float *got)
{
	char *path = scratch_path(state, "floats");
	struct xfp_source_file file = { .name = path, .path = path };
	struct xfp_component codes = { XFP_COMPONENT_CODES, XFP_F32, 0, 0, MANY * sizeof(float) };
	struct xfp_recipe_part part = { .codec = XFP_CODEC_REVERSED,
					.version = xfp_codec_version(XFP_CODEC_REVERSED),
					.rows = 16,
					.cols = MANY / 16,
					.parameters = { transform },
					.components = &codes,
					.component_count = 1 };
	struct xfp_recipe recipe = { .parts = &part, .part_count = 1, .rows = part.rows, .cols = part.cols };
	struct xfp_packed_source source = { .recipe = &recipe, .files = &file, .dtype = XFP_F32, .tensor = "x" };
	struct xfp_decoder *decoder;

	scratch_write(state, "floats", stored, MANY * sizeof *stored);
	assert_int_equal(xfp_decoder_open(&source, &decoder, &err), XFP_OK);
	assert_int_equal(xfp_decoder_read(decoder, 0, 1, part.rows, 0, part.cols, got, &err), XFP_OK);
	xfp_decoder_close(decoder);
	free(path);
}

static void reversed(void **state)
{
	static float weights[MANY], stored[MANY], got[MANY];
	uint64_t seed = 6;

	/* All bf16 numbers. */
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t bits = i << 16;

		memcpy(&weights[i], &bits, sizeof bits);
		stored[i] = weights[i] + 1;
	}
	reverse(state, XFP_REVERSED_ONE, stored, got);
	for (uint32_t i = 0; i < MANY; i++) {
		float size = fabsf(weights[i]);

		if (size >= 0x1p-16f && size < 0x1p8f && got[i] != weights[i])
			fail_msg("%a comes back as %a", (double)weights[i], (double)got[i]);
		if (size < 1 && fabs((double)got[i] - (double)weights[i]) > 0x1p-24)
			fail_msg("%a comes back as %a", (double)weights[i], (double)got[i]);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		weights[i] = (float)((double)(test_random(&seed) >> 40) * 0x1p-20 - 8);
		stored[i] = -expf(weights[i]);
	}
	stored[0] = 0;
	stored[1] = 1;
	stored[2] = -INFINITY;
	reverse(state, XFP_REVERSED_DECAY, stored, got);
	for (uint32_t i = 0; i < MANY; i++)
		if (i < 3 ? !isnan(got[i])
			  : fabs((double)got[i] - (double)weights[i]) > 0x1p-23 + 0x1p-24 * fabs((double)weights[i]))
			fail_msg("%a comes back as %a", (double)weights[i], (double)got[i]);
}

PROGRAM("test_gguf")
{
	const struct CMUnitTest tests[] = {
		scratch_test(kinds),          scratch_test(cut),
		cmocka_unit_test(named),      cmocka_unit_test(printed),
		cmocka_unit_test(elementary), scratch_test(reversed),
	};

	return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
