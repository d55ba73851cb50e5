/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small parts of the readers: ranges of files, names of shards, digests of recipes, files carried along, and locations
 * of matrices in a bundle.
 */
#include <jansson.h>

#include "base/sha256.h"
#include "checkpoints/format.h"
#include "checkpoints/open/fold.h"
#include "checkpoints/place.h"
#include "checkpoints/shards.h"
#include "model/weights/bundle_source.h"
#include "model/weights/weights.h"
#include "schemas/recipe/recipe.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;
static bool no_memory; /* for the next malloc */

/* Replaces the function of libc through the linker's --wrap. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static void ranges_are_within_files(void **state)
{
	static const struct {
		uint64_t offset, bytes, found;
		bool fits;
	} cases[] = {
		{ 0, 12, 12, true },         { 2, 10, 10, true },        { 12, 0, 0, true },
		{ 0, UINT64_MAX, 12, true }, { 5, UINT64_MAX, 7, true }, { 0, 13, 0, false },
		{ 3, 10, 0, false },         { 13, 0, 0, false },        { 1, UINT64_MAX - 1, 0, false },
	};
	char *path = scratch_path(state, "f");

	scratch_write(state, "f", "twelve bytes", 12);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct xfp_place place = { path, "archive/f", cases[i].offset, cases[i].bytes };
		struct xfp_identity identity;
		uint64_t bytes = 0;
		int fd = -1;

		if (cases[i].fits) {
			assert_int_equal(xfp_place_open(&place, &fd, &bytes, &identity, &err), XFP_OK);
			assert_int_equal(bytes, cases[i].found);
		} else {
			assert_int_equal(xfp_place_open(&place, &fd, &bytes, &identity, &err), XFP_BAD_INPUT);
			assert_non_null(strstr(err.text, "archive/f: has become shorter"));
		}
		close(fd);
	}
	free(path);
}

static void names_of_shards(void **unused)
{
	(void)unused;
	assert_true(xfp_is_shard("a-00001-of-00002.bin", ".bin") && xfp_is_shard("a-of-1-of-10.bin", ".bin"));
	assert_false(xfp_is_shard("a-00001-of-00001.bin", ".bin") || xfp_is_shard("a-1-of-.bin", ".bin"));
	assert_false(xfp_is_shard("a-1-of-2.bin", ".pt") || xfp_is_shard("a-1-of-2.bin.x", ".bin"));
	/* The byte before the name in memory is not part of it. */
	assert_false(xfp_is_shard(&"1-of-00002.bin"[1], ".bin") || xfp_is_shard("a-of-2.bin", ".bin"));
}

/* All numbers as 64-bit integers, in the order of the structures, and the identity of each component's file. */
static void digests_of_recipes(void **unused)
{
	struct xfp_source_file file = { .path = (char *)"/f", .identity = { 1, 2, 3, 4, 5 } };
	struct xfp_component component = { XFP_COMPONENT_SCALES, XFP_F32, 0, 11, 12 };
	struct xfp_recipe_part part = { XFP_CODEC_FP8, 7, 8, 9, { 1, 2, 3, 4 }, &component, 1 };
	const struct xfp_recipe recipe = { &part, 1, true, 8, 9, 21, 22, 23 };
	const uint64_t head[] = { 1, 8, 9, 21, 22, 23, XFP_CODEC_FP8, 7, 8, 9, 1, 1, 2, 3, 4 };
	const uint64_t tail[] = { XFP_COMPONENT_SCALES,
				  XFP_F32,
				  11,
				  12,
				  file.identity.device,
				  file.identity.inode,
				  file.identity.size,
				  (uint64_t)file.identity.mtime_ns,
				  (uint64_t)file.identity.ctime_ns };
	uint8_t got[32], expected[32];
	struct xfp_sha256 sha;

	(void)unused;
	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, head, sizeof head);
	xfp_sha256_update(&sha, tail, sizeof tail);
	xfp_sha256_update(&sha, "/f", 3);
	xfp_sha256_final(&sha, expected);
	xfp_recipe_digest(&recipe, &file, got);
	assert_memory_equal(got, expected, sizeof got);
}

static void only_packed_tensors_have_a_form(void **unused)
{
	struct xfp_recipe_part part = { .codec = XFP_CODEC_PLAIN };
	struct xfp_recipe recipe = { .parts = &part, .part_count = 1 };
	struct xfp_source_tensor t = { .name = (char *)"t" };

	(void)unused;
	assert_null(xfp_source_packed(&t));
	t.recipe = &recipe;
	assert_null(xfp_source_packed(&t));
	part.codec = XFP_CODEC_REVERSED;
	assert_null(xfp_source_packed(&t));
	part.codec = XFP_CODEC_GPTQ;
	assert_string_equal(xfp_source_packed(&t), "gptq");
}

/* ---- configs ----------------------------------------------------------------------------------------- */

static void methods_of_older_configs(void **unused)
{
	static const char *const cases[][2] = {
		{ "{\"quant_method\": \"fp8\", \"w_bit\": 4}", "fp8" },
		{ "{\"w_bit\": 4}", "awq" },
		{ "{\"zero_point\": true}", "awq" },
		{ "{\"desc_act\": true}", "gptq" },
		{ "{\"damp_percent\": 0.01, \"w_bit\": 4}", "gptq" },
		{ "{\"bits\": 4}", "an unnamed method" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char config[200];
		struct xfp_checkpoint checkpoint = { .folder = (char *)"m", .apart = true, .config = config };
		struct xfp_fold fold = { .checkpoint = &checkpoint, .err = &err };
		json_t *root = NULL;

		snprintf(config, sizeof config, "{\"quantization_config\": %s}", cases[i][0]);
		assert_int_equal(xfp_fold_read_config(&fold, &root), XFP_OK);
		assert_string_equal(fold.method, cases[i][1]);
		json_decref(root);
	}
}

/* ---- small files ------------------------------------------------------------------------------------- */

static void make_file(struct xfp_checkpoint *c, const char *name)
{
	assert_int_equal(xfp_checkpoint_make(c, name, strdup(name), strlen(name), &err), XFP_OK);
}

/* An existing file is carried along instead of a synthesized one, except for config.json. */
static void files_that_lie_there(void **unused)
{
	struct xfp_checkpoint *c = calloc(1, sizeof *c);

	(void)unused;
	assert_non_null(c);
	c->folder = strdup("m");
	assert_non_null(c->extras = calloc(2, sizeof *c->extras));
	c->extras[c->extra_count++] = strdup("config.json");
	c->extras[c->extra_count++] = strdup("tokenizer.json");
	make_file(c, "tokenizer.json");
	make_file(c, "config.json");
	make_file(c, "generation_config.json");
	assert_int_equal(xfp_checkpoint_add_synthesized(c, &err), XFP_OK);
	assert_int_equal(c->extra_count, 3);
	assert_string_equal(c->extras[1], "generation_config.json");
	assert_int_equal(c->synthesized_count, 2);
	assert_string_equal(c->synthesized[0].name, "config.json");
	assert_string_equal(c->synthesized[1].name, "generation_config.json");
	xfp_checkpoint_close(c);
}

/* ---- weights ----------------------------------------------------------------------------------------- */

static void files_beside_weights(void **state)
{
	struct xfp_synthesized_file synthesized[] = { { (char *)"config.json", (char *)"{}", 2 },
						      { (char *)"tokenizer.json", (char *)"[]x", 3 } };
	struct xfp_checkpoint checkpoint = { .folder = *state, .synthesized = synthesized, .synthesized_count = 2 };
	static const struct {
		const char *name, *content;
	} cases[] = {
		{ "tokenizer.json", "[]x" },
		{ "config.json", "{}" },
		{ "beside.json", "there" },
		{ "none.json", NULL },
	};

	scratch_write(state, "beside.json", "there", 5);
	scratch_write(state, "config.json", "another", 7);
	for (int apart = 0; apart < 2; apart++) {
		checkpoint.apart = apart;
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			const char *wanted = apart && i == 2 ? NULL : cases[i].content;
			char *bytes = NULL;
			size_t size = 0;

			assert_int_equal(
				xfp_weights_of_checkpoint.file(&checkpoint, cases[i].name, &bytes, &size, &err),
				XFP_OK);
			if (!wanted) {
				assert_null(bytes);
				continue;
			}
			assert_non_null(bytes);
			assert_int_equal(size, strlen(wanted));
			assert_string_equal(bytes, wanted);
			free(bytes);
		}
	}
	no_memory = true;
	for (size_t i = 0; i < 2; i++) {
		char *bytes = NULL;
		size_t size = 0;

		assert_int_equal(xfp_weights_of_checkpoint.file(&checkpoint, cases[i].name, &bytes, &size, &err),
				 XFP_FAILED);
	}
	no_memory = false;
}

static struct xfp_view view_of(const struct xfp_ledger_matrix *m)
{
	return (struct xfp_view){ m->base, m->rows, m->cols, m->row_stride, m->col_stride };
}

static bool refuse(void *context, uint64_t numbers)
{
	*(uint64_t *)context += numbers;
	return false;
}

/* If the callback returns false, nothing more is read. */
static void reading_is_interrupted(void **unused)
{
	struct xfp_weights *weights = NULL;
	struct xfp_weight_rows *rows = NULL;
	uint64_t asked = 0;
	struct fixture f;
	float out[1024];

	(void)unused;
	fixture_make_bundle(&f, 1);
	assert_int_equal(xfp_weights_open(f.out, &weights, &err), XFP_OK);
	for (uint32_t m = 0; m < f.ledger.matrix_count; m++) {
		const char *name = f.tensors[f.matrices[m].tensor].name;
		struct xfp_view view = view_of(&f.matrices[m]);

		assert_int_equal(xfp_weight_rows_open(weights, name, &view, &rows, &err), XFP_OK);
		xfp_weights_watch(weights, refuse, &asked);
		assert_true(view.cols <= sizeof out / sizeof *out);
		assert_int_equal(xfp_weight_rows_read(rows, 0, 1, out, &err), XFP_FAILED);
		assert_non_null(strstr(err.text, "reading was interrupted"));
		assert_int_equal(asked, view.cols);
		xfp_weights_watch(weights, NULL, NULL);
		assert_int_equal(xfp_weight_rows_read(rows, 0, 1, out, &err), XFP_OK);
		xfp_weight_rows_close(rows);
		asked = 0;
	}
	xfp_weights_close(weights);
	fixture_free(&f);
}

/* The expert of a stack that a view selects; other views of the tensor are not experts. */
static void experts_of_stacks(void **unused)
{
	struct xfp_weights *weights = NULL;
	uint32_t stack, expert;
	struct fixture f;

	(void)unused;
	fixture_make_bundle(&f, FIXTURE_TWO_SIZES);
	assert_int_equal(xfp_weights_open(f.out, &weights, &err), XFP_OK);
	assert_true(f.ledger.matrix_count > 1);
	for (uint32_t m = 0; m < f.ledger.matrix_count; m++) {
		const char *name = f.tensors[f.matrices[m].tensor].name;
		struct xfp_view view = view_of(&f.matrices[m]);

		stack = expert = UINT32_MAX;
		assert_true(xfp_weights_stacked(weights, name, &view, &stack, &expert));
		assert_int_equal(stack, 0);
		assert_int_equal(expert, m);
		assert_false(xfp_weights_stacked(weights, "none", &view, &stack, &expert));
		view.rows--;
		assert_false(xfp_weights_stacked(weights, name, &view, &stack, &expert));
	}
	xfp_weights_close(weights);
	fixture_free(&f);
}

static void identify(const char *path, uint8_t digest[32])
{
	struct xfp_weights *weights = NULL;
	struct xfp_sha256 sha;

	if (xfp_weights_open(path, &weights, &err))
		fail_msg("%s", err.text);
	xfp_sha256_init(&sha);
	assert_int_equal(xfp_weights_identify(weights, &sha, &err), XFP_OK);
	xfp_sha256_final(&sha, digest);
	xfp_weights_close(weights);
}

/* The same bytes in another file have another identity. */
static void identities_of_bundles(void **state)
{
	char *copy = scratch_path(state, "copy.xfp");
	uint8_t digest[4][32], *bytes;
	struct fixture f;
	size_t size;

	fixture_make_bundle(&f, 1);
	bytes = fixture_read(f.out, &size);
	fixture_write(copy, bytes, size);
	identify(f.out, digest[0]);
	identify(f.out, digest[1]);
	identify(copy, digest[2]);
	assert_memory_equal(digest[0], digest[1], 32);
	assert_memory_not_equal(digest[0], digest[2], 32);
	free(bytes);
	free(copy);
	fixture_free(&f);
}

static void places_in_bundles(void **unused)
{
	struct xfp_bundle_place places[] = { { 1, 0, 0 }, { 1, 1, 64 }, { 4, 2, 0 }, { 7, 3, 0 }, { 7, 4, 8 } };
	const uint32_t first[] = { 0, 0, 2, 2, 2, 3, 3, 3, 5 };
	struct xfp_bundle_source source = { .info = { .matrices = 5 }, .places = places };
	static const struct {
		struct xfp_view view;
		bool within;
	} views[] = {
		{ { 0, 4, 6, 6, 1 }, true },
		{ { 1, 4, 6, 6, 1 }, false },
		{ { 0, 4, 6, 1, 4 }, true },
		{ { 23, 1, 1, 0, 0 }, true },
		{ { 24, 1, 1, 0, 0 }, false },
		{ { 0, 0, 6, 6, 1 }, false },
		{ { 0, 4, 0, 6, 1 }, false },
		{ { 0, 5, 6, 6, 1 }, false },
		{ { 0, 4, 7, 6, 1 }, false },
		{ { 0, 3, 1, (uint64_t)1 << 63, 1 }, false },
		{ { 0, 1, 3, 1, (uint64_t)1 << 63 }, false },
		{ { 0, 2, 2, (uint64_t)1 << 63, (uint64_t)1 << 63 }, false },
		{ { UINT64_MAX, 2, 1, 1, 1 }, false },
	};

	(void)unused;
	for (uint32_t t = 0; t < sizeof first / sizeof *first; t++)
		assert_int_equal(xfp_bundle_first_place(&source, t), first[t]);
	for (size_t i = 0; i < sizeof views / sizeof *views; i++)
		if (xfp_view_is_within(24, &views[i].view) != views[i].within)
			fail_msg("view %zu", i);
}

PROGRAM("test_checkpoint_parts")
{
	const struct CMUnitTest tests[] = {
		scratch_test(ranges_are_within_files),      cmocka_unit_test(names_of_shards),
		cmocka_unit_test(digests_of_recipes),       cmocka_unit_test(only_packed_tensors_have_a_form),
		cmocka_unit_test(methods_of_older_configs), scratch_test(files_beside_weights),
		cmocka_unit_test(files_that_lie_there),     cmocka_unit_test(reading_is_interrupted),
		cmocka_unit_test(experts_of_stacks),        scratch_test(identities_of_bundles),
		cmocka_unit_test(places_in_bundles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
