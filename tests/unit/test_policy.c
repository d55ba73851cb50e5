/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings derived for one unit, and rejected parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "schemas/policy.h"
#include "tests/unit/round_floors.h"
#include "tests/unit/unit.h"

#define Q "model.layers.3.self_attn.q_proj.weight"
#define GATE "model.layers.3.mlp.experts.*.gate_proj.weight"
#define EMBEDDING "model.embed_tokens.weight"
#define ROUTER "model.layers.3.mlp.gate.weight"

static void override(struct xfp_parameters *p, const char *text)
{
	struct xfp_override made;
	struct xfp_error err;

	if (xfp_override_parse(text, &made, &err))
		fail_msg("%s", err.text);
	assert_true(xfp_parameters_add_override(p, &made));
}

static struct xfp_parameters with(const char *text)
{
	struct xfp_parameters p = round_floors();

	override(&p, text);
	return p;
}

static void format(struct xfp_parameters *p, enum xfp_class class_, const char *text)
{
	struct xfp_format made;

	assert_true(xfp_format_parse(text, &made));
	xfp_parameters_set_format(p, class_, made);
}

static void patterns(void **state)
{
	static const struct {
		const char *text, *name, *role;
		enum xfp_class class_;
		bool matches;
	} cases[] = {
		{ Q "=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "*.q_proj.*=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "*=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "model.layers.?.*=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "model.layers.[0-2].*=4", Q, "q", XFP_CLASS_ATTENTION, false },
		{ "*.Q_proj.*=4", Q, "q", XFP_CLASS_ATTENTION, false },
		{ "q_proj=4", Q, "q", XFP_CLASS_ATTENTION, false },
		{ "q=4", Q, "q", XFP_CLASS_ATTENTION, false },
		{ "role:q=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "role:[qk]=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "role:k=4", Q, "q", XFP_CLASS_ATTENTION, false },
		{ "class:attention=4", Q, "q", XFP_CLASS_ATTENTION, true },
		{ "class:mtp=4", Q, "q", XFP_CLASS_ATTENTION, false },
		{ GATE "=4", GATE, "gate", XFP_CLASS_ROUTED_EXPERT, true },
		{ "*.experts.7.gate_proj.weight=4", GATE, "gate", XFP_CLASS_ROUTED_EXPERT, false },
		{ "gate_up[1]=4", "gate_up[1]", "up", XFP_CLASS_DENSE_MLP, true }, /* a name, even if it looks like a
										    * pattern */
		{ "gate_up[1]=4", "gate_up1", "up", XFP_CLASS_DENSE_MLP, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_parameters p = with(cases[i].text);

		if (xfp_override_matches(&p.overrides[0], cases[i].name, cases[i].role, cases[i].class_) !=
		    cases[i].matches)
			fail_msg("%s and %s", cases[i].text, cases[i].name);
		xfp_parameters_free(&p);
	}
}

/* The class first, then overrides, the last match of which applies; format and floor separately. */
static void precedence(void **state)
{
	struct xfp_parameters p = round_floors();
	struct xfp_policy policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
	char *by;

	(void)state;
	assert_int_equal(policy.format.form, XFP_FORM_AUTO);
	assert_int_equal(policy.format.bits, 0x17c);
	assert_int_equal(policy.floor, 990000000);
	assert_int_equal(policy.format_by, XFP_BY_DEFAULT);
	assert_null(xfp_policy_format_by(&p, &policy));

	format(&p, XFP_CLASS_ATTENTION, "3,4");
	policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
	assert_int_equal(policy.format.bits, 0x18);
	assert_false(policy.fixed);
	assert_non_null(by = xfp_policy_format_by(&p, &policy));
	assert_string_equal(by, "--format attention=3,4");
	free(by);

	override(&p, "role:q=5");
	override(&p, "*layers.3*=floor:0.5");
	override(&p, "role:k=keep");
	policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
	assert_true(policy.fixed);
	assert_int_equal(policy.format.bits, 0x20);
	assert_int_equal(policy.floor, 500000000);
	assert_non_null(by = xfp_policy_format_by(&p, &policy));
	assert_string_equal(by, "--override 'role:q=5'");
	free(by);
	assert_non_null(by = xfp_policy_floor_by(&p, &policy));
	assert_string_equal(by, "--override '*layers.3*=floor:0.5'");
	free(by);

	override(&p, "*=auto");
	policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
	assert_int_equal(policy.format.form, XFP_FORM_AUTO);
	assert_int_equal(policy.format.bits, 0x17c);
	assert_int_equal(policy.floor, 500000000);

	override(&p, "*=fp8");
	policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
	assert_int_equal(xfp_policy_plan(&policy), XFP_PLAN_FP8);
	assert_int_equal(policy.floor, 0);
	assert_null(xfp_policy_floor_by(&p, &policy));
	override(&p, "*=keep");
	policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
	assert_int_equal(xfp_policy_plan(&policy), XFP_PLAN_KEEP);
	xfp_parameters_free(&p);
}

static void the_head(void **state)
{
	struct xfp_parameters p = round_floors();
	struct xfp_policy policy = xfp_policy_of(&p, "lm_head.weight", "lm_head", XFP_CLASS_LM_HEAD);

	(void)state;
	assert_int_equal(xfp_policy_plan(&policy), XFP_PLAN_FIT);
	assert_int_equal(policy.floor, 999000000);
	p.lm_head = XFP_LM_HEAD_FP8;
	policy = xfp_policy_of(&p, "lm_head.weight", "lm_head", XFP_CLASS_LM_HEAD);
	assert_int_equal(xfp_policy_plan(&policy), XFP_PLAN_FP8);
	assert_int_equal(policy.floor, 0);
	assert_null(xfp_policy_format_by(&p, &policy));
	format(&p, XFP_CLASS_LM_HEAD, "5");
	policy = xfp_policy_of(&p, "lm_head.weight", "lm_head", XFP_CLASS_LM_HEAD);
	assert_true(policy.fixed);
	format(&p, XFP_CLASS_LM_HEAD, "keep");
	policy = xfp_policy_of(&p, "lm_head.weight", "lm_head", XFP_CLASS_LM_HEAD);
	assert_int_equal(xfp_policy_plan(&policy), XFP_PLAN_KEEP);
	override(&p, "lm_head*=4");
	policy = xfp_policy_of(&p, "lm_head.weight", "lm_head", XFP_CLASS_LM_HEAD);
	assert_int_equal(xfp_policy_plan(&policy), XFP_PLAN_FIT);
	xfp_parameters_free(&p);
}

/* An embedding that is also the head: the stricter floor, the format of higher rank; patterns match either role. */
static void tied(void **state)
{
	static const struct {
		const char *embedding, *head, *override; /* formats of the classes; NULL: none */
		const char *format, *by;
	} cases[] = {
		{ "auto", "auto", NULL, "auto", NULL },
		{ "auto", "fp8", NULL, "fp8", "--lm-head fp8" },
		{ "auto", "keep", NULL, "keep", "--lm-head keep" },
		{ "keep", "fp8", NULL, "keep", "--format embedding=keep" },
		{ "fp8", "keep", NULL, "keep", "--lm-head keep" },
		{ "fp8", "auto", NULL, "fp8", "--format embedding=fp8" },
		{ "fp8", "4", NULL, "fp8", "--format embedding=fp8" },
		{ "auto", "4", NULL, "4", "--format lm_head=4" },
		{ "4", "auto", NULL, "4", "--format embedding=4" },
		{ "4", "3,5", NULL, "3,5", "--format lm_head=3,5" },
		{ "auto", "auto", "lm_head.weight=5", "5", "--override 'lm_head.weight=5'" },
		{ "auto", "auto", "class:lm_head=fp8", "fp8", "--override 'class:lm_head=fp8'" },
		{ "auto", "auto", "role:lm_head=5", "5", "--override 'role:lm_head=5'" },
		{ "auto", "auto", "role:tied=5", "5", "--override 'role:tied=5'" },
		{ "auto", "auto", "role:embedding=5", "5", "--override 'role:embedding=5'" },
		{ "auto", "auto", "*embed*=keep", "keep", "--override '*embed*=keep'" },
		{ "auto", "keep", "*=5", "5", "--override '*=5'" },
		{ "auto", "auto", "role:q=5", "auto", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_parameters p = round_floors();
		struct xfp_policy policy;
		struct xfp_format stored;
		char *by, text[24];

		format(&p, XFP_CLASS_EMBEDDING, cases[i].embedding);
		format(&p, XFP_CLASS_LM_HEAD, cases[i].head);
		if (cases[i].override)
			override(&p, cases[i].override);
		policy = xfp_policy_of(&p, EMBEDDING, XFP_ROLE_TIED, XFP_CLASS_EMBEDDING);
		stored = policy.format;
		by = xfp_policy_format_by(&p, &policy);
		if (strcmp(xfp_format_text(stored, text), cases[i].format) || !by != !cases[i].by ||
		    (by && strcmp(by, cases[i].by)))
			fail_msg("case %zu: %s by %s", i, xfp_format_text(stored, text), by ? by : "-");
		assert_int_equal(policy.floor, xfp_policy_plan(&policy) == XFP_PLAN_FIT ? 999000000 : 0);
		free(by);
		xfp_parameters_free(&p);
	}
}

static void tied_floors(void **state)
{
	struct xfp_parameters p = round_floors();
	struct xfp_policy policy;
	char *by;

	(void)state;
	p.floor[XFP_CLASS_EMBEDDING] = 900000000;
	policy = xfp_policy_of(&p, EMBEDDING, XFP_ROLE_TIED, XFP_CLASS_EMBEDDING);
	assert_int_equal(policy.floor, 999000000);
	strcpy(p.calibration.sha256, "00");
	policy = xfp_policy_of(&p, EMBEDDING, XFP_ROLE_TIED, XFP_CLASS_EMBEDDING);
	assert_int_equal(policy.floor, 900000000);
	*p.calibration.sha256 = '\0';
	p.floor[XFP_CLASS_LM_HEAD] = 800000000;
	policy = xfp_policy_of(&p, EMBEDDING, XFP_ROLE_TIED, XFP_CLASS_EMBEDDING);
	assert_int_equal(policy.floor, 900000000);
	override(&p, "lm_head*=floor:0.95");
	format(&p, XFP_CLASS_EMBEDDING, "4");
	policy = xfp_policy_of(&p, EMBEDDING, XFP_ROLE_TIED, XFP_CLASS_EMBEDDING);
	assert_int_equal(policy.floor, 950000000);
	assert_true(policy.fixed);
	by = xfp_policy_floor_by(&p, &policy);
	assert_string_equal(by, "--override 'lm_head*=floor:0.95'");
	free(by);
	/* Settings for one role do not affect a unit that has only the other. */
	policy = xfp_policy_of(&p, EMBEDDING, "embedding", XFP_CLASS_EMBEDDING);
	assert_int_equal(policy.floor, 900000000);
	xfp_parameters_free(&p);
}

/* One fit serves every policy: the measured bits change only if a format needs more than --bits. */
static void measured(void **state)
{
	static const struct {
		const char *bits, *format;
		const char *base, *extended;
	} cases[] = {
		{ "2-6", "auto", "2,3,4", "5,6" },
		{ "2-6", "4", "2,3,4", "" },
		{ "2-6", "3,4", "2,3,4", "" },
		{ "2-6", "3,5", "2,3,4", "5,6" },
		{ "2-6", "6", "5,6", "" },
		{ "2-6", "5,6", "5,6", "" },
		{ "2-4", "auto", "2,3,4", "" },
		{ "2-4", "5", "5", "" },
		{ "2-4", "4,5", "2,3,4", "5" },
		{ "3", "auto", "3", "" },
		{ "3", "4", "3,4", "" },
		{ "5,6", "auto", "5,6", "" },
		{ "5,6", "6", "5,6", "" },
		{ "5,6", "4", "4", "" },
		{ "2,5", "3,5", "2,3", "5" },
		/* fp8, if it is allowed */
		{ "2-6,8", "auto", "2,3,4", "5,6,8" },
		{ "2-6,8", "4", "2,3,4", "" },
		{ "2-6,8", "4,8", "2,3,4", "8" },
		{ "2-6", "5,8", "5,6", "8" },
		{ "5,8", "auto", "5", "8" },
		{ "8", "auto", "8", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_parameters p = round_floors(), seen;
		struct xfp_policy policy;
		char base[24], extended[24];

		assert_true(xfp_bits_parse(cases[i].bits, &p.bits));
		format(&p, XFP_CLASS_ATTENTION, cases[i].format);
		policy = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
		seen = xfp_policy_parameters(&p, &policy);
		xfp_bits_format(xfp_parameters_base_bits(&seen), base);
		xfp_bits_format(xfp_parameters_extended_bits(&seen), extended);
		if (strcmp(base, cases[i].base) || strcmp(extended, cases[i].extended))
			fail_msg("--bits %s, format %s: %s and %s", cases[i].bits, cases[i].format, base, extended);
	}
}

/* Routed experts may have their own number of rounds. */
static void rounds(void **state)
{
	struct xfp_parameters p = round_floors();
	struct xfp_policy expert, other;

	(void)state;
	for (int given = 0; given < 2; given++) {
		p.moe_lloyd_iterations = given ? 5 : 0;
		expert = xfp_policy_of(&p, "layers.0.experts.*.up", "up", XFP_CLASS_ROUTED_EXPERT);
		other = xfp_policy_of(&p, Q, "q", XFP_CLASS_ATTENTION);
		assert_int_equal(xfp_policy_parameters(&p, &expert).lloyd_iterations, given ? 5 : 20);
		assert_int_equal(xfp_policy_parameters(&p, &other).lloyd_iterations, 20);
	}
}

/* A glob does not apply to matrices that the rules keep; a class and a full name do. */
static void taken(void **state)
{
	enum { KEPT = 2 };
	static const struct {
		const char *override; /* NULL: none */
		enum xfp_class class_;
		const char *format; /* format of the class */
		const char *name;
		int takes; /* KEPT: with keep_embeddings only */
	} cases[] = {
		{ NULL, XFP_CLASS_EMBEDDING, "auto", EMBEDDING, false },
		{ NULL, XFP_CLASS_EMBEDDING, "fp8", EMBEDDING, KEPT },
		{ NULL, XFP_CLASS_EMBEDDING, "3,4", EMBEDDING, KEPT },
		{ NULL, XFP_CLASS_EMBEDDING, "keep", EMBEDDING, false },
		{ "class:embedding=4", XFP_CLASS_EMBEDDING, "auto", EMBEDDING, KEPT },
		{ EMBEDDING "=4", XFP_CLASS_EMBEDDING, "auto", EMBEDDING, true },
		{ "*=4", XFP_CLASS_EMBEDDING, "auto", EMBEDDING, false },
		{ NULL, XFP_CLASS_ATTENTION, "fp8", "model.layers.0.sinks", false },
		{ "*=4", XFP_CLASS_ROUTER, "auto", ROUTER, false },
		{ "*layers.3*=4", XFP_CLASS_ROUTER, "auto", ROUTER, false },
		{ "role:router=4", XFP_CLASS_ROUTER, "auto", ROUTER, false },
		{ "class:router=4", XFP_CLASS_ROUTER, "auto", ROUTER, true },
		{ "class:attention=4", XFP_CLASS_ATTENTION, "auto", "model.layers.0.in_proj.weight", false },
		{ ROUTER "=fp8", XFP_CLASS_ROUTER, "auto", ROUTER, true },
		{ ROUTER "=keep", XFP_CLASS_ROUTER, "auto", ROUTER, false },
		{ ROUTER "=floor:0.9", XFP_CLASS_ROUTER, "auto", ROUTER, false },
		{ ROUTER "=keep", XFP_CLASS_ROUTER, "fp8", ROUTER, false },
		{ "*gate*=keep", XFP_CLASS_ROUTER, "fp8", ROUTER, false },
		{ "model.layers.0.in_proj.weight=4", XFP_CLASS_ATTENTION, "auto", "model.layers.0.in_proj.weight",
		  true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_parameters p = round_floors();

		format(&p, cases[i].class_, cases[i].format);
		if (cases[i].override)
			override(&p, cases[i].override);
		if (xfp_policy_quantizes(&p, cases[i].name, cases[i].class_) != (cases[i].takes == true))
			fail_msg("%s, class %s", cases[i].override ? cases[i].override : "-", cases[i].format);
		p.keep_embeddings = true;
		if (xfp_policy_quantizes(&p, cases[i].name, cases[i].class_) != (cases[i].takes != false))
			fail_msg("%s, class %s", cases[i].override ? cases[i].override : "-", cases[i].format);
		xfp_parameters_free(&p);
	}
}

static void sampled_experts(void **state)
{
	const struct xfp_moe_sample four = { 4, false }, first = { 4, true }, all = { 0, false };

	(void)state;
	assert_int_equal(xfp_sample_experts(&four, 128), 4);
	assert_int_equal(xfp_sample_experts(&four, 4), 0);
	assert_int_equal(xfp_sample_experts(&four, 1), 0);
	assert_int_equal(xfp_sample_experts(&all, 128), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(xfp_sample_expert(&four, 128, i), 16 + 32 * i);
		assert_int_equal(xfp_sample_expert(&first, 128, i), i);
	}
	/* all different, and none beyond the last */
	for (uint32_t experts = 5; experts < 70; experts++)
		for (uint32_t i = 0, before = 0; i < 4; before = xfp_sample_expert(&four, experts, i), i++)
			assert_true(xfp_sample_expert(&four, experts, i) < experts &&
				    (!i || xfp_sample_expert(&four, experts, i) > before));
	assert_int_equal(xfp_sample_expert(&(struct xfp_moe_sample){ 1000000, false }, UINT32_MAX, 999999),
			 4294965147u);
}

/* ---- what is refused --------------------------------------------------------------------------- */

static void check(const struct xfp_parameters *p, enum xfp_status want, const char *says)
{
	static struct xfp_ledger_tensor tensors[] = {
		{ .name = (char *)(uintptr_t) "lm_head.weight",
		  .reason = (char *)(uintptr_t) "tied to " EMBEDDING,
		  .dtype = XFP_BF16,
		  .class_ = XFP_CLASS_LM_HEAD,
		  .fate = XFP_FATE_TIED,
		  .rank = 2,
		  .bytes = 8 },
		{ .name = (char *)(uintptr_t)EMBEDDING,
		  .reason = (char *)(uintptr_t) "embedding: kept by rule",
		  .dtype = XFP_BF16,
		  .class_ = XFP_CLASS_EMBEDDING,
		  .fate = XFP_FATE_KEPT,
		  .rank = 2,
		  .bytes = 8 },
		{ .name = (char *)(uintptr_t) "model.norm.weight",
		  .reason = (char *)(uintptr_t) "norm: kept by rule",
		  .dtype = XFP_F32,
		  .class_ = XFP_CLASS_NORM,
		  .fate = XFP_FATE_KEPT,
		  .rank = 1,
		  .bytes = 8 },
		{ .name = (char *)(uintptr_t)Q,
		  .dtype = XFP_BF16,
		  .class_ = XFP_CLASS_ATTENTION,
		  .fate = XFP_FATE_QUANTIZED,
		  .rank = 2,
		  .bytes = 8 },
		{ .name = (char *)(uintptr_t) "model.layers.3.mlp.experts.0.gate_proj.weight",
		  .dtype = XFP_BF16,
		  .class_ = XFP_CLASS_ROUTED_EXPERT,
		  .fate = XFP_FATE_QUANTIZED,
		  .rank = 2,
		  .bytes = 8 },
		{ .name = (char *)(uintptr_t) "positions",
		  .reason = (char *)(uintptr_t) "other: kept by rule",
		  .dtype = XFP_I64,
		  .class_ = XFP_CLASS_OTHER,
		  .fate = XFP_FATE_KEPT,
		  .rank = 2,
		  .bytes = 8 },
	};
	static struct xfp_ledger_matrix matrices[] = { { .tensor = 3 }, { .tensor = 4 } };
	static struct xfp_ledger_unit units[] = {
		{ .name = (char *)(uintptr_t)Q,
		  .role = (char *)(uintptr_t) "q",
		  .class_ = XFP_CLASS_ATTENTION,
		  .experts = 1 },
		{ .name = (char *)(uintptr_t)GATE,
		  .role = (char *)(uintptr_t) "gate",
		  .class_ = XFP_CLASS_ROUTED_EXPERT,
		  .experts = 1,
		  .first_matrix = 1 },
	};
	const struct xfp_ledger ledger = { .tensors = tensors,
					   .tensor_count = sizeof tensors / sizeof *tensors,
					   .units = units,
					   .unit_count = 2,
					   .matrices = matrices,
					   .matrix_count = 2 };
	struct xfp_error err = { .text = "" };

	if (xfp_policy_check(p, &ledger, &err) != want || !strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void refused_overrides(void **state)
{
	static const struct {
		const char *text, *says; /* NULL: it applies */
	} cases[] = {
		{ Q "=4", NULL },
		{ "*=floor:0.9", NULL },
		{ GATE "=keep", NULL },
		{ "role:gate=4", NULL },
		{ "class:attention=4", NULL },
		{ EMBEDDING "=keep", NULL },
		{ "class:norm=keep", NULL },
		{ "*q_porj*=4", "matches no unit; the nearest names are: " Q },
		{ "nothing.*=5", "'nothing.*=5': matches no unit; xfp inspect -v lists them" },
		{ "role:gat=4", "matches no unit; the nearest roles are: gate" },
		{ "class:vision=4", "the model has no tensor of this class" },
		{ "model.layers.3.mlp.experts.0.gate_proj.weight=4", "name the stack, as in " GATE },
		{ "*.experts.0.*=keep", "name the stack, as in " GATE },
		{ "lm_head.weight=4",
		  "is not stored separately (tied to " EMBEDDING "); name the tensor that it is tied to" },
		{ "model.norm.weight=4", "is not a matrix of floating-point weights (F32, 1 dimension)" },
		{ "positions=fp8", "is not a matrix of floating-point weights (I64, 2 dimensions)" },
		{ EMBEDDING "=floor:0.9", "needs no floor (embedding: kept by rule)" },
		{ "*embed*=4", "such as " EMBEDDING "; to change the format of such a tensor, give its full name" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_parameters p = with(cases[i].text);

		check(&p, cases[i].says ? XFP_USAGE : XFP_OK, cases[i].says ? cases[i].says : "");
		xfp_parameters_free(&p);
	}
}

static void refused_formats(void **state)
{
	struct xfp_parameters p = round_floors();

	(void)state;
	format(&p, XFP_CLASS_VISION, "fp8"); /* a class that the model does not have */
	format(&p, XFP_CLASS_NORM, "keep");
	check(&p, XFP_OK, "");
	format(&p, XFP_CLASS_EMBEDDING, "fp8");
	check(&p, XFP_USAGE,
	      "--format embedding=fp8: the family's rules keep " EMBEDDING
	      "; to change that, use --override '" EMBEDDING "=fp8'");
	p.keep_embeddings = true;
	check(&p, XFP_OK, "");
	format(&p, XFP_CLASS_NORM, "fp8");
	check(&p, XFP_USAGE,
	      "--format norm=fp8: no tensor of this class is a matrix that can have this format; classes with such "
	      "matrices: attention, routed_expert, embedding");
}

PROGRAM("test_policy")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),        cmocka_unit_test(precedence),
		cmocka_unit_test(the_head),        cmocka_unit_test(tied),
		cmocka_unit_test(tied_floors),     cmocka_unit_test(measured),
		cmocka_unit_test(rounds),          cmocka_unit_test(taken),
		cmocka_unit_test(sampled_experts), cmocka_unit_test(refused_overrides),
		cmocka_unit_test(refused_formats),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
