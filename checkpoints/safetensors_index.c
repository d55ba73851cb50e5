/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/safetensors_index.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/sort.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/json_reader.h"

#define INDEX_MAX 100000000 /* bytes; the same limit as for a shard's header */

struct index_parser {
	const char *path;
	const struct xfp_file_form *form;
	struct xfp_json json;
	struct unplaced { /* an entry whose shard has no number yet */
		char *tensor;
		uint32_t run;
	} * pairs;
	uint32_t count, capacity;
	struct shard_run { /* consecutive entries of one shard: few, because entries are sorted by layer */
		char *shard;
		uint32_t number;
	} * runs;
	uint32_t run_count, run_capacity;
	struct xfp_error *err;
};

static enum xfp_status bad_json(struct index_parser *p)
{
	return xfp_fail(p->err, XFP_BAD_INPUT, "%s: not a %s index: %s at byte %td; download it again", p->path,
			p->form->what, p->json.error, p->json.at - p->json.start);
}

/* Return whether a name is a plain file name, without folders. */
static bool is_plain(const char *name)
{
	return name[0] && name[0] != '.' && !strpbrk(name, "/\\") && !strstr(name, "..");
}

static enum xfp_status add_run(struct index_parser *p, const char *tensor, const char *shard)
{
	struct shard_run *grown;

	if (!is_plain(shard))
		return xfp_fail(p->err, XFP_BAD_INPUT,
				"%s: tensor %s: the index points to %s, which is not a plain file name; do not trust"
				" this checkpoint",
				p->path, xfp_printable(tensor).text, xfp_printable(shard).text);
	if (!xfp_ends_with(shard, p->form->suffix))
		return xfp_fail(p->err, XFP_BAD_INPUT,
				"%s: tensor %s: the index points to %s, which is not a %s file; not supported", p->path,
				xfp_printable(tensor).text, xfp_printable(shard).text, p->form->what);
	if (p->run_count == p->run_capacity) {
		p->run_capacity = p->run_capacity ? p->run_capacity * 2 : 64;
		grown = realloc(p->runs, p->run_capacity * sizeof *grown);
		if (!grown)
			return xfp_no_memory_for(p->err, p->path);
		p->runs = grown;
	}
	p->runs[p->run_count] = (struct shard_run){ .shard = strdup(shard), .number = p->run_count };
	return p->runs[p->run_count++].shard ? XFP_OK : xfp_no_memory_for(p->err, p->path);
}

static enum xfp_status add_pair(struct index_parser *p, const char *tensor, const char *shard)
{
	enum xfp_status status = XFP_OK;
	struct unplaced *grown;

	if (!p->run_count || strcmp(p->runs[p->run_count - 1].shard, shard))
		status = add_run(p, tensor, shard);
	if (status)
		return status;
	if (p->count == p->capacity) {
		p->capacity = p->capacity ? p->capacity * 2 : 64;
		grown = realloc(p->pairs, p->capacity * sizeof *grown);
		if (!grown)
			return xfp_no_memory_for(p->err, p->path);
		p->pairs = grown;
	}
	p->pairs[p->count] = (struct unplaced){ .tensor = strdup(tensor), .run = p->run_count - 1 };
	return p->pairs[p->count++].tensor ? XFP_OK : xfp_no_memory_for(p->err, p->path);
}

static enum xfp_status parse_weight_map(struct index_parser *p)
{
	char tensor[XFP_MAX_NAME + 1], shard[NAME_MAX + 1];
	size_t tensor_length, shard_length;
	enum xfp_status status;

	xfp_json_open(&p->json, '{');
	while (xfp_json_next(&p->json, '}') && xfp_json_key(&p->json, tensor, sizeof tensor, &tensor_length) &&
	       xfp_json_string(&p->json, shard, sizeof shard, &shard_length)) {
		if (tensor_length >= sizeof tensor || shard_length >= sizeof shard)
			return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: its name or its file's name is too long",
					p->path, xfp_printable(tensor).text);
		if ((status = add_pair(p, tensor, shard)))
			return status;
	}
	return p->json.error ? bad_json(p) : XFP_OK;
}

static enum xfp_status parse(struct index_parser *p)
{
	bool seen = false;
	enum xfp_status status;
	char key[64];
	size_t length;

	xfp_json_open(&p->json, '{');
	while (xfp_json_next(&p->json, '}') && xfp_json_key(&p->json, key, sizeof key, &length)) {
		/* metadata.total_size is often wrong, and no reader checks it. */
		if (length != strlen("weight_map") || strcmp(key, "weight_map")) {
			xfp_json_skip(&p->json);
			continue;
		}
		if (seen)
			return xfp_fail(p->err, XFP_BAD_INPUT, "%s: weight_map is given twice; download it again",
					p->path);
		seen = true;
		if ((status = parse_weight_map(p)))
			return status;
	}
	if (!xfp_json_end(&p->json))
		return bad_json(p);
	if (!p->count)
		return xfp_fail(p->err, XFP_BAD_INPUT, "%s: its weight_map lists no tensor; download it again",
				p->path);
	return XFP_OK;
}

static int by_shard(const void *a, const void *b)
{
	return strcmp(((const struct shard_run *)a)->shard, ((const struct shard_run *)b)->shard);
}

static int by_tensor(const void *a, const void *b)
{
	return strcmp(((const struct xfp_index_entry *)a)->tensor, ((const struct xfp_index_entry *)b)->tensor);
}

/* Number the shards; ownership of names moves from pairs and runs to the index. */
static enum xfp_status build(struct index_parser *p, struct xfp_index *index)
{
	uint32_t *number = malloc(p->run_count * sizeof *number);

	index->entries = malloc(p->count * sizeof *index->entries);
	index->shards = malloc(p->run_count * sizeof *index->shards);
	if (!number || !index->entries || !index->shards) {
		free(number);
		return xfp_no_memory_for(p->err, p->path);
	}
	xfp_sort(p->runs, p->run_count, sizeof *p->runs, by_shard);
	for (uint32_t i = 0; i < p->run_count; i++) {
		struct shard_run *run = &p->runs[i];

		if (!i || strcmp(index->shards[index->shard_count - 1], run->shard)) {
			index->shards[index->shard_count++] = run->shard;
			run->shard = NULL;
		}
		number[run->number] = index->shard_count - 1;
	}
	for (uint32_t i = 0; i < p->count; i++) {
		index->entries[index->entry_count++] =
			(struct xfp_index_entry){ p->pairs[i].tensor, number[p->pairs[i].run], false };
		p->pairs[i].tensor = NULL;
	}
	free(number);
	xfp_sort(index->entries, index->entry_count, sizeof *index->entries, by_tensor);
	for (uint32_t i = 1; i < index->entry_count; i++) {
		if (!strcmp(index->entries[i - 1].tensor, index->entries[i].tensor))
			return xfp_fail(p->err, XFP_BAD_INPUT, "%s: tensor %s: is listed twice; download it again",
					p->path, xfp_printable(index->entries[i].tensor).text);
	}
	return XFP_OK;
}

enum xfp_status xfp_index_read(const struct xfp_place *place, const struct xfp_file_form *form, struct xfp_index *out,
			       struct xfp_error *err)
{
	struct index_parser p = { .path = place->shown, .form = form, .err = err };
	struct xfp_index index = { 0 };
	enum xfp_status status;
	char *text = NULL;
	size_t size;

	if ((status = xfp_place_slurp(place, INDEX_MAX, &text, &size, err)))
		goto done;
	xfp_json_init(&p.json, text, size);
	if ((status = parse(&p)) || (status = build(&p, &index)))
		goto done;
	*out = index;
	index = (struct xfp_index){ 0 };

done:
	xfp_index_free(&index);
	for (uint32_t i = 0; i < p.count; i++)
		free(p.pairs[i].tensor);
	for (uint32_t i = 0; i < p.run_count; i++)
		free(p.runs[i].shard);
	free(p.pairs);
	free(p.runs);
	free(text);
	return status;
}

void xfp_index_free(struct xfp_index *index)
{
	for (uint32_t i = 0; i < index->entry_count; i++)
		free(index->entries[i].tensor);
	free(index->entries);
	xfp_names_free(index->shards, index->shard_count);
	*index = (struct xfp_index){ 0 };
}

struct xfp_index_entry *xfp_index_find(const struct xfp_index *index, const char *tensor)
{
	struct xfp_index_entry wanted = { .tensor = (char *)(uintptr_t)tensor };

	return bsearch(&wanted, index->entries, index->entry_count, sizeof wanted, by_tensor);
}
