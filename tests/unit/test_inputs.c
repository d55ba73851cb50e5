/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of a layer and the file calibration.h5: what is written is read back, damage is found, rows are those of the
 * tokens of an expert.
 */
#include "schemas/calibration.h"
#include "schemas/h5.h"
#include "schemas/inputs.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"

/* ---- a layer with experts ------------------------------------------------------------------------ */

#define WINDOWS 9u
#define LENGTH 2u
#define TOKENS (WINDOWS * LENGTH)
#define HIDDEN 3u
#define WIDTH 2u

/* Token t has experts t % 3 and 3 + t % 2, but token 4 has only one. */
static void experts_of(uint64_t t, uint32_t experts[2])
{
	experts[0] = (uint32_t)(t % 3);
	experts[1] = t == 4 ? XFP_NO_EXPERT : 3 + (uint32_t)(t % 2);
}

static struct xfp_inputs a_layer(uint32_t experts[2 * TOKENS])
{
	static struct xfp_input_tensor tensors[] = { { "l.down", 2, XFP_EXPERT_OF_STACK },
						     { "l.gate", 1, 4 },
						     { "l.q", 0, XFP_NO_EXPERT } };
	static struct xfp_input_source sources[] = { { "l.down", { 1 } }, { "l.norm", { 2 } } };

	for (uint64_t t = 0; t < TOKENS; t++)
		experts_of(t, experts + 2 * t);
	return (struct xfp_inputs){
		.layer = 5,
		.hidden = HIDDEN,
		.experts_per_token = 2,
		.tokens = TOKENS,
		.length = LENGTH,
		.has_stream = true,
		.input_count = 3,
		.input = { { "attention", TOKENS, HIDDEN },
			   { "mlp", TOKENS, HIDDEN },
			   { "expert-down", (uint64_t)2 * TOKENS, WIDTH } },
		.experts = experts,
		.tensor_count = 3,
		.tensors = tensors,
		.source_count = 2,
		.sources = sources,
	};
}

/* Value c of row r of input i is 1000 i + 10 r + c, and of the stream r + c / 4. */
static void write_layer(const char *path, const struct xfp_inputs *in)
{
	const struct xfp_artifact_label label = { XFP_INPUTS_KIND, XFP_INPUTS_VERSION, KEY, "kind inputs\n", "l5", 0 };
	struct xfp_artifact a;

	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_inputs_begin(&a, in, &err));
	for (uint64_t t = TOKENS; t-- > 0 && in->has_stream;) { /* the order does not matter */
		float x[HIDDEN];

		for (unsigned c = 0; c < HIDDEN; c++)
			x[c] = (float)t + (float)c / 4;
		OK(xfp_inputs_write_stream(&a, in, t, 1, x, &err));
	}
	for (uint32_t i = 0; i < in->input_count; i++)
		for (uint64_t r = 0; r < in->input[i].rows; r++) {
			uint16_t x[HIDDEN];

			for (unsigned c = 0; c < in->input[i].cols; c++)
				x[c] = (uint16_t)(1000 * i + 10 * r + c);
			OK(xfp_inputs_write_values(&a, &in->input[i], r, 1, x, &err));
		}
	OK(xfp_inputs_end(&a, in, &err));
	OK(xfp_artifact_finish(&a, &label, &err));
}

static enum xfp_status read_layer(const char *path, struct xfp_artifact *a, struct xfp_inputs *in)
{
	OK(xfp_artifact_open(path, XFP_INPUTS_KIND, XFP_INPUTS_VERSION, KEY, a, &err));
	return xfp_inputs_read(a, in, NULL);
}

static void a_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	uint32_t experts[2 * TOKENS];
	struct xfp_inputs want = a_layer(experts), in;
	struct xfp_artifact a;
	const uint64_t rows[] = { 3, 4, 5, 9, 35 };
	uint16_t x[5 * WIDTH];
	float stream[2 * HIDDEN];

	write_layer(path, &want);
	assert_int_equal(read_layer(path, &a, &in), XFP_OK);
	assert_int_equal(in.layer, 5);
	assert_int_equal(in.tokens, TOKENS);
	assert_int_equal(in.length, LENGTH);
	assert_true(in.has_stream);
	assert_int_equal(in.input_count, 3);
	assert_memory_equal(in.input, want.input, sizeof in.input);
	assert_memory_equal(in.experts, experts, sizeof experts);
	assert_int_equal(in.tensor_count, 3);
	assert_string_equal(in.tensors[2].name, "l.q");
	assert_int_equal(in.tensors[2].input, 0);
	assert_int_equal(in.tensors[0].expert, XFP_EXPERT_OF_STACK);
	assert_int_equal(in.source_count, 2);
	assert_string_equal(in.sources[1].name, "l.norm");
	assert_int_equal(in.sources[1].digest[0], 2);
	OK(xfp_inputs_stream(&a, &in, 16, 2, stream, &err));
	assert_true(stream[0] == 16 && stream[5] == 17.5F);
	OK(xfp_inputs_values(&a, &in, 2, rows, 5, x, &err));
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(x[i * WIDTH + 1], 2001 + 10 * rows[i]);
	xfp_artifact_close(&a);
	xfp_inputs_free(&in);
	xfp_inputs_free(&in);
	free(path);
}

/* The rows of a tensor, compared with the definition. */
static void rows_of_experts(void **state)
{
	uint32_t experts[2 * TOKENS];
	struct xfp_inputs in = a_layer(experts);
	struct xfp_input_rows rows;
	uint64_t list[2 * TOKENS], count = 0;

	(void)state;
	assert_false(xfp_inputs_find(&in, "l.other", 0, &rows));
	assert_true(xfp_inputs_find(&in, "l.q", 7, &rows));
	assert_int_equal(rows.input, 0);
	assert_int_equal(rows.expert, XFP_NO_EXPERT);
	assert_int_equal(xfp_inputs_list(&in, &rows, false, list), 16); /* window 7 is held out */
	assert_int_equal(list[13], 13);
	assert_int_equal(list[14], 16);
	assert_int_equal(xfp_inputs_list(&in, &rows, true, list), 2);
	assert_int_equal(list[0], 14);

	assert_true(xfp_inputs_find(&in, "l.gate", 7, &rows)); /* a tensor of its own: expert 4, odd tokens */
	assert_int_equal(rows.expert, 4);
	assert_int_equal(xfp_inputs_list(&in, &rows, false, NULL), 8);
	assert_int_equal(xfp_inputs_list(&in, &rows, true, list), 1);
	assert_int_equal(list[0], 15);

	assert_true(xfp_inputs_find(&in, "l.down", 3, &rows)); /* even tokens except 4, whose rows are their second */
	assert_int_equal(rows.expert, 3);
	for (uint64_t t = 0; t < TOKENS; t += 2)
		count += t != 4 && t != 14;
	assert_int_equal(xfp_inputs_list(&in, &rows, false, list), count);
	assert_int_equal(list[0], 1);
	assert_int_equal(list[1], 5);
	assert_int_equal(list[2], 13);
	rows.expert = XFP_NO_EXPERT;
	assert_int_equal(xfp_inputs_list(&in, &rows, false, NULL), 2 * 16 - 1);
	rows.expert = 5; /* reached by no token */
	assert_int_equal(xfp_inputs_list(&in, &rows, false, list), 0);
}

/* Fewer than eight windows: the last is held out. */
static void held_out_windows(void **state)
{
	struct xfp_inputs in = { .tokens = 21, .length = 3 };

	(void)state;
	assert_false(xfp_inputs_held_out(&in, 17));
	assert_true(xfp_inputs_held_out(&in, 18));
	in.tokens = 24;
	assert_true(xfp_inputs_held_out(&in, 21));
	in.tokens = 51;
	assert_true(xfp_inputs_held_out(&in, 47) && !xfp_inputs_held_out(&in, 48) && !xfp_inputs_held_out(&in, 50));
}

/* The last step: no stream, no experts, one input. */
static void the_head(void **state)
{
	struct xfp_input_tensor tensor = { "head", 0, XFP_NO_EXPERT };
	struct xfp_inputs want = { .layer = 2,
				   .hidden = HIDDEN,
				   .tokens = TOKENS,
				   .length = TOKENS,
				   .input_count = 1,
				   .input = { { "head", TOKENS, HIDDEN } },
				   .tensor_count = 1,
				   .tensors = &tensor },
			  in;
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact a;

	write_layer(path, &want);
	assert_int_equal(read_layer(path, &a, &in), XFP_OK);
	assert_false(in.has_stream);
	assert_int_equal(in.source_count, 0);
	assert_string_equal(in.tensors[0].name, "head");
	xfp_artifact_close(&a);
	xfp_inputs_free(&in);
	free(path);
}

/* Tables whose digest is right but which contradict each other. */
static void lies(void **state)
{
	char *path = scratch_path(state, "a.h5");

	for (int lie = 0; lie < 9; lie++) {
		uint32_t experts[2 * TOKENS];
		struct xfp_inputs want = a_layer(experts), in;
		struct xfp_input_tensor tensors[3];
		struct xfp_artifact a;

		memcpy(tensors, want.tensors, sizeof tensors);
		want.tensors = tensors;
		switch (lie) {
		case 0:
			want.length = 4; /* no whole windows */
			break;
		case 1:
			want.input[2].rows--;
			break;
		case 2:
			tensors[1].input = 3;
			break;
		case 3:
			tensors[1].name = "m"; /* not in order */
			break;
		case 4:
			experts[3] = experts[2];
			break;
		case 5:
			strcpy(want.input[1].name, "attention");
			break;
		case 6:
			tensors[2].name = "";
			break;
		case 7:
			want.experts_per_token = 1;
			break;
		case 8:
			strcpy(want.input[1].name, "MLP");
			break;
		}
		if (lie == 5) { /* the second dataset of that name cannot be made */
			OK(xfp_artifact_create(path, &a, &err));
			assert_int_equal(xfp_inputs_begin(&a, &want, NULL), XFP_FAILED);
			xfp_artifact_close(&a);
			continue;
		}
		write_layer(path, &want);
		if (read_layer(path, &a, &in) != XFP_DAMAGED)
			fail_msg("lie %d is accepted", lie);
		xfp_artifact_close(&a);
	}
	free(path);
}

/* Name and digest of each tensor matter. */
static void digests(void **state)
{
	struct xfp_input_source sources[] = { { "a", { 1 } }, { "b", { 2 } } };
	uint8_t first[16], other[16];

	(void)state;
	OK(xfp_inputs_digest(sources, 2, first, &err));
	OK(xfp_inputs_digest(sources, 1, other, &err));
	assert_memory_not_equal(first, other, 16);
	sources[1].digest[15] = 1;
	OK(xfp_inputs_digest(sources, 2, other, &err));
	assert_memory_not_equal(first, other, 16);
	sources[1].digest[15] = 0;
	sources[1].name = "c";
	OK(xfp_inputs_digest(sources, 2, other, &err));
	assert_memory_not_equal(first, other, 16);
}

/* ---- calibration.h5 ------------------------------------------------------------------------------ */

static struct xfp_calibration a_calibration(uint32_t *ids)
{
	return (struct xfp_calibration){
		.description = "00112233445566778899aabbccddeeff",
		.identity = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		.source = "calibration-1",
		.model = "/m",
		.body = "model.",
		.head = "lm_head.weight",
		.notes = "",
		.layers = 12,
		.hidden = 64,
		.experts_per_token = 2,
		.windows = 2,
		.length = 3,
		.ids = ids,
	};
}

static void a_calibration_round_trip(void **state)
{
	uint32_t ids[] = { 0, 1, 2, 3, 4, 0x01020304 };
	struct xfp_calibration want = a_calibration(ids), c;
	char *path = scratch_path(state, XFP_CALIBRATION_FILE), *text, *again;
	size_t size, more;
	bool found;

	OK(xfp_calibration_read(*state, &c, &found, &err));
	assert_false(found);
	OK(xfp_calibration_write(*state, &want, &err));
	OK(xfp_slurp(path, 1 << 20, &text, &size, &err));
	OK(xfp_calibration_read(*state, &c, &found, &err));
	assert_true(found);
	/* sha256sum of the length and the ids, 28 bytes */
	assert_string_equal(c.sha256, "b892d868b20c0b64243f6be191e09fd7e6a934ea6c2abfbdab32b143f63fb966");
	assert_string_equal(c.description, want.description);
	assert_string_equal(c.source, "calibration-1");
	assert_string_equal(c.head, "lm_head.weight");
	assert_string_equal(c.notes, "");
	assert_int_equal(c.layers, 12);
	assert_int_equal(c.windows, 2);
	assert_memory_equal(c.ids, ids, sizeof ids);
	/* Equal contents have equal bytes. */
	OK(xfp_calibration_write(*state, &c, &err));
	OK(xfp_slurp(path, 1 << 20, &again, &more, &err));
	assert_int_equal(more, size);
	assert_memory_equal(again, text, size);
	xfp_calibration_free(&c);
	text[size / 2] ^= 1;
	scratch_write(state, XFP_CALIBRATION_FILE, text, size);
	assert_int_equal(xfp_calibration_read(*state, &c, &found, NULL), XFP_DAMAGED);
	xfp_calibration_free(&c);
	free(text);
	free(again);
	free(path);
}

static void layers_of_tensors(void **state)
{
	static const struct {
		const char *tensor;
		int layer; /* -1: none */
	} cases[] = {
		{ "model.layers.3.mlp.up.weight", 3 },
		{ "model.layers.11.x", 11 },
		{ "lm_head.weight", 12 },
		{ "model.layers.12.x", -1 },
		{ "model.layers.03.x", -1 },
		{ "model.layers.3", -1 },
		{ "model.layers.3.", -1 },
		{ "model.layers..x", -1 },
		{ "model.layers.4294967299.x", -1 },
		{ "layers.3.x", -1 },
		{ "model.embed_tokens.weight", -1 },
		{ "model.norm.weight", -1 },
		{ "visual.model.layers.3.x", -1 },
	};
	struct xfp_calibration c = a_calibration(NULL);
	uint32_t layer = 99;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool found = xfp_calibration_layer(&c, cases[i].tensor, &layer);

		if (found != (cases[i].layer >= 0) || (found && (int)layer != cases[i].layer))
			fail_msg("%s", cases[i].tensor);
	}
	c.head = "";
	c.body = "bert.";
	assert_true(xfp_calibration_layer(&c, "bert.encoder.layer.3.output.dense.weight", &layer));
	assert_int_equal(layer, 3);
	assert_false(xfp_calibration_layer(&c, "bert.encoder.layer.12.output.dense.weight", &layer));
	assert_false(xfp_calibration_layer(&c, "encoder.layer.3.output.dense.weight", &layer));
	assert_false(xfp_calibration_layer(&c, "bert.embeddings.word_embeddings.weight", &layer));
	assert_false(xfp_calibration_layer(&c, "lm_head.weight", &layer));
	assert_false(xfp_calibration_layer(&c, "", &layer));
}

/* Every tensor of a layer determines its inputs. */
static void tensors_of_layers(void **state)
{
	static const char *const names[] = { "lm_head.weight",    "model.embed_tokens.weight", "model.layers.0.norm",
					     "model.layers.0.q",  "model.layers.1.q",          "model.layers.10.q",
					     "model.norm.weight", "visual.layers.1.q" };
	struct xfp_ledger_tensor tensors[8];
	struct xfp_ledger ledger = { .tensors = tensors, .tensor_count = 8 };
	struct xfp_calibration c = a_calibration(NULL);
	uint32_t list[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		tensors[i] = (struct xfp_ledger_tensor){ .name = (char *)(uintptr_t)names[i] };
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 0, NULL), 3);
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 0, list), 3);
	assert_true(list[0] == 1 && list[1] == 2 && list[2] == 3);
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 1, list), 1);
	assert_int_equal(list[0], 4);
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 12, list), 1);
	assert_int_equal(list[0], 6);
}

/* The inputs of the first layer of an encoder depend on all embeddings; there is no final norm. */
static void tensors_of_encoders(void **state)
{
	static const char *const names[] = { "embeddings.LayerNorm.bias",
					     "embeddings.position_ids",
					     "embeddings.word_embeddings.weight",
					     "encoder.layer.0.output.dense.weight",
					     "encoder.layer.1.output.dense.weight",
					     "encoder.layer.10.output.dense.weight",
					     "pooler.dense.weight" };
	struct xfp_ledger_tensor tensors[7];
	struct xfp_ledger ledger = { .tensors = tensors, .tensor_count = 7 };
	struct xfp_calibration c = a_calibration(NULL);
	uint32_t list[7];

	(void)state;
	c.body = c.head = "";
	for (int i = 0; i < 7; i++)
		tensors[i] = (struct xfp_ledger_tensor){ .name = (char *)(uintptr_t)names[i] };
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 0, list), 3);
	assert_true(list[0] == 0 && list[1] == 2 && list[2] == 3);
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 1, list), 1);
	assert_int_equal(list[0], 4);
	assert_int_equal(xfp_calibration_tensors(&c, &ledger, 12, list), 0);
}

PROGRAM("test_inputs")
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_round_trip),
		cmocka_unit_test(rows_of_experts),
		cmocka_unit_test(held_out_windows),
		scratch_test(the_head),
		scratch_test(lies),
		cmocka_unit_test(digests),
		scratch_test(a_calibration_round_trip),
		cmocka_unit_test(layers_of_tensors),
		cmocka_unit_test(tensors_of_layers),
		cmocka_unit_test(tensors_of_encoders),
	};

	return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
