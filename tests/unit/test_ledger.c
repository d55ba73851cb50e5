/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "schemas/ledger.h"
#include "schemas/recipe/recipe.h"
#include "tests/unit/scratch.h"

#define EXPERTS 512u
#define UNITS 6u /* three stacks, an fp8 head, a hostile name, a tensor split in two (this and the one before) */

/* ---- a ledger made up ---------------------------------------------------------------------------- */

static char *copy(const char *text)
{
	char *synthesized = strdup(text);

	assert_non_null(synthesized);
	return synthesized;
}

static char *hostile(void)
{
	return copy("layers.0.$(touch pwned)\n\t\"'\\ `x` \xc3\xa9\xe4\xb8\xad \xff.weight");
}

/* A recipe for a tensor number, some with two parts; all numbers differ. */
static struct xfp_recipe *recipe(uint32_t number)
{
	struct xfp_component components[3];
	struct xfp_recipe_part parts[2];
	struct xfp_recipe synthesized = { parts, 1 + number % 2, number % 4 == 3, 9, 8, 7, 6, number };
	struct xfp_recipe *copied;

	for (uint32_t i = 0; i < 3; i++)
		components[i] = (struct xfp_component){ i, XFP_U8 + i, (number + i) % 2, 1000ull * number + i, i + 5 };
	for (uint32_t p = 0; p < 2; p++)
		parts[p] = (struct xfp_recipe_part){ .codec = number % XFP_CODECS,
						     .version = number + p,
						     .rows = 1 + p,
						     .cols = UINT64_MAX - number,
						     .parameters = { 1, 2, number, p },
						     .components = components,
						     .component_count = 3 - p };
	copied = xfp_recipe_copy(&synthesized);
	assert_non_null(copied);
	return copied;
}

static void add_tensor(struct xfp_ledger *l, char *name, const char *reason, enum xfp_fate fate, uint32_t tied)
{
	struct xfp_ledger_tensor *t = &l->tensors[l->tensor_count];

	*t = (struct xfp_ledger_tensor){
		.name = name,
		.reason = copy(reason),
		.dtype = XFP_BF16,
		.class_ = l->tensor_count % XFP_CLASSES,
		.fate = fate,
		.rank = 2,
		.shape = { 8, 16, [7] = l->tensor_count },
		.file = l->tensor_count % 2,
		.offset = 256ull * l->tensor_count + (1ull << 40),
		.bytes = 256,
		.tied = tied,
		.recipe = l->tensor_count % 3 ? NULL : recipe(l->tensor_count),
	};
	l->tensor_count++;
}

static void add_unit(struct xfp_ledger *l, char *name, const char *role, enum xfp_plan plan, uint32_t experts)
{
	l->units[l->unit_count] = (struct xfp_ledger_unit){
		.name = name,
		.role = copy(role),
		.class_ = l->unit_count % XFP_CLASSES,
		.plan = plan,
		.dtype = XFP_F16,
		.experts = experts,
		.rows = 8,
		.cols = 16,
		.first_matrix = l->matrix_count,
	};
	l->unit_count++;
}

static void add_matrix(struct xfp_ledger *l, uint32_t tensor)
{
	l->matrices[l->matrix_count] = (struct xfp_ledger_matrix){ tensor, l->matrix_count, 8, 16, 16, 1 };
	l->matrix_count++;
}

/* `kept` tensors without a unit come first, so that those of units are apart from the rest. */
static struct xfp_ledger *make(uint32_t kept)
{
	static const char *const roles[] = { "down", "gate", "up" };
	struct xfp_ledger *l = calloc(1, sizeof *l);
	uint32_t stack, matrices = 3 * EXPERTS + 4;

	l->model = copy("/models/h\xc3\xa9 llo \"w\"");
	l->family = copy("qwen3_moe");
	l->format = copy("safetensors");
	l->packed = copy("fp8");
	l->files = calloc(2, sizeof *l->files);
	l->tensors = calloc(kept + 3 * EXPERTS + 4, sizeof *l->tensors);
	l->units = calloc(UNITS, sizeof *l->units);
	l->matrices = calloc(matrices, sizeof *l->matrices);
	l->extras = calloc(2, sizeof *l->extras);
	for (l->file_count = 0; l->file_count < 2; l->file_count++)
		l->files[l->file_count] = (struct xfp_source_file){
			.name = xfp_formatted("model-%u\n.safetensors", l->file_count),
			.path = xfp_formatted("/models/x/model-%u\n.safetensors", l->file_count),
			.identity = { UINT64_MAX, 2, 3 + l->file_count, -4, INT64_MAX },
		};
	l->extras[l->extra_count++] = copy("config.json");
	l->extras[l->extra_count++] = copy("1_Pooling/config.json");
	l->synthesized = calloc(2, sizeof *l->synthesized);
	l->synthesized[1] =
		(struct xfp_ledger_synthesized){ copy("/models/made/c.json"), "0123456789abcdef0123456789abcdef" };
	for (uint32_t i = 0; i < kept; i++)
		add_tensor(l, xfp_formatted("a.%06u.norm.weight", i), "norm: kept by rule", XFP_FATE_KEPT, UINT32_MAX);
	stack = l->tensor_count;
	for (uint32_t e = 0; e < EXPERTS; e++)
		for (unsigned r = 0; r < 3; r++)
			add_tensor(l, xfp_formatted("layers.0.experts.%u.%s.weight", e, roles[r]), "unit",
				   XFP_FATE_QUANTIZED, UINT32_MAX);
	add_tensor(l, copy("lm_head.weight"), "head", XFP_FATE_QUANTIZED, UINT32_MAX);
	add_tensor(l, hostile(), "", XFP_FATE_QUANTIZED, UINT32_MAX);
	add_tensor(l, copy("gate_up"), "unit", XFP_FATE_QUANTIZED, UINT32_MAX);
	add_tensor(l, copy("tied.weight"), "tied to lm_head.weight", XFP_FATE_TIED, l->tensor_count - 3);
	for (unsigned r = 0; r < 3; r++) {
		add_unit(l, xfp_formatted("layers.0.experts.*.%s.weight", roles[r]), roles[r], XFP_PLAN_FIT, EXPERTS);
		for (uint32_t e = 0; e < EXPERTS; e++)
			add_matrix(l, stack + 3 * e + r);
	}
	add_unit(l, copy("lm_head.weight"), "lm_head", XFP_PLAN_FP8, 1);
	add_matrix(l, stack + 3 * EXPERTS);
	add_unit(l, hostile(), "", XFP_PLAN_FIT, 1);
	add_matrix(l, stack + 3 * EXPERTS + 1);
	add_unit(l, copy("gate_up[1]"), "up", XFP_PLAN_FIT, 2);
	add_matrix(l, stack + 3 * EXPERTS + 2);
	add_matrix(l, stack + 3 * EXPERTS + 2);
	assert_int_equal(l->matrix_count, matrices);
	return l;
}

/* ---- comparing ----------------------------------------------------------------------------------- */

/* Digests cover the whole recipe; those of any two differ. */
static void same_recipe(const struct xfp_recipe *a, const struct xfp_recipe *b)
{
	static const struct xfp_source_file files[2] = { { .path = (char *)"a" }, { .path = (char *)"b" } };
	static uint8_t last[32];
	uint8_t one[32], other[32];

	assert_true(!a == !b);
	if (!a)
		return;
	xfp_recipe_digest(a, files, one);
	xfp_recipe_digest(b, files, other);
	assert_memory_equal(one, other, sizeof one);
	assert_memory_not_equal(one, last, sizeof one);
	assert_int_equal(xfp_recipe_bytes(a), xfp_recipe_bytes(b));
	memcpy(last, one, sizeof last);
}

static void same_tensor(const struct xfp_ledger_tensor *a, const struct xfp_ledger_tensor *b)
{
	same_recipe(a->recipe, b->recipe);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(a->dtype, b->dtype);
	assert_int_equal(a->class_, b->class_);
	assert_int_equal(a->fate, b->fate);
	assert_int_equal(a->rank, b->rank);
	assert_memory_equal(a->shape, b->shape, sizeof a->shape);
	assert_int_equal(a->file, b->file);
	assert_true(a->offset == b->offset && a->bytes == b->bytes);
	assert_int_equal(a->tied, b->tied);
}

static void same_unit(const struct xfp_ledger_unit *a, const struct xfp_ledger_unit *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->role, b->role);
	assert_int_equal(a->class_, b->class_);
	assert_int_equal(a->plan, b->plan);
	assert_int_equal(a->dtype, b->dtype);
	assert_int_equal(a->experts, b->experts);
	assert_true(a->rows == b->rows && a->cols == b->cols);
}

static void same_files(const struct xfp_ledger *a, const struct xfp_ledger *b)
{
	assert_string_equal(a->model, b->model);
	assert_string_equal(a->family, b->family);
	assert_string_equal(a->format, b->format);
	assert_string_equal(a->packed, b->packed);
	assert_int_equal(a->file_count, b->file_count);
	for (uint32_t i = 0; i < a->file_count; i++) {
		assert_string_equal(a->files[i].name, b->files[i].name);
		assert_string_equal(a->files[i].path, b->files[i].path);
		assert_true(xfp_identity_equal(&a->files[i].identity, &b->files[i].identity));
	}
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void whole(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	struct xfp_ledger *want = make(5), *got;

	OK(xfp_ledger_write(path, want, &err));
	OK(xfp_ledger_read(path, &got, &err));
	same_files(want, got);
	assert_int_equal(got->tensor_count, want->tensor_count);
	for (uint32_t i = 0; i < want->tensor_count; i++)
		same_tensor(&want->tensors[i], &got->tensors[i]);
	assert_int_equal(got->unit_count, UNITS);
	for (uint32_t i = 0; i < UNITS; i++) {
		same_unit(&want->units[i], &got->units[i]);
		assert_int_equal(want->units[i].first_matrix, got->units[i].first_matrix);
	}
	assert_int_equal(got->matrix_count, want->matrix_count);
	assert_memory_equal(got->matrices, want->matrices, want->matrix_count * sizeof *want->matrices);
	assert_int_equal(got->extra_count, 2);
	assert_string_equal(got->extras[1], "1_Pooling/config.json");
	assert_false(xfp_ledger_extra_is_synthesized(got, 0));
	assert_true(xfp_ledger_extra_is_synthesized(got, 1));
	assert_string_equal(got->synthesized[1].path, "/models/made/c.json");
	assert_string_equal(got->synthesized[1].hex, want->synthesized[1].hex);
	xfp_ledger_free(want);
	xfp_ledger_free(got);
	free(path);
}

/* The ledger of one unit agrees with the whole ledger. */
static void one_unit(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	struct xfp_ledger *all = make(30000), *one = NULL;
	struct xfp_error err = { 0 };

	OK(xfp_ledger_write(path, all, &err));
	for (uint32_t u = 0; u < UNITS; u++) {
		const struct xfp_ledger_unit *unit = &all->units[u];

		OK(xfp_ledger_read_unit(path, u, &one, &err));
		same_files(all, one);
		assert_int_equal(one->unit_count, 1);
		assert_int_equal(one->units[0].first_matrix, 0);
		same_unit(unit, &one->units[0]);
		assert_int_equal(one->matrix_count, unit->experts);
		assert_int_equal(one->tensor_count, u == UNITS - 1 ? 1 : unit->experts);
		assert_int_equal(one->extra_count, 0);
		for (uint32_t i = 0; i < unit->experts; i++) {
			const struct xfp_ledger_matrix *a = &all->matrices[unit->first_matrix + i],
						       *b = &one->matrices[i];

			same_tensor(&all->tensors[a->tensor], &one->tensors[b->tensor]);
			assert_true(a->base == b->base && a->rows == b->rows && a->cols == b->cols &&
				    a->row_stride == b->row_stride && a->col_stride == b->col_stride);
		}
		xfp_ledger_free(one);
	}
	assert_int_equal(xfp_ledger_read_unit(path, UNITS, &one, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "no unit 6"));
	xfp_ledger_free(all);
	free(path);
}

static void empty(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	struct xfp_ledger none = { 0 }, *got;

	OK(xfp_ledger_write(path, &none, &err));
	OK(xfp_ledger_read(path, &got, &err));
	assert_int_equal(got->tensor_count + got->unit_count + got->file_count, 0);
	assert_string_equal(got->model, "");
	xfp_ledger_free(got);
	assert_int_equal(xfp_ledger_read_unit(path, 0, &got, NULL), XFP_USAGE);
	free(path);
}

/* Invalid references, one at a time. */
static void impossible(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);

	for (unsigned fault = 0; fault < 16; fault++) {
		struct xfp_ledger *l = make(1), *got = NULL;
		struct xfp_ledger_tensor *t = &l->tensors[1]; /* of unit 0 */
		struct xfp_recipe_part *part;
		enum xfp_status whole_status, unit_status;
		struct xfp_error err = { 0 };

		xfp_recipe_free(t->recipe);
		t->recipe = recipe(1);
		part = &t->recipe->parts[1];
		switch (fault) {
		case 1:
			t->dtype = XFP_DTYPES;
			break;
		case 2:
			t->class_ = XFP_CLASSES;
			break;
		case 3:
			t->fate = XFP_FATES;
			break;
		case 4:
			t->rank = 9;
			break;
		case 5:
			t->file = 2;
			break;
		case 6:
			t->tied = 1;
			break;
		case 7:
			l->units[0].experts = 0;
			break;
		case 8:
			l->units[0].first_matrix = l->matrix_count - 1;
			break;
		case 9:
			l->units[0].plan = XFP_PLAN_KEEP + 1;
			break;
		case 10:
			l->matrices[2].tensor = l->tensor_count;
			break;
		case 11:
			l->matrices[2].rows = 7;
			break;
		case 12:
			part->codec = XFP_CODECS;
			break;
		case 13:
			part->component_count = 0;
			break;
		case 14:
			part->components[1].role = XFP_COMPONENTS;
			break;
		case 15:
			part->components[1].file = 2;
			break;
		}
		OK(xfp_ledger_write(path, l, &err));
		whole_status = xfp_ledger_read(path, &got, &err);
		if (whole_status != (fault ? XFP_BAD_INPUT : XFP_OK))
			fail_msg("fault %u: status %d", fault, whole_status);
		xfp_ledger_free(got);
		got = NULL;
		unit_status = xfp_ledger_read_unit(path, 0, &got, &err);
		if (unit_status != whole_status)
			fail_msg("fault %u: unit status %d", fault, unit_status);
		xfp_ledger_free(got);
		if (fault) {
			assert_non_null(strstr(err.text, path));
			assert_non_null(strstr(err.text, "run xfp-inspect again"));
		}
		xfp_ledger_free(l);
	}
	free(path);
}

static void no_ledger(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	struct xfp_ledger *l = make(1), *got = NULL;
	struct xfp_error err = { 0 };

	assert_int_equal(xfp_ledger_read(path, &got, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "run xfp-inspect"));
	scratch_write(state, XFP_LEDGER_FILE, "not HDF5", 8);
	assert_int_equal(xfp_ledger_read_unit(path, 0, &got, &err), XFP_BAD_INPUT);
	OK(xfp_ledger_write(path, l, &err));
	assert_int_equal(truncate(path, 3000), 0);
	assert_int_equal(xfp_ledger_read(path, &got, &err), XFP_BAD_INPUT);
	assert_null(got);
	xfp_ledger_free(l);
	free(path);
}

/* Any inverted byte is detected before libhdf5 reads it: by the front end always, by a stage in a ledger of usual
 * size. */
static void flipped_bytes(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	struct xfp_ledger *l = make(0), *got = NULL;
	struct xfp_error err = { 0 };
	struct stat st;
	int fd;

	OK(xfp_ledger_write(path, l, &err));
	assert_int_equal(stat(path, &st), 0);
	assert_true((fd = open(path, O_RDWR)) >= 0);
	for (off_t at = 0; at < st.st_size; at += at < 1024 ? 1 : 997) {
		uint8_t was, is;

		assert_int_equal(pread(fd, &was, 1, at), 1);
		is = was ^ (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &is, 1, at), 1);
		if (xfp_ledger_read(path, &got, &err) != XFP_BAD_INPUT ||
		    xfp_ledger_read_unit(path, 1, &got, &err) != XFP_BAD_INPUT)
			fail_msg("byte %ld is not protected", (long)at);
		assert_non_null(strstr(err.text, "run xfp-inspect again"));
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
	}
	OK(xfp_ledger_read(path, &got, &err));
	xfp_ledger_free(got);
	close(fd);
	xfp_ledger_free(l);
	free(path);
}

PROGRAM("test_ledger")
{
	const struct CMUnitTest tests[] = {
		scratch_test(whole),      scratch_test(one_unit),  scratch_test(empty),
		scratch_test(impossible), scratch_test(no_ledger), scratch_test(flipped_bytes),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
