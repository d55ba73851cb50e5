/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "cache/manifest_db.h"

/* All strings of a census, freed together. */
struct xfp_census_text {
	struct xfp_census_text *next;
	size_t used, capacity;
	char bytes[];
};
#define TEXT_CAPACITY ((size_t)1 << 18)

#define NONE UINT32_MAX

static const char select_runs[] =
	"SELECT r.run, r.model, r.output, strftime('%s', r.started), strftime('%s', r.ended), r.status, b.sha256, "
	"r.run IN (SELECT run FROM latest_runs) FROM runs AS r LEFT JOIN bundles AS b ON b.run = r.run ORDER BY r.run";
static const char select_uses[] =
	"SELECT run, survey_key, scales_key, outliers_key, fit_key, choice_key, packed_key FROM run_units "
	"ORDER BY run, number";

struct census_reader {
	struct xfp_census *c;
	struct xfp_manifest *m;
	uint32_t item_capacity, run_capacity, other_capacity;
	uint32_t files, next; /* files: items with a file; next: search position among them */
	uint32_t inputs, input_capacity;
	uint32_t at;    /* number of the run whose units are being read */
	uint32_t *seen; /* [items] 1 + the last run found to use the item */
	struct use *uses;
	uint32_t use_count, use_capacity;
	bool failed; /* out of memory */
};

/* ---- memory ------------------------------------------------------------------------------------ */

static const char *keep(struct census_reader *t, const char *text)
{
	struct xfp_census_text *block = t->c->text;
	size_t size = text ? strlen(text) + 1 : 0;
	char *kept;

	if (size <= 1)
		return "";
	if (!block || block->capacity - block->used < size) {
		size_t capacity = size > TEXT_CAPACITY ? size : TEXT_CAPACITY;

		if (!(block = malloc(sizeof *block + capacity))) {
			t->failed = true;
			return "";
		}
		*block = (struct xfp_census_text){ .next = t->c->text, .capacity = capacity };
		t->c->text = block;
	}
	kept = memcpy(block->bytes + block->used, text, size);
	block->used += size;
	return kept;
}

/* Append a zeroed element to an array; NULL if memory runs out. */
static void *grow(struct census_reader *t, void **array, uint32_t *count, uint32_t *capacity, size_t size)
{
	if (*count == *capacity) {
		uint32_t larger = *capacity ? *capacity * 2 : 256;
		void *grown = *count < UINT32_MAX / 2 ? realloc(*array, larger * size) : NULL;

		if (!grown) {
			t->failed = true;
			return NULL;
		}
		*array = grown;
		*capacity = larger;
	}
	return memset((char *)*array + (*count)++ * size, 0, size);
}

/* ---- the folder -------------------------------------------------------------------------------- */

static enum xfp_status note_entry(const struct xfp_store_entry *entry, void *context, struct xfp_error *err)
{
	struct census_reader *t = context;
	struct xfp_census *c = t->c;
	struct xfp_census_other *other;
	struct xfp_census_item *item;

	if (entry->what == XFP_STORE_ARTIFACT) {
		item = grow(t, (void **)&c->items, &c->count, &t->item_capacity, sizeof *item);
		if (!item)
			return xfp_no_memory_for(err, "the list of artifacts");
		memcpy(item->key, entry->key, sizeof item->key);
		item->kind = item->unit = "";
		item->bytes = entry->bytes;
		item->made = entry->modified;
		item->present = true;
		return XFP_OK;
	}
	other = grow(t, (void **)&c->others, &c->other_count, &t->other_capacity, sizeof *other);
	if (!other)
		return xfp_no_memory_for(err, "the list of artifacts");
	*other = (struct xfp_census_other){ entry->what, keep(t, entry->path), entry->bytes };
	return t->failed ? xfp_no_memory_for(err, "the list of artifacts") : XFP_OK;
}

/* ---- the manifest ------------------------------------------------------------------------------ */

/* Call `each` for every row of a query. */
static enum xfp_status rows(struct census_reader *t, const char *sql,
			    void (*each)(struct census_reader *t, sqlite3_stmt *row), struct xfp_error *err)
{
	sqlite3_stmt *row;
	int rc = sqlite3_prepare_v2(t->m->db, sql, -1, &row, NULL);
	enum xfp_status status = XFP_OK;

	if (rc == SQLITE_OK)
		while (!t->failed && (rc = sqlite3_step(row)) == SQLITE_ROW)
			each(t, row);
	if (t->failed)
		status = xfp_no_memory_for(err, "the list of artifacts");
	else if (rc != SQLITE_DONE)
		status = xfp_manifest_fail(t->m, rc, err);
	sqlite3_finalize(row);
	return status;
}

static const char *text(sqlite3_stmt *row, int column)
{
	const char *value = (const char *)sqlite3_column_text(row, column);

	return value ? value : "";
}

/* The number of the item with this key, or UINT32_MAX. */
static uint32_t find(const struct xfp_census *c, const char *key)
{
	uint32_t low = 0, high = c->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(c->items[middle].key, key);

		if (!order)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

static const char *kind_name(struct census_reader *t, const char *kind)
{
	const char *known = xfp_manifest_kind(kind);

	return known ? known : keep(t, kind);
}

/* Rows ascend like the files before `files`, and nearly all have a file; a row whose file is missing is appended, to be
 * sorted in later. */
static void note_artifact(struct census_reader *t, sqlite3_stmt *row)
{
	struct xfp_census *c = t->c;
	const char *key = text(row, 0);
	struct xfp_census_item *item;

	if (strlen(key) != 32)
		return;
	while (t->next < t->files && strcmp(c->items[t->next].key, key) < 0)
		t->next++;
	if (t->next < t->files && !strcmp(c->items[t->next].key, key)) {
		item = &c->items[t->next];
	} else {
		if (!(item = grow(t, (void **)&c->items, &c->count, &t->item_capacity, sizeof *item)))
			return;
		memcpy(item->key, key, sizeof item->key);
		item->bytes = (uint64_t)sqlite3_column_int64(row, 3);
	}
	item->known = true;
	item->kind = kind_name(t, text(row, 1));
	item->unit = keep(t, text(row, 2));
	item->known_bytes = (uint64_t)sqlite3_column_int64(row, 3);
	item->seconds = sqlite3_column_double(row, 4);
}

static void note_weights(struct census_reader *t, sqlite3_stmt *row)
{
	uint32_t number = find(t->c, text(row, 0));

	if (number != NONE)
		t->c->items[number].weights = (uint64_t)sqlite3_column_int64(row, 1);
}

/* Rows are ordered by key, so that an item's inputs are adjacent. */
static void note_input(struct census_reader *t, sqlite3_stmt *row)
{
	uint32_t from = find(t->c, text(row, 0)), to = find(t->c, text(row, 1)), at = t->inputs, *slot;

	if (from == NONE || to == NONE)
		return;
	if (!(slot = grow(t, (void **)&t->c->input, &t->inputs, &t->input_capacity, sizeof *slot)))
		return;
	*slot = to;
	if (!t->c->items[from].inputs++)
		t->c->items[from].input = at;
}

/* A missing folder may be on a disk that is not mounted, or on another host. */
static bool is_gone(const char *output)
{
	const char *slash = strrchr(output, '/');
	struct stat about;
	char *folder;
	bool gone;

	if (*output != '/' || !lstat(output, &about) || errno != ENOENT)
		return false;
	folder = strndup(output, slash > output ? (size_t)(slash - output) : 1);
	gone = folder && !stat(folder, &about) && S_ISDIR(about.st_mode);
	free(folder);
	return gone;
}

static void note_run(struct census_reader *t, sqlite3_stmt *row)
{
	struct xfp_census *c = t->c;
	struct xfp_census_run *run = grow(t, (void **)&c->runs, &c->run_count, &t->run_capacity, sizeof *run);

	if (!run)
		return;
	*run = (struct xfp_census_run){
		.run = sqlite3_column_int64(row, 0),
		.model = keep(t, text(row, 1)),
		.output = keep(t, text(row, 2)),
		.started = sqlite3_column_int64(row, 3),
		.ended = sqlite3_column_int64(row, 4),
		.status = sqlite3_column_type(row, 5) == SQLITE_NULL ? -1 : sqlite3_column_int(row, 5),
		.bundle = keep(t, text(row, 6)),
		.latest = sqlite3_column_int(row, 7),
	};
	run->gone = run->output && is_gone(run->output);
}

/* ---- uses -------------------------------------------------------------------------------------- */

struct use {
	uint32_t item, run;
};

/* Record that the run at t->at uses an item and the inputs that the item was made from. */
static void use(struct census_reader *t, uint32_t number)
{
	struct xfp_census_item *item = &t->c->items[number];
	struct use *one;

	if (t->seen[number] == t->at + 1)
		return;
	t->seen[number] = t->at + 1;
	if (!(one = grow(t, (void **)&t->uses, &t->use_count, &t->use_capacity, sizeof *one)))
		return;
	*one = (struct use){ number, t->at };
	item->runs++;
	item->current |= t->c->runs[t->at].latest;
	for (uint32_t i = 0; i < item->inputs; i++)
		use(t, t->c->input[item->input + i]);
}

/* Rows are ordered by run. */
static void note_use(struct census_reader *t, sqlite3_stmt *row)
{
	int64_t run = sqlite3_column_int64(row, 0);

	while (t->at < t->c->run_count && t->c->runs[t->at].run < run)
		t->at++;
	if (t->at == t->c->run_count || t->c->runs[t->at].run != run)
		return;
	for (int column = 1; column < sqlite3_column_count(row); column++) {
		uint32_t number = find(t->c, text(row, column));

		if (number != NONE)
			use(t, number);
	}
}

/* Regroup the list of uses by item. */
static enum xfp_status sort_uses(struct census_reader *t, struct xfp_error *err)
{
	struct xfp_census *c = t->c;
	uint32_t total = 0;

	if (!(c->use = malloc((t->use_count + (size_t)1) * sizeof *c->use)))
		return xfp_no_memory_for(err, "the list of artifacts");
	for (uint32_t i = 0; i < c->count; i++) {
		c->items[i].run = total;
		total += c->items[i].runs;
		c->items[i].runs = 0;
	}
	for (uint32_t i = 0; i < t->use_count; i++) {
		struct xfp_census_item *item = &c->items[t->uses[i].item];

		c->use[item->run + item->runs++] = t->uses[i].run;
	}
	return XFP_OK;
}

/* ---- the whole census -------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct xfp_census_item *)a)->key, ((const struct xfp_census_item *)b)->key);
}

/* Items added after the folder was listed may have a file by now. */
static enum xfp_status look_again(const struct census_reader *t, const struct xfp_store *store, struct xfp_error *err)
{
	for (uint32_t i = t->files; i < t->c->count; i++) {
		struct xfp_census_item *item = &t->c->items[i];
		char *path = xfp_store_path(store, item->key);
		struct stat st;

		if (!path)
			return xfp_no_memory_for(err, "the list of artifacts");
		if (!lstat(path, &st)) {
			item->present = true;
			item->bytes = (uint64_t)st.st_size;
			item->made = st.st_mtime;
		}
		free(path);
	}
	return XFP_OK;
}

static enum xfp_status read_manifest(struct census_reader *t, const struct xfp_store *store, struct xfp_error *err)
{
	struct xfp_census *c = t->c;
	enum xfp_status status;

	t->files = c->count;
	if ((status = rows(t, "SELECT key, kind, unit, bytes, seconds FROM artifacts ORDER BY key", note_artifact,
			   err)) ||
	    (status = look_again(t, store, err)))
		return status;
	if (c->count > t->files)
		qsort(c->items, c->count, sizeof *c->items, by_key);
	if (!(t->seen = calloc(c->count + (size_t)1, sizeof *t->seen)))
		return xfp_no_memory_for(err, "the list of artifacts");
	(void)((status = rows(t, "SELECT key, matrices * \"rows\" * cols FROM packed", note_weights, err)) ||
	       (status = rows(t, "SELECT key, input FROM inputs ORDER BY key, name", note_input, err)) ||
	       (status = rows(t, select_runs, note_run, err)) || (status = rows(t, select_uses, note_use, err)));
	return status ? status : sort_uses(t, err);
}

/* Read everything in one transaction, for a consistent snapshot while others write. */
static enum xfp_status load_manifest(struct census_reader *t, const struct xfp_store *store, struct xfp_error *err)
{
	int rc = sqlite3_exec(t->m->db, "BEGIN", NULL, NULL, NULL);
	enum xfp_status status = rc == SQLITE_OK ? read_manifest(t, store, err) : xfp_manifest_fail(t->m, rc, err);

	sqlite3_exec(t->m->db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

enum xfp_status xfp_census_take(const struct xfp_store *store, struct xfp_manifest *manifest, struct xfp_census *census,
				struct xfp_error *err)
{
	struct census_reader t = { .c = census, .m = manifest };
	enum xfp_status status;

	*census = (struct xfp_census){ 0 };
	status = xfp_store_walk(store, note_entry, &t, err);
	if (!status && manifest)
		status = load_manifest(&t, store, err);
	free(t.uses);
	free(t.seen);
	if (status)
		xfp_census_free(census);
	return status;
}

void xfp_census_free(struct xfp_census *census)
{
	while (census->text) {
		struct xfp_census_text *next = census->text->next;

		free(census->text);
		census->text = next;
	}
	free(census->items);
	free(census->runs);
	free(census->others);
	free(census->use);
	free(census->input);
	*census = (struct xfp_census){ 0 };
}

/* ---- asking ------------------------------------------------------------------------------------ */

enum xfp_status xfp_census_find(const struct xfp_census *census, const char *prefix, uint32_t *number,
				struct xfp_error *err)
{
	size_t length = strlen(prefix);
	uint32_t found = NONE;

	if (length > 32 || length < 4 || strspn(prefix, "0123456789abcdef") != length)
		return xfp_fail(err, XFP_USAGE,
				"'%s' is not a key; give 4 to 32 hexadecimal digits, as xfp cache ls prints them",
				xfp_printable(prefix).text);
	for (uint32_t i = 0; i < census->count; i++) {
		if (strncmp(census->items[i].key, prefix, length))
			continue;
		if (found != NONE)
			return xfp_fail(err, XFP_USAGE, "more than one key begins with %s: %s and %s", prefix,
					census->items[found].key, census->items[i].key);
		found = i;
	}
	if (found == NONE)
		return xfp_fail(err, XFP_FAILED, "no artifact has a key that begins with %s", prefix);
	*number = found;
	return XFP_OK;
}

int64_t xfp_census_last_use(const struct xfp_census *census, const struct xfp_census_item *item)
{
	int64_t last = item->made;

	if (item->runs) {
		const struct xfp_census_run *run = &census->runs[census->use[item->run + item->runs - 1]];

		if (run->started > last)
			last = run->started;
	}
	return last;
}
