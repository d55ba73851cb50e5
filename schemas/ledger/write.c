/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/envelope.h"
#include "schemas/h5.h"
#include "schemas/ledger/tables.h"

/* ---- the string pool --------------------------------------------------------------------------- */

/* Texts that many tensors share (reasons) are stored once while they stay among the last few; a
 * stage then reads its own tensors' strings in one range. */
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
		const struct xfp_ledger_file *f = &l->files[i];

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
		};
		memcpy(out[i].shape, t->shape, sizeof out[i].shape);
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
	struct xfp_ledger_text *out = calloc(l->extra_count + (size_t)1, sizeof *out);

	for (uint32_t i = 0; out && i < l->extra_count; i++)
		out[i] = pool_add(pool, l->extras[i]);
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
	       (status = xfp_h5_write_text(a, "format", l->format ? l->format : "", err)));
	return status;
}

enum xfp_status xfp_ledger_write(const char *path, const struct xfp_ledger *l, struct xfp_error *err)
{
	struct xfp_pending pending = { .fd = -1 };
	struct xfp_artifact a = { .file = -1, .writing = true };
	uint64_t count[XFP_LEDGER_TABLES] = {
		l->file_count, l->tensor_count, l->unit_count, l->matrix_count, l->extra_count, 0,
	};
	struct pool pool = { 0 };
	void *data[XFP_LEDGER_TABLES];
	enum xfp_status status;

	data[XFP_LEDGER_FILES] = file_records(l, &pool);
	data[XFP_LEDGER_EXTRAS] = extra_records(l, &pool);
	data[XFP_LEDGER_UNITS] = unit_records(l, &pool);
	data[XFP_LEDGER_TENSORS] = tensor_records(l, &pool);
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
