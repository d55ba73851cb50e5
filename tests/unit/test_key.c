/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/system/file.h"
#include "base/text/text.h"
#include "cache/key.h"
#include "schemas/digest.h"
#include "tests/unit/round_floors.h"
#include "tests/unit/unit.h"

#define OUTLIERS "0123456789abcdef0123456789abcdef"
#define BASE "11111111111111111111111111111111"
#define MORE "22222222222222222222222222222222"

/* The ingredients of all keys. */
struct ingredients {
	struct xfp_parameters parameters;
	struct xfp_policy policy;
	uint32_t bits;
	enum xfp_dtype dtype;
	uint32_t matrices;
	uint64_t rows, cols;
	uint8_t source[20][16];
	const char *survey, *outliers, *inputs, *base, *library, *extended;
	struct xfp_candidate measured[2]; /* measured by the fit */
	uint32_t measured_count;
	const struct xfp_output_measure *outputs; /* NULL: not calibrated */
	struct xfp_choice choice;
};

/* v2, the simplest mode, and its threshold. */
static struct xfp_parameters plain(void)
{
	struct xfp_parameters p = round_floors();

	p.modes = 1u << XFP_MODE_V2;
	p.bits = xfp_default_bits(p.modes);
	p.lm_head = XFP_LM_HEAD_FP8;
	p.outlier_sigma = XFP_SIGMA_DEFAULT;
	p.outlier_cap = XFP_CAP_DEFAULT;
	return p;
}

static struct ingredients usual(void)
{
	struct ingredients in = {
		.parameters = plain(),
		.policy = { .format = { .bits = 0x7c }, .floor = 990000000, .measured = 0x7c },
		.bits = 0x1c,
		.dtype = XFP_BF16,
		.matrices = 2,
		.rows = 8,
		.cols = 6,
		.outliers = OUTLIERS,
		.inputs = "",
		.base = BASE,
		.measured = { { XFP_MODE_V2, 2, 4000, 0, 0, 66, 1, 0.97, 0.96, 0.2 },
			      { XFP_MODE_V2, 3, 4000, 0, 0, 77, 1, 0.99, 0.98, 0.1 } },
		.measured_count = 2,
		.choice = { .candidate = { XFP_MODE_V2, 3, 4000, 0, 0, 77, 1, 0.99, 0.98, 0.1 },
			    .floor = 990000000,
			    .met = 1,
			    .fit = BASE },
	};

	for (size_t i = 0; i < sizeof in.source; i++)
		((uint8_t *)in.source)[i] = (uint8_t)(i * 37);
	return in;
}

enum { SURVEY_KEY, OUTLIERS_KEY, FIT_KEY, LIBRARY_KEY, CHOICE_KEY, PACKED_KEY, FP8_KEY, KEYS };

static void keys_of(const struct ingredients *in, struct xfp_key key[KEYS])
{
	struct xfp_key_source source = { in->dtype, in->matrices, in->rows, in->cols, in->source };
	const struct xfp_fit_set fits[XFP_FIT_KINDS] = { { in->base, in->measured, in->measured_count, in->outputs },
							 { in->library, NULL, 0, NULL },
							 { in->extended, NULL, 0, NULL } };

	assert_int_equal(xfp_key_survey(&source, &in->parameters, &key[SURVEY_KEY], NULL), 0);
	assert_int_equal(xfp_key_outliers(&source, &in->parameters, &key[OUTLIERS_KEY], NULL), 0);
	assert_int_equal(xfp_key_library(in->outliers, in->inputs, &in->parameters, in->bits, &key[LIBRARY_KEY], NULL),
			 0);
	assert_int_equal(xfp_key_fit(in->outliers, &in->parameters, in->bits, &key[FIT_KEY], NULL), 0);
	assert_int_equal(xfp_key_choice(fits, in->survey, NULL, &in->policy, in->dtype, in->matrices, &in->parameters,
					&key[CHOICE_KEY], NULL),
			 0);
	assert_int_equal(xfp_key_packed(&in->choice, &source, &in->parameters, &key[PACKED_KEY], NULL), 0);
	assert_int_equal(xfp_key_fp8(&source, &in->parameters, &key[FP8_KEY], NULL), 0);
}

/* The keys (bit i: key i) that differ from those of the unchanged ingredients. */
static unsigned changed(const struct ingredients *in)
{
	struct xfp_key before[KEYS], after[KEYS];
	struct ingredients was = usual();
	unsigned set = 0;

	keys_of(&was, before);
	keys_of(in, after);
	for (unsigned i = 0; i < KEYS; i++) {
		bool same_text = !strcmp(before[i].text, after[i].text);

		assert_int_equal(same_text, !strcmp(before[i].hex, after[i].hex));
		if (!same_text)
			set |= 1u << i;
		xfp_key_free(&before[i]);
		xfp_key_free(&after[i]);
	}
	return set;
}

/* Each ingredient changes exactly the keys that depend on it. */
static void exactly_what_depends(void **state)
{
	static const struct xfp_assignment assigned = { .mode = XFP_MODE_V2, .k = 3, .bits = 0xc };
	static const struct xfp_output_measure outputs[2];
	struct ingredients in;

	(void)state;
#define S (1u << SURVEY_KEY)
#define O (1u << OUTLIERS_KEY)
#define F (1u << FIT_KEY)
#define L (1u << LIBRARY_KEY)
#define C (1u << CHOICE_KEY)
#define P (1u << PACKED_KEY)
#define E (1u << FP8_KEY)
#define EXPECT(change, keys)                                                          \
	do {                                                                          \
		in = usual();                                                         \
		change;                                                               \
		if (changed(&in) != (keys))                                           \
			fail_msg(#change ": %x instead of %x", changed(&in), (keys)); \
	} while (0)
	EXPECT((void)0, 0u);
	EXPECT(in.dtype = XFP_F16, S | O | C | E);
	EXPECT(in.matrices = 3, S | O | E);
	EXPECT(in.rows = 9, S | O | E);
	EXPECT(in.cols = 7, S | O | E);
	EXPECT((in.rows = 6, in.cols = 8), S | O | E);
	EXPECT(in.source[0][0] ^= 1, S | O | E);
	EXPECT(in.source[1][15] ^= 128, S | O | E);
	EXPECT(in.source[2][0] ^= 1, 0u); /* beyond the matrices */
	EXPECT(in.parameters.outlier_sigma = 3000, S | O);
	EXPECT(in.parameters.outlier_cap = 1, S | O);
	EXPECT(in.parameters.balance = 0, S | O);
	EXPECT(in.outliers = MORE, F | L);
	EXPECT(in.inputs = MORE, L);
	EXPECT(in.bits = 0x60, F | L);
	EXPECT(in.parameters.start = XFP_START_MINMAX, S | F);
	EXPECT(in.parameters.lloyd_iterations = 19, S | F);
	EXPECT(in.parameters.modes = 1u << XFP_MODE_V2C, S | L | C);
	EXPECT(in.parameters.group_size = 64, S | L);
	EXPECT(in.parameters.library_size = 8, 0u); /* for a mode that is not requested */
	EXPECT((in.parameters.modes = XFP_ALL_MODES, in.parameters.library_size = 8), S | L | C);
	EXPECT(in.survey = MORE, C);
	EXPECT(in.library = MORE, C);
	EXPECT(in.base = MORE, C);
	EXPECT(in.extended = MORE, C);
	/* A choice among other measurements is another choice, even for the same artifact. */
	EXPECT(in.measured_count = 1, C);
	EXPECT(in.measured[0].mode = XFP_MODE_V2C, C);
	EXPECT(in.measured[0].k = 3, C);
	EXPECT(in.measured[1].sigma_milli = 3999, C);
	EXPECT(in.measured[1].group = 16, C);
	EXPECT(in.measured[1].library = 1, C);
	EXPECT(in.measured[1].bytes = 76, C);
	EXPECT(in.measured[1].outliers = 2, C);
	EXPECT(in.measured[1].cos_median = 0.9900000000000001, C);
	EXPECT(in.measured[1].cos_p5 = 0.9799999999999999, C);
	EXPECT(in.measured[1].error = 0.10000000000000002, C);
	EXPECT(in.outputs = outputs, C);
	EXPECT(in.policy.floor = 980000000, C);
	EXPECT(in.policy.assigned = &assigned, C);
	EXPECT(in.policy.format.bits = 0x1c, C);
	EXPECT((in.policy.format.bits = 0x10, in.policy.fixed = true), C);
	EXPECT(in.policy.format.form = XFP_FORM_BITS, 0u); /* the origin of the allowed bits */
	EXPECT(in.policy.format_by = 3, 0u);
	EXPECT(in.policy.floor_by = 3, 0u);
	EXPECT(in.policy.measured = 0x1c, 0u); /* covered by the fits' keys */
	EXPECT(in.parameters.bits = 0x1c, S);  /* fits and choices depend on the unit's own bits */
	EXPECT(in.parameters.on_miss = XFP_MISS_BEST, C);
	EXPECT(in.parameters.on_nonfinite = XFP_NONFINITE_KEEP, C | E);
	EXPECT(in.parameters.lm_head = XFP_LM_HEAD_KEEP, 0u);
	EXPECT(in.parameters.moe_sample.experts = 1, C);
	EXPECT(in.parameters.moe_sample.experts = 2, 0u); /* all there are */
	EXPECT((in.parameters.moe_sample.experts = 9, in.parameters.moe_sample.first = true), 0u);
	EXPECT(in.parameters.format[XFP_CLASS_ATTENTION].form = XFP_FORM_KEEP, 0u);
	EXPECT(in.parameters.floor[XFP_CLASS_ATTENTION] = 1, 0u); /* only a unit's own floor matters */
	EXPECT(in.choice.candidate.k = 4, P);
	EXPECT(in.choice.candidate.sigma_milli = 0, P);
	EXPECT(in.choice.candidate.mode = XFP_MODE_KEEP, P);
	EXPECT(strcpy(in.choice.fit, MORE), P);
	/* The reason for a choice does not change its bytes. */
	EXPECT(in.choice.floor = 1, 0u);
	EXPECT(in.choice.met = 0, 0u);
	EXPECT(in.choice.fixed = 1, 0u);
	EXPECT(in.choice.sample = 1, 0u);
	EXPECT(in.choice.candidate.cos_median = 0.5, 0u);
	EXPECT(in.choice.candidate.bytes = 1, 0u);
#undef EXPECT
}

/* ---- from parameters to keys ------------------------------------------------------------------- */

/* Key texts of a unit in the order of its pipeline; for a unit that is packed alone, only the last. */
struct chain {
	struct xfp_key key[KEYS];
};

static struct chain chain_of(const struct xfp_parameters *p, const char *name, const char *role, enum xfp_class class_,
			     uint32_t experts)
{
	static const uint8_t digest[8][16] = { { 1 } };
	struct xfp_key_source source = { XFP_BF16, experts, 8, 6, digest };
	struct xfp_policy policy = xfp_policy_of(p, name, role, class_);
	struct xfp_parameters seen = xfp_policy_parameters(p, &policy);
	struct xfp_choice kept = { .candidate = { .mode = XFP_MODE_KEEP } };
	struct chain c = { 0 };

	switch (xfp_policy_plan(&policy)) {
	case XFP_PLAN_FP8:
		assert_int_equal(xfp_key_fp8(&source, &seen, &c.key[FP8_KEY], NULL), 0);
		break;
	case XFP_PLAN_KEEP:
		assert_int_equal(xfp_key_packed(&kept, &source, &seen, &c.key[PACKED_KEY], NULL), 0);
		break;
	default:
		assert_int_equal(xfp_key_outliers(&source, &seen, &c.key[OUTLIERS_KEY], NULL), 0);
		assert_int_equal(xfp_key_fit(c.key[OUTLIERS_KEY].hex, &seen, xfp_parameters_base_bits(&seen),
					     &c.key[FIT_KEY], NULL),
				 0);
		assert_int_equal(
			xfp_key_choice(
				(const struct xfp_fit_set[XFP_FIT_KINDS]){ { c.key[FIT_KEY].hex, NULL, 0, NULL } },
				NULL, NULL, &policy, XFP_BF16, experts, &seen, &c.key[CHOICE_KEY], NULL),
			0);
	}
	return c;
}

/* The keys of a unit that differ between two sets of parameters. */
static unsigned between(const struct xfp_parameters *a, const struct xfp_parameters *b, const char *name,
			const char *role, enum xfp_class class_, uint32_t experts)
{
	struct chain one = chain_of(a, name, role, class_, experts), two = chain_of(b, name, role, class_, experts);
	unsigned set = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		if (strcmp(one.key[i].text ? one.key[i].text : "", two.key[i].text ? two.key[i].text : ""))
			set |= 1u << i;
		xfp_key_free(&one.key[i]);
		xfp_key_free(&two.key[i]);
	}
	return set;
}

static void set_format(struct xfp_parameters *p, enum xfp_class class_, const char *text)
{
	struct xfp_format format;

	assert_true(xfp_format_parse(text, &format));
	xfp_parameters_set_format(p, class_, format);
}

static void add_override(struct xfp_parameters *p, const char *text)
{
	struct xfp_override override;

	assert_int_equal(xfp_override_parse(text, &override, NULL), 0);
	assert_true(xfp_parameters_add_override(p, &override));
}

/* Each parameter by itself, for a projection of attention, a stack of experts, the head and an fp8 embedding: exactly
 * the keys that depend on it change. A fit's key changes the keys of choices made from it. */
static void any_single_parameter(void **state)
{
	struct xfp_parameters a, b;

	(void)state;
#define ALL (O | F | C)
#define EXPECT(change, attention, stack, head, embedding)                                            \
	do {                                                                                         \
		const unsigned want[] = { attention, stack, head, embedding };                       \
		unsigned got[4];                                                                     \
                                                                                                     \
		a = b = plain();                                                                     \
		set_format(&a, XFP_CLASS_EMBEDDING, "fp8");                                          \
		set_format(&b, XFP_CLASS_EMBEDDING, "fp8");                                          \
		change;                                                                              \
		got[0] = between(&a, &b, "layers.0.q", "q", XFP_CLASS_ATTENTION, 1);                 \
		got[1] = between(&a, &b, "layers.0.experts.*.up", "up", XFP_CLASS_ROUTED_EXPERT, 8); \
		got[2] = between(&a, &b, "lm_head", "lm_head", XFP_CLASS_LM_HEAD, 1);                \
		got[3] = between(&a, &b, "embed", "embedding", XFP_CLASS_EMBEDDING, 1);              \
		for (int i = 0; i < 4; i++)                                                          \
			if (got[i] != want[i])                                                       \
				fail_msg(#change ", unit %d: %x instead of %x", i, got[i], want[i]); \
		xfp_parameters_free(&b);                                                             \
	} while (0)
	EXPECT((void)0, 0, 0, 0, 0);
	EXPECT(b.outlier_sigma = 3000, ALL, ALL, 0, 0);
	EXPECT(b.outlier_cap = 1, ALL, ALL, 0, 0);
	EXPECT(b.balance = 0, ALL, ALL, 0, 0);
	EXPECT(b.start = XFP_START_MINMAX, F | C, F | C, 0, 0);
	EXPECT(b.lloyd_iterations = 3, F | C, F | C, 0, 0);
	EXPECT(b.moe_lloyd_iterations = 3, 0, F | C, 0, 0);
	EXPECT(b.moe_lloyd_iterations = b.lloyd_iterations, 0, 0, 0, 0); /* unchanged */
	EXPECT(b.bits = 0x0c, F | C, F | C, 0, 0);
	EXPECT(b.bits = 0x1c, C, C, 0, 0); /* the base set is unchanged */
	EXPECT(b.floor[XFP_CLASS_ATTENTION] = 1, C, 0, 0, 0);
	EXPECT(b.floor[XFP_CLASS_ROUTED_EXPERT] = 1, 0, C, 0, 0);
	EXPECT(b.floor[XFP_CLASS_LM_HEAD] = 1, 0, 0, 0, 0);
	EXPECT(b.floor[XFP_CLASS_EMBEDDING] = 1, 0, 0, 0, 0);
	EXPECT(b.on_miss = XFP_MISS_BEST, C, C, 0, 0);
	EXPECT(b.on_nonfinite = XFP_NONFINITE_KEEP, C, C, E, E);
	EXPECT(b.lm_head = XFP_LM_HEAD_QUANT, 0, 0, E | ALL, 0);
	EXPECT(b.moe_sample.experts = 4, 0, C, 0, 0);
	EXPECT(b.moe_sample.experts = 8, 0, 0, 0, 0);
	EXPECT(set_format(&b, XFP_CLASS_ATTENTION, "4"), C, 0, 0, 0);
	EXPECT(set_format(&b, XFP_CLASS_ATTENTION, "2-6"), 0, 0, 0, 0); /* unchanged */
	EXPECT(set_format(&b, XFP_CLASS_ATTENTION, "6"), F | C, 0, 0, 0);
	EXPECT(set_format(&b, XFP_CLASS_ATTENTION, "keep"), ALL | P, 0, 0, 0);
	EXPECT(set_format(&b, XFP_CLASS_ROUTED_EXPERT, "fp8"), 0, ALL | E, 0, 0);
	EXPECT(set_format(&b, XFP_CLASS_EMBEDDING, "keep"), 0, 0, 0, E | P);
	EXPECT(set_format(&b, XFP_CLASS_VISION, "fp8"), 0, 0, 0, 0);
	EXPECT(add_override(&b, "role:q=floor:0.5"), C, 0, 0, 0);
	EXPECT(add_override(&b, "role:q=floor:0.99"), 0, 0, 0, 0); /* unchanged */
	EXPECT(add_override(&b, "*.experts.*=4"), 0, C, 0, 0);
	EXPECT(add_override(&b, "lm_head=keep"), 0, 0, E | P, 0);
	EXPECT(add_override(&b, "layers.1.*=4"), 0, 0, 0, 0);
#undef EXPECT
#undef ALL
}

/* With fixed bits there is no miss, and no sample decides; if one does, the selection of experts matters. */
static void fixed_and_sampled(void **state)
{
	struct ingredients fixed = usual(), other, sampled = usual(), first;
	struct xfp_key one[KEYS], two[KEYS];

	(void)state;
	fixed.policy.fixed = true;
	fixed.policy.format.bits = 0x10;
	other = fixed;
	other.parameters.on_miss = XFP_MISS_FAIL;
	other.parameters.moe_sample.experts = 1;
	keys_of(&fixed, one);
	keys_of(&other, two);
	assert_string_equal(one[CHOICE_KEY].text, two[CHOICE_KEY].text);
	assert_non_null(strstr(one[CHOICE_KEY].text, "\nbits 4\nfixed 1\non_nonfinite fail\n"));
	for (unsigned i = 0; i < KEYS; i++) {
		xfp_key_free(&one[i]);
		xfp_key_free(&two[i]);
	}
	sampled.parameters.moe_sample.experts = 1;
	first = sampled;
	first.parameters.moe_sample.first = true;
	keys_of(&sampled, one);
	keys_of(&first, two);
	assert_non_null(strstr(one[CHOICE_KEY].text, "\nsample 1\n"));
	assert_non_null(strstr(two[CHOICE_KEY].text, "\nsample first:1\n"));
	for (unsigned i = 0; i < KEYS; i++) {
		xfp_key_free(&one[i]);
		xfp_key_free(&two[i]);
	}
}

/* The cap has no effect without marks, nor k for a kept unit. */
static void idle_parameters(void **state)
{
	struct ingredients a = usual(), b = usual();
	struct xfp_key one[KEYS], two[KEYS];

	(void)state;
	a.parameters.outlier_sigma = b.parameters.outlier_sigma = 0;
	b.parameters.outlier_cap = 1;
	a.choice.candidate.mode = b.choice.candidate.mode = XFP_MODE_KEEP;
	b.choice.candidate.k = 5;
	strcpy(b.choice.fit, MORE);
	keys_of(&a, one);
	keys_of(&b, two);
	for (unsigned i = 0; i < KEYS; i++) {
		if (i != SURVEY_KEY) /* the survey tries its own thresholds */
			assert_string_equal(one[i].text, two[i].text);
		xfp_key_free(&one[i]);
		xfp_key_free(&two[i]);
	}
}

/* The texts and keys themselves: caches contain them, so a change here is a new algorithm version. */
static void texts(void **state)
{
#define SHAPE "dtype BF16\nmatrices 2\nrows 8\ncols 6\n"
#define SOURCES                                     \
	"source 00254a6f94b9de03284d7297bce1062b\n" \
	"source 50759abfe4092e53789dc2e70c31567b\n"
	static const char *const want[KEYS] = {
		"kind survey\nalgorithm 2\nlayout 1\n" SHAPE SOURCES
		"sigma_milli 4000\ncap_nano 20000000\nbalance_nano 500000000\n"
		"modes v2\nbits 2,3,4,5,6\nstart companded\niterations 20\n",
		"kind outliers\nalgorithm 1\nlayout 1\n" SHAPE SOURCES
		"sigma_milli 4000\ncap_nano 20000000\nbalance_nano 500000000\n",
		"kind fit\nalgorithm 4\nlayout 4\noutliers " OUTLIERS "\nbits 2,3,4\nstart companded\niterations 20\n",
		"kind fit\nalgorithm 2\nlayout 4\noutliers " OUTLIERS "\nmodes\nbits 2,3,4\n",
		"kind choice\nalgorithm 1\nlayout 3\nfit " BASE
		"\ncandidates c38667de59effd371fcf6d4081d61364\nfloor_nano 990000000\nmode v2\nbits 2,3,4,5,6\n"
		"on_miss keep\n"
		"on_nonfinite fail\ndtype BF16\n",
		"kind packed\nalgorithm 2\nlayout 3\nmode v2\nk 3\nsigma_milli 4000\nfit " BASE "\n",
		"kind packed\nalgorithm 3\nlayout 3\nmode fp8\non_nonfinite fail\n" SHAPE SOURCES,
	};
	static const char *const hex[KEYS] = {
		"0d321a45edd979da81de36c7f9befc2b", "c3dafe063ff7d7f2be2a461d4a2ea719",
		"bb71d94862c6f6bc4bcd110523d17386", "1126f4ea814c88f64a6ed1526343bbca",
		"f1f9a5aa6706f01a141836846a0cc97c", "8736c8b31252c8d262a85712a1922fbd",
		"add3bc5d444849ed04a3c6b11a991123",
	};
	struct ingredients in = usual();
	struct xfp_key key[KEYS];

	(void)state;
	/* If a survey selects the threshold, the key text has none. */
	in.parameters.outlier_sigma = XFP_SIGMA_AUTO;
	keys_of(&in, key);
	assert_string_equal(key[SURVEY_KEY].hex, "8730afd5cbbfe21bd00c024d13f0a928");
	for (unsigned i = 0; i < KEYS; i++)
		xfp_key_free(&key[i]);
	in = usual();
	keys_of(&in, key);
	for (unsigned i = 0; i < KEYS; i++) {
		assert_string_equal(key[i].text, want[i]);
		assert_string_equal(key[i].hex, hex[i]);
		xfp_key_free(&key[i]);
	}
}

/* A large stack has a short text that still depends on every matrix. */
static void large_stacks(void **state)
{
	enum { MATRICES = 512 };
	uint8_t(*source)[16] = calloc(MATRICES, 16);
	struct xfp_key_source of = { XFP_BF16, MATRICES, 8, 6, (const uint8_t(*)[16])source };
	struct xfp_parameters p = round_floors();
	struct xfp_key whole, key;

	(void)state;
	assert_int_equal(xfp_key_outliers(&of, &p, &whole, NULL), 0);
	assert_true(strlen(whole.text) < 1024);
	assert_non_null(strstr(whole.text, "\nsources "));
	for (unsigned m = 0; m < MATRICES; m += 73) {
		source[m][3] = 1;
		assert_int_equal(xfp_key_outliers(&of, &p, &key, NULL), 0);
		assert_string_not_equal(key.hex, whole.hex);
		xfp_key_free(&key);
		source[m][3] = 0;
	}
	of.matrices = 16;
	assert_int_equal(xfp_key_outliers(&of, &p, &key, NULL), 0);
	assert_null(strstr(key.text, "\nsources "));
	xfp_key_free(&key);
	xfp_key_free(&whole);
	free(source);
}

/* XXH3-128 in canonical form, for any split of the input. */
static void digests(void **state)
{
	static const uint8_t of_nothing[16] = { 0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
						0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f };
	uint8_t bytes[4096], whole[16], parts[16];
	struct xfp_digest *digest;

	(void)state;
	assert_non_null(digest = xfp_digest_new());
	xfp_digest_final(digest, whole);
	assert_memory_equal(whole, of_nothing, 16);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * i >> 3);
	assert_non_null(digest = xfp_digest_new());
	xfp_digest_update(digest, bytes, sizeof bytes);
	xfp_digest_final(digest, whole);
	assert_non_null(digest = xfp_digest_new());
	for (size_t at = 0, part = 1; at < sizeof bytes; at += part, part = part * 2 % 509) {
		if (part > sizeof bytes - at)
			part = sizeof bytes - at;
		xfp_digest_update(digest, bytes + at, part);
	}
	xfp_digest_final(digest, parts);
	assert_memory_equal(whole, parts, 16);
	assert_non_null(digest = xfp_digest_new());
	xfp_digest_final(digest, NULL);
}

/* Group sizes of more than one digit are written in full. */
static void groups_are_told_in_full(void **state)
{
	static const uint32_t columns[] = { 0, 16, 32, 128, 1024 };
	struct xfp_choice choice = { .candidate = { .mode = XFP_MODE_V2C, .k = 3 }, .fit = "f" };
	const struct xfp_key_source source = { .dtype = XFP_BF16 };
	const struct xfp_parameters parameters = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		struct xfp_error err = { 0 };
		struct xfp_key key;
		char line[32];

		choice.candidate.group = (uint16_t)columns[i];
		assert_int_equal(xfp_key_packed(&choice, &source, &parameters, &key, &err), XFP_OK);
		snprintf(line, sizeof line, "\ngroup %u\n", columns[i]);
		assert_int_equal(strstr(key.text, line) != NULL, columns[i] != 0);
		assert_int_equal(strstr(key.text, "\ngroup ") != NULL, columns[i] != 0);
		xfp_key_free(&key);
	}
}

/* The inputs of a layer: every ingredient is in the text, and the tokens only in that of the first layer. */
static void inputs_of_a_layer(void **state)
{
	uint8_t digest[16] = { 0xab };
	struct xfp_key_layer layer = { NULL, "f00d", OUTLIERS, 0, digest };
	struct xfp_key key;

	(void)state;
	OK(xfp_key_inputs(&layer, &key, &err));
	assert_string_equal(key.text, "kind inputs\nalgorithm 1\nlayout 1\ntokens f00d\ndescription " OUTLIERS
				      "\nlayer 0\ndigest ab000000000000000000000000000000\n");
	xfp_key_free(&key);
	layer.previous = BASE;
	layer.layer = 12;
	OK(xfp_key_inputs(&layer, &key, &err));
	assert_string_equal(key.text, "kind inputs\nalgorithm 1\nlayout 1\ninputs " BASE "\ndescription " OUTLIERS
				      "\nlayer 12\ndigest ab000000000000000000000000000000\n");
	xfp_key_free(&key);
}

static void scales_of_a_survey(void **state)
{
	const struct xfp_fit_set fits[XFP_FIT_KINDS] = { { BASE, NULL, 0, NULL } };
	const struct xfp_parameters parameters = xfp_parameters_default();
	const struct xfp_policy policy = { .floor = 1 };
	struct xfp_key key;

	(void)state;
	OK(xfp_key_scales(BASE, OUTLIERS, &key, &err));
	assert_non_null(strstr(key.text, "layout 1\nsurvey " BASE "\ninputs " OUTLIERS "\nfeedback 3\n"));
	xfp_key_free(&key);
	for (int scaled = 0; scaled < 2; scaled++) {
		OK(xfp_key_choice(fits, OUTLIERS, scaled ? BASE : "", &policy, XFP_BF16, 1, &parameters, &key, &err));
		assert_int_equal(strstr(key.text, "survey " OUTLIERS "\nscales " BASE "\nfloor_nano") != NULL, scaled);
		assert_int_equal(strstr(key.text, "scales") != NULL, scaled);
		xfp_key_free(&key);
	}
}

/* The version is raised when the results of the kernels change. */
static void version_of_feedback(void **state)
{
	char *path = xfp_formatted("%s/tests/kernels.sha256", getenv("srcdir")), *text, *line, hex[65];
	struct xfp_sha256 sha;
	uint8_t digest[32];

	(void)state;
	OK(xfp_slurp(path, 1 << 20, &text, NULL, &err));
	xfp_sha256_init(&sha);
	for (char *at = text; (line = strsep(&at, "\n"));)
		if (strstr(line, "  feedback "))
			xfp_sha256_update(&sha, line, strlen(line));
	xfp_sha256_final(&sha, digest);
	xfp_hex(digest, sizeof digest, hex);
	/* If these lines are to change, raise XFP_ALGORITHM_FEEDBACK, too. */
	assert_int_equal(XFP_ALGORITHM_FEEDBACK, 3);
	assert_string_equal(hex, "27298966a77fbb8918c33791a137a9f1c3cbf23b8c76806d1fd54b77886877ec");
	free(text);
	free(path);
}

PROGRAM("test_key")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_told_in_full),
		cmocka_unit_test(exactly_what_depends),
		cmocka_unit_test(idle_parameters),
		cmocka_unit_test(texts),
		cmocka_unit_test(large_stacks),
		cmocka_unit_test(digests),
		cmocka_unit_test(fixed_and_sampled),
		cmocka_unit_test(any_single_parameter),
		cmocka_unit_test(inputs_of_a_layer),
		cmocka_unit_test(scales_of_a_survey),
		cmocka_unit_test(version_of_feedback),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
