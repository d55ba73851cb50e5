/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/envelope.h"
#include "schemas/h5.h"
#include "schemas/ledger/tables.h"

/* ---- the string pool --------------------------------------------------------------------------- */

/* Texts that many tensors share (reasons) are stored once as long as they are among the last few; a stage then reads
 * the strings of its own tensors in one range. */
#define RECENT 8

struct pool {
	char *bytes;
	size_t used, capacity;
	struct xfp_ledger_text recent[RECENT];
	unsigned next;
	bool failed; /* out of memory, or over 4 GiB */
};

static struct xfp_ledger_text pool_add(struct pool *pool, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	struct xfp_ledger_text at = { (uint32_t)pool->used, (uint32_t)length };

	if (pool->failed || !length)
		return (struct xfp_ledger_text){ 0, 0 };
	if (length > UINT32_MAX - pool->used) {
		pool->failed = true;
		return at;
	}
	if (pool->capacity - pool->used < length) {
		size_t capacity = (pool->used + length) * 2;
		char *bytes = realloc(pool->bytes, capacity);

		if (!bytes) {
			pool->failed = true;
			return at;
		}
		pool->bytes = bytes;
		pool->capacity = capacity;
	}
	memcpy(pool->bytes + pool->used, text, length);
	pool->used += length;
	return at;
}

static struct xfp_ledger_text pool_share(struct pool *pool, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	struct xfp_ledger_text at;

	for (unsigned i = 0; length && i < RECENT; i++) {
		at = pool->recent[i];
		if (at.length == length && !memcmp(pool->bytes + at.offset, text, length))
			return at;
	}
	at = pool_add(pool, text);
	if (!pool->failed)
		pool->recent[pool->next++ % RECENT] = at;
	return at;
}

/* ---- records ----------------------------------------------------------------------------------- */

static void *file_records(const struct xfp_ledger *l, struct pool *pool)
{
	struct xfp_file_record *out = calloc(l->file_count + 1u, sizeof *out);

	for (uint32_t i = 0; out && i < l->file_count; i++) {
		const struct xfp_source_file *f = &l->files[i];

		out[i] = (struct xfp_file_record){
			.name = pool_add(pool, f->name),
			.path = pool_add(pool, f->path),
			.device = f->identity.device,
			.inode = f->identity.inode,
			.size = f->identity.size,
			.mtime_ns = f->identity.mtime_ns,
			.ctime_ns = f->identity.ctime_ns,
		};
	}
	return out;
}

static void *tensor_records(const struct xfp_ledger *l, struct pool *pool)
{
	struct xfp_tensor_record *out = calloc(l->tensor_count + (size_t)1, sizeof *out);
	uint64_t recipes = 0;

	for (uint32_t i = 0; out && i < l->tensor_count; i++) {
		const struct xfp_ledger_tensor *t = &l->tensors[i];

		out[i] = (struct xfp_tensor_record){
			.name = pool_add(pool, t->name),
			.reason = pool_share(pool, t->reason),
			.dtype = t->dtype,
			.class_ = t->class_,
			.fate = t->fate,
			.rank = t->rank,
			.file = t->file,
			.tied = t->tied,
			.offset = t->offset,
			.bytes = t->bytes,
			.recipe = t->recipe ? recipes++ : XFP_NO_RECIPE,
		};
		memcpy(out[i].shape, t->shape, sizeof out[i].shape);
	}
	return out;
}

/* Count the recipes, parts and components. */
static void count_recipes(const struct xfp_ledger *l, uint64_t count[XFP_LEDGER_TABLES])
{
	for (uint32_t i = 0; i < l->tensor_count; i++) {
		const struct xfp_recipe *recipe = l->tensors[i].recipe;

		count[XFP_LEDGER_RECIPES] += recipe != NULL;
		count[XFP_LEDGER_PARTS] += recipe ? recipe->part_count : 0;
		for (uint32_t p = 0; recipe && p < recipe->part_count; p++)
			count[XFP_LEDGER_COMPONENTS] += recipe->parts[p].component_count;
	}
}

static void *recipe_records(const struct xfp_ledger *l, uint64_t count)
{
	struct xfp_recipe_record *out = calloc(count + 1, sizeof *out);
	uint64_t at = 0, parts = 0;

	for (uint32_t i = 0; out && i < l->tensor_count; i++) {
		const struct xfp_recipe *r = l->tensors[i].recipe;

		if (!r)
			continue;
		out[at++] = (struct xfp_recipe_record){ r->rows,  r->cols,   r->transposed, r->outer,
							r->inner, r->beside, parts,         r->part_count };
		parts += r->part_count;
	}
	return out;
}

static void *part_records(const struct xfp_ledger *l, uint64_t count)
{
	struct xfp_part_record *out = calloc(count + 1, sizeof *out);
	uint64_t at = 0, components = 0;

	for (uint32_t i = 0; out && i < l->tensor_count; i++) {
		const struct xfp_recipe *r = l->tensors[i].recipe;

		for (uint32_t p = 0; r && p < r->part_count; p++, at++) {
			const struct xfp_recipe_part *part = &r->parts[p];

			out[at] = (struct xfp_part_record){
				.codec = part->codec,
				.version = part->version,
				.rows = part->rows,
				.cols = part->cols,
				.first_component = components,
				.components = part->component_count,
			};
			memcpy(out[at].parameters, part->parameters, sizeof out[at].parameters);
			components += part->component_count;
		}
	}
	return out;
}

static void *component_records(const struct xfp_ledger *l, uint64_t count)
{
	struct xfp_component_record *out = calloc(count + 1, sizeof *out);
	uint64_t at = 0;

	for (uint32_t i = 0; out && i < l->tensor_count; i++) {
		const struct xfp_recipe *r = l->tensors[i].recipe;

		for (uint32_t p = 0; r && p < r->part_count; p++)
			for (uint32_t k = 0; k < r->parts[p].component_count; k++) {
				const struct xfp_component *c = &r->parts[p].components[k];

				out[at++] = (struct xfp_component_record){ c->role, c->dtype, c->file, c->offset,
									   c->bytes };
			}
	}
	return out;
}

static void *unit_records(const struct xfp_ledger *l, struct pool *pool)
{
	struct xfp_unit_record *out = calloc(l->unit_count + (size_t)1, sizeof *out);

	for (uint32_t i = 0; out && i < l->unit_count; i++) {
		const struct xfp_ledger_unit *u = &l->units[i];

		out[i] = (struct xfp_unit_record){
			.name = pool_add(pool, u->name),
			.role = pool_add(pool, u->role),
			.class_ = u->class_,
			.plan = u->plan,
			.dtype = u->dtype,
			.experts = u->experts,
			.rows = u->rows,
			.cols = u->cols,
			.first_matrix = u->first_matrix,
		};
	}
	return out;
}

static void *matrix_records(const struct xfp_ledger *l)
{
	struct xfp_matrix_record *out = calloc(l->matrix_count + (size_t)1, sizeof *out);

	for (uint32_t i = 0; out && i < l->matrix_count; i++) {
		const struct xfp_ledger_matrix *m = &l->matrices[i];

		out[i] = (struct xfp_matrix_record){
			m->tensor, m->base, m->rows, m->cols, m->row_stride, m->col_stride
		};
	}
	return out;
}

static void *extra_records(const struct xfp_ledger *l, struct pool *pool)
{
	struct xfp_extra_record *out = calloc(l->extra_count + (size_t)1, sizeof *out);

	for (uint32_t i = 0; out && i < l->extra_count; i++) {
		bool synthesized = xfp_ledger_extra_is_synthesized(l, i);

		out[i].name = pool_add(pool, l->extras[i]);
		out[i].path = pool_add(pool, synthesized ? l->synthesized[i].path : "");
		out[i].digest = pool_add(pool, synthesized ? l->synthesized[i].hex : "");
	}
	return out;
}

static enum xfp_status write_tables(struct xfp_artifact *a, void *const data[], const uint64_t count[],
				    struct xfp_error *err)
{
	for (unsigned i = 0; i < XFP_LEDGER_TABLES; i++) {
		hid_t type = xfp_ledger_record_type(i);
		enum xfp_status status;

		if (type < 0)
			return xfp_no_memory_for(err, a->path);
		status = xfp_h5_write(a, xfp_ledger_table_name(i), type, count[i], data[i], err);
		H5Tclose(type);
		if (status)
			return status;
	}
	return XFP_OK;
}

static enum xfp_status write_attributes(struct xfp_artifact *a, const struct xfp_ledger *l, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_h5_write_text(a, "kind", XFP_LEDGER_KIND, err)) ||
	       (status = xfp_h5_write_u64(a, "version", XFP_LEDGER_VERSION, err)) ||
	       (status = xfp_h5_write_text(a, "model", l->model ? l->model : "", err)) ||
	       (status = xfp_h5_write_text(a, "family", l->family ? l->family : "", err)) ||
	       (status = xfp_h5_write_text(a, "format", l->format ? l->format : "", err)) ||
	       (status = xfp_h5_write_text(a, "packed", l->packed ? l->packed : "", err)));
	return status;
}

enum xfp_status xfp_ledger_write(const char *path, const struct xfp_ledger *l, struct xfp_error *err)
{
	struct xfp_pending pending = { .fd = -1 };
	struct xfp_artifact a = { .file = -1, .writing = true };
	uint64_t count[XFP_LEDGER_TABLES] = {
		[XFP_LEDGER_FILES] = l->file_count,   [XFP_LEDGER_TENSORS] = l->tensor_count,
		[XFP_LEDGER_UNITS] = l->unit_count,   [XFP_LEDGER_MATRICES] = l->matrix_count,
		[XFP_LEDGER_EXTRAS] = l->extra_count,
	};
	struct pool pool = { 0 };
	void *data[XFP_LEDGER_TABLES];
	enum xfp_status status;

	count_recipes(l, count);
	data[XFP_LEDGER_FILES] = file_records(l, &pool);
	data[XFP_LEDGER_EXTRAS] = extra_records(l, &pool);
	data[XFP_LEDGER_UNITS] = unit_records(l, &pool);
	data[XFP_LEDGER_TENSORS] = tensor_records(l, &pool);
	data[XFP_LEDGER_RECIPES] = recipe_records(l, count[XFP_LEDGER_RECIPES]);
	data[XFP_LEDGER_PARTS] = part_records(l, count[XFP_LEDGER_PARTS]);
	data[XFP_LEDGER_COMPONENTS] = component_records(l, count[XFP_LEDGER_COMPONENTS]);
	data[XFP_LEDGER_MATRICES] = matrix_records(l);
	data[XFP_LEDGER_STRINGS] = pool.bytes;
	count[XFP_LEDGER_STRINGS] = pool.used;
	for (unsigned i = 0; i < XFP_LEDGER_STRINGS; i++)
		if (!data[i] || pool.failed) {
			status = xfp_fail(err, XFP_FAILED, "%s: out of memory for %u tensors", path, l->tensor_count);
			goto done;
		}
	if ((status = xfp_pending_open(path, &pending, err)))
		goto done;
	a.path = pending.path;
	if ((a.file = xfp_h5_create_file(a.path, XFP_ENVELOPE_BYTES)) < 0)
		status = xfp_fail_errno(err, errno ? errno : EIO, "%s: cannot create", path);
	else if (!(status = write_attributes(&a, l, err)))
		status = write_tables(&a, data, count, err);
	errno = 0;
	if (a.file >= 0 && H5Fclose(a.file) < 0 && !status)
		status = xfp_fail_errno(err, errno ? errno : EIO, "%s: cannot write", path);
	if (!status)
		status = xfp_envelope_seal(a.path, err);
	if (status)
		xfp_pending_discard(&pending);
	else
		status = xfp_pending_publish(&pending, true, err);
done:
	for (unsigned i = 0; i < XFP_LEDGER_TABLES; i++)
		free(data[i]);
	return status;
}
