/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of Meta's Llama, joined: shapes and row order, contradicting parts, defaults of params.json.
 */
#include <jansson.h>

#include "checkpoints/pytorch/meta.h"
#include "schemas/recipe/recipe.h"
#include "tests/unit/scratch.h"

#define TENSORS 13
#define DIM 8
#define COPY_BYTES 64 /* of a row, at the start of the file */

static struct xfp_error err;

/* Tensors of a part, sorted by name, whose columns or rows are divided by the number of parts. */
static const struct shape {
	const char *name;
	uint32_t rank;
	uint64_t shape[2];
	int cut; /* the dimension; -1: none */
} whole[TENSORS] = {
	{ "layers.0.attention.wk.weight", 2, { 4, DIM }, 0 },
	{ "layers.0.attention.wo.weight", 2, { DIM, DIM }, 1 },
	{ "layers.0.attention.wq.weight", 2, { DIM, DIM }, 0 },
	{ "layers.0.attention.wv.weight", 2, { 4, DIM }, 0 },
	{ "layers.0.attention_norm.weight", 1, { DIM }, -1 },
	{ "layers.0.feed_forward.w1.weight", 2, { 16, DIM }, 0 },
	{ "layers.0.feed_forward.w2.weight", 2, { DIM, 16 }, 1 },
	{ "layers.0.feed_forward.w3.weight", 2, { 16, DIM }, 0 },
	{ "layers.0.ffn_norm.weight", 1, { DIM }, -1 },
	{ "norm.weight", 1, { DIM }, -1 },
	{ "output.weight", 2, { 12, DIM }, 0 },
	{ "rope.freqs", 1, { 1 }, -1 },
	{ "tok_embeddings.weight", 2, { 12, DIM }, 1 },
};

/* The contents of the parts that read_part returns. */
static struct part {
	struct shape tensors[TENSORS];
	uint32_t count;
	enum xfp_dtype dtype;
} parts[4];

static void make_parts(void **state, unsigned count, const char *params)
{
	/* Two key heads: with four parts, two parts have the same one. */
	unsigned keys = count > 2 ? 2 : count;

	scratch_write(state, "params.json", params, strlen(params));
	for (unsigned p = 0; p < count; p++) {
		char name[32], rows[COPY_BYTES];

		memset(rows, (int)('a' + p / (count / keys)), sizeof rows);
		snprintf(name, sizeof name, "consolidated.%02u.pth", p);
		scratch_write(state, name, rows, sizeof rows);
		memcpy(parts[p].tensors, whole, sizeof whole);
		parts[p].count = TENSORS;
		parts[p].dtype = XFP_BF16;
		for (int i = 0; i < TENSORS; i++)
			if (whole[i].cut >= 0)
				parts[p].tensors[i].shape[whole[i].cut] /= i == 0 || i == 3 ? keys : count;
	}
}

static enum xfp_status read_part(const struct xfp_place *place, struct xfp_checkpoint *notes,
				 struct xfp_tensor_file *out, struct xfp_error *error)
{
	const struct part *part = &parts[strtoul(strrchr(place->path, '/') + strlen("/consolidated."), NULL, 10)];

	(void)notes;
	(void)error;
	out->tensors = calloc(part->count, sizeof *out->tensors);
	assert_non_null(out->tensors);
	for (out->count = 0; out->count < part->count; out->count++) {
		const struct shape *from = &part->tensors[out->count];
		struct xfp_source_tensor *t = &out->tensors[out->count];

		*t = (struct xfp_source_tensor){ .name = strdup(from->name), .dtype = part->dtype, .rank = from->rank };
		memcpy(t->shape, from->shape, sizeof from->shape);
		t->bytes = 2 * t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
	}
	return XFP_OK;
}

static const struct xfp_file_form form = { ".pth", "parts", "no index", read_part };

static enum xfp_status open_parts(void **state, struct xfp_checkpoint **out)
{
	struct xfp_checkpoint *c = calloc(1, sizeof *c);
	struct xfp_listing listing = { 0 };
	enum xfp_status status;

	assert_non_null(c);
	c->folder = strdup(*state);
	assert_int_equal(xfp_listing_of_folder(*state, &listing, &err), XFP_OK);
	status = xfp_meta_open(&form, c, &listing, &err);
	xfp_listing_free(&listing);
	*out = c;
	return status;
}

static const char params[] = "{\"dim\": 8, \"n_layers\": 1, \"n_heads\": 4, \"n_kv_heads\": 2}";

static const struct xfp_source_tensor *named(const struct xfp_checkpoint *c, const char *ending)
{
	for (uint32_t i = 0; i < c->tensor_count; i++)
		if (strstr(c->tensors[i].name, ending))
			return &c->tensors[i];
	fail_msg("there is no %s", ending);
	return NULL;
}

static void expect_tensor(const struct xfp_checkpoint *c, const char *ending, uint64_t rows, uint64_t cols,
			  uint32_t count, bool beside, uint64_t inner)
{
	const struct xfp_source_tensor *t = named(c, ending);

	if (t->shape[0] != rows || t->shape[1] != cols || t->bytes != 2 * rows * cols)
		fail_msg("%s has another shape", ending);
	if (!count) {
		assert_null(t->recipe);
		return;
	}
	assert_non_null(t->recipe);
	if (t->recipe->part_count != count || t->recipe->beside != beside || t->recipe->rows != rows ||
	    t->recipe->cols != cols || t->recipe->outer != (inner ? 2 : 0) || t->recipe->inner != inner)
		fail_msg("%s is joined in another way", ending);
}

static void parts_are_joined(void **state)
{
	for (unsigned count = 1; count <= 4; count *= 2) {
		uint32_t pieces = count > 1 ? count : 0;
		struct xfp_checkpoint *c;

		make_parts(state, count, params);
		if (open_parts(state, &c))
			fail_msg("%u parts: %s", count, err.text);
		assert_int_equal(c->tensor_count, TENSORS - 1);
		assert_int_equal(c->file_count, count);
		expect_tensor(c, "model.layers.0.self_attn.q_proj.weight", DIM, DIM, count, false, 1);
		expect_tensor(c, "k_proj", 4, DIM, count > 2 ? 2 : count, false, 1);
		expect_tensor(c, "v_proj", 4, DIM, count > 2 ? 2 : pieces, false, 0);
		expect_tensor(c, "o_proj", DIM, DIM, pieces, true, 0);
		expect_tensor(c, "gate_proj", 16, DIM, pieces, false, 0);
		expect_tensor(c, "down_proj", DIM, 16, pieces, true, 0);
		expect_tensor(c, "lm_head.weight", 12, DIM, pieces, false, 0);
		expect_tensor(c, "model.embed_tokens.weight", 12, DIM, pieces, true, 0);
		assert_int_equal(named(c, "model.norm.weight")->shape[0], DIM);
		/* The first part of each pair of copies. */
		if (count == 4)
			assert_int_equal(named(c, "k_proj")->recipe->parts[1].components->file, 2);
		xfp_checkpoint_close(c);
	}
	{ /* Embeddings divided by rows; the folder's own config.json is kept. */
		struct xfp_checkpoint *c;

		make_parts(state, 2, params);
		parts[0].tensors[12].shape[0] = parts[1].tensors[12].shape[0] = 6;
		parts[0].tensors[12].shape[1] = parts[1].tensors[12].shape[1] = DIM;
		scratch_write(state, "consolidated.text", "", 0);
		scratch_write(state, "config.json", "{}", 2);
		for (unsigned p = 2; p < 4; p++) {
			char name[32], *path;

			snprintf(name, sizeof name, "consolidated.%02u.pth", p);
			path = scratch_path(state, name);
			remove(path);
			free(path);
		}
		if (open_parts(state, &c))
			fail_msg("%s", err.text);
		expect_tensor(c, "embed_tokens", 12, DIM, 2, false, 0);
		assert_int_equal(c->synthesized_count, 0);
		xfp_checkpoint_close(c);
	}
}

/* One property of one tensor of the last part. */
static void parts_that_contradict(void **state)
{
	enum what { NAME, RANK, ROWS, COLS, DTYPE, COUNT, FIRST, COPY };
	static const struct {
		unsigned parts, tensor;
		enum what what;
		const char *name, *message;
		uint64_t value;
	} cases[] = {
		{ 2, 9, NAME, "nor.weight", "consolidated.01.pth: tensor nor.weight: is in this part, but not in", 0 },
		{ 2, 9, NAME, "norn.weight", "consolidated.01.pth: tensor norm.weight: is not in this part", 0 },
		{ 2, 12, COUNT, "", "consolidated.01.pth: tensor tok_embeddings.weight: is not in this part", 12 },
		{ 2, 12, FIRST, "", "consolidated.01.pth: tensor tok_embeddings.weight: is in this part, but", 12 },
		{ 2, 12, DTYPE, "", "consolidated.01.pth: tensor layers.0.attention.wk.weight: has another dtype", 0 },
		{ 2, 9, RANK, "", "consolidated.01.pth: tensor norm.weight: has another dtype or number of", 2 },
		{ 2, 1, ROWS, "", "wo.weight: does not match", DIM + 1 },
		{ 2, 2, COLS, "", "wq.weight: does not match", DIM + 1 },
		{ 2, 1, COLS, "", "wo.weight: is empty", 0 },
		{ 2, 2, ROWS, "", "wq.weight: is empty", 0 },
		{ 2, 2, ROWS, "", "q_proj.weight: all parts together have 7 rows, but 4 heads of 2 rows", 3 },
		{ 2, 0, ROWS, "", "k_proj.weight: all parts together have 5 rows, but 2 heads of 2 rows", 3 },
		{ 4, 0, ROWS, "", "consolidated.03.pth: tensor layers.0.attention.wk.weight: has other rows", 3 },
		{ 4, 0, COPY, "",
		  "consolidated.03.pth: tensor layers.0.attention.wk.weight: differs from the previous part", 0 },
		{ 1, 9, RANK, "", "norm.weight: has the wrong number of dimensions", 2 },
		{ 1, 10, RANK, "", "output.weight: has the wrong number of dimensions", 1 },
		{ 1, 0, NAME, "layers.0.attention.wx.weight", "wx.weight: is not from Llama 1 to 3", 0 },
		{ 1, 0, NAME, "layers..attention.wk.weight", "wk.weight: is not from Llama 1 to 3", 0 },
		{ 1, 0, NAME, "layers.0123456789.attention.wk.weight", "wk.weight: is not from Llama", 0 },
		{ 1, 9, NAME, "layers.0.norm.weight", "norm.weight: is not from Llama 1 to 3", 0 },
		{ 1, 0, ROWS, "", "k_proj.weight: all parts together have 6 rows, but 2 heads of 2 rows", 6 },
		{ 1, 3, ROWS, "", "", 4 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct part *last = &parts[cases[i].parts - 1];
		struct shape *t = &last->tensors[cases[i].tensor];
		struct xfp_checkpoint *c;
		enum xfp_status status;

		scratch_teardown(state);
		scratch_setup(state);
		make_parts(state, cases[i].parts, params);
		switch (cases[i].what) {
		case NAME:
			t->name = cases[i].name;
			break;
		case RANK:
			t->rank = (uint32_t)cases[i].value;
			break;
		case ROWS:
			t->shape[0] = cases[i].value;
			break;
		case COLS:
			t->shape[1] = cases[i].value;
			break;
		case DTYPE:
			last->dtype = XFP_F16;
			break;
		case COUNT:
			last->count = (uint32_t)cases[i].value;
			break;
		case FIRST:
			parts[0].count = (uint32_t)cases[i].value;
			break;
		case COPY:
			scratch_write(state, "consolidated.03.pth", (char[COPY_BYTES]){ 0 }, COPY_BYTES);
			break;
		}
		status = open_parts(state, &c);
		xfp_checkpoint_close(c);
		if (*cases[i].message ? status != XFP_BAD_INPUT || !strstr(err.text, cases[i].message) : status)
			fail_msg("%s: status %d: %s", cases[i].message, (int)status, status ? err.text : "");
	}
	scratch_write(state, "consolidated.02.pth", "", 0);
	{
		struct xfp_checkpoint *c;

		assert_int_equal(open_parts(state, &c), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "consolidated.01.pth: missing"));
		xfp_checkpoint_close(c);
	}
}

static void names_of_parts(void **unused)
{
	(void)unused;
	assert_true(xfp_meta_is_part("consolidated.00.pth") && xfp_meta_is_part("consolidated.99.pth"));
	assert_false(xfp_meta_is_part("consolidated.0.pth") || xfp_meta_is_part("consolidated.000.pth"));
	assert_false(xfp_meta_is_part("consolidated.00.pt") || xfp_meta_is_part("consolidated.00.pth.x"));
	assert_false(xfp_meta_is_part("Consolidated.00.pth") || xfp_meta_is_part("consolidated.0a.pth"));
}

/* ---- params.json ------------------------------------------------------------------------------------- */

#define BASE "\"n_layers\": 1, \"n_heads\": 1"

static void texts_of_params(void **state)
{
	static const struct {
		const char *params, *message;
		uint64_t vocabulary, longest;
		double factor; /* 0: positions are not scaled */
	} cases[] = {
		{ "{\"dim\": 64, " BASE "}", NULL, 127999, 4096, 0 },
		{ "{\"dim\": 64, " BASE "}", NULL, 128000, 8192, 0 },
		{ "{\"dim\": 64, " BASE ", \"norm_eps\": 1e-6}", NULL, 32000, 2048, 0 },
		{ "{\"dim\": 64, " BASE ", \"norm_eps\": 5e-6}", NULL, 32000, 4096, 0 },
		{ "{\"dim\": 64, " BASE ", \"norm_eps\": 0}", NULL, 32000, 4096, 0 },
		{ "{\"dim\": 64, " BASE ", \"norm_eps\": \"1e-6\"}", NULL, 32000, 4096, 0 },
		{ "{\"dim\": 64, " BASE ", \"max_seq_len\": 1}", NULL, 32000, 1, 0 },
		{ "{\"dim\": 64, " BASE ", \"max_seq_len\": 0}", NULL, 32000, 4096, 0 },
		{ "{\"dim\": 64, " BASE ", \"max_position_embeddings\": 77}", NULL, 32000, 77, 0 },
		{ "{\"dim\": 64, " BASE ", \"max_seq_len\": 5, \"max_position_embeddings\": 77}", NULL, 1, 5, 0 },
		{ "{\"dim\": 3072, " BASE ", \"use_scaled_rope\": true}", NULL, 128256, 131072, 32 },
		{ "{\"dim\": 3073, " BASE ", \"head_dim\": 2, \"use_scaled_rope\": true}", NULL, 128256, 131072, 8 },
		{ "{\"dim\": 64, " BASE ", \"use_scaled_rope\": true, \"rope_scaling_factor\": 3}", NULL, 128256,
		  131072, 3 },
		{ "{\"dim\": 3074, " BASE ", \"use_scaled_rope\": true, \"rope_scaling_factor\": -1}", NULL, 1, 131072,
		  8 },
		{ "{\"dim\": 2, \"n_layers\": 1, \"n_heads\": 1, \"n_kv_heads\": 1}", NULL, 9, 4096, 0 },
		{ "{\"dim\": 4294967296, " BASE "}", NULL, 9, 4096, 0 },
		{ "{\"dim\": 4294967297, " BASE "}", "dim, n_layers and n_heads", 0, 0, 0 },
		{ "{\"dim\": 0, " BASE "}", "dim, n_layers and n_heads", 0, 0, 0 },
		{ "{\"dim\": \"64\", " BASE "}", "dim, n_layers and n_heads", 0, 0, 0 },
		{ "{\"dim\": 64, \"n_heads\": 1}", "dim, n_layers and n_heads", 0, 0, 0 },
		{ "{\"dim\": 64, \"n_layers\": 1}", "dim, n_layers and n_heads", 0, 0, 0 },
		{ "{\"dim\": 64, \"n_layers\": 1, \"n_heads\": 3}", "3 heads do not divide a width of 64", 0, 0, 0 },
		{ "{\"dim\": 64, \"n_layers\": 1, \"n_heads\": 64}", "64 heads do not divide a width of 64", 0, 0, 0 },
		{ "{\"dim\": 64, " BASE ", \"head_dim\": 5}", "1 heads do not divide a width of 64", 0, 0, 0 },
		{ "{\"dim\": 64, \"n_layers\": 1, \"n_heads\": 3, \"head_dim\": 6}", NULL, 9, 4096, 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_source_tensor tensors[2] = {
			{ .name = (char *)"embed_tokens.weight", .shape = { cases[i].vocabulary, 64 } },
			{ .name = (char *)"x.gate_proj.weight", .shape = { 16, 64 } },
		};
		struct xfp_checkpoint *c = calloc(1, sizeof *c);
		struct xfp_listing listing = { 0 };
		struct xfp_meta_params p;
		json_t *config, *scaling;
		enum xfp_status status;

		assert_non_null(c);
		c->folder = strdup(*state);
		scratch_write(state, "params.json", cases[i].params, strlen(cases[i].params));
		assert_int_equal(xfp_listing_of_folder(*state, &listing, &err), XFP_OK);
		status = xfp_meta_params_read(&listing, &p, &err);
		xfp_listing_free(&listing);
		if (cases[i].message) {
			if (status != XFP_BAD_INPUT || !strstr(err.text, cases[i].message))
				fail_msg("%s: %s", cases[i].params, status ? err.text : "read");
			xfp_checkpoint_close(c);
			continue;
		}
		if (status)
			fail_msg("%s", err.text);
		c->tensors = tensors;
		c->tensor_count = 2;
		assert_int_equal(xfp_meta_make_config(&p, c, &err), XFP_OK);
		assert_int_equal(c->note_count, p.longest ? 0 : 1);
		c->tensors = NULL;
		c->tensor_count = 0;
		config = json_loads(c->config, 0, NULL);
		scaling = json_object_get(config, "rope_scaling");
		if (json_integer_value(json_object_get(config, "max_position_embeddings")) !=
			    (json_int_t)cases[i].longest ||
		    json_number_value(json_object_get(scaling, "factor")) != cases[i].factor)
			fail_msg("%s: %s", cases[i].params, c->config);
		assert_int_equal(json_integer_value(json_object_get(scaling, "original_max_position_embeddings")),
				 cases[i].factor > 0 ? 8192 : 0);
		assert_true(json_is_true(json_object_get(config, "tie_word_embeddings")));
		json_decref(config);
		xfp_checkpoint_close(c);
	}
}

PROGRAM("test_meta")
{
	const struct CMUnitTest tests[] = {
		scratch_test(parts_are_joined),
		scratch_test(parts_that_contradict),
		cmocka_unit_test(names_of_parts),
		scratch_test(texts_of_params),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
