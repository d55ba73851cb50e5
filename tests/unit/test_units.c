/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units: experts in every storage layout, and projections that share a tensor.
 */
#include "tests/unit/unit.h"

#include "tests/unit/named_shapes.h"

/* ---- experts ---------------------------------------------------------------------------------- */

#define E 3
#define I 5
#define H 4

enum storage { SPLIT, FUSED, TRANSPOSED };

/* A distinct number for each weight of each expert's gate, up ([I, H]) and down ([H, I]). */
static uint64_t weight(unsigned role, uint64_t e, uint64_t r, uint64_t c)
{
	return ((role * 10 + e) * 100 + r) * 100 + c;
}

static void add_experts(struct model *m, enum storage storage)
{
	static const char *const names[] = { "gate", "up", "down" };

	add(m, "model.layers.1.self_attn.q_proj.weight", 4, H);
	add(m, "model.layers.1.mlp.gate.weight", E, H);
	if (storage == FUSED) {
		add3(m, "model.layers.1.mlp.experts.gate_up_proj", E, 2 * I, H);
		add3(m, "model.layers.1.mlp.experts.down_proj", E, H, I);
	} else if (storage == TRANSPOSED) {
		add3(m, "model.layers.1.mlp.experts.gate_up_proj", E, H, 2 * I);
		add3(m, "model.layers.1.mlp.experts.down_proj", E, I, H);
	} else {
		for (unsigned e = 0; e < E; e++)
			for (unsigned role = 0; role < 3; role++) {
				char *name =
					xfp_formatted("model.layers.1.mlp.experts.%u.%s_proj.weight", e, names[role]);

				add(m, name, role == 2 ? H : I, role == 2 ? I : H);
				free(name);
			}
	}
}

/* The weight that a fused tensor stores at a flat position. */
static uint64_t stored(bool down, enum storage storage, uint64_t at)
{
	uint64_t n = down ? H : 2 * I, k = down ? I : H;
	uint64_t e = at / (n * k), r = storage == FUSED ? at / k % n : at % n;
	uint64_t c = storage == FUSED ? at % k : at / n % k;

	return down ? weight(2, e, r, c) : r < I ? weight(0, e, r, c) : weight(1, e, r - I, c);
}

static void check_stack(const struct model *m, const struct xfp_ledger_unit *unit, unsigned role, enum storage storage)
{
	for (uint32_t e = 0; e < unit->experts; e++) {
		const struct xfp_ledger_matrix *x = &m->ledger->matrices[unit->first_matrix + e];

		assert_int_equal(x->rows, unit->rows);
		assert_int_equal(x->cols, unit->cols);
		for (uint64_t r = 0; r < x->rows; r++)
			for (uint64_t c = 0; c < x->cols; c++)
				assert_int_equal(
					stored(role == 2, storage, x->base + r * x->row_stride + c * x->col_stride),
					weight(role, e, r, c));
	}
}

static void test_expert_storages_give_the_same_units(void **state)
{
	static const char expected[] = "attention/q 1 4 4;routed_expert/gate 3 5 4;routed_expert/up 3 5 4;"
				       "routed_expert/down 3 4 5;";
	(void)state;

	for (int storage = SPLIT; storage <= TRANSPOSED; storage++) {
		struct model m;

		begin(&m, "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 4, \"num_experts\": 3}");
		add_experts(&m, (enum storage)storage);
		classify(&m, "qwen3_moe");
		expect_units(&m, false, expected);
		assert_int_equal(warnings(&m), 0);
		if (storage == SPLIT) {
			const struct xfp_ledger_unit *up = &m.ledger->units[2];

			assert_string_equal(up->name, "model.layers.1.mlp.experts.*.up_proj.weight");
			assert_string_equal(m.ledger->tensors[m.ledger->matrices[up->first_matrix + 2].tensor].name,
					    "model.layers.1.mlp.experts.2.up_proj.weight");
		} else {
			assert_string_equal(m.ledger->units[1].name, "model.layers.1.mlp.experts.gate_up_proj");
			assert_string_equal(m.ledger->units[2].name, "model.layers.1.mlp.experts.gate_up_proj");
			for (unsigned role = 0; role < 3; role++)
				check_stack(&m, &m.ledger->units[1 + role], role, (enum storage)storage);
			expect(&m, "model.layers.1.mlp.experts.gate_up_proj", XFP_CLASS_ROUTED_EXPERT,
			       XFP_FATE_QUANTIZED, "routed_expert: gate, up");
		}
		end(&m);
	}
}

static void test_more_than_ten_experts_count_as_numbers(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{}");
	for (unsigned e = 0; e < 12; e++) {
		char *name = xfp_formatted("layers.0.mlp.experts.%u.up_proj.weight", e);

		add(&m, name, 2, 2);
		free(name);
	}
	classify(&m, "qwen3_moe");
	assert_int_equal(m.ledger->unit_count, 1);
	assert_int_equal(m.ledger->units[0].experts, 12);
	assert_string_equal(m.ledger->tensors[m.ledger->matrices[10].tensor].name,
			    "layers.0.mlp.experts.10.up_proj.weight");
	end(&m);
}

static void test_bad_stacks(void **state)
{
	static const struct {
		const char *names[3]; /* of [2, 2] tensors; a trailing ! makes it [3, 2] */
		const char *says;
	} cases[] = {
		{ { "layers.0.mlp.experts.0.up_proj.weight", "layers.0.mlp.experts.2.up_proj.weight" },
		  "layers.0.mlp.experts.*.up_proj.weight: expert 1 is missing, though there is an expert 2" },
		{ { "layers.0.mlp.experts.1.up_proj.weight" }, "expert 0 is missing" },
		{ { "layers.0.mlp.experts.0.up_proj.weight", "layers.0.mlp.experts.00.up_proj.weight" },
		  "the same expert" },
		{ { "layers.0.mlp.experts.0.up_proj.weight", "layers.0.mlp.experts.1.up_proj.weight!" },
		  "layers.0.mlp.experts.1.up_proj.weight differs from layers.0.mlp.experts.0.up_proj.weight" },
		{ { "layers.0.mlp.experts.0.up_proj.weight", "layers.0.mlp.experts.1.up_proj.weight",
		    "layers.0.mlp.experts.0.down_proj.weight" },
		  "layers.0.mlp.experts.*.down_proj.weight: expert 1 is missing, "
		  "though layers.0.mlp.experts.*.up_proj.weight" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct model m;

		begin(&m, "{}");
		for (int n = 0; n < 3 && cases[i].names[n]; n++) {
			char *name = strdup(cases[i].names[n]), *mark = strchr(name, '!');

			if (mark)
				*mark = 0;
			add(&m, name, mark ? 3 : 2, 2);
			free(name);
		}
		assert_int_equal(classify_as(&m, "qwen3_moe", NULL, XFP_LM_HEAD_FP8), XFP_BAD_INPUT);
		assert_null(m.ledger);
		if (!strstr(m.err.text, cases[i].says))
			fail_msg("%s", m.err.text);
		end(&m);
	}
}

static void test_experts_against_config(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"hidden_size\": 4, \"num_experts\": 4}");
	add_experts(&m, FUSED);
	classify(&m, "qwen3_moe");
	assert_true(says(&m, true, "has 3 experts, but config.json says num_experts 4"));
	end(&m);
}

/* H == 2 I: gate_up is square, down determines the layout. All square: the family's first layout, with a warning. */
static void test_orientation_where_shapes_are_ambiguous(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"hidden_size\": 4}");
	add3(&m, "layers.0.mlp.experts.gate_up_proj", 2, 4, 4);
	add3(&m, "layers.0.mlp.experts.down_proj", 2, 2, 4);
	classify(&m, "qwen3_moe");
	expect_units(&m, false, "routed_expert/gate 2 2 4;routed_expert/up 2 2 4;routed_expert/down 2 4 2;");
	assert_int_equal(m.ledger->matrices[0].row_stride, 1);
	assert_int_equal(m.ledger->matrices[0].col_stride, 4);
	assert_int_equal(m.ledger->matrices[2].base, 2); /* up: columns 2 and 3 of the storage */
	assert_int_equal(warnings(&m), 0);
	end(&m);

	begin(&m, "{\"hidden_size\": 4}");
	add3(&m, "layers.0.mlp.experts.gate_up_proj", 2, 8, 4);
	add3(&m, "layers.0.mlp.experts.down_proj", 2, 4, 4);
	classify(&m, "qwen3_moe");
	assert_int_equal(m.ledger->matrices[0].row_stride, 4);
	assert_int_equal(warnings(&m), 0);
	end(&m);

	begin(&m, "{\"hidden_size\": 4}");
	add3(&m, "layers.0.mlp.experts.down_proj", 2, 4, 4);
	classify(&m, "qwen3_moe");
	assert_int_equal(m.ledger->matrices[0].row_stride, 4);
	assert_true(says(&m, true, "the orientation of fused experts is ambiguous"));
	end(&m);

	begin(&m, "{\"hidden_size\": 4}");
	add3(&m, "layers.0.mlp.experts.gate_up_proj", 2, 6, 4);
	add3(&m, "layers.1.mlp.experts.gate_up_proj", 2, 4, 6);
	assert_int_equal(classify_as(&m, "qwen3_moe", NULL, XFP_LM_HEAD_FP8), XFP_BAD_INPUT);
	assert_non_null(strstr(m.err.text, "different orientations"));
	end(&m);
}

static void test_width_from_text_config_or_embedding(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"hidden_size\": 6, \"text_config\": {\"hidden_size\": 4}}");
	add3(&m, "model.language_model.layers.0.mlp.experts.gate_up_proj", 2, 4, 6);
	classify(&m, "qwen3_moe");
	assert_int_equal(m.ledger->units[0].cols, 4);
	end(&m);

	/* Reported if there is a config.json that could have given it. */
	for (int present = 0; present < 2; present++) {
		begin(&m, present ? "{}" : NULL);
		add3(&m, "layers.0.mlp.experts.gate_up_proj", 2, 4, 6);
		add(&m, "embed_tokens.weight", 9, 4);
		classify(&m, "general");
		assert_int_equal(m.ledger->units[0].cols, 4);
		assert_int_equal(says(&m, false, "4 is taken from the shape of embed_tokens.weight"), present);
		end(&m);
	}
}

/* ---- splits of later families ----------------------------------------------------------------- */

static void test_fused_qkv_and_interleaved(void **state)
{
	static const char rules[] = "quantize attention q:num_attention_heads*head_dim,k:num_key_value_heads*head_dim,"
				    "v:num_key_value_heads*head_dim "
				    "N,K qkv_proj\n"
				    "quantize dense_mlp gate,up N,K ^gate_up$\n"
				    "quantize routed_expert gate~up E,K=hidden_size,N ^experts$\n"
				    "quantize other t K,N ^conv1d$\n";
	const struct xfp_ledger_matrix *x;
	struct model m;
	(void)state;

	begin(&m, "{\"hidden_size\": 8, \"num_attention_heads\": 4, \"num_key_value_heads\": 1}");
	add(&m, "qkv_proj", 12, 8);
	add(&m, "gate_up", 6, 8);
	add3(&m, "experts", 2, 8, 10);
	add(&m, "conv1d", 3, 5);
	assert_int_equal(classify_as(&m, "test", rules, XFP_LM_HEAD_FP8), XFP_OK);
	expect_units(&m, true,
		     "attention/q/qkv_proj 1 8 8;attention/k/qkv_proj 1 2 8;attention/v/qkv_proj 1 2 8;"
		     "dense_mlp/gate/gate_up 1 3 8;dense_mlp/up/gate_up 1 3 8;"
		     "routed_expert/gate/experts 2 5 8;routed_expert/up/experts 2 5 8;other/t/conv1d 1 5 3;");
	x = &m.ledger->matrices[2]; /* v */
	assert_int_equal(x->base, 10 * 8);
	assert_int_equal(x->row_stride, 8);
	x = &m.ledger->matrices[4]; /* up */
	assert_int_equal(x->base, 3 * 8);
	x = &m.ledger->matrices[m.ledger->units[6].first_matrix + 1]; /* up of expert 1: odd columns */
	assert_int_equal(x->base, 80 + 1);
	assert_int_equal(x->row_stride, 2);
	assert_int_equal(x->col_stride, 10);
	x = &m.ledger->matrices[m.ledger->units[7].first_matrix];
	assert_int_equal(x->row_stride, 1);
	assert_int_equal(x->col_stride, 5);
	end(&m);

	begin(&m, "{\"hidden_size\": 8, \"num_attention_heads\": 4}"); /* k and v would need 8 rows each */
	add(&m, "qkv_proj", 12, 8);
	add(&m, "gate_up", 7, 8);
	assert_int_equal(classify_as(&m, "test", rules, XFP_LM_HEAD_FP8), XFP_OK);
	expect(&m, "qkv_proj", XFP_CLASS_ATTENTION, XFP_FATE_KEPT,
	       "attention: 12 rows cannot be shared out to the 3 projections in it");
	expect(&m, "gate_up", XFP_CLASS_DENSE_MLP, XFP_FATE_KEPT,
	       "dense_mlp: 7 rows cannot be shared out to the 2 projections in it");
	end(&m);
}

PROGRAM("test_units")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expert_storages_give_the_same_units),
		cmocka_unit_test(test_more_than_ten_experts_count_as_numbers),
		cmocka_unit_test(test_bad_stacks),
		cmocka_unit_test(test_experts_against_config),
		cmocka_unit_test(test_orientation_where_shapes_are_ambiguous),
		cmocka_unit_test(test_width_from_text_config_or_embedding),
		cmocka_unit_test(test_fused_qkv_and_interleaved),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
