/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views of storages of all sorts, read as whole tensors and as matrices, and compared element by element.
 */
#include "checkpoints/pytorch/strided.h"
#include "schemas/recipe/recipe.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

#define ELEMENTS 4000
#define SKIP 6 /* bytes before the storage: nothing is aligned */

struct view {
	uint32_t rank;
	uint64_t shape[XFP_MAX_RANK], stride[XFP_MAX_RANK], first;
};

struct scene {
	struct xfp_source_file file;
	uint16_t storage[ELEMENTS];
	int plain, recipes, parts; /* number of views by result */
};

static void make_file(void **state, struct scene *scene)
{
	unsigned char bytes[SKIP + sizeof scene->storage] = { 0 };
	struct stat st;

	for (int i = 0; i < ELEMENTS; i++)
		scene->storage[i] = (uint16_t)(i * 17 + 3);
	memcpy(bytes + SKIP, scene->storage, sizeof scene->storage);
	scratch_write(state, "storage", bytes, sizeof bytes);
	scene->file = (struct xfp_source_file){ .path = scratch_path(state, "storage") };
	assert_int_equal(stat(scene->file.path, &st), 0);
}

static uint64_t count_of(const struct view *v)
{
	uint64_t count = 1;

	for (uint32_t i = 0; i < v->rank; i++)
		count *= v->shape[i];
	return count;
}

/* Element number n of the view. */
static uint16_t element(const struct scene *scene, const struct view *v, uint64_t n)
{
	uint64_t at = v->first;

	for (uint32_t i = v->rank; i--; n /= v->shape[i])
		at += n % v->shape[i] * v->stride[i];
	return scene->storage[at];
}

/* Returns NULL, or the reason for refusal. */
static const char *check(struct scene *scene, const struct view *v)
{
	struct xfp_source_tensor t = { .name = (char[]){ "t" }, .dtype = XFP_BF16, .rank = v->rank };
	const struct xfp_storage storage = { SKIP, sizeof scene->storage };
	uint64_t parts = 2000, count = count_of(v), before = parts;
	struct xfp_matrix_source source;
	struct xfp_element_reader *reader;
	uint16_t got[ELEMENTS + 1];
	const char *wrong;
	bool failed;

	memcpy(t.shape, v->shape, sizeof t.shape);
	if ((wrong = xfp_strided_place(&t, &storage, v->first, v->stride, &parts, &failed)))
		return wrong;
	assert_false(failed);
	assert_int_equal(t.bytes, count * 2);
	scene->plain += !t.recipe;
	scene->recipes += t.recipe && t.recipe->part_count == 1;
	scene->parts += t.recipe && t.recipe->part_count > 1;
	assert_int_equal(before - parts, t.recipe ? t.recipe->part_count : 0);
	source = (struct xfp_matrix_source){ .path = scene->file.path,
					     .tensor = t.name,
					     .dtype = t.dtype,
					     .offset = t.offset,
					     .bytes = t.bytes,
					     .recipe = t.recipe,
					     .files = &scene->file };
	if (xfp_elements_open(&source, &reader, &err) || (count && xfp_elements_read(reader, 0, count * 2, got, &err)))
		fail_msg("%s", err.text);
	xfp_elements_close(reader);
	for (uint64_t n = 0; n < count; n++)
		if (got[n] != element(scene, v, n))
			fail_msg("element %d of %d is not what it should be", (int)n, (int)count);
	/* The last matrix of the last two dimensions, unless both are split. */
	if (v->rank >= 2 && count &&
	    (!t.recipe || v->shape[v->rank - 1] == 1 || v->stride[v->rank - 1] == 1 || v->shape[v->rank - 2] == 1 ||
	     v->stride[v->rank - 2] == 1)) {
		uint64_t rows = v->shape[v->rank - 2], cols = v->shape[v->rank - 1], base = count - rows * cols;
		struct xfp_matrix_reader *matrix;

		source.view = (struct xfp_view){ base, rows, cols, cols, 1 };
		if (xfp_matrix_open(&source, &matrix, &err) || xfp_matrix_read(matrix, 0, rows, got, &err))
			fail_msg("%s", err.text);
		xfp_matrix_close(matrix);
		for (uint64_t n = 0; n < rows * cols; n++)
			assert_int_equal(got[n], element(scene, v, base + n));
	}
	xfp_recipe_free(t.recipe);
	return NULL;
}

static void known(void **state)
{
	static const struct view read[] = {
		{ 0, { 0 }, { 0 }, 7 },
		{ 1, { 1 }, { 99 }, 3999 },
		{ 2, { 0, 5 }, { 5, 1 }, 4000 },
		{ 1, { 4000 }, { 1 }, 0 },
		{ 2, { 40, 100 }, { 100, 1 }, 0 },
		{ 2, { 40, 100 }, { 1, 40 }, 0 },              /* transposed */
		{ 2, { 39, 50 }, { 100, 1 }, 150 },            /* a slice of columns */
		{ 2, { 50, 39 }, { 1, 100 }, 150 },            /* and transposed */
		{ 1, { 40 }, { 100 }, 3 },                     /* one column */
		{ 3, { 4, 10, 20 }, { 1000, 20, 1 }, 100 },    /* slices of a stack */
		{ 3, { 4, 20, 10 }, { 1000, 1, 20 }, 100 },    /* each transposed */
		{ 4, { 5, 8, 10, 10 }, { 800, 1, 80, 8 }, 0 }, /* channels last */
		{ 3, { 10, 1, 20 }, { 20, 7777777, 1 }, 0 },   /* strides of dimensions with one element are ignored */
		{ 4, { 2, 2, 10, 20 }, { 2000, 400, 20, 1 }, 60 }, /* two outer dimensions */
		{ 2, { 100, 30 }, { 40, 1 }, 10 },
	};
	static const struct {
		struct view view;
		const char *words;
	} refused[] = {
		{ { 1, { 4001 }, { 1 }, 0 }, "reaches past" },
		{ { 1, { 4000 }, { 1 }, 1 }, "reaches past" },
		{ { 0, { 0 }, { 0 }, 4000 }, "reaches past" },
		{ { 0, { 0 }, { 0 }, UINT64_MAX }, "reaches past" },
		{ { 1, { 2 }, { UINT64_MAX }, 1 }, "reaches past" },
		{ { 2, { 3, 3 }, { UINT64_MAX / 2, 1 }, 0 }, "reaches past" },
		{ { 1, { 5 }, { 0 }, 0 }, "repeats elements" },
		{ { 2, { 5, 5 }, { 0, 1 }, 0 }, "repeats elements" },
		{ { 2, { 5, 5 }, { 20, 2 }, 0 }, "selects single elements" },
		{ { 2, { 5, 5 }, { 3, 1 }, 0 }, "rows that overlap" },
		{ { 2, { 5, 5 }, { 1, 3 }, 0 }, "rows that overlap" },
		{ { 2, { UINT64_MAX, UINT64_MAX }, { 0, 0 }, 0 }, "more than 2^58" },
		{ { 3, { 2000, 1, 2 }, { 2, 1, 1 }, 0 }, NULL },
	};
	struct scene scene = { 0 };

	make_file(state, &scene);
	for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
		const char *wrong = check(&scene, &read[i]);

		if (wrong)
			fail_msg("view %d: %s", (int)i, wrong);
	}
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const char *wrong = check(&scene, &refused[i].view);

		if (!wrong != !refused[i].words || (wrong && !strstr(wrong, refused[i].words)))
			fail_msg("refused %d: %s", (int)i, wrong ? wrong : "read");
	}
	free(scene.file.path);
}

/* Tensors with these dimensions: permuted, sliced, with dimensions of one element. */
static void any(void **state)
{
	struct scene scene = { 0 };
	uint64_t seed = 5;
	int refused = 0;

	make_file(state, &scene);
	for (int i = 0; i < 3000; i++) {
		struct view v = { .rank = (uint32_t)(test_random(&seed) % 5), .first = test_random(&seed) % 100 };
		uint64_t order[4] = { 0, 1, 2, 3 }, step = 1;

		for (uint32_t d = 0; d < v.rank; d++) {
			uint32_t other = (uint32_t)(test_random(&seed) % (d + 1));
			uint64_t held = order[d];

			order[d] = order[other];
			order[other] = held;
			v.shape[d] = 1 + test_random(&seed) % 7;
		}
		for (uint32_t d = 0; d < v.rank; d++) {
			uint32_t at = (uint32_t)order[d];

			v.stride[at] = step;
			step *= v.shape[at] + (test_random(&seed) % 3 ? 0 : test_random(&seed) % 3);
		}
		refused += check(&scene, &v) != NULL;
	}
	if (scene.plain < 300 || scene.recipes < 300 || scene.parts < 300 || refused > 300)
		fail_msg("%d plain, %d of one part, %d of several, %d refused", scene.plain, scene.recipes, scene.parts,
			 refused);
	free(scene.file.path);
}

PROGRAM("test_strided")
{
	const struct CMUnitTest tests[] = { scratch_test(known), scratch_test(any) };

	return cmocka_run_group_tests_name("strided", tests, NULL, NULL);
}
