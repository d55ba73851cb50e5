/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiny encoders, whose weights follow from the names of their tensors, compared with transformers.
 */
#include <math.h>

#include "base/sha256.h"
#include "cache/key.h"
#include "model/forward/forward.h"
#include "tests/unit/encoder_expected.h"
#include "tests/unit/tiny_model.h"

#define LONGEST 21
#define CASES (sizeof encoder_cases / sizeof *encoder_cases)

struct encoder_run {
	struct xfp_description *description;
	struct xfp_weights *weights;
	struct xfp_team *team;
	struct xfp_forward *forward;
	struct xfp_error err;
	float x[ENCODER_TEXTS * LONGEST * ENCODER_HIDDEN];
	size_t end[ENCODER_TEXTS + 1]; /* tokens before each text */
};

/* Compute texts [first, first + count) together; they begin at x. */
static enum xfp_status compute(struct encoder_run *run, size_t first, size_t count, float *x)
{
	struct xfp_segment segments[ENCODER_TEXTS];
	uint32_t ids[ENCODER_TEXTS * LONGEST];
	enum xfp_status status;
	size_t tokens = 0;

	for (size_t i = 0; i < count; i++) {
		segments[i] = (struct xfp_segment){ .sequence = i, .count = encoder_lengths[first + i] };
		for (size_t t = 0; t < segments[i].count; t++)
			ids[tokens++] = (uint32_t)((t * t + 5 * (first + i)) % 13);
	}
	if (!(status = xfp_forward_begin(run->forward, segments, count, &run->err)))
		status = xfp_forward_embed(run->forward, ids, x, &run->err);
	for (uint32_t layer = 0; !status && layer < run->description->layers; layer++)
		status = xfp_forward_layer(run->forward, layer, x, &run->err);
	return status ? status : xfp_forward_norm(run->forward, x, &run->err);
}

static enum xfp_status begin(void **state, const char *config, struct tiny_file *file, unsigned threads,
			     struct encoder_run *run)
{
	enum xfp_status status;

	*run = (struct encoder_run){ 0 };
	for (size_t i = 0; i < ENCODER_TEXTS; i++)
		run->end[i + 1] = run->end[i] + encoder_lengths[i];
	if ((status = xfp_description_read(config, "config.json", &run->description, &run->err)))
		return status;
	write_tiny(state, config, run->description, file);
	if (!(status = xfp_weights_open(*state, &run->weights, &run->err)) &&
	    !(status = xfp_team_start(threads, &run->team, &run->err)))
		status = xfp_forward_open(run->description, run->weights, run->team, ENCODER_TEXTS, 0, &run->forward,
					  &run->err);
	return status;
}

static void end(struct encoder_run *run)
{
	xfp_forward_close(run->forward);
	xfp_description_free(run->description);
	xfp_weights_close(run->weights);
	xfp_team_end(run->team);
}

/* All texts at once, or one by one. */
static void run_well(void **state, const char *config, unsigned threads, bool single, enum xfp_arithmetic arithmetic,
		     struct encoder_run *run)
{
	struct tiny_file *file = new_file();

	if (begin(state, config, file, threads, run))
		fail_msg("%s", run->err.text);
	run->forward->arithmetic = arithmetic;
	for (size_t i = 0; i < (single ? ENCODER_TEXTS : 1); i++)
		if (compute(run, i, single ? 1 : ENCODER_TEXTS, run->x + run->end[i] * ENCODER_HIDDEN))
			fail_msg("%s", run->err.text);
	end(run);
	free(file);
}

/* The largest difference from transformers. */
static double distance(const struct encoder_case *c, const struct encoder_run *run)
{
	double worst = 0;

	for (size_t i = 0; i < ENCODER_TEXTS; i++)
		for (size_t k = 0; k < ENCODER_HIDDEN; k++)
			worst = fmax(worst,
				     fabs((double)run->x[(run->end[i + 1] - 1) * ENCODER_HIDDEN + k] - c->x[i][k]));
	return worst;
}

static void activations_are_those_of_transformers(void **state)
{
	for (size_t i = 0; i < CASES; i++) {
		struct encoder_run all, single;

		run_well(state, encoder_cases[i].config, 1, false, XFP_REPRODUCIBLE, &all);
		if (!(distance(&encoder_cases[i], &all) < 1e-6))
			fail_msg("%s\nis off by %g", encoder_cases[i].config, distance(&encoder_cases[i], &all));
		run_well(state, encoder_cases[i].config, 3, true, XFP_REPRODUCIBLE, &single);
		assert_memory_equal(all.x, single.x, sizeof all.x);
	}
}

static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };

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
		for (size_t i = 0; i < CASES; i++) {
			struct encoder_run run, fast;

			run_well(state, encoder_cases[i].config, 1 + (unsigned)(i + set) % 4, false, XFP_REPRODUCIBLE,
				 &run);
			xfp_sha256_update(&sha, run.x, sizeof run.x);
			run_well(state, encoder_cases[i].config, 2, false, XFP_FAST, &fast);
			if (!(distance(&encoder_cases[i], &fast) < 1e-5))
				fail_msg("%s with %s\nis off by %g", encoder_cases[i].config, sets[set],
					 distance(&encoder_cases[i], &fast));
		}
		xfp_sha256_final(&sha, digest);
		xfp_hex(digest, sizeof digest, text);
		/* If the bits are to change, raise XFP_ALGORITHM_INPUTS, too. */
		assert_int_equal(XFP_ALGORITHM_INPUTS, 1);
		if (strcmp(text, "4b2e254960c833af7948b712178a6182a96b15f0be540152f0ad0dd636b35624"))
			fail_msg("%s with %s", text, sets[set]);
	}
	assert_true(xfp_use_instructions(usual));
}

/* ---- refusals ----------------------------------------------------------------------------------- */

#define SMALL                                                                                                   \
	"\"model_type\": \"bert\", \"hidden_size\": 30, \"num_hidden_layers\": 1, \"num_attention_heads\": 3, " \
	"\"intermediate_size\": 8, \"vocab_size\": 13, \"max_position_embeddings\": 21"

static void expect_refused(void **state, const char *config, const char *leave_out, const char *message)
{
	struct tiny_file *file = new_file();
	struct encoder_run run;
	enum xfp_status status;

	file->leave_out = leave_out;
	status = begin(state, config, file, 1, &run);
	if (status != XFP_BAD_INPUT || !strstr(run.err.text, message))
		fail_msg("status %d, \"%s\"; expected \"%s\"", (int)status, run.err.text, message);
	end(&run);
	free(file);
}

static void configs_and_tensors_agree(void **state)
{
	static const char *const tensors[] = {
		"embeddings.position_embeddings.weight",
		"embeddings.token_type_embeddings.weight",
		"embeddings.LayerNorm.weight",
		"embeddings.LayerNorm.bias",
		"encoder.layer.0.attention.self.key.bias",
		"encoder.layer.0.attention.output.dense.weight",
		"encoder.layer.0.intermediate.dense.bias",
		"encoder.layer.0.output.LayerNorm.bias",
	};

	for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
		expect_refused(state, "{" SMALL "}", tensors[i], tensors[i]);
	expect_refused(state, "{" SMALL ", \"position_embedding_type\": \"relative_key\"}", NULL,
		       "position_embedding_type is not absolute");
	expect_refused(state, "{" SMALL ", \"is_decoder\": true}", NULL, "is_decoder is true");
	expect_refused(state, "{" SMALL ", \"add_cross_attention\": true}", NULL, "add_cross_attention is true");
	expect_refused(state, "{" SMALL ", \"hidden_act\": \"relu6\"}", NULL, "hidden_act is not supported");
	expect_refused(state, "{" SMALL ", \"layer_norm_eps\": 0}", NULL, "layer_norm_eps is not a valid number");
	expect_refused(state, "{" SMALL ", \"num_attention_heads\": 4}", NULL,
		       "hidden_size is not a multiple of num_attention_heads");
}

/* A text longer than the model's context is refused. */
static void texts_fit_into_the_context(void **state)
{
	struct tiny_file *file = new_file();
	struct encoder_run run;

	if (begin(state, "{" SMALL "}", file, 1, &run))
		fail_msg("%s", run.err.text);
	assert_int_equal(compute(&run, 0, ENCODER_TEXTS, run.x), XFP_OK);
	run.description->context = 20;
	assert_int_equal(compute(&run, 0, ENCODER_TEXTS, run.x), XFP_BAD_INPUT);
	end(&run);
	free(file);
}

PROGRAM("test_encoder")
{
	const struct CMUnitTest tests[] = {
		scratch_test(activations_are_those_of_transformers),
		scratch_test(bits_are_the_same_everywhere),
		scratch_test(configs_and_tensors_agree),
		scratch_test(texts_fit_into_the_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
