/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantization configs of GPTQ and compressed-tensors: every value at its limits, and shapes that contradict them.
 */
#include "checkpoints/open/compressed_sets.h"
#include "checkpoints/open/fold_grouped.h"
#include "checkpoints/packed/grouped.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct xfp_error err;

static json_t *parsed(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	if (!json)
		fail_msg("%s", text);
	return json;
}

static void expect_status(const char *what, enum xfp_status status, const char *message)
{
	if (message ? status != XFP_BAD_INPUT || !strstr(err.text, message) : status != XFP_OK)
		fail_msg("%s: status %d, %s, and not %s", what, (int)status, status ? err.text : "",
			 message ? message : "sound");
}

/* ---- compressed-tensors ----------------------------------------------------------------------------- */

#define TENSOR       \
	{            \
		0, 0 \
	}
#define CHANNEL      \
	{            \
		1, 0 \
	}

static void sets_of_weights(void **state)
{
	/* Members of config_groups.g.weights, and the set that they describe. */
	static const struct {
		const char *weights, *message;
		struct xfp_compressed_set set;
	} cases[] = {
		{ "", NULL, { XFP_COMPRESSED_ANY, false, true, 8, TENSOR } },
		{ "'num_bits': 1", NULL, { XFP_COMPRESSED_ANY, false, true, 1, TENSOR } },
		{ "'num_bits': 32", NULL, { XFP_COMPRESSED_ANY, false, true, 32, TENSOR } },
		{ "'num_bits': null", NULL, { XFP_COMPRESSED_ANY, false, true, 8, TENSOR } },
		{ "'num_bits': 33", "weights.num_bits is", { 0 } },
		{ "'num_bits': 0", "weights.num_bits is", { 0 } },
		{ "'num_bits': -1", "weights.num_bits is", { 0 } },
		{ "'num_bits': '4'", "weights.num_bits is", { 0 } },
		{ "'type': 'float'", NULL, { XFP_COMPRESSED_ANY, true, true, 8, TENSOR } },
		{ "'type': 'int'", NULL, { XFP_COMPRESSED_ANY, false, true, 8, TENSOR } },
		{ "'type': 'complex'", "type must be int or float", { 0 } },
		{ "'symmetric': false", NULL, { XFP_COMPRESSED_ANY, false, false, 8, TENSOR } },
		{ "'symmetric': true", NULL, { XFP_COMPRESSED_ANY, false, true, 8, TENSOR } },
		{ "'group_size': null", NULL, { XFP_COMPRESSED_ANY, false, true, 8, TENSOR } },
		{ "'group_size': -1", NULL, { XFP_COMPRESSED_ANY, false, true, 8, CHANNEL } },
		{ "'group_size': 1", NULL, { XFP_COMPRESSED_ANY, false, true, 8, { 1, 1 } } },
		{ "'group_size': 0", "weights.group_size is", { 0 } },
		{ "'group_size': -2", "weights.group_size is", { 0 } },
		{ "'strategy': 'tensor', 'group_size': 32", NULL, { XFP_COMPRESSED_ANY, false, true, 8, TENSOR } },
		{ "'strategy': 'channel', 'group_size': 32", NULL, { XFP_COMPRESSED_ANY, false, true, 8, CHANNEL } },
		{ "'strategy': 'group', 'group_size': 32", NULL, { XFP_COMPRESSED_ANY, false, true, 8, { 1, 32 } } },
		{ "'strategy': 'tensor_group', 'group_size': 2",
		  NULL,
		  { XFP_COMPRESSED_ANY, false, true, 8, { 1, 2 } } },
		{ "'strategy': 'group'", "weights.group_size is", { 0 } },
		{ "'strategy': 'token'", "strategy must be tensor", { 0 } },
		{ "'strategy': 'block', 'block_structure': [128, 64]",
		  NULL,
		  { XFP_COMPRESSED_ANY, false, true, 8, { 128, 64 } } },
		{ "'strategy': 'block', 'block_structure': '3x5'",
		  NULL,
		  { XFP_COMPRESSED_ANY, false, true, 8, { 3, 5 } } },
		{ "'strategy': 'block', 'block_structure': '3x5x'", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': '3'", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': '0x5'", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': '5x0'", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': [8]", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': [8, 8, 8]", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': [0, 8]", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': [8, 0]", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': [8, null]", "block_structure is not", { 0 } },
		{ "'strategy': 'block', 'block_structure': [null, 8]", "block_structure is not", { 0 } },
		{ "'strategy': 'block'", "block_structure is not", { 0 } },
	};
	struct xfp_checkpoint checkpoint = { .folder = (char *)"model" };
	struct xfp_fold fold = { .checkpoint = &checkpoint, .config_name = "config.json", .err = &err };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_compressed_set *sets = NULL, *set;
		char text[300];
		uint32_t count = 0;
		json_t *json;

		snprintf(text, sizeof text, "{'config_groups': {'g': {'weights': {%s}}}}", cases[i].weights);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		fold.config = json = parsed(text);
		expect_status(text, xfp_compressed_sets(&fold, &sets, &count), cases[i].message);
		set = &sets[0];
		if (!cases[i].message &&
		    (count != 1 || set->form != cases[i].set.form || set->floats != cases[i].set.floats ||
		     set->symmetric != cases[i].set.symmetric || set->bits != cases[i].set.bits ||
		     set->scaling.rows != cases[i].set.scaling.rows || set->scaling.cols != cases[i].set.scaling.cols))
			fail_msg("%s is read as something else", text);
		free(sets);
		json_decref(json);
	}
}

/* A group's format overrides the common one, mixed-precision names none, and groups without weights are skipped. */
static void formats_of_sets(void **state)
{
	static const struct {
		const char *config, *message;
		uint32_t count;
		enum xfp_compressed_form first, last;
	} cases[] = {
		{ "{\"format\": \"pack-quantized\", \"config_groups\": {\"a\": {\"weights\": {}}, \"b\": "
		  "{\"weights\": {}, \"format\": \"int-quantized\"}}}",
		  NULL, 2, XFP_COMPRESSED_WORDS, XFP_COMPRESSED_BYTES },
		{ "{\"format\": \"mixed-precision\", \"config_groups\": {\"a\": {\"weights\": {}}}}", NULL, 1,
		  XFP_COMPRESSED_ANY, XFP_COMPRESSED_ANY },
		{ "{\"format\": \"dense\", \"config_groups\": {\"a\": {\"weights\": null}, \"b\": {\"weights\": {}}}}",
		  NULL, 1, XFP_COMPRESSED_NONE, XFP_COMPRESSED_NONE },
		{ "{\"config_groups\": {\"a\": {\"weights\": {}, \"format\": \"mixed-precision\"}}}",
		  "compressed as mixed-precision, a form", 0, 0, 0 },
		{ "{\"format\": \"marlin-24\", \"config_groups\": {\"a\": {\"weights\": {}}}}",
		  "compressed as marlin-24, a form", 0, 0, 0 },
		{ "{\"sparsity_config\": {\"format\": \"sparse-24\"}, \"config_groups\": {\"a\": {\"weights\": {}}}}",
		  "compressed as sparse-24, a form", 0, 0, 0 },
		{ "{\"sparsity_config\": {\"format\": \"dense\"}, \"config_groups\": {\"a\": {\"weights\": {}}}}", NULL,
		  1, XFP_COMPRESSED_ANY, XFP_COMPRESSED_ANY },
		{ "{\"config_groups\": {\"a\": {\"weights\": null}}}", "has no config_groups", 0, 0, 0 },
		{ "{\"config_groups\": {\"a\": 1}}", "config_groups.a is", 0, 0, 0 },
		{ "{}", "has no config_groups", 0, 0, 0 },
	};
	struct xfp_checkpoint checkpoint = { .folder = (char *)"model" };
	struct xfp_fold fold = { .checkpoint = &checkpoint, .config_name = "config.json", .err = &err };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_compressed_set *sets = NULL;
		uint32_t count = 0;
		json_t *json;

		fold.config = json = parsed(cases[i].config);
		expect_status(cases[i].config, xfp_compressed_sets(&fold, &sets, &count), cases[i].message);
		if (!cases[i].message) {
			assert_int_equal(count, cases[i].count);
			assert_int_equal(sets[0].form, cases[i].first);
			assert_int_equal(sets[count - 1].form, cases[i].last);
		}
		free(sets);
		json_decref(json);
	}
}

/* ---- GPTQ -------------------------------------------------------------------------------------------- */

/* Tensors of one matrix, sorted by name, as a reader lists them. A first dimension of 0: the tensor is missing. */
struct stored {
	uint64_t order[2], codes[2], zeros[2], scales[2];
	enum xfp_dtype dtype; /* of the scales */
};

static void fold_gptq(const char *config, const struct stored *stored, const char *message, const uint64_t *parameters)
{
	const uint64_t(*shapes)[2] = &stored->order;
	const char *const names[] = { "m.g_idx", "m.qweight", "m.qzeros", "m.scales" };
	struct xfp_source_file file = { .name = (char *)"f", .path = (char *)"f" };
	struct xfp_source_tensor tensors[4];
	struct xfp_checkpoint checkpoint = { .folder = (char *)"model", .files = &file, .file_count = 1 };
	bool consumed[4] = { false };
	uint32_t cut[4] = { 0 }, codes = UINT32_MAX;
	const char *ending[4] = { NULL };
	json_t *json = config ? parsed(config) : NULL;
	struct xfp_fold fold = { .checkpoint = &checkpoint,
				 .config = json,
				 .config_name = "config.json",
				 .consumed = consumed,
				 .cut = cut,
				 .ending = ending,
				 .config_file = UINT32_MAX,
				 .open_file = UINT32_MAX,
				 .err = &err };

	for (int i = 0; i < 4; i++) {
		struct xfp_source_tensor *t = &tensors[checkpoint.tensor_count];

		if (!shapes[i][0])
			continue;
		*t = (struct xfp_source_tensor){ .name = (char *)(uintptr_t)names[i],
						 .dtype = i < 3 ? XFP_I32 : stored->dtype,
						 .rank = shapes[i][1] ? 2 : 1,
						 .shape = { shapes[i][0], shapes[i][1] },
						 .bytes = 4 };
		codes = i == 1 ? checkpoint.tensor_count : codes;
		checkpoint.tensor_count++;
	}
	checkpoint.tensors = tensors;
	expect_status(config ? config : "no config", xfp_fold_gptq.fold(&fold), message);
	if (!message) {
		const struct xfp_recipe *recipe = tensors[codes].recipe;

		assert_non_null(recipe);
		for (int i = 0; i < 3; i++)
			if (recipe->parts[0].parameters[i] != parameters[i])
				fail_msg("%s: parameter %d is %llu", config, i,
					 (unsigned long long)recipe->parts[0].parameters[i]);
		for (uint32_t t = 0; t < checkpoint.tensor_count; t++)
			assert_true(consumed[t] == (t != codes));
		assert_int_equal(recipe->parts[0].component_count, stored->order[0] ? 4 : 3);
		assert_int_equal(fold.folded, 1);
	}
	for (uint32_t t = 0; t < checkpoint.tensor_count; t++)
		xfp_recipe_free(tensors[t].recipe);
	json_decref(json);
}

static void gptq_configs(void **state)
{
	/* 64 inputs in two groups, 32 outputs: 4 bits. */
	static const struct stored four = { { 0 }, { 8, 32 }, { 2, 4 }, { 2, 32 }, XFP_F16 };
	static const struct {
		const char *config, *message;
		uint64_t parameters[3];
	} cases[] = {
		{ "{\"bits\": 4, \"group_size\": 32}", NULL, { 4, 32, 1 } },
		{ "{\"w_bit\": 4, \"q_group_size\": 32}", NULL, { 4, 32, 1 } },
		{ "{\"bits\": null, \"w_bit\": 4, \"group_size\": 32}", NULL, { 4, 32, 1 } },
		{ "{\"group_size\": 32, \"checkpoint_format\": \"GPTQ_v2\"}", NULL, { 4, 32, 0 } },
		{ "{\"group_size\": 32, \"format\": \"gptq_v2\"}", NULL, { 4, 32, 0 } },
		{ "{\"group_size\": 33}", NULL, { 4, 33, 1 } },
		{ "{\"group_size\": 63}", NULL, { 4, 63, 1 } },
		{ "{\"group_size\": 31}", "but GPTQ as config.json says", { 0 } },
		{ "{\"group_size\": 64}", "but GPTQ as config.json says", { 0 } },
		{ "{\"group_size\": -1}", "where groups are 1", { 0 } },
		{ "{}", "where groups are in / 128", { 0 } },
		{ "{\"group_size\": 0}", "group_size is neither", { 0 } },
		{ "{\"group_size\": -2}", "group_size is neither", { 0 } },
		{ "{\"group_size\": 1.5}", "group_size is neither", { 0 } },
		{ "{\"bits\": \"4\"}", "bits is", { 0 } },
		{ "{\"bits\": 0}", "bits is", { 0 } },
		{ "{\"bits\": 33}", "bits is", { 0 } },
		{ "{\"bits\": 32, \"group_size\": 32}", "says 32 bits; only 2, 3, 4 and 8", { 0 } },
		{ "{\"bits\": 5, \"group_size\": 32}", "says 5 bits; only 2, 3, 4 and 8", { 0 } },
		{ "{\"bits\": 8, \"group_size\": 32}", "but GPTQ as config.json says", { 0 } },
		{ "{\"group_size\": 32, \"checkpoint_format\": \"marlin\"}", "says checkpoint_format marlin", { 0 } },
		{ "{\"group_size\": 32, \"is_marlin_format\": true}", "says checkpoint_format marlin", { 0 } },
		{ "{\"group_size\": 32, \"desc_act\": true}", "has no g_idx, but config.json says desc_act", { 0 } },
		{ "{\"group_size\": 16, \"dynamic\": {\"+:x\": {}}}", NULL, { 4, 32, 1 } },
		{ "{\"bits\": 8, \"group_size\": 128, \"dynamic\": {\"+:x\": {}}}", NULL, { 4, 32, 1 } },
		{ "{\"bits\": 8, \"group_size\": 63, \"dynamic\": {\"+:x\": {}}}", NULL, { 4, 63, 1 } },
		{ NULL, "contains packed codes without parameters", { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		fold_gptq(cases[i].config, &four, cases[i].message, cases[i].parameters);
}

static void gptq_shapes(void **state)
{
	static const char config[] = "{\"bits\": 4, \"group_size\": 32}", three[] = "{\"bits\": 3, \"group_size\": -1}";
	static const char any[] = "{\"dynamic\": {\"+:x\": {}}}", sorted[] = "{\"group_size\": 32, \"desc_act\": true}";
	static const struct {
		const char *config, *message;
		struct stored stored;
		uint64_t parameters[3];
	} cases[] = {
		{ sorted, NULL, { { 64, 0 }, { 8, 32 }, { 2, 4 }, { 2, 32 }, XFP_F16 }, { 4, 32, 1 } },
		{ sorted, "m.g_idx: is I32 [65]", { { 65, 0 }, { 8, 32 }, { 2, 4 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ sorted, "m.g_idx: is I32 [64, 1]", { { 64, 1 }, { 8, 32 }, { 2, 4 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ three, NULL, { { 0 }, { 6, 32 }, { 1, 3 }, { 1, 32 }, XFP_BF16 }, { 3, 64, 1 } },
		{ three, "says it has", { { 0 }, { 7, 32 }, { 1, 3 }, { 1, 32 }, XFP_F16 }, { 0 } },
		{ three, "says it has", { { 0 }, { 6, 31 }, { 1, 3 }, { 1, 31 }, XFP_F16 }, { 0 } },
		{ config, NULL, { { 0 }, { 8, 32 }, { 2, 4 }, { 2, 32 }, XFP_F32 }, { 4, 32, 1 } },
		{ config, "is I8; scales are", { { 0 }, { 8, 32 }, { 2, 4 }, { 2, 32 }, XFP_I8 }, { 0 } },
		{ config, "says it has", { { 0 }, { 8, 32 }, { 2, 4 }, { 2, 33 }, XFP_F16 }, { 0 } },
		{ config, "says it has", { { 0 }, { 8, 32 }, { 2, 5 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ config, "says it has", { { 0 }, { 8, 32 }, { 3, 4 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ config, "says it has", { { 0 }, { 8, 32 }, { 3, 4 }, { 3, 32 }, XFP_F16 }, { 0 } },
		{ config, "m.scales: has the shape [64]", { { 0 }, { 8, 32 }, { 2, 4 }, { 64, 0 }, XFP_F16 }, { 0 } },
		{ config, "m.qzeros: has the shape [8]", { { 0 }, { 8, 32 }, { 8, 0 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ config, "m.qweight: has the shape", { { 0 }, { 256, 0 }, { 2, 4 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ config, "has no qzeros", { { 0 }, { 8, 32 }, { 0 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ config, "has no scales", { { 0 }, { 8, 32 }, { 2, 4 }, { 0 }, XFP_F16 }, { 0 } },
		/* Bits and groups by shapes. */
		{ any, NULL, { { 0 }, { 4, 32 }, { 2, 2 }, { 2, 32 }, XFP_F16 }, { 2, 32, 1 } },
		{ any, NULL, { { 0 }, { 6, 32 }, { 4, 3 }, { 4, 32 }, XFP_F16 }, { 3, 16, 1 } },
		{ any, NULL, { { 0 }, { 16, 32 }, { 1, 8 }, { 1, 32 }, XFP_F16 }, { 8, 128, 1 } },
		{ any, "says it has", { { 0 }, { 8, 32 }, { 2, 5 }, { 2, 32 }, XFP_F16 }, { 0 } },
		{ any, "says it has", { { 0 }, { 8, 32 }, { 3, 4 }, { 3, 32 }, XFP_F16 }, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		fold_gptq(cases[i].config, &cases[i].stored, cases[i].message, cases[i].parameters);
}

PROGRAM("test_fold_config")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_of_weights),
		cmocka_unit_test(formats_of_sets),
		cmocka_unit_test(gptq_configs),
		cmocka_unit_test(gptq_shapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
