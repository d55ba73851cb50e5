/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiny models, whose weights follow from the names of their tensors, compared with transformers.
 */
#include <math.h>

#include "base/sha256.h"
#include "cache/key.h"
#include "model/forward/forward.h"
#include "tests/unit/forward_expected.h"
#include "tests/unit/tiny_model.h"

/* ---- computing ---------------------------------------------------------------------------------- */

struct tiny_run {
	struct xfp_description *description;
	struct xfp_weights *weights;
	struct xfp_team *team;
	struct xfp_error err;
	float logits[FORWARD_SEQUENCES * FORWARD_LENGTH * FORWARD_VOCABULARY];
};

static uint32_t token_of(size_t sequence, size_t t)
{
	return (uint32_t)((t * t + 5 * sequence) % FORWARD_VOCABULARY);
}

/* The arithmetic of all following runs. */
static enum xfp_arithmetic arithmetic;

/* The same bits, or nearly the same with XFP_FAST. */
static void assert_agrees(const float *logits, const float *expected, size_t count)
{
	double squares = 0, worst = 0;

	if (arithmetic == XFP_REPRODUCIBLE) {
		assert_memory_equal(logits, expected, count * sizeof *logits);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		squares += (double)expected[i] * expected[i];
		worst = fmax(worst, fabs((double)logits[i] - expected[i]));
	}
	if (!(worst <= 1e-4 * sqrt(squares / (double)count)))
		fail_msg("off by %g of %g", worst, sqrt(squares / (double)count));
}

/* Run the last sequence `step` tokens at a time, after another one that continues meanwhile and restarts when it ends;
 * all results must be the same. */
static void continue_from_cache(struct tiny_run *run, size_t step)
{
	const struct xfp_description *d = run->description;
	uint32_t ids[2 * FORWARD_LENGTH], vocabulary = d->vocabulary;
	float *x = malloc(2 * FORWARD_LENGTH * d->hidden * sizeof *x);
	float *logits = malloc(2 * FORWARD_LENGTH * vocabulary * sizeof *logits);
	struct xfp_kv_cache *cache = NULL;
	struct xfp_forward *forward = NULL;

	assert_true(x && logits);
	assert_int_equal(xfp_kv_cache_open(d, FORWARD_SEQUENCES + 1, FORWARD_LENGTH, &cache, &run->err), XFP_OK);
	assert_int_equal(xfp_forward_open_cached(d, run->weights, run->team, cache, &forward, &run->err), XFP_OK);
	forward->arithmetic = arithmetic;
	for (size_t t = 0, some; t < FORWARD_LENGTH; t += some) {
		size_t last = FORWARD_SEQUENCES - 1, other = t ? 1 : 2, before = cache->count[1];

		some = t + step < FORWARD_LENGTH ? step : FORWARD_LENGTH - t;
		struct xfp_segment segments[] = { { .sequence = 1, .count = other, .length = FORWARD_LENGTH },
						  { .sequence = last + 1, .count = some, .length = FORWARD_LENGTH } };

		if (before + other > FORWARD_LENGTH) {
			xfp_kv_cache_reset(cache, 1);
			before = 0;
		}
		for (size_t i = 0; i < other + some; i++)
			ids[i] = i < other ? token_of(0, before + i) : token_of(last, t + i - other);
		assert_int_equal(xfp_forward_begin(forward, segments, 2, &run->err), XFP_OK);
		assert_int_equal(xfp_forward_embed(forward, ids, x, &run->err), XFP_OK);
		for (uint32_t layer = 0; layer < d->layers; layer++)
			assert_int_equal(xfp_forward_layer(forward, layer, x, &run->err), XFP_OK);
		assert_int_equal(xfp_forward_norm(forward, x, &run->err), XFP_OK);
		assert_int_equal(xfp_forward_logits(forward, x, 0, vocabulary, logits, &run->err), XFP_OK);
		xfp_forward_commit(forward);
		assert_agrees(logits, run->logits + before * vocabulary, other * vocabulary);
		assert_agrees(logits + other * vocabulary, run->logits + (last * FORWARD_LENGTH + t) * vocabulary,
			      some * vocabulary);
	}
	assert_int_equal(xfp_forward_begin(forward, &(struct xfp_segment){ .sequence = FORWARD_SEQUENCES, .count = 1 },
					   1, &run->err),
			 XFP_BAD_INPUT);
	xfp_forward_close(forward);
	xfp_kv_cache_close(cache);
	free(x);
	free(logits);
}

static enum xfp_status compute(struct tiny_run *run, size_t length, uint32_t first_id)
{
	uint32_t ids[FORWARD_SEQUENCES * FORWARD_LENGTH], vocabulary = run->description->vocabulary;
	size_t tokens = FORWARD_SEQUENCES * FORWARD_LENGTH;
	float *x = malloc(tokens * run->description->hidden * sizeof *x);
	struct xfp_forward *forward = NULL;
	enum xfp_status status;

	assert_non_null(x);
	for (size_t i = 0; i < tokens; i++)
		ids[i] = token_of(i / FORWARD_LENGTH, i % FORWARD_LENGTH);
	ids[0] = first_id;
	if ((status = xfp_forward_open(run->description, run->weights, run->team, FORWARD_SEQUENCES, length, &forward,
				       &run->err)))
		goto done;
	forward->arithmetic = arithmetic;
	if ((status = xfp_forward_embed(forward, ids, x, &run->err)))
		goto done;
	for (uint32_t layer = 0; !status && layer < run->description->layers; layer++)
		status = xfp_forward_layer(forward, layer, x, &run->err);
	if (!status && !(status = xfp_forward_norm(forward, x, &run->err)))
		status = xfp_forward_logits(forward, x, 0, vocabulary, run->logits, &run->err);
	/* Logits of a part of the vocabulary equal that part. */
	if (!status) {
		float part[FORWARD_SEQUENCES * FORWARD_LENGTH * 5];

		status = xfp_forward_logits(forward, x, 3, 5, part, &run->err);
		for (size_t t = 0; !status && t < tokens; t++)
			assert_agrees(part + 5 * t, run->logits + vocabulary * t + 3, 5);
	}
done:
	xfp_forward_close(forward);
	free(x);
	return status;
}

/* Run with this many threads, and the tensors of `file`; the message is in run->err. */
static enum xfp_status run_tiny(void **state, const char *config, struct tiny_file *file, unsigned threads,
				struct tiny_run *run)
{
	enum xfp_status status = xfp_description_read(config, "config.json", &run->description, &run->err);

	if (status)
		return status;
	write_tiny(state, config, run->description, file);
	if (!(status = xfp_weights_open(*state, &run->weights, &run->err)) &&
	    !(status = xfp_team_start(threads, &run->team, &run->err)))
		status = compute(run, FORWARD_LENGTH, 0);
	return status;
}

static void end_run(struct tiny_run *run)
{
	xfp_description_free(run->description);
	xfp_weights_close(run->weights);
	xfp_team_end(run->team);
}

static void run_well(void **state, const char *config, struct tiny_file *file, unsigned threads, struct tiny_run *run)
{
	*run = (struct tiny_run){ 0 };
	if (run_tiny(state, config, file, threads, run))
		fail_msg("%s", run->err.text);
	end_run(run);
	free(file);
}

/* Within a ten-thousandth of the spread, and with the same bits for any number of threads. */
static void logits_are_those_of_transformers(void **state)
{
	for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i++) {
		const struct forward_case *c = &forward_cases[i];
		double squares = 0, worst = 0;
		struct tiny_run run, threads;

		run_well(state, c->config, new_file(), 1, &run);
		for (size_t s = 0; s < FORWARD_SEQUENCES; s++) {
			const float *last = run.logits + ((s + 1) * FORWARD_LENGTH - 1) * FORWARD_VOCABULARY;

			for (size_t v = 0; v < FORWARD_VOCABULARY; v++) {
				squares += (double)c->logits[s][v] * c->logits[s][v];
				worst = fmax(worst, fabs((double)last[v] - c->logits[s][v]));
			}
		}
		if (!(worst < 1e-4 * sqrt(squares / (FORWARD_SEQUENCES * FORWARD_VOCABULARY))))
			fail_msg("%s\nis off by %g", c->config, worst);
		run_well(state, c->config, new_file(), 3, &threads);
		assert_memory_equal(run.logits, threads.logits, sizeof run.logits);
	}
}

static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };

/* All logits of all models have the same bits, for any compiler and machine, with one to four threads. */
static void bits_are_the_same_everywhere(void **state)
{
	const char *usual = xfp_instructions();

	for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
		struct xfp_sha256 sha;
		uint8_t digest[32];
		char text[65];

		if (!xfp_use_instructions(sets[set]))
			continue;
		xfp_sha256_init(&sha);
		for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i++) {
			struct tiny_run run;

			run_well(state, forward_cases[i].config, new_file(), 1 + (unsigned)(i + set) % 4, &run);
			xfp_sha256_update(&sha, run.logits, sizeof run.logits);
		}
		xfp_sha256_final(&sha, digest);
		xfp_hex(digest, sizeof digest, text);
		/* If the bits are to change, raise XFP_ALGORITHM_INPUTS, too. */
		assert_int_equal(XFP_ALGORITHM_INPUTS, 1);
		if (strcmp(text, "210897b4dd9742fb6f32947c59dc4042112137ab2f02b824d2fe2ace271a408a"))
			fail_msg("%s with %s", text, sets[set]);
	}
	assert_true(xfp_use_instructions(usual));
}

/* All at once, and token by token. */
static void the_fast_form_is_near(void **state)
{
	const char *usual = xfp_instructions();

	for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
		if (!xfp_use_instructions(sets[set]))
			continue;
		for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i++) {
			struct tiny_file *file = new_file();
			struct tiny_run run = { 0 }, exact;

			run_well(state, forward_cases[i].config, new_file(), 1, &exact);
			arithmetic = XFP_FAST;
			if (run_tiny(state, forward_cases[i].config, file, 3, &run))
				fail_msg("%s", run.err.text);
			assert_agrees(run.logits, exact.logits, sizeof run.logits / sizeof *run.logits);
			memcpy(run.logits, exact.logits, sizeof run.logits);
			continue_from_cache(&run, 1);
			continue_from_cache(&run, 9);
			arithmetic = XFP_REPRODUCIBLE;
			end_run(&run);
			free(file);
		}
	}
	assert_true(xfp_use_instructions(usual));
}

static void expect_same(void **state, const char *config, struct tiny_file *file, const char *other)
{
	struct tiny_run expected, run;

	run_well(state, config, new_file(), 1, &expected);
	run_well(state, other, file, 1, &run);
	assert_memory_equal(expected.logits, run.logits, sizeof run.logits);
}

/* A text model, and the same one inside a multimodal model. */
static void text_parts_are_computed(void **state)
{
	static const struct xfp_tensor_names names[] = {
		{ .body = "model.language_model.", .head = "lm_head.weight" },
		{ .body = "language_model.model.", .head = "language_model.lm_head.weight" },
		{ .body = "", .head = "lm_head.weight" },
		{ .body = "language_model.", .head = "lm_head.weight" },
	};
	const char *config = forward_cases[0].config;
	struct tiny_run alone, tied;
	char outer[1024];

	snprintf(outer, sizeof outer, "{\"model_type\": \"seer\", \"text_config\": %s}", config);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct tiny_file *file = new_file();

		file->names = &names[i];
		expect_same(state, config, file, outer);
	}
	/* tie_word_embeddings may be outside of text_config. */
	snprintf(outer, sizeof outer, "{\"tie_word_embeddings\": true, \"text_config\": %s}", config);
	run_well(state, config, new_file(), 1, &alone);
	run_well(state, outer, new_file(), 1, &tied);
	assert_memory_not_equal(alone.logits, tied.logits, sizeof alone.logits);
}

/* Older configs that omit members, or give them other names. */
static void old_configs_are_understood(void **state)
{
#define GEMMA "\"hidden_size\": 8, \"intermediate_size\": 8, \"num_hidden_layers\": 6, \"sliding_window\": 7"
#define SMALL "\"vocab_size\": 13, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 4"
#define FULL "\"full_attention\""
#define NEAR "\"sliding_attention\""
#define PHI3                                                                                  \
	"\"model_type\": \"phi3\", " SMALL ", \"hidden_size\": 8, \"intermediate_size\": 8, " \
	"\"num_hidden_layers\": 1, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6"
#define LAYERS                                                                             \
	SMALL ", \"hidden_size\": 8, \"intermediate_size\": 8, \"num_hidden_layers\": 2, " \
	      "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6"
	static const char *const pairs[][2] = {
		{ "{\"model_type\": \"gemma3\", \"text_config\": {" GEMMA ", " SMALL ", \"rope_scaling\": "
		  "{\"rope_type\": \"linear\", \"factor\": 8.0}}}",
		  "{\"model_type\": \"gemma3_text\", " GEMMA ", " SMALL ", \"max_position_embeddings\": 131072, "
		  "\"rms_norm_eps\": 1e-6, \"tie_word_embeddings\": true, \"hidden_activation\": "
		  "\"gelu_pytorch_tanh\", \"layer_types\": [" NEAR ", " NEAR ", " NEAR ", " NEAR ", " NEAR ", " FULL
		  "], \"query_pre_attn_scalar\": 256, \"rope_parameters\": {" NEAR ": {\"rope_theta\": 1e4}, " FULL
		  ": {\"rope_theta\": 1e6, \"rope_type\": \"linear\", \"factor\": 8}}}" },
		{ "{" PHI3 ", \"original_max_position_embeddings\": 8, \"rope_theta\": 1e4, \"rope_scaling\": "
		  "{\"type\": \"su\", \"long_factor\": [1.5, 3], \"short_factor\": [1, 1]}}",
		  "{" PHI3 ", \"original_max_position_embeddings\": 8, "
		  "\"rope_parameters\": {\"rope_type\": \"longrope\", \"rope_theta\": 1e4, \"long_factor\": [1.5, 3], "
		  "\"short_factor\": [1, 1], "
		  "\"factor\": 4, \"partial_rotary_factor\": 1}}" },
		{ "{\"model_type\": \"mistral\", " LAYERS ", \"sliding_window\": 7, \"layer_types\": [" NEAR ", " FULL
		  "]}",
		  "{\"model_type\": \"ministral\", " LAYERS ", \"sliding_window\": 7, \"layer_types\": [" NEAR ", " FULL
		  "]}" },
		{ "{\"text_config\": {\"model_type\": \"mistral\", " LAYERS
		  ", \"sliding_window\": 7, \"layer_types\": [" NEAR ", " FULL "]}}",
		  "{\"model_type\": \"mistral\", " LAYERS ", \"sliding_window\": 7}" },
		{ "{\"model_type\": \"llama\", " LAYERS
		  ", \"rope_theta\": 300, \"rope_scaling\": {\"type\": \"linear\", "
		  "\"factor\": 8}, "
		  "\"rope_parameters\": {\"rope_type\": \"linear\", \"rope_theta\": 500, \"factor\": 2}}",
		  "{\"model_type\": \"llama\", " LAYERS
		  ", \"rope_theta\": 300, \"rope_scaling\": {\"type\": \"linear\", "
		  "\"factor\": 8}}" },
		{ "{\"model_type\": \"llama\", " LAYERS ", \"rope_theta\": 300, \"rope_scaling\": {}, "
		  "\"rope_parameters\": {\"rope_type\": \"linear\", \"rope_theta\": 500, \"factor\": 2}}",
		  "{\"model_type\": \"llama\", " LAYERS
		  ", \"rope_theta\": 500, \"rope_scaling\": {\"type\": \"linear\", "
		  "\"factor\": 2}}" },
		{ "{\"model_type\": \"gemma3\", \"text_config\": {" GEMMA ", " SMALL
		  ", \"tie_word_embeddings\": false}}",
		  "{\"model_type\": \"gemma3\", \"text_config\": {" GEMMA ", " SMALL "}}" },
		{ "{\"model_type\": \"llama\", " LAYERS ", \"sliding_window\": 0}",
		  "{\"model_type\": \"llama\", " LAYERS "}" },
		{ "{\"model_type\": \"llama\", " LAYERS ", \"partial_rotary_factor\": 0.5}",
		  "{\"model_type\": \"llama\", " LAYERS "}" },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		expect_same(state, pairs[i][1], new_file(), pairs[i][0]);
}

/* Experts in one tensor, and one by one. */
static void stacks_hold_the_same_experts(void **state)
{
	static const struct xfp_tensor_names names = { .body = "model.", .head = "lm_head.weight", .stacked = true };
	unsigned found = 0;

	for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i++) {
		const char *config = forward_cases[i].config;
		struct tiny_file *file = new_file();

		file->names = &names;
		if (strstr(config, "moe_intermediate_size")) {
			expect_same(state, config, file, config);
			found++;
		} else {
			free(file);
		}
	}
	assert_true(found > 1);
}

/* Any number of tokens at a time, beyond a window and within one. */
static void cached_tokens_equal_all(void **state)
{
	for (size_t i = 0; i < sizeof forward_cases / sizeof *forward_cases; i++) {
		struct tiny_file *file = new_file();
		struct tiny_run run = { 0 };

		if (run_tiny(state, forward_cases[i].config, file, 2, &run))
			fail_msg("%s", run.err.text);
		continue_from_cache(&run, 1);
		continue_from_cache(&run, 9);
		end_run(&run);
		free(file);
	}
}

static const char moe[] =
	"{\"model_type\": \"qwen3_moe\", \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
	"\"num_key_value_heads\": 1, \"intermediate_size\": 8, \"vocab_size\": 13, \"max_position_embeddings\": 32, "
	"\"rms_norm_eps\": 1e-6, \"num_experts\": 5, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6}";

/* A router of zeros: experts 0 and 1 are selected, and no other has an effect. */
static void equal_experts_are_chosen_by_number(void **state)
{
	struct tiny_run whole, changed;

	for (unsigned e = 0; e < 5; e++) {
		struct tiny_file *file = new_file(), *other = new_file();
		char tensor[64];
		bool same;

		snprintf(tensor, sizeof tensor, "model.layers.0.mlp.experts.%u.down_proj.weight", e);
		file->zeros = other->zeros = "model.layers.0.mlp.gate.weight";
		other->halves = tensor;
		run_well(state, moe, file, 2, &whole);
		run_well(state, moe, other, 2, &changed);
		same = !memcmp(whole.logits, changed.logits, sizeof whole.logits);
		assert_int_equal(same, e > 1);
	}
}

/* ---- refusals ----------------------------------------------------------------------------------- */

static void expect_refused(void **state, const char *config, struct tiny_file *file, const char *message)
{
	struct tiny_run run = { 0 };
	enum xfp_status status = run_tiny(state, config, file, 1, &run);

	if (status != XFP_BAD_INPUT || !strstr(run.err.text, message))
		fail_msg("status %d, \"%s\"; expected \"%s\"", (int)status, run.err.text, message);
	end_run(&run);
	free(file);
}

static void configs_and_tensors_agree(void **state)
{
	static const char qwen2[] = "{\"model_type\": \"qwen2\", \"hidden_size\": 8, \"num_hidden_layers\": 1, "
				    "\"num_attention_heads\": 2, \"intermediate_size\": 8, \"vocab_size\": 13, "
				    "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6}";
	struct tiny_file *file = new_file();
	struct xfp_weights *weights = NULL;
	struct tiny_run run = { 0 };
	struct xfp_error err = { 0 };

	file->leave_out = "model.layers.0.mlp.experts.4.up_proj.weight";
	expect_refused(state, moe, file, "has no tensor model.layers.0.mlp.experts.4.up_proj.weight");
	/* llama does not have qwen2's biases. */
	run_well(state, qwen2, new_file(), 1, &run);
	assert_int_equal(xfp_weights_open(*state, &weights, &err), XFP_OK);
	assert_int_equal(
		xfp_description_read("{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_hidden_layers\": 1, "
				     "\"num_attention_heads\": 2, \"intermediate_size\": 8, \"vocab_size\": 13, "
				     "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6}",
				     "c", &run.description, &err),
		XFP_OK);
	run.weights = weights;
	run.team = NULL;
	assert_int_equal(compute(&run, FORWARD_LENGTH, 0), XFP_BAD_INPUT);
	assert_non_null(strstr(run.err.text, "has model.layers.0.self_attn.q_proj.bias, which its config does not"));
	run.description->intermediate = 9;
	run.description->qkv_bias = true;
	assert_int_equal(compute(&run, FORWARD_LENGTH, 0), XFP_BAD_INPUT);
	assert_non_null(strstr(run.err.text, "mlp.gate_proj.weight is not [9, 8]"));
	run.description->intermediate = 8;
	assert_int_equal(compute(&run, 33, 0), XFP_BAD_INPUT);
	assert_non_null(strstr(run.err.text, "longer than the model's context of 32"));
	assert_int_equal(compute(&run, FORWARD_LENGTH, 13), XFP_BAD_INPUT);
	assert_non_null(strstr(run.err.text, "token 0 of sequence 0 is 13"));
	end_run(&run);
}

PROGRAM("test_forward")
{
	const struct CMUnitTest tests[] = {
		scratch_test(logits_are_those_of_transformers),
		scratch_test(bits_are_the_same_everywhere),
		scratch_test(text_parts_are_computed),
		scratch_test(old_configs_are_understood),
		scratch_test(equal_experts_are_chosen_by_number),
		scratch_test(cached_tokens_equal_all),
		scratch_test(stacks_hold_the_same_experts),
		scratch_test(the_fast_form_is_near),
		scratch_test(configs_and_tensors_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
