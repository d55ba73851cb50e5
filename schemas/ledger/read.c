/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/filesystem.h"
#include "schemas/envelope.h"
#include "schemas/h5.h"
#include "schemas/ledger/recipes.h"
#include "schemas/recipe/recipe.h"

/* ---- reading ----------------------------------------------------------------------------------- */

/* State of a reader of the whole ledger or of one unit. */
struct ledger_reader {
	struct xfp_artifact a;
	uint64_t total[XFP_LEDGER_TABLES];
	struct xfp_ledger_slice slice[XFP_LEDGER_TABLES];
	uint64_t first_unit, first_matrix;
	uint64_t *tensor; /* numbers of the tensors to read, ascending */
	struct xfp_ledger *l;
};

static enum xfp_status read_header(struct ledger_reader *r, struct xfp_error *err)
{
	enum xfp_status status;
	uint64_t version = 0;
	char *kind = NULL;

	if ((status = xfp_h5_read_text(&r->a, "kind", &kind, err)) ||
	    (status = xfp_h5_read_u64(&r->a, "version", &version, err)))
		goto done;
	if (strcmp(kind, XFP_LEDGER_KIND) || version != XFP_LEDGER_VERSION) {
		status = xfp_h5_damaged(&r->a, err, "not a ledger of version %d", XFP_LEDGER_VERSION);
		goto done;
	}
	if ((status = xfp_h5_read_text(&r->a, "model", &r->l->model, err)) ||
	    (status = xfp_h5_read_text(&r->a, "family", &r->l->family, err)) ||
	    (status = xfp_h5_read_text(&r->a, "format", &r->l->format, err)) ||
	    (status = xfp_h5_read_text(&r->a, "packed", &r->l->packed, err)))
		goto done;
	for (unsigned i = 0; i < XFP_LEDGER_TABLES; i++) {
		if ((status = xfp_h5_count(&r->a, xfp_ledger_table_name(i), &r->total[i], err)))
			goto done;
		if (r->total[i] >= UINT32_MAX) {
			status = xfp_h5_damaged(&r->a, err, "too long \"%s\"", xfp_ledger_table_name(i));
			goto done;
		}
	}
done:
	free(kind);
	return status;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Read the tensors that the matrices in memory refer to. */
static enum xfp_status read_tensors_of_matrices(struct ledger_reader *r, uint64_t matrices, struct xfp_error *err)
{
	struct xfp_range *wanted = calloc(matrices + 1, sizeof *wanted);
	uint32_t distinct = 0;

	r->tensor = calloc(matrices + 1, sizeof *r->tensor);
	if (!wanted || !r->tensor) {
		free(wanted);
		return xfp_no_memory_for(err, r->a.path);
	}
	for (uint64_t i = 0; i < matrices; i++) {
		const struct xfp_matrix_record *m =
			xfp_ledger_slice_at(&r->slice[XFP_LEDGER_MATRICES], r->first_matrix + i);

		r->tensor[i] = m->tensor;
		wanted[i] = (struct xfp_range){ m->tensor, 1 };
	}
	qsort(r->tensor, matrices, sizeof *r->tensor, by_number);
	for (uint64_t i = 0; i < matrices; i++)
		if (!i || r->tensor[i] != r->tensor[i - 1])
			r->tensor[distinct++] = r->tensor[i];
	r->l->tensor_count = distinct;
	return xfp_slice_read(&r->a, XFP_LEDGER_TENSORS, r->total[XFP_LEDGER_TENSORS], wanted, matrices,
			      &r->slice[XFP_LEDGER_TENSORS], err);
}

/* Read the records of the whole ledger. */
static enum xfp_status read_all_records(struct ledger_reader *r, struct xfp_error *err)
{
	for (unsigned i = 0; i < XFP_LEDGER_TABLES; i++) {
		enum xfp_status status = xfp_slice_range(&r->a, i, r->total[i], 0, r->total[i], &r->slice[i], err);

		if (status)
			return status;
	}
	r->l->file_count = (uint32_t)r->total[XFP_LEDGER_FILES];
	r->l->tensor_count = (uint32_t)r->total[XFP_LEDGER_TENSORS];
	r->l->unit_count = (uint32_t)r->total[XFP_LEDGER_UNITS];
	r->l->matrix_count = (uint32_t)r->total[XFP_LEDGER_MATRICES];
	r->l->extra_count = (uint32_t)r->total[XFP_LEDGER_EXTRAS];
	return XFP_OK;
}

/* Read the strings that the records in memory refer to. */
static enum xfp_status read_strings(struct ledger_reader *r, struct xfp_error *err)
{
	size_t count = 0, max = 2 * ((size_t)r->l->file_count + r->l->tensor_count + r->l->unit_count);
	struct xfp_range *wanted = calloc(max + 1, sizeof *wanted);

	if (!wanted)
		return xfp_no_memory_for(err, r->a.path);
#define WANT(text) (wanted[count++] = (struct xfp_range){ (text).offset, (text).length })
	for (uint32_t i = 0; i < r->l->file_count; i++) {
		const struct xfp_file_record *f = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_FILES], i);

		WANT(f->name);
		WANT(f->path);
	}
	for (uint32_t i = 0; i < r->l->tensor_count; i++) {
		const struct xfp_tensor_record *t = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_TENSORS], r->tensor[i]);

		WANT(t->name);
		WANT(t->reason);
	}
	for (uint32_t i = 0; i < r->l->unit_count; i++) {
		const struct xfp_unit_record *u = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_UNITS], r->first_unit + i);

		WANT(u->name);
		WANT(u->role);
	}
#undef WANT
	return xfp_slice_read(&r->a, XFP_LEDGER_STRINGS, r->total[XFP_LEDGER_STRINGS], wanted, count,
			      &r->slice[XFP_LEDGER_STRINGS], err);
}

/* Read the records of one unit. */
static enum xfp_status read_unit_records(struct ledger_reader *r, uint32_t unit, struct xfp_error *err)
{
	const struct xfp_unit_record *u;
	enum xfp_status status;

	if (unit >= r->total[XFP_LEDGER_UNITS])
		return xfp_fail(err, XFP_USAGE, "%s: no unit %u; the ledger has %llu", r->a.path, unit,
				(unsigned long long)r->total[XFP_LEDGER_UNITS]);
	if ((status = xfp_slice_range(&r->a, XFP_LEDGER_UNITS, r->total[XFP_LEDGER_UNITS], unit, 1,
				      &r->slice[XFP_LEDGER_UNITS], err)))
		return status;
	r->first_unit = unit;
	r->l->unit_count = 1;
	u = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_UNITS], unit);
	r->first_matrix = u->first_matrix;
	if ((status = xfp_slice_range(&r->a, XFP_LEDGER_MATRICES, r->total[XFP_LEDGER_MATRICES], u->first_matrix,
				      u->experts, &r->slice[XFP_LEDGER_MATRICES], err)))
		return status;
	r->l->matrix_count = u->experts;
	if ((status = xfp_slice_range(&r->a, XFP_LEDGER_FILES, r->total[XFP_LEDGER_FILES], 0,
				      r->total[XFP_LEDGER_FILES], &r->slice[XFP_LEDGER_FILES], err)))
		return status;
	r->l->file_count = (uint32_t)r->total[XFP_LEDGER_FILES];
	if ((status = read_tensors_of_matrices(r, u->experts, err)) ||
	    (status = xfp_recipes_read(&r->a, r->total, r->slice, r->tensor, r->l->tensor_count, err)))
		return status;
	return read_strings(r, err);
}

/* ---- from records to the ledger ---------------------------------------------------------------- */

static enum xfp_status copy_text(struct ledger_reader *r, struct xfp_ledger_text text, char **out,
				 struct xfp_error *err)
{
	const struct xfp_ledger_slice *pool = &r->slice[XFP_LEDGER_STRINGS];
	uint64_t total = r->total[XFP_LEDGER_STRINGS];
	const char *from = "";

	if (text.length > total || text.offset > total - text.length)
		return xfp_h5_damaged(&r->a, err, "string outside the pool");
	if (text.length)
		from = xfp_ledger_slice_at(pool, text.offset);
	if (memchr(from, 0, text.length))
		return xfp_h5_damaged(&r->a, err, "NUL in a string");
	if (!(*out = strndup(from, text.length)))
		return xfp_no_memory_for(err, r->a.path);
	return XFP_OK;
}

static enum xfp_status fill_files(struct ledger_reader *r, struct xfp_error *err)
{
	for (uint32_t i = 0; i < r->l->file_count; i++) {
		const struct xfp_file_record *from = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_FILES], i);
		struct xfp_source_file *to = &r->l->files[i];
		enum xfp_status status;

		to->identity = (struct xfp_identity){
			.device = from->device,
			.inode = from->inode,
			.size = from->size,
			.mtime_ns = from->mtime_ns,
			.ctime_ns = from->ctime_ns,
		};
		if ((status = copy_text(r, from->name, &to->name, err)) ||
		    (status = copy_text(r, from->path, &to->path, err)))
			return status;
	}
	return XFP_OK;
}

static enum xfp_status fill_tensors(struct ledger_reader *r, struct xfp_error *err)
{
	for (uint32_t i = 0; i < r->l->tensor_count; i++) {
		uint64_t number = r->tensor ? r->tensor[i] : i;
		const struct xfp_tensor_record *from = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_TENSORS], number);
		struct xfp_ledger_tensor *to = &r->l->tensors[i];
		enum xfp_status status;

		if (from->dtype >= XFP_DTYPES || from->class_ >= XFP_CLASSES || from->fate >= XFP_FATES ||
		    from->rank > 8 || from->file >= r->total[XFP_LEDGER_FILES] ||
		    (from->fate == XFP_FATE_TIED ? from->tied >= r->total[XFP_LEDGER_TENSORS]
						 : from->tied != UINT32_MAX))
			return xfp_h5_damaged(&r->a, err, "impossible tensor %llu", (unsigned long long)number);
		*to = (struct xfp_ledger_tensor){
			.dtype = from->dtype,
			.class_ = from->class_,
			.fate = from->fate,
			.rank = from->rank,
			.file = from->file,
			.offset = from->offset,
			.bytes = from->bytes,
			.tied = r->tensor ? UINT32_MAX : from->tied,
		};
		memcpy(to->shape, from->shape, sizeof to->shape);
		if ((status = xfp_recipe_build(&r->a, r->total, r->slice, from->recipe, &to->recipe, err)) ||
		    (status = copy_text(r, from->name, &to->name, err)) ||
		    (status = copy_text(r, from->reason, &to->reason, err)))
			return status;
	}
	return XFP_OK;
}

/* The index in the ledger of the tensor with this number, which must have been read. */
static uint32_t tensor_index(const struct ledger_reader *r, uint64_t number)
{
	if (!r->tensor)
		return (uint32_t)number;
	return (uint32_t)((const uint64_t *)bsearch(&number, r->tensor, r->l->tensor_count, sizeof *r->tensor,
						    by_number) -
			  r->tensor);
}

static enum xfp_status fill_matrices(struct ledger_reader *r, struct xfp_error *err)
{
	for (uint32_t i = 0; i < r->l->matrix_count; i++) {
		const struct xfp_matrix_record *from =
			xfp_ledger_slice_at(&r->slice[XFP_LEDGER_MATRICES], r->first_matrix + i);

		if (from->tensor >= r->total[XFP_LEDGER_TENSORS])
			return xfp_h5_damaged(&r->a, err, "impossible matrix %llu",
					      (unsigned long long)(r->first_matrix + i));
		r->l->matrices[i] = (struct xfp_ledger_matrix){
			tensor_index(r, from->tensor),
			from->base,
			from->rows,
			from->cols,
			from->row_stride,
			from->col_stride,
		};
	}
	return XFP_OK;
}

static enum xfp_status fill_units(struct ledger_reader *r, struct xfp_error *err)
{
	for (uint32_t i = 0; i < r->l->unit_count; i++) {
		const struct xfp_unit_record *from =
			xfp_ledger_slice_at(&r->slice[XFP_LEDGER_UNITS], r->first_unit + i);
		struct xfp_ledger_unit *to = &r->l->units[i];
		uint64_t first = from->first_matrix - r->first_matrix;
		enum xfp_status status;

		if (from->class_ >= XFP_CLASSES || from->plan > XFP_PLAN_KEEP || from->dtype >= XFP_DTYPES ||
		    !from->experts || from->experts > r->l->matrix_count || first > r->l->matrix_count - from->experts)
			return xfp_h5_damaged(&r->a, err, "impossible unit %llu",
					      (unsigned long long)(r->first_unit + i));
		for (uint32_t m = 0; m < from->experts; m++)
			if (r->l->matrices[first + m].rows != from->rows ||
			    r->l->matrices[first + m].cols != from->cols)
				return xfp_h5_damaged(&r->a, err, "matrices of unit %llu differ in shape",
						      (unsigned long long)(r->first_unit + i));
		*to = (struct xfp_ledger_unit){
			.class_ = from->class_,
			.plan = from->plan,
			.dtype = from->dtype,
			.experts = from->experts,
			.rows = from->rows,
			.cols = from->cols,
			.first_matrix = (uint32_t)first,
		};
		if ((status = copy_text(r, from->name, &to->name, err)) ||
		    (status = copy_text(r, from->role, &to->role, err)))
			return status;
	}
	return XFP_OK;
}

static enum xfp_status fill_extras(struct ledger_reader *r, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < r->l->extra_count; i++) {
		const struct xfp_extra_record *from = xfp_ledger_slice_at(&r->slice[XFP_LEDGER_EXTRAS], i);
		struct xfp_ledger_synthesized *synthesized = &r->l->synthesized[i];
		char *hex = NULL;

		(void)((status = copy_text(r, from->name, &r->l->extras[i], err)) || !from->path.length ||
		       (status = copy_text(r, from->path, &synthesized->path, err)) ||
		       (status = copy_text(r, from->digest, &hex, err)));
		if (hex && strlen(hex) == sizeof synthesized->hex - 1)
			memcpy(synthesized->hex, hex, sizeof synthesized->hex);
		else if (hex)
			status = xfp_h5_damaged(&r->a, err, "impossible digest of extra %llu", (unsigned long long)i);
		free(hex);
	}
	return status;
}

static enum xfp_status allocate(struct ledger_reader *r, struct xfp_error *err)
{
	struct xfp_ledger *l = r->l;

	l->files = calloc(l->file_count + (size_t)1, sizeof *l->files);
	l->tensors = calloc(l->tensor_count + (size_t)1, sizeof *l->tensors);
	l->units = calloc(l->unit_count + (size_t)1, sizeof *l->units);
	l->matrices = calloc(l->matrix_count + (size_t)1, sizeof *l->matrices);
	l->extras = calloc(l->extra_count + (size_t)1, sizeof *l->extras);
	l->synthesized = calloc(l->extra_count + (size_t)1, sizeof *l->synthesized);
	if (l->files && l->tensors && l->units && l->matrices && l->extras && l->synthesized)
		return XFP_OK;
	return xfp_no_memory_for(err, r->a.path);
}

/* `unit` NULL: the whole ledger. */
static enum xfp_status read_ledger(const char *path, const uint32_t *unit, struct xfp_ledger **out,
				   struct xfp_error *err)
{
	struct ledger_reader r = { .a = { .file = -1, .path = (char *)path, .remedy = "run xfp-inspect again" } };
	enum xfp_status status;
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT ? xfp_fail(err, XFP_FAILED, "%s: no ledger; run xfp-inspect first", path)
				       : xfp_fail_errno(err, errno, "%s: cannot open", path);
	/* Check the whole file, even for one unit: the locations of its weights determine the unit's bytes. For a model
	 * of 92,000 tensors the ledger has 26 MB, which takes some milliseconds from the page cache. */
	if ((status = xfp_envelope_check(&r.a, true, err)))
		return status;
	if (!(r.l = calloc(1, sizeof *r.l)))
		return xfp_no_memory_for(err, path);
	if (!(status = xfp_h5_open_file(&r.a, err)) && !(status = read_header(&r, err)) &&
	    !(status = unit ? read_unit_records(&r, *unit, err) : read_all_records(&r, err)) &&
	    !(status = allocate(&r, err)))
		(void)((status = fill_files(&r, err)) || (status = fill_tensors(&r, err)) ||
		       (status = fill_matrices(&r, err)) || (status = fill_units(&r, err)) ||
		       (status = fill_extras(&r, err)));
	if (r.a.file >= 0)
		H5Fclose(r.a.file);
	for (unsigned i = 0; i < XFP_LEDGER_TABLES; i++)
		xfp_ledger_slice_free(&r.slice[i]);
	free(r.tensor);
	if (status)
		xfp_ledger_free(r.l);
	else
		*out = r.l;
	return status;
}

enum xfp_status xfp_ledger_read(const char *path, struct xfp_ledger **out, struct xfp_error *err)
{
	return read_ledger(path, NULL, out, err);
}

enum xfp_status xfp_ledger_read_unit(const char *path, uint32_t unit, struct xfp_ledger **out, struct xfp_error *err)
{
	return read_ledger(path, &unit, out, err);
}

void xfp_ledger_accept_devices(struct xfp_ledger *ledger)
{
	struct stat st;

	for (uint32_t i = 0; i < ledger->file_count; i++)
		if (!stat(ledger->files[i].path, &st))
			ledger->files[i].identity.device = xfp_identity_of(&st).device;
}

enum xfp_status xfp_ledger_check_files(const struct xfp_ledger *ledger, struct xfp_error *err)
{
	for (uint32_t i = 0; i < ledger->file_count; i++) {
		const struct xfp_source_file *file = &ledger->files[i];
		struct xfp_identity now;
		struct stat st;

		if (stat(file->path, &st))
			return xfp_fail_errno(err, errno, "%s: a file of the checkpoint is missing", file->path);
		now = xfp_identity_at(file->path, &st);
		if (!xfp_identity_equal(&file->identity, &now))
			return xfp_fail(err, XFP_FAILED, "%s: changed while it was being converted; run again",
					file->path);
	}
	return XFP_OK;
}

char *xfp_ledger_extra_path(const struct xfp_ledger *l, uint32_t extra)
{
	return xfp_ledger_extra_is_synthesized(l, extra) ? strdup(l->synthesized[extra].path)
							 : xfp_path(l->model, l->extras[extra]);
}

void xfp_ledger_free(struct xfp_ledger *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; l->files && i < l->file_count; i++) {
		free(l->files[i].name);
		free(l->files[i].path);
	}
	for (uint32_t i = 0; l->tensors && i < l->tensor_count; i++) {
		free(l->tensors[i].name);
		free(l->tensors[i].reason);
		xfp_recipe_free(l->tensors[i].recipe);
	}
	for (uint32_t i = 0; l->units && i < l->unit_count; i++) {
		free(l->units[i].name);
		free(l->units[i].role);
	}
	for (uint32_t i = 0; l->extras && i < l->extra_count; i++)
		free(l->extras[i]);
	for (uint32_t i = 0; l->synthesized && i < l->extra_count; i++)
		free(l->synthesized[i].path);
	free(l->model);
	free(l->family);
	free(l->format);
	free(l->packed);
	free(l->files);
	free(l->tensors);
	free(l->units);
	free(l->matrices);
	free(l->extras);
	free(l->synthesized);
	free(l);
}

uint64_t xfp_tensor_stored_bytes(const struct xfp_ledger_tensor *tensor)
{
	return tensor->recipe ? xfp_recipe_bytes(tensor->recipe) : tensor->bytes;
}
