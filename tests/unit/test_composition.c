/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle as one file: bits per weight as in papers, and the shares of its bytes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/ui/composition_print.h"
#include "tests/unit/unit.h"

/* Indices, plus for each group the number of its codebook (8 bits), and for v2a its scale and its midpoint (16
 * each). */
static void papers_count_indices_and_groups(void **unused)
{
	static const struct {
		enum xfp_mode mode;
		double k;
		uint32_t group;
		enum xfp_dtype source;
		double bits;
	} known[] = {
		{ XFP_MODE_V2, 3, 0, XFP_BF16, 3 },         { XFP_MODE_V2, 2.5, 0, XFP_F32, 2.5 },
		{ XFP_MODE_V2A, 3, 128, XFP_BF16, 3.3125 }, { XFP_MODE_V2A, 4, 16, XFP_F16, 6.5 },
		{ XFP_MODE_V2C, 3, 32, XFP_BF16, 3.25 },    { XFP_MODE_V2C, 2, 16, XFP_BF16, 2.5 },
		{ XFP_MODE_FP8, 8, 0, XFP_BF16, 8 },        { XFP_MODE_FP8, 0, 0, XFP_F32, 8 },
		{ XFP_MODE_KEEP, 0, 0, XFP_BF16, 16 },      { XFP_MODE_KEEP, 0, 0, XFP_F32, 32 },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		double bits = xfp_paper_bits(known[i].mode, known[i].k, known[i].group, known[i].source);

		if (fabs(bits - known[i].bits) > 1e-12)
			fail_msg("case %zu: %f", i, bits);
	}
}

/* Kept tensors are not units; bits of units are weighted by their weights. */
static void units_are_summed(void **unused)
{
	struct xfp_composition composition = { .bytes = 10000, .elements = 16000, .source = 32000 };

	(void)unused;
	assert_true(xfp_composition_paper_bits(&composition) == 0);
	xfp_composition_add_unit(&composition, XFP_CLASS_ATTENTION, XFP_MODE_V2C, 500, 1000, 64, 3.25);
	xfp_composition_add_unit(&composition, XFP_CLASS_DENSE_MLP, XFP_MODE_FP8, 3012, 3000, 64, 8);
	xfp_composition_add_unit(&composition, XFP_CLASS_LM_HEAD, XFP_MODE_KEEP, 2000, 1000, 640, 16);
	xfp_composition_add_unit(&composition, XFP_CLASS_LM_HEAD, XFP_MODE_KEEP, 1000, 500, 320, 16);
	assert_int_equal(composition.units, 3512);
	assert_int_equal(composition.unit_weights, 4000);
	assert_int_equal(composition.kept, 3000);
	assert_int_equal(composition.quantizable[XFP_CLASS_LM_HEAD], 3000);
	assert_int_equal(composition.cols[XFP_CLASS_LM_HEAD], 320);
	assert_int_equal(composition.quantizable[XFP_CLASS_ATTENTION], 0);
	assert_true(xfp_composition_paper_bits(&composition) == (3.25 + 3 * 8) / 4);
	assert_true(xfp_composition_bits(&composition) == 5);
}

static void expect_remark(const struct xfp_composition *composition, const char *remark)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *line;

	assert_non_null(out);
	xfp_composition_print(out, "out.xfp: ", composition);
	fclose(out);
	assert_non_null(line = strstr(text, "index and padding"));
	assert_non_null(line = strchr(line, '\n'));
	assert_string_equal(line + 1, remark);
	free(text);
}

/* A tenth of the file, and the class with the largest share of it. */
static void what_is_kept_is_remarked_on(void **unused)
{
	struct xfp_composition composition = { .bytes = 10000, .elements = 16000, .source = 32000, .units = 8000 };

	(void)unused;
	xfp_composition_add_unit(&composition, XFP_CLASS_LM_HEAD, XFP_MODE_KEEP, 999, 500, 768, 16);
	expect_remark(&composition, "");
	composition.kept++;
	expect_remark(&composition, "kept tensors are 10 % of the bundle; --format lm_head=6 quantizes 10 %\n");
	/* For shorter rows a codebook costs more than it saves, unless v2c is available. */
	composition.cols[XFP_CLASS_LM_HEAD] = 767;
	expect_remark(&composition, "kept tensors are 10 % of the bundle; --format lm_head=fp8 quantizes 10 %\n");
	composition.compact = true;
	expect_remark(&composition, "kept tensors are 10 % of the bundle; --format lm_head=6 quantizes 10 %\n");
	xfp_composition_add_unit(&composition, XFP_CLASS_EMBEDDING, XFP_MODE_KEEP, 1200, 600, 768, 16);
	expect_remark(&composition, "kept tensors are 22 % of the bundle; --format embedding=6 quantizes 12 %\n");
	composition.quantizable[XFP_CLASS_EMBEDDING] = composition.quantizable[XFP_CLASS_LM_HEAD] = 500;
	expect_remark(&composition, ""); /* nothing that would make a significant difference */
}

PROGRAM("test_composition")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(papers_count_indices_and_groups),
		cmocka_unit_test(units_are_summed),
		cmocka_unit_test(what_is_kept_is_remarked_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
