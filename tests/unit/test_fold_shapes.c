/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP8, compressed-tensors, modelopt and MXFP4: recipes by shapes and types of codes and scales; refusals.
 */
#include <fcntl.h>

#include "base/system/filesystem.h"
#include "checkpoints/open/fold.h"
#include "tests/unit/scratch.h"

#define MAX_TENSORS 4

static struct xfp_error err;

struct tensor {
	const char *name;
	enum xfp_dtype dtype;
	uint32_t rank;
	uint64_t shape[4];
};

struct result {
	uint64_t rows, cols, parameters[XFP_CODEC_PARAMETERS];
};

/* Tensors are sorted by name. Past their end lies one that every form refuses, should it be read. */
static void fold_tensors(const struct xfp_fold_form *form, const char *config, const char *data,
			 const struct tensor tensors[MAX_TENSORS], const char *message, const struct result *result)
{
	struct stat st = { 0 };
	struct xfp_source_file file = { .name = (char *)"f", .path = (char *)(uintptr_t)data };
	struct xfp_source_tensor listed[MAX_TENSORS + 1] = { 0 };
	struct xfp_checkpoint checkpoint = {
		.folder = (char *)"m", .files = &file, .file_count = 1, .tensors = listed
	};
	bool consumed[MAX_TENSORS + 1] = { false };
	uint32_t cut[MAX_TENSORS + 1] = { 0 };
	const char *ending[MAX_TENSORS + 1] = { NULL };
	json_t *json = json_loads(config, 0, NULL);
	struct xfp_fold fold = { .checkpoint = &checkpoint,
				 .config = json,
				 .config_name = "config.json",
				 .method = "method",
				 .consumed = consumed,
				 .cut = cut,
				 .ending = ending,
				 .config_file = UINT32_MAX,
				 .open_file = UINT32_MAX,
				 .err = &err };
	enum xfp_status status;

	assert_non_null(json);
	if (data) {
		assert_int_equal(stat(data, &st), 0);
		file.identity = xfp_identity_at(data, &st);
	}
	for (; checkpoint.tensor_count < MAX_TENSORS && tensors[checkpoint.tensor_count].name;
	     checkpoint.tensor_count++) {
		const struct tensor *from = &tensors[checkpoint.tensor_count];
		struct xfp_source_tensor *t = &listed[checkpoint.tensor_count];

		*t = (struct xfp_source_tensor){ .name = (char *)(uintptr_t)from->name,
						 .dtype = from->dtype,
						 .rank = from->rank,
						 .bytes = xfp_dtype_bits(from->dtype) / 8 };
		memcpy(t->shape, from->shape, sizeof from->shape);
		for (uint32_t d = 0; d < t->rank; d++)
			t->bytes *= t->shape[d];
	}
	listed[checkpoint.tensor_count] = (struct xfp_source_tensor){
		.name = (char *)(uintptr_t)(form == &xfp_fold_awq ? "z.scales" : "z.weight_packed"),
		.dtype = XFP_F8_E4M3,
		.rank = form == &xfp_fold_awq ? 1 : 2,
		.shape = { 1, 1 },
		.bytes = 1
	};
	status = form->fold(&fold);
	if (message ? status != XFP_BAD_INPUT || !strstr(err.text, message) : status != XFP_OK)
		fail_msg("%s %s: status %d: %s", form->name, config, (int)status, status ? err.text : "");
	if (!message) {
		const struct xfp_recipe *recipe = listed[0].recipe;
		uint64_t bytes = xfp_dtype_bits(listed[0].dtype) / 8;

		assert_non_null(recipe);
		for (uint32_t d = 0; d < listed[0].rank; d++)
			bytes *= listed[0].shape[d];
		assert_int_equal(listed[0].bytes, bytes);
		assert_true(consumed[1] && !consumed[0]);
		if (recipe->parts[0].rows != result->rows || recipe->parts[0].cols != result->cols)
			fail_msg("%s %s: another matrix", form->name, config);
		for (int i = 0; i < XFP_CODEC_PARAMETERS; i++)
			if (recipe->parts[0].parameters[i] != result->parameters[i])
				fail_msg("%s %s: parameter %d is %llu", form->name, config, i,
					 (unsigned long long)recipe->parts[0].parameters[i]);
	}
	for (uint32_t t = 0; t < MAX_TENSORS; t++)
		xfp_recipe_free(listed[t].recipe);
	if (fold.open_file != UINT32_MAX)
		close(fold.fd);
	json_decref(json);
}

struct one {
	const char *config;
	struct tensor tensors[MAX_TENSORS];
	const char *message;
	struct result result;
};

static void check(const struct xfp_fold_form *form, const char *data, const struct one *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fold_tensors(form, cases[i].config, data, cases[i].tensors, cases[i].message, &cases[i].result);
}

#define F8 XFP_F8_E4M3
#define BLOCKS(a, b) "{\"weight_block_size\": [" a ", " b "]}"

static void fp8(void **state)
{
	static const struct one cases[] = {
		/* Matrix rows, and those and columns of a block. */
		{ "{}", { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 0, { 0 } } }, NULL, { 6, 8, { 6, 6, 8 } } },
		{ "{}", { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 1, { 6 } } }, NULL, { 6, 8, { 6, 1, 8 } } },
		{ "{}",
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 2, { 6, 1 } } },
		  NULL,
		  { 6, 8, { 6, 1, 8 } } },
		{ "{}",
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 2, { 1, 8 } } },
		  NULL,
		  { 6, 8, { 6, 6, 1 } } },
		{ BLOCKS("4", "3"),
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 2, { 2, 3 } } },
		  NULL,
		  { 6, 8, { 6, 4, 3 } } },
		{ BLOCKS("1", "8"),
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale_inv", XFP_BF16, 2, { 6, 1 } } },
		  NULL,
		  { 6, 8, { 6, 1, 8 } } },
		{ "{}",
		  { { "w", F8, 3, { 2, 6, 8 } }, { "w_scale", XFP_F32, 1, { 2 } } },
		  NULL,
		  { 12, 8, { 6, 6, 8 } } },
		{ BLOCKS("4", "3"),
		  { { "w", F8, 3, { 2, 6, 8 } }, { "w_scale", XFP_F32, 2, { 2, 6 } } },
		  NULL,
		  { 12, 8, { 6, 1, 8 } } },
		{ BLOCKS("4", "3"),
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 2, { 6, 1 } } },
		  "in blocks of 4 x 3",
		  { 0 } },
		{ "{}", { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 2, { 2, 3 } } }, "ambiguous", { 0 } },
		{ "{}", { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 3, { 6, 1, 2 } } }, "ambiguous", { 0 } },
		{ "{}", { { "w", F8, 3, { 2, 6, 8 } }, { "w_scale", XFP_F32, 1, { 3 } } }, "ambiguous", { 0 } },
		{ "{}", { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_I8, 1, { 6 } } }, "is I8; scales are", { 0 } },
		{ "{}",
		  { { "w", F8, 1, { 6 } }, { "w_scale", XFP_F32, 1, { 6 } } },
		  "neither a matrix nor a stack",
		  { 0 } },
		{ "{}", { { "w", F8, 2, { 6, 8 } } }, "has no scales", { 0 } },
		{ "{\"fmt\": \"e5m2\"}",
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 0, { 0 } } },
		  "says fmt e5m2",
		  { 0 } },
		{ "{\"fmt\": \"float8_e4m3fn\"}",
		  { { "w", F8, 2, { 6, 8 } }, { "w_scale", XFP_F32, 0, { 0 } } },
		  NULL,
		  { 6, 8, { 6, 6, 8 } } },
		{ BLOCKS("4", "0"), { { "w", F8, 2, { 6, 8 } } }, "weight_block_size is not two numbers", { 0 } },
		{ BLOCKS("-1", "4"), { { "w", F8, 2, { 6, 8 } } }, "weight_block_size is not two numbers", { 0 } },
		{ BLOCKS("\"4\"", "4"), { { "w", F8, 2, { 6, 8 } } }, "weight_block_size is not two numbers", { 0 } },
		{ BLOCKS("4", "4, 4"), { { "w", F8, 2, { 6, 8 } } }, "weight_block_size is not two numbers", { 0 } },
		{ "{\"weight_block_size\": [4]}", { { "w", F8, 2, { 6, 8 } } }, "weight_block_size is not two", { 0 } },
	};

	(void)state;
	check(&xfp_fold_fp8, NULL, cases, sizeof cases / sizeof *cases);
}

#define SETS(weights) "{\"config_groups\": {\"a\": {\"weights\": {" weights "}}}}"
#define TWO(a, b) "{\"config_groups\": {\"a\": {\"weights\": {" a "}}, \"b\": {\"weights\": {" b "}}}}"
#define GROUPS(size) "\"type\": \"float\", \"strategy\": \"group\", \"group_size\": " size
#define FLOATS SETS("\"type\": \"float\"")
#define PAIR(dtype, rank, ...)                           \
	{                                                \
		{ "x.weight", dtype, 2, { 6, 8 } },      \
		{                                        \
			"x.weight_scale", XFP_F32, rank, \
			{                                \
				__VA_ARGS__              \
			}                                \
		}                                        \
	}

static void compressed(void **state)
{
	static const struct one cases[] = {
		{ FLOATS, PAIR(F8, 0, 0), NULL, { 6, 8, { 6, 6, 8 } } },
		{ FLOATS, PAIR(F8, 1, 1), NULL, { 6, 8, { 6, 6, 8 } } },
		{ FLOATS, PAIR(F8, 2, 1, 1), NULL, { 6, 8, { 6, 6, 8 } } },
		{ FLOATS, PAIR(F8, 4, 1, 1, 1, 1), NULL, { 6, 8, { 6, 6, 8 } } },
		{ FLOATS, PAIR(F8, 2, 6, 1), "which match no group", { 0 } },
		{ FLOATS, PAIR(XFP_I8, 0, 0), "which match no group", { 0 } },
		{ SETS("\"type\": \"float\", \"num_bits\": 7"), PAIR(F8, 0, 0), "which match no group", { 0 } },
		{ SETS("\"type\": \"float\", \"strategy\": \"channel\""),
		  PAIR(F8, 2, 6, 1),
		  NULL,
		  { 6, 8, { 6, 1, 8 } } },
		{ SETS("\"type\": \"float\", \"strategy\": \"channel\""), PAIR(F8, 1, 6), NULL, { 6, 8, { 6, 1, 8 } } },
		{ SETS("\"type\": \"float\", \"strategy\": \"channel\""), PAIR(F8, 1, 5), "match no group", { 0 } },
		{ SETS("\"type\": \"float\", \"strategy\": \"group\", \"group_size\": 4"),
		  PAIR(F8, 2, 6, 2),
		  NULL,
		  { 6, 8, { 6, 1, 4 } } },
		{ SETS("\"type\": \"float\", \"strategy\": \"group\", \"group_size\": 4"),
		  PAIR(F8, 1, 6),
		  "which match no group",
		  { 0 } },
		{ SETS("\"type\": \"float\", \"strategy\": \"block\", \"block_structure\": [4, 3]"),
		  PAIR(F8, 4, 2, 1, 3, 1),
		  NULL,
		  { 6, 8, { 6, 4, 3 } } },
		{ SETS("\"type\": \"float\", \"strategy\": \"block\", \"block_structure\": [4, 3]"),
		  PAIR(F8, 4, 2, 3, 1, 1),
		  "which match no group",
		  { 0 } },
		{ "{\"format\": \"pack-quantized\", \"config_groups\": {\"a\": {\"weights\": {\"type\": \"float\"}}}}",
		  PAIR(F8, 0, 0),
		  "which match no group",
		  { 0 } },
		{ "{\"format\": \"float-quantized\", \"config_groups\": {\"a\": {\"weights\": {\"type\": \"float\"}}}}",
		  PAIR(F8, 0, 0),
		  NULL,
		  { 6, 8, { 6, 6, 8 } } },
		/* One of two groups fits; two groups that agree, and two that do not. */
		{ TWO("\"type\": \"int\"", "\"type\": \"float\""), PAIR(F8, 0, 0), NULL, { 6, 8, { 6, 6, 8 } } },
		{ TWO("\"type\": \"float\"", "\"type\": \"float\""), PAIR(F8, 0, 0), NULL, { 6, 8, { 6, 6, 8 } } },
		{ TWO(GROUPS("4"), GROUPS("5")), PAIR(F8, 2, 6, 2), "contradict each other", { 0 } },
		{ FLOATS,
		  { { "x.weight", F8, 3, { 2, 6, 8 } }, { "x.weight_scale", XFP_F32, 0, { 0 } } },
		  "is not a matrix",
		  { 0 } },
		{ FLOATS,
		  { { "x.weight", F8, 2, { 0, 8 } }, { "x.weight_scale", XFP_F32, 0, { 0 } } },
		  "is not a matrix",
		  { 0 } },
		{ FLOATS, { { "x.weight", F8, 2, { 6, 8 } } }, "has no scales", { 0 } },
	};

	(void)state;
	check(&xfp_fold_compressed, NULL, cases, sizeof cases / sizeof *cases);
}

#define FP4(rank, ...)                                                                                 \
	{                                                                                              \
		{ "x.weight", XFP_U8, 2, { 6, 16 } }, { "x.weight_scale", F8, rank, { __VA_ARGS__ } }, \
		{                                                                                      \
			"x.weight_scale_2", XFP_F32, 0,                                                \
			{                                                                              \
				0                                                                      \
			}                                                                              \
		}                                                                                      \
	}
#define EXPERTS(dtype, rank, ...)                        \
	{                                                \
		{ "e", dtype, 3, { 2, 6, 8 } },          \
		{                                        \
			"e_weight_scale", XFP_F32, rank, \
			{                                \
				__VA_ARGS__              \
			}                                \
		}                                        \
	}

static void modelopt(void **state)
{
	static const struct one cases[] = {
		{ "{\"quant_algo\": \"FP8\"}", EXPERTS(F8, 1, 2), NULL, { 12, 8, { 6, 6, 8 } } },
		{ "{\"quant_algo\": \"FP8\"}", EXPERTS(F8, 0, 0), NULL, { 12, 8, { 12, 12, 8 } } },
		{ "{\"quant_algo\": \"FP8\"}", EXPERTS(F8, 1, 3), "have one scale for all or for each", { 0 } },
		{ "{\"quant_algo\": \"FP8\"}", EXPERTS(F8, 2, 1, 2), "have one scale for all or for each", { 0 } },
		{ "{\"quant_algo\": \"FP8\"}",
		  EXPERTS(XFP_U8, 1, 2),
		  "fused experts are supported as 8-bit floats only",
		  { 0 } },
		{ "{\"quant_algo\": \"FP8\"}",
		  EXPERTS(XFP_I8, 1, 2),
		  "fused experts are supported as 8-bit floats only",
		  { 0 } },
		{ "{\"quant_algo\": \"NVFP4\"}", FP4(2, 6, 2), NULL, { 6, 32, { 6 } } },
		{ "{\"quant_algo\": \"NVFP4\", \"group_size\": 16}", FP4(2, 6, 2), NULL, { 6, 32, { 6 } } },
		{ "{\"quant_algo\": \"NVFP4\", \"group_size\": 0}", FP4(2, 6, 2), NULL, { 6, 32, { 6 } } },
		{ "{\"quant_algo\": \"NVFP4\", \"group_size\": null}", FP4(2, 6, 2), NULL, { 6, 32, { 6 } } },
		{ "{\"quant_algo\": \"NVFP4\", \"group_size\": 32}", FP4(2, 6, 2), "group_size does not", { 0 } },
		{ "{\"quant_algo\": \"NVFP4\", \"group_size\": \"16\"}", FP4(2, 6, 2), "group_size does not", { 0 } },
		{ "{\"quant_algo\": \"FP8\", \"group_size\": -1}", EXPERTS(F8, 1, 2), "group_size does not", { 0 } },
		{ "{\"quant_algo\": \"MXFP4\", \"group_size\": 16}", FP4(2, 6, 2), "group_size does not", { 0 } },
		{ "{\"quant_algo\": \"FP6\"}", FP4(2, 6, 2), "quant_algo is FP6, a form", { 0 } },
		{ "{\"quant_algo\": \"NVFP4\"}", FP4(2, 6, 1), "and a scale for each 16", { 0 } },
		{ "{\"quant_algo\": \"NVFP4\"}", FP4(2, 5, 2), "and a scale for each 16", { 0 } },
		{ "{\"quant_algo\": \"NVFP4\"}", FP4(1, 12), "and a scale for each 16", { 0 } },
	};

	(void)state;
	check(&xfp_fold_modelopt, NULL, cases, sizeof cases / sizeof *cases);
}

/* A scale of scales that is 0 cannot be divided by, whatever its sign. */
static void divided_by(void **state)
{
	static const struct tensor tensors[MAX_TENSORS] = { { "x.weight_packed", XFP_U8, 2, { 6, 16 } },
							    { "x.weight_global_scale", XFP_F32, 1, { 1 } },
							    { "x.weight_scale", F8, 2, { 6, 2 } } };
	static const char config[] = "{\"format\": \"nvfp4-pack-quantized\", \"config_groups\": {\"a\": {\"weights\": "
				     "{\"num_bits\": 4, \"type\": \"float\", \"strategy\": \"tensor_group\", "
				     "\"group_size\": 16}}}}";
	static const float values[] = { 1, 0, -0.0f };
	const struct result result = { 6, 32, { 6, 1 } };
	char *path = scratch_path(state, "f");

	for (int i = 0; i < 3; i++) {
		scratch_write(state, "f", &values[i], sizeof values[i]);
		fold_tensors(&xfp_fold_compressed, config, path, tensors, i ? "is 0, and scales are divided" : NULL,
			     &result);
	}
	free(path);
}

/* Scales beside no codes are of activations, which is refused; those past the end of the list are not seen. */
static void awq(void **state)
{
#define MATRIX                                                                        \
	{ "x.qweight", XFP_I32, 2, { 64, 4 } }, { "x.qzeros", XFP_I32, 2, { 2, 4 } }, \
	{                                                                             \
		"x.scales", XFP_F16, 2,                                               \
		{                                                                     \
			2, 32                                                         \
		}                                                                     \
	}
	static const struct one cases[] = {
		{ "{\"bits\": 4, \"group_size\": 32}", { MATRIX }, NULL, { 32, 64, { 32 } } },
		{ "{\"bits\": 4, \"group_size\": 32}",
		  { MATRIX, { "y.scales", XFP_F16, 1, { 32 } } },
		  "y.scales: divides the output of an activation",
		  { 0 } },
	};

	(void)state;
	check(&xfp_fold_awq, NULL, cases, sizeof cases / sizeof *cases);
}

static void mxfp4(void **state)
{
#define BLOCKS_OF(rank, ...)                                   \
	{                                                      \
		{ "w_blocks", XFP_U8, rank, { __VA_ARGS__ } }, \
		{                                              \
			"w_scales", XFP_U8, 3,                 \
			{                                      \
				2, 6, 4                        \
			}                                      \
		}                                              \
	}
	static const struct one cases[] = {
		{ "{}", BLOCKS_OF(4, 2, 6, 4, 16), NULL, { 12, 128, { 0 } } },
		{ "{}", BLOCKS_OF(4, 2, 6, 4, 8), "has the shape [2, 6, 4, 8]; blocks of 32 weights", { 0 } },
		{ "{}", BLOCKS_OF(3, 2, 6, 64), "has the shape [2, 6, 64]; blocks of 32 weights", { 0 } },
		{ "{}", BLOCKS_OF(4, 2, 6, 5, 16), "but the blocks that it scales", { 0 } },
		{ "{}", { { "w_blocks", XFP_U8, 4, { 2, 6, 4, 16 } } }, "has no scales", { 0 } },
	};

	(void)state;
	check(&xfp_fold_mxfp4, NULL, cases, sizeof cases / sizeof *cases);
}

/* Only the file that was read last stays open, and no other descriptor is closed. */
static void one_file_is_open(void **state)
{
	struct xfp_source_file files[2] = { { .name = (char *)"a" }, { .name = (char *)"b" } };
	struct xfp_source_tensor t = { .name = (char *)"t", .offset = 1, .bytes = 1 };
	struct xfp_checkpoint checkpoint = { .folder = *state, .files = files, .file_count = 2 };
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), last = -1;
	struct xfp_fold fold = { .checkpoint = &checkpoint, .open_file = UINT32_MAX, .fd = before, .err = &err };
	struct stat st;
	char c;

	for (int i = 0; i < 2; i++) {
		scratch_write(state, files[i].name, i ? "xb" : "xa", 2);
		files[i].path = scratch_path(state, files[i].name);
		assert_int_equal(stat(files[i].path, &st), 0);
		files[i].identity = xfp_identity_at(files[i].path, &st);
	}
	for (int i = 0; i < 6; i++) {
		t.file = (uint32_t)i / 2 % 2;
		assert_int_equal(xfp_fold_read(&fold, &t, &c), XFP_OK);
		assert_int_equal(c, t.file ? 'b' : 'a');
		assert_true(last < 0 || fold.fd == last); /* the lowest free one: none was leaked */
		last = fold.fd;
	}
	assert_true(fcntl(before, F_GETFD) >= 0);
	close(before);
	close(fold.fd);
	free(files[0].path);
	free(files[1].path);
}

PROGRAM("test_fold_shapes")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fp8),          cmocka_unit_test(compressed), cmocka_unit_test(modelopt),
		scratch_test(divided_by),       cmocka_unit_test(awq),        cmocka_unit_test(mxfp4),
		scratch_test(one_file_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
