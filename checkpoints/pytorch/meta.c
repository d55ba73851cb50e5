/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/text/glob.h"
#include "checkpoints/format.h"
#include "schemas/recipe/recipe.h"

#define MAX_PARTS 100u /* two digits */

enum joining {
	SAME,     /* complete in every part */
	ROWS,     /* concatenated rows */
	COLUMNS,  /* concatenated columns */
	EITHER,   /* whichever matches the width of the model */
	LEFT_OUT, /* derived from the config */
};
enum heads {
	NO_HEADS,
	QUERY_HEADS, /* rows of each head are reordered */
	KEY_HEADS,
	VALUE_HEADS, /* as many as key heads, in order */
};

static const struct rule {
	const char *from, *to; /* without "layers.N." */
	bool layer;
	enum joining joining;
	enum heads heads;
} rules[] = {
	{ "tok_embeddings.weight", "model.embed_tokens.weight", false, EITHER, NO_HEADS },
	{ "norm.weight", "model.norm.weight", false, SAME, NO_HEADS },
	{ "output.weight", "lm_head.weight", false, ROWS, NO_HEADS },
	{ "rope.freqs", "", false, LEFT_OUT, NO_HEADS },
	{ "attention_norm.weight", "input_layernorm.weight", true, SAME, NO_HEADS },
	{ "ffn_norm.weight", "post_attention_layernorm.weight", true, SAME, NO_HEADS },
	{ "attention.wq.weight", "self_attn.q_proj.weight", true, ROWS, QUERY_HEADS },
	{ "attention.wk.weight", "self_attn.k_proj.weight", true, ROWS, KEY_HEADS },
	{ "attention.wv.weight", "self_attn.v_proj.weight", true, ROWS, VALUE_HEADS },
	{ "attention.wo.weight", "self_attn.o_proj.weight", true, COLUMNS, NO_HEADS },
	{ "attention.inner_attention.rope.freqs", "", true, LEFT_OUT, NO_HEADS },
	{ "feed_forward.w1.weight", "mlp.gate_proj.weight", true, ROWS, NO_HEADS },
	{ "feed_forward.w2.weight", "mlp.down_proj.weight", true, COLUMNS, NO_HEADS },
	{ "feed_forward.w3.weight", "mlp.up_proj.weight", true, ROWS, NO_HEADS },
};

struct meta_reader {
	const struct xfp_file_form *form;
	struct xfp_checkpoint *checkpoint;
	const struct xfp_listing *listing;
	struct xfp_meta_params params;
	struct xfp_tensor_file files[MAX_PARTS];
	uint32_t numbers[MAX_PARTS]; /* of the parts among the checkpoint's files */
	uint32_t count;
	struct xfp_error *err;
};

bool xfp_meta_is_part(const char *name)
{
	return xfp_glob_matches("consolidated.[0-9][0-9].pth", name);
}

static enum xfp_status bad_tensor(const struct meta_reader *r, uint32_t part, const char *name, const char *what)
{
	return xfp_fail(r->err, XFP_BAD_INPUT, "%s/consolidated.%02u.pth: tensor %s: %s", r->listing->folder, part,
			xfp_printable(name).text, what);
}

/* ---- the parts ------------------------------------------------------------------------------------ */

static enum xfp_status read_parts(struct meta_reader *r)
{
	enum xfp_status status = XFP_OK;
	uint32_t count = 0;
	char name[32];

	for (uint32_t i = 0; i < r->listing->count; i++)
		count += xfp_meta_is_part(r->listing->names[i]);
	for (uint32_t i = 0; !status && i < count; i++) {
		snprintf(name, sizeof name, "consolidated.%02u.pth", i);
		if (!xfp_listing_has(r->listing, name))
			return xfp_fail(r->err, XFP_BAD_INPUT,
					"%s/%s: missing; the parts of a model are numbered from 00, and there %s %u: "
					"download it",
					r->listing->folder, name, count == 1 ? "is" : "are", count);
		status = xfp_shards_add(r->form, r->checkpoint, r->listing, name, &r->files[i], r->err);
		r->numbers[i] = r->checkpoint->file_count - 1;
		r->count++;
	}
	return status;
}

/* Check that all parts have tensors of the same names, dtypes and ranks. */
static enum xfp_status check_parts(const struct meta_reader *r)
{
	const struct xfp_tensor_file *first = &r->files[0];

	for (uint32_t p = 1; p < r->count; p++) {
		const struct xfp_tensor_file *file = &r->files[p];

		for (uint32_t i = 0; i < first->count || i < file->count; i++) {
			const struct xfp_source_tensor *a = i < first->count ? &first->tensors[i] : NULL;
			const struct xfp_source_tensor *b = i < file->count ? &file->tensors[i] : NULL;
			int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);

			if (order < 0)
				return bad_tensor(r, p, a->name,
						  "is not in this part, but in consolidated.00.pth; "
						  "download both again");
			if (order > 0)
				return bad_tensor(r, p, b->name,
						  "is in this part, but not in consolidated.00.pth; "
						  "download both again");
			if (a->dtype != b->dtype || a->rank != b->rank)
				return bad_tensor(r, p, a->name,
						  "has another dtype or number of dimensions than in "
						  "consolidated.00.pth; download both again");
		}
	}
	return XFP_OK;
}

/* ---- tensors -------------------------------------------------------------------------------------- */

/* Find the rule of a tensor, and the prefix of its new name, "model.layers.N.". */
static const struct rule *find_rule(const char *name, char start[64])
{
	const char *rest = name;
	bool layer = !strncmp(name, "layers.", 7);

	*start = 0;
	if (layer) {
		size_t digits = strspn(name + 7, "0123456789");

		if (!digits || digits > 9 || name[7 + digits] != '.')
			return NULL;
		rest = name + 7 + digits + 1;
		snprintf(start, 64, "model.%.*s", (int)(rest - name), name);
	}
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].layer == layer && !strcmp(rules[i].from, rest))
			return &rules[i];
	return NULL;
}

/* Use a tensor of a part as a part of a recipe; returns false if it is stored in another order. */
static bool part_of_tensor(const struct meta_reader *r, uint32_t number, const struct xfp_source_tensor *t,
			   struct xfp_recipe_part *part)
{
	const struct xfp_recipe *recipe = t->recipe;

	if (recipe && (recipe->part_count != 1 || recipe->transposed || recipe->outer))
		return false;
	*part = (struct xfp_recipe_part){ .codec = XFP_CODEC_PLAIN,
					  .version = xfp_codec_version(XFP_CODEC_PLAIN),
					  .rows = t->shape[0],
					  .cols = t->shape[1],
					  .component_count = 1 };
	if (!(part->components = malloc(sizeof *part->components)))
		return true;
	if (recipe) {
		memcpy(part->parameters, recipe->parts[0].parameters, sizeof part->parameters);
		*part->components = recipe->parts[0].components[0];
	} else {
		*part->components = (struct xfp_component){ XFP_COMPONENT_CODES, t->dtype, 0, t->offset, t->bytes };
	}
	part->components->file = r->numbers[number];
	return true;
}

/* Return how many consecutive parts have copies of the same key and value heads: each part has at least one. */
static uint32_t copies_of(const struct meta_reader *r, const struct rule *rule, const struct xfp_source_tensor *t)
{
	const struct xfp_meta_params *p = &r->params;

	if ((rule->heads != KEY_HEADS && rule->heads != VALUE_HEADS) || t->rank != 2 || r->count <= p->kv_heads ||
	    r->count % p->kv_heads || t->shape[0] != p->head_dim)
		return 1;
	return r->count / (uint32_t)p->kv_heads;
}

/* Check that they are copies, by a row of the first layer; opening reads no other weights. */
static enum xfp_status check_copy(const struct meta_reader *r, const struct xfp_source_tensor *t,
				  const struct xfp_component *first, const struct xfp_component *copy, uint32_t part)
{
	const struct xfp_component *both[2] = { first, copy };
	size_t size = t->shape[1] < 4096 ? (size_t)t->shape[1] : 4096;
	unsigned char *rows[2] = { NULL, NULL };
	enum xfp_status status = XFP_OK;

	if (strncmp(t->name, "layers.0.", 9) != 0)
		return XFP_OK;
	for (int i = 0; !status && i < 2; i++) {
		const char *path = r->checkpoint->files[both[i]->file].path;
		struct stat st;
		int fd = -1;

		if (!(rows[i] = malloc(size)))
			status = xfp_no_memory_for(r->err, path);
		else if (!(status = xfp_open_regular(path, &fd, &st, r->err)))
			status = xfp_pread(fd, rows[i], size, both[i]->offset, path, r->err);
		if (fd >= 0)
			close(fd);
	}
	if (!status && memcmp(rows[0], rows[1], size) != 0)
		status = bad_tensor(r, part, t->name,
				    "differs from the previous part, but params.json has fewer heads of "
				    "keys than parts, so it must be a copy; download params.json and the parts again");
	free(rows[0]);
	free(rows[1]);
	return status;
}

static void free_part(struct xfp_recipe_part *part)
{
	free(part->components);
	*part = (struct xfp_recipe_part){ .codec = XFP_CODEC_PLAIN };
}

/* Join the matrices of all parts; `joined` receives the shape. Of `copies` copies the first is used. */
static enum xfp_status join(const struct meta_reader *r, uint32_t number, bool beside, uint32_t copies,
			    struct xfp_source_tensor *joined)
{
	const struct xfp_source_tensor *first = &r->files[0].tensors[number];
	unsigned along = beside ? 1 : 0, across = 1 - along;
	struct xfp_recipe *recipe = calloc(1, sizeof *recipe);

	joined->recipe = recipe;
	if (!recipe || !(recipe->parts = calloc(r->count, sizeof *recipe->parts)))
		return xfp_no_memory_for(r->err, r->listing->folder);
	joined->shape[along] = 0;
	joined->bytes = 0;
	for (uint32_t p = 0; p < r->count; p++) {
		const struct xfp_source_tensor *t = &r->files[p].tensors[number];
		struct xfp_recipe_part *part = &recipe->parts[recipe->part_count];

		if (t->shape[across] != first->shape[across])
			return bad_tensor(r, p, t->name,
					  "does not match that of consolidated.00.pth; "
					  "download both again");
		if (!t->shape[0] || !t->shape[1])
			return bad_tensor(r, p, t->name, "is empty; download the file again");
		if (copies > 1 && t->shape[along] != first->shape[along])
			return bad_tensor(r, p, t->name,
					  "has other rows than that of consolidated.00.pth; "
					  "download both again");
		if (!part_of_tensor(r, p, t, part))
			return bad_tensor(r, p, t->name,
					  "is a transposed view, which is not supported: save "
					  "it with .contiguous()");
		if (!part->components)
			return xfp_no_memory_for(r->err, r->listing->folder);
		if (p % copies) {
			enum xfp_status status = check_copy(r, t, part[-1].components, part->components, p);

			free_part(part);
			if (status)
				return status;
			continue;
		}
		recipe->part_count++;
		if (!xfp_add(joined->shape[along], t->shape[along], &joined->shape[along]) ||
		    !xfp_add(joined->bytes, t->bytes, &joined->bytes))
			return bad_tensor(r, p, t->name, "is too large");
	}
	recipe->beside = beside;
	recipe->rows = joined->shape[0];
	recipe->cols = joined->shape[1];
	joined->file = r->numbers[0];
	joined->offset = recipe->parts[0].components[0].offset;
	return XFP_OK;
}

/* Meta rotates adjacent pairs of a head, Hugging Face its two halves: row 2 j + i of a head becomes row i size / 2 +
 * j. */
static enum xfp_status permute_heads(const struct meta_reader *r, const struct rule *rule, struct xfp_source_tensor *t)
{
	const struct xfp_meta_params *p = &r->params;
	uint64_t heads = rule->heads == QUERY_HEADS ? p->heads : p->kv_heads;

	if (t->shape[0] != heads * p->head_dim)
		return xfp_fail(
			r->err, XFP_BAD_INPUT,
			"%s/params.json: tensor %s: all parts together have %llu rows, but %llu heads of %llu rows "
			"were expected; download params.json and the parts again",
			r->listing->folder, xfp_printable(t->name).text, (unsigned long long)t->shape[0],
			(unsigned long long)heads, (unsigned long long)p->head_dim);
	if (rule->heads != VALUE_HEADS) {
		t->recipe->outer = 2;
		t->recipe->inner = p->head_dim / 2;
	}
	return XFP_OK;
}

static bool side_by_side(const struct meta_reader *r, const struct rule *rule, const struct xfp_source_tensor *t)
{
	return rule->joining == COLUMNS || (rule->joining == EITHER && t->shape[1] != r->params.dim);
}

static enum xfp_status add_tensor(struct meta_reader *r, uint32_t number)
{
	struct xfp_checkpoint *c = r->checkpoint;
	struct xfp_source_tensor *from = &r->files[0].tensors[number], *t = &c->tensors[c->tensor_count];
	char start[64];
	const struct rule *rule = find_rule(from->name, start);
	enum xfp_status status = XFP_OK;

	if (!rule)
		return bad_tensor(r, 0, from->name,
				  "is not from Llama 1 to 3, the only models supported in this "
				  "form; use the Hugging Face form of this one");
	if (rule->joining == LEFT_OUT)
		return XFP_OK;
	*t = *from;
	t->recipe = NULL;
	if (!(t->name = xfp_formatted("%s%s", start, rule->to)))
		return xfp_no_memory_for(r->err, r->listing->folder);
	c->tensor_count++;
	if (from->rank != (rule->joining == SAME ? 1u : 2u))
		return bad_tensor(r, 0, from->name, "has the wrong number of dimensions; download it again");
	if (rule->joining == SAME || (r->count == 1 && (!rule->heads || rule->heads == VALUE_HEADS))) {
		t->recipe = from->recipe;
		from->recipe = NULL;
		t->file = r->numbers[0];
		for (uint32_t i = 0; t->recipe && i < t->recipe->part_count; i++)
			t->recipe->parts[i].components->file = r->numbers[0];
	} else if (!(status = join(r, number, side_by_side(r, rule, from), copies_of(r, rule, from), t)) &&
		   rule->heads) {
		status = permute_heads(r, rule, t);
	}
	return status;
}

enum xfp_status xfp_meta_open(const struct xfp_file_form *form, struct xfp_checkpoint *c,
			      const struct xfp_listing *listing, struct xfp_error *err)
{
	struct meta_reader *r = calloc(1, sizeof *r);
	enum xfp_status status;

	if (!r)
		return xfp_no_memory_for(err, listing->folder);
	*r = (struct meta_reader){ .form = form, .checkpoint = c, .listing = listing, .err = err };
	if ((status = xfp_meta_params_read(listing, &r->params, err)) || (status = read_parts(r)) ||
	    (status = check_parts(r)))
		goto done;
	if (!(c->tensors = malloc(r->files[0].count * sizeof *c->tensors + 1))) {
		status = xfp_no_memory_for(err, listing->folder);
		goto done;
	}
	for (uint32_t i = 0; !status && i < r->files[0].count; i++)
		status = add_tensor(r, i);
	if (!status && !xfp_listing_has(listing, "config.json"))
		status = xfp_meta_make_config(&r->params, c, err);

done:
	for (uint32_t p = 0; p < MAX_PARTS; p++)
		xfp_tensor_file_free(&r->files[p]);
	free(r);
	return status;
}
