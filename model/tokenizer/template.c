/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/template.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"

static void add_id(struct xfp_part_reader *r, const char *where, const char *name, const json_t *id,
		   struct xfp_token_ids *to)
{
	json_int_t number = json_is_integer(id) ? json_integer_value(id) : -1;

	if (number < 0 || number >= INT32_MAX)
		xfp_part_refuse(r, where, "%s has an invalid id", xfp_printable(name).text);
	else if (!r->status && !xfp_ids_add(to, (uint32_t)number))
		r->status = xfp_no_memory_for(r->err, r->file);
}

/* The ids of a special token, from a separate member. */
static void add_special(struct xfp_part_reader *r, const char *where, const json_t *tokens, const json_t *piece,
			struct xfp_token_ids *to)
{
	const char *name = xfp_part_text(r, where, piece, "id", NULL);
	const json_t *ids = json_object_get(json_object_get(tokens, name), "ids");

	if (!r->status && !json_array_size(ids))
		xfp_part_refuse(r, where, "special_tokens has no ids of %s", xfp_printable(name).text);
	for (size_t i = 0; !r->status && i < json_array_size(ids); i++)
		add_id(r, where, name, json_array_get(ids, i), to);
}

/* Tokens before a text precede those of other processors. Takes ownership of `before`. */
static void put_before(struct xfp_part_reader *r, struct xfp_template *around, struct xfp_token_ids before)
{
	for (size_t i = 0; !r->status && i < around->before.count; i++)
		if (!xfp_ids_add(&before, around->before.id[i]))
			r->status = xfp_no_memory_for(r->err, r->file);
	free(around->before.id);
	around->before = before;
}

static void add_template(struct xfp_part_reader *r, const char *where, const json_t *value, struct xfp_template *around)
{
	static const char *const names[] = { "type", "single", "pair", "special_tokens", NULL };
	const json_t *single = xfp_part_list(r, where, value, "single"), *tokens;
	struct xfp_token_ids before = { 0 };
	bool text = false;

	xfp_part_only(r, where, value, names);
	tokens = json_object_get(value, "special_tokens");
	for (size_t i = 0; !r->status && i < json_array_size(single); i++) {
		const json_t *piece = json_array_get(single, i), *special = json_object_get(piece, "SpecialToken"),
			     *sequence = json_object_get(piece, "Sequence");

		if (json_object_size(piece) != 1 || (!special && !sequence))
			xfp_part_refuse(r, where, "single[%zu] is neither a SpecialToken nor a Sequence", i);
		else if (special)
			add_special(r, where, tokens, special, text ? &around->after : &before);
		else if (text || strcmp(xfp_part_text(r, where, sequence, "id", NULL), "A"))
			xfp_part_refuse(r, where, "single[%zu]: the text must occur once, as A", i);
		else
			text = true;
	}
	if (!r->status && !text)
		xfp_part_refuse(r, where, "single does not contain the text");
	put_before(r, around, before);
}

/* One token on each side, as ["[SEP]", 102]. */
static void add_pair(struct xfp_part_reader *r, const char *where, const json_t *value, struct xfp_template *around)
{
	static const char *const names[] = { "type", "sep", "cls", "trim_offsets", "add_prefix_space", NULL };
	struct xfp_token_ids before = { 0 };

	xfp_part_only(r, where, value, names);
	add_id(r, where, "cls", json_array_get(json_object_get(value, "cls"), 1), &before);
	add_id(r, where, "sep", json_array_get(json_object_get(value, "sep"), 1), &around->after);
	put_before(r, around, before);
}

static void add(struct xfp_part_reader *r, const char *where, const json_t *value, void *around, int depth)
{
	static const char *const level[] = { "type", "add_prefix_space", "trim_offsets", "use_regex", NULL };
	const char *type = xfp_part_type(r, where, value);

	if (!strcmp(type, "Sequence")) {
		xfp_part_sequence(r, where, value, "processors", add, around, depth);
	} else if (!strcmp(type, "ByteLevel")) {
		/* This concerns offsets of tokens, not ids. */
		xfp_part_only(r, where, value, level);
	} else if (!strcmp(type, "TemplateProcessing")) {
		add_template(r, where, value, around);
	} else if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing")) {
		add_pair(r, where, value, around);
	} else {
		xfp_part_refuse(r, where,
				"%s is not supported: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel "
				"and Sequence are",
				xfp_printable(type).text);
	}
}

void xfp_template_read(struct xfp_part_reader *r, const json_t *value, struct xfp_template *around)
{
	if (r->status || !value || json_is_null(value))
		return;
	add(r, "post_processor", value, around, 0);
	if (r->status) {
		free(around->before.id);
		free(around->after.id);
		*around = (struct xfp_template){ 0 };
	}
}
