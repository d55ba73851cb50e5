/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From names and shapes to classes and fates, with the families of the source tree.
 */
#include "tests/unit/unit.h"

#include "stages/inspect/refuse.h"
#include "tests/unit/named_shapes.h"

#include <unistd.h>

/* ---- plain models ----------------------------------------------------------------------------- */

static void test_llama(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"model_type\": \"llama\"}");
	add(&m, "model.layers.10.mlp.down_proj.weight", 4, 12);
	add(&m, "model.layers.2.mlp.up_proj.weight", 12, 4);
	add(&m, "model.layers.2.mlp.gate_proj.weight", 12, 4);
	add(&m, "model.layers.2.self_attn.v_proj.weight", 2, 4);
	add(&m, "model.layers.2.self_attn.k_proj.weight", 2, 4);
	add(&m, "model.layers.2.self_attn.q_proj.weight", 8, 4);
	add(&m, "model.layers.2.self_attn.o_proj.weight", 4, 8);
	add1(&m, "model.layers.2.self_attn.q_proj.bias", 8);
	add1(&m, "model.layers.2.input_layernorm.weight", 4);
	add1(&m, "model.layers.2.self_attn.rotary_emb.inv_freq", 2);
	add1(&m, "model.norm.weight", 4);
	add(&m, "model.embed_tokens.weight", 9, 4);
	add(&m, "lm_head.weight", 9, 4);
	add1(&m, "something.else", 4);
	classify(&m, "llama");
	expect_units(&m, true,
		     "lm_head/lm_head/lm_head.weight 1 9 4;"
		     "embedding/embedding/model.embed_tokens.weight 1 9 4;"
		     "attention/q/model.layers.2.self_attn.q_proj.weight 1 8 4;"
		     "attention/k/model.layers.2.self_attn.k_proj.weight 1 2 4;"
		     "attention/v/model.layers.2.self_attn.v_proj.weight 1 2 4;"
		     "attention/o/model.layers.2.self_attn.o_proj.weight 1 4 8;"
		     "dense_mlp/gate/model.layers.2.mlp.gate_proj.weight 1 12 4;"
		     "dense_mlp/up/model.layers.2.mlp.up_proj.weight 1 12 4;"
		     "dense_mlp/down/model.layers.10.mlp.down_proj.weight 1 4 12;");
	expect(&m, "model.layers.2.self_attn.q_proj.weight", XFP_CLASS_ATTENTION, XFP_FATE_QUANTIZED, "attention: q");
	expect(&m, "model.layers.2.self_attn.q_proj.bias", XFP_CLASS_ATTENTION, XFP_FATE_KEPT,
	       "attention: kept by rule");
	expect(&m, "model.layers.2.input_layernorm.weight", XFP_CLASS_NORM, XFP_FATE_KEPT, "norm: kept by rule");
	expect(&m, "model.layers.2.self_attn.rotary_emb.inv_freq", XFP_CLASS_OTHER, XFP_FATE_DROPPED,
	       "computed by every engine: dropped by rule");
	expect(&m, "model.embed_tokens.weight", XFP_CLASS_EMBEDDING, XFP_FATE_QUANTIZED, "embedding: embedding");
	expect(&m, "something.else", XFP_CLASS_OTHER, XFP_FATE_KEPT, "no rule matches");
	assert_int_equal(m.ledger->units[0].plan, XFP_PLAN_FP8);
	assert_int_equal(m.ledger->units[1].plan, XFP_PLAN_FIT);
	assert_int_equal(m.ledger->units[1].dtype, XFP_BF16);
	assert_int_equal(m.ledger->matrix_count, 9);
	for (uint32_t u = 0; u < 9; u++) { /* plain matrices: one each, read directly */
		const struct xfp_ledger_matrix *x = &m.ledger->matrices[m.ledger->units[u].first_matrix];

		assert_string_equal(m.ledger->tensors[x->tensor].name, m.ledger->units[u].name);
		assert_int_equal(x->base, 0);
		assert_int_equal(x->row_stride, x->cols);
		assert_int_equal(x->col_stride, 1);
	}
	assert_int_equal(warnings(&m), 0);
	end(&m);
}

static void test_bert(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"]}");
	add(&m, "encoder.layer.0.attention.self.query.weight", 4, 4);
	add(&m, "encoder.layer.0.attention.self.key.weight", 4, 4);
	add(&m, "encoder.layer.0.attention.self.value.weight", 4, 4);
	add1(&m, "encoder.layer.0.attention.self.value.bias", 4);
	add(&m, "encoder.layer.0.attention.output.dense.weight", 4, 4);
	add1(&m, "encoder.layer.0.attention.output.LayerNorm.weight", 4);
	add(&m, "encoder.layer.0.intermediate.dense.weight", 16, 4);
	add(&m, "encoder.layer.0.output.dense.weight", 4, 16);
	add1(&m, "encoder.layer.0.output.LayerNorm.beta", 4);
	add(&m, "embeddings.word_embeddings.weight", 300, 400);
	add(&m, "embeddings.position_embeddings.weight", 300, 400);
	add_shape(&m, "embeddings.position_ids", XFP_I64, 2, (uint64_t[]){ 1, 512 });
	add(&m, "pooler.dense.weight", 300, 400);
	classify(&m, "bert");
	expect_units(&m, false,
		     "embedding/embedding 1 300 400;"
		     "attention/q 1 4 4;attention/k 1 4 4;attention/v 1 4 4;attention/o 1 4 4;"
		     "dense_mlp/up 1 16 4;dense_mlp/down 1 4 16;");
	expect(&m, "embeddings.position_embeddings.weight", XFP_CLASS_EMBEDDING, XFP_FATE_KEPT,
	       "embedding: kept by rule");
	expect(&m, "embeddings.position_ids", XFP_CLASS_OTHER, XFP_FATE_KEPT, "other: kept by rule");
	expect(&m, "pooler.dense.weight", XFP_CLASS_OTHER, XFP_FATE_KEPT, "other: kept by rule");
	expect(&m, "encoder.layer.0.output.LayerNorm.beta", XFP_CLASS_NORM, XFP_FATE_KEPT, "norm: kept by rule");
	assert_int_equal(warnings(&m), 0);
	/* as large as a projection, without a class of its own: a note, not a warning */
	assert_true(says(&m, false, "pooler.dense.weight (1 tensor, 120000 weights): a rule keeps it"));
	end(&m);
}

static void test_general_reads_common_names(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"num_hidden_layers\": 2, \"hidden_size\": 4}");
	add(&m, "model.language_model.layers.0.self_attn.q_a_proj.weight", 8, 4);
	add(&m, "model.layers.1.block_sparse_moe.experts.0.w1.weight", 8, 4);
	add(&m, "model.layers.1.block_sparse_moe.experts.0.w2.weight", 4, 8);
	add(&m, "model.layers.1.block_sparse_moe.experts.0.w3.weight", 8, 4);
	add(&m, "model.layers.1.block_sparse_moe.gate.weight", 1, 4);
	add(&m, "model.layers.1.mlp.shared_experts.up_proj.weight", 8, 4);
	add(&m, "roberta.encoder.layer.0.attention.self.key.weight", 4, 4);
	add(&m, "model.layers.2.self_attn.q_proj.weight", 4, 4);
	add(&m, "model.visual.blocks.0.attn.qkv.weight", 400, 400);
	add1(&m, "model.layers.1.self_attn.q_norm.weight", 4);
	add(&m, "model.layers.0.linear_attn.in_proj_z.weight", 8, 4);
	add1(&m, "model.layers.0.linear_attn.A_log", 4);
	add1(&m, "model.layers.0.linear_attn.norm.weight", 4);
	add(&m, "model.layers.1.mlp.experts.gate_up_proj_bias", 400, 400);
	add(&m, "model.layers.1.mlp.router.weight", 400, 400);
	classify(&m, "general");
	expect_units(&m, false,
		     "attention/q_a 1 8 4;attention/k 1 4 4;linear_attention/in_proj_z 1 8 4;shared_expert/up 1 8 4;"
		     "routed_expert/gate 1 8 4;routed_expert/up 1 8 4;routed_expert/down 1 4 8;");
	expect(&m, "model.layers.2.self_attn.q_proj.weight", XFP_CLASS_MTP, XFP_FATE_KEPT, "mtp: kept by rule");
	expect(&m, "model.visual.blocks.0.attn.qkv.weight", XFP_CLASS_VISION, XFP_FATE_KEPT, "vision: kept by rule");
	expect(&m, "model.layers.1.self_attn.q_norm.weight", XFP_CLASS_NORM, XFP_FATE_KEPT, "norm: kept by rule");
	expect(&m, "model.layers.0.linear_attn.norm.weight", XFP_CLASS_NORM, XFP_FATE_KEPT, "norm: kept by rule");
	expect(&m, "model.layers.0.linear_attn.A_log", XFP_CLASS_LINEAR_ATTENTION, XFP_FATE_KEPT,
	       "linear_attention: kept by rule");
	expect(&m, "model.layers.1.mlp.experts.gate_up_proj_bias", XFP_CLASS_ROUTED_EXPERT, XFP_FATE_KEPT,
	       "routed_expert: kept by rule");
	assert_int_equal(warnings(&m), 0);
	end(&m);
}

/* ---- what cannot be quantized ------------------------------------------------------------------ */

static void test_faults(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"hidden_size\": 4}");
	add(&m, "layers.0.self_attn.q_proj.weight", 0, 4);
	add1(&m, "layers.0.self_attn.k_proj.weight", 4);
	add_shape(&m, "layers.0.self_attn.v_proj.weight", XFP_I8, 2, (uint64_t[]){ 4, 4 });
	add_shape(&m, "layers.1.self_attn.v_proj.weight", XFP_I8, 2, (uint64_t[]){ 4, 4 });
	add3(&m, "layers.0.mlp.experts.down_proj", 0, 4, 4);
	add3(&m, "layers.1.mlp.experts.down_proj", 2, 5, 6);
	add3(&m, "layers.2.mlp.experts.down_proj", 70000, 4, 1);
	add(&m, "layers.3.mlp.experts.0.up_proj.weight", 0, 4);
	add(&m, "layers.3.mlp.experts.1.up_proj.weight", 0, 4);
	add(&m, "layers.0.self_attn.o_proj.weight", 4, 4);
	classify(&m, "qwen3_moe");
	expect_units(&m, false, "attention/o 1 4 4;");
	expect(&m, "layers.0.self_attn.q_proj.weight", XFP_CLASS_ATTENTION, XFP_FATE_KEPT, "attention: no weights");
	expect(&m, "layers.0.self_attn.k_proj.weight", XFP_CLASS_ATTENTION, XFP_FATE_KEPT,
	       "attention: 1 dimension where 2 are expected");
	expect(&m, "layers.0.self_attn.v_proj.weight", XFP_CLASS_ATTENTION, XFP_FATE_KEPT,
	       "attention: dtype I8 cannot be quantized");
	expect(&m, "layers.0.mlp.experts.down_proj", XFP_CLASS_ROUTED_EXPERT, XFP_FATE_KEPT,
	       "routed_expert: no weights");
	expect(&m, "layers.1.mlp.experts.down_proj", XFP_CLASS_ROUTED_EXPERT, XFP_FATE_KEPT,
	       "routed_expert: dimension 2 is 5 and not hidden_size");
	expect(&m, "layers.2.mlp.experts.down_proj", XFP_CLASS_ROUTED_EXPERT, XFP_FATE_KEPT,
	       "routed_expert: more than 65536 experts");
	expect(&m, "layers.3.mlp.experts.1.up_proj.weight", XFP_CLASS_ROUTED_EXPERT, XFP_FATE_KEPT,
	       "routed_expert: no weights");
	/* reported once for both layers; tensors without weights are not reported */
	assert_true(says(&m, true, "layers.*.self_attn.v_proj.weight (2 tensors, 32 weights): dtype I8"));
	assert_int_equal(warnings(&m), 4);
	end(&m);
}

static void test_unmatched(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{}");
	add(&m, "layers.0.self_attn.o_proj.weight", 4, 4);
	add(&m, "layers.0.odd.weight", 256, 256);
	add(&m, "layers.1.odd.weight", 256, 256);
	add(&m, "layers.0.small.weight", 255, 256);
	add3(&m, "layers.0.mlp.stack", 16, 64, 64);
	add_shape(&m, "layers.0.table", XFP_I32, 2, (uint64_t[]){ 256, 256 });
	add(&m, "$(shell touch pwned)\n", 4, 4);
	classify(&m, "llama");
	assert_true(says(&m, true, "layers.*.odd.weight (2 tensors, 131072 weights): no rule matches"));
	assert_true(says(&m, true, "layers.*.mlp.stack (1 tensor, 65536 weights): no rule matches"));
	assert_int_equal(warnings(&m), 2);
	expect(&m, "$(shell touch pwned)\n", XFP_CLASS_OTHER, XFP_FATE_KEPT, "no rule matches");
	/* rules that match no tensor, except optional ones */
	assert_true(says(&m, false, "llama.family:13: the rule matches no tensor"));
	assert_false(says(&m, false, "bias"));
	end(&m);

	begin(&m, "{}");
	add1(&m, "a", 4);
	classify(&m, "general");
	assert_true(says(&m, true, "nothing to quantize"));
	assert_int_equal(m.ledger->unit_count, 0);
	end(&m);
}

static void test_quantized_checkpoints_are_refused(void **state)
{
	struct model m;
	(void)state;

	begin(&m, "{\"quantization_config\": {\"quant_method\": \"gptq\"}}");
	assert_int_equal(xfp_refuse_quantized(&m.checkpoint, m.config, &m.err), XFP_BAD_INPUT);
	assert_non_null(strstr(m.err.text, "quant_method gptq"));
	assert_non_null(strstr(m.err.text, "convert the unquantized checkpoint"));
	end(&m);

	begin(&m, "{\"quantization_config\": null}");
	add(&m, "layers.0.self_attn.q_proj.weight", 4, 4);
	assert_int_equal(xfp_refuse_quantized(&m.checkpoint, m.config, &m.err), XFP_OK);
	add(&m, "layers.0.self_attn.q_proj.qweight", 4, 4);
	assert_int_equal(xfp_refuse_quantized(&m.checkpoint, m.config, &m.err), XFP_BAD_INPUT);
	assert_non_null(strstr(m.err.text, "layers.0.self_attn.q_proj.qweight"));
	end(&m);

	/* the remedy follows from the method, or from a tensor if there is none */
	begin(&m, "{\"quantization_config\": {\"quant_method\": \"exl3\"}}");
	assert_int_equal(xfp_refuse_quantized(&m.checkpoint, m.config, &m.err), XFP_BAD_INPUT);
	assert_non_null(strstr(m.err.text, "as EXL3, which only its kernels decode: convert the model"));
	end(&m);
	begin(&m, "{}");
	add(&m, "layers.0.self_attn.q_proj.weight.quant_map", 1, 16);
	assert_int_equal(xfp_refuse_quantized(&m.checkpoint, m.config, &m.err), XFP_BAD_INPUT);
	assert_non_null(strstr(m.err.text, "by bitsandbytes, which rounds a published model"));
	end(&m);

	/* both if available: the method, and a tensor that shows it */
	begin(&m, "{\"quantization_config\": {\"quant_method\": \"fp8\"}}");
	add(&m, "model.layers.0.self_attn.q_a_proj.weight", 4, 4);
	add(&m, "model.layers.0.self_attn.q_a_proj.weight_scale_inv", 1, 1);
	assert_int_equal(xfp_refuse_quantized(&m.checkpoint, m.config, &m.err), XFP_BAD_INPUT);
	assert_non_null(strstr(m.err.text, "quant_method fp8"));
	assert_non_null(strstr(m.err.text, "tensor model.layers.0.self_attn.q_a_proj.weight_scale_inv"));
	end(&m);
}

/* ---- lm_head ---------------------------------------------------------------------------------- */

static void test_lm_head_policy(void **state)
{
	static const struct {
		enum xfp_lm_head policy;
		uint32_t units;
		enum xfp_plan plan;
	} cases[] = {
		{ XFP_LM_HEAD_FP8, 2, XFP_PLAN_FP8 },
		{ XFP_LM_HEAD_QUANT, 2, XFP_PLAN_FIT },
		{ XFP_LM_HEAD_KEEP, 1, XFP_PLAN_FIT }, /* the embedding */
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct model m;

		begin(&m, "{\"tie_word_embeddings\": false}");
		add(&m, "lm_head.weight", 9, 4);
		add(&m, "model.embed_tokens.weight", 9, 4);
		assert_int_equal(classify_as(&m, "qwen3", NULL, cases[i].policy), XFP_OK);
		assert_int_equal(m.ledger->unit_count, cases[i].units);
		assert_int_equal(m.ledger->units[0].plan, cases[i].plan);
		if (cases[i].policy == XFP_LM_HEAD_KEEP)
			expect(&m, "lm_head.weight", XFP_CLASS_LM_HEAD, XFP_FATE_KEPT, "lm_head: kept as asked for");
		end(&m);
	}
}

static void test_tied_lm_head(void **state)
{
	static const char weights[] = "AAAABBBBCCCCDDDD"
				      "AAAABBBBCCCCDDDD"
				      "AAAABBBBCCCCDDDE";
	const char *parent = getenv("TMPDIR");
	char *path = xfp_formatted("%s/xfp-classify-XXXXXX", parent && *parent ? parent : "/tmp");
	int fd = mkstemp(path);
	(void)state;

	assert_int_equal(write(fd, weights, 48), 48);
	close(fd);
	for (int i = 0; i < 5; i++) {
		static const struct {
			const char *config;
			uint64_t head; /* head's bytes */
			uint64_t rows;
			enum xfp_fate fate;
			bool warns;
		} cases[] = {
			{ "{\"tie_word_embeddings\": true}", 16, 4, XFP_FATE_TIED, false },
			{ "{\"tie_word_embeddings\": true}", 32, 4, XFP_FATE_QUANTIZED, true },
			{ "{\"tie_word_embeddings\": true}", 16, 2, XFP_FATE_QUANTIZED, true },
			{ "{\"tie_word_embeddings\": false}", 16, 4, XFP_FATE_QUANTIZED, false },
			{ "{}", 16, 4, XFP_FATE_QUANTIZED, false },
		};
		struct xfp_family *family;
		const struct xfp_parameters policy = xfp_parameters_default();
		struct model m;

		begin(&m, cases[i].config);
		free(m.checkpoint.files[0].path);
		m.checkpoint.files[0].path = strdup(path);
		add(&m, "lm_head.weight", cases[i].rows, 2);
		add(&m, "model.embed_tokens.weight", 4, 2);
		m.checkpoint.tensors[0].offset = cases[i].head;
		assert_int_equal(xfp_family_parse("keep embedding embed\nquantize lm_head lm_head N,K lm_head\n",
						  "t.family", false, &family, NULL),
				 XFP_OK);
		assert_int_equal(xfp_classify(&m.checkpoint, m.config, family, &policy, &m.ledger, &m.findings, &m.err),
				 XFP_OK);
		assert_int_equal(tensor(&m, "lm_head.weight")->fate, cases[i].fate);
		assert_int_equal(warnings(&m) - (cases[i].fate == XFP_FATE_TIED), cases[i].warns);
		if (cases[i].fate == XFP_FATE_TIED) {
			expect(&m, "lm_head.weight", XFP_CLASS_LM_HEAD, XFP_FATE_TIED,
			       "tied to model.embed_tokens.weight");
			assert_int_equal(tensor(&m, "lm_head.weight")->tied, 1);
			assert_int_equal(m.ledger->unit_count, 0);
		} else {
			assert_int_equal(tensor(&m, "lm_head.weight")->tied, UINT32_MAX);
			assert_int_equal(m.ledger->unit_count, 1);
		}
		m.family = family;
		end(&m);
	}
	unlink(path);
	free(path);
}

PROGRAM("test_classify")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_llama),
		cmocka_unit_test(test_bert),
		cmocka_unit_test(test_general_reads_common_names),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_unmatched),
		cmocka_unit_test(test_quantized_checkpoints_are_refused),
		cmocka_unit_test(test_lm_head_policy),
		cmocka_unit_test(test_tied_lm_head),
	};

	return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
