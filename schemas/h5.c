/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "schemas/envelope.h"

/* Native types equal the little-endian standard ones on every host supported by bytes.h, so one type serves for memory
 * and file, and H5Tequal with it is the whole type check. */

#define CHUNK_ELEMENTS 1024  /* chunk of an extendable dataset: small compared with any real one */
#define MAX_TEXT (1u << 20)  /* longest text attribute accepted by a reader */
#define MAX_ATTRIBUTE 64000u /* libhdf5 stores attributes below 64 KiB, header included */

enum xfp_status xfp_h5_damaged(const struct xfp_artifact *a, struct xfp_error *err, const char *why, ...)
{
	char clause[512];
	va_list args;

	va_start(args, why);
	vsnprintf(clause, sizeof clause, why, args);
	va_end(args);
	if (!a->remedy)
		return xfp_fail(err, XFP_DAMAGED, "%s: damaged artifact (%s); it will be made again", a->path, clause);
	return xfp_fail(err, XFP_BAD_INPUT, "%s: damaged (%s); %s", a->path, clause, a->remedy);
}

static enum xfp_status removed(const struct xfp_artifact *a, struct xfp_error *err)
{
	return xfp_h5_damaged(a, err, "removed by another host");
}

enum xfp_status xfp_h5_read_status(const struct xfp_artifact *a, enum xfp_status status, struct xfp_error *err)
{
	if (status == XFP_FAILED && errno == ESTALE)
		return removed(a, err);
	return status == XFP_BAD_INPUT ? xfp_h5_damaged(a, err, "truncated") : status;
}

/* A call of libhdf5 failed on a file whose envelope was right. `errnum` is errno, which was 0 before the call: if it is
 * set, the system refused. Otherwise a file whose digest does not match is damaged. One whose digest matches is what
 * was written, so that libhdf5 is at fault: after an allocation of its own failed, it may refuse every file. That is
 * XFP_FAILED, since a damaged artifact would be removed. */
XFP_PRINTF(4, 5)
static enum xfp_status refused(const struct xfp_artifact *a, int errnum, struct xfp_error *err, const char *why, ...)
{
	enum xfp_status status;
	char clause[512];
	va_list args;

	if (errnum == ESTALE)
		return removed(a, err);
	if (errnum)
		return xfp_fail_errno(err, errnum, "%s: cannot read", a->path);
	if ((status = xfp_envelope_check(a, true, err)))
		return status;
	va_start(args, why);
	vsnprintf(clause, sizeof clause, why, args);
	va_end(args);
	return xfp_fail(err, XFP_FAILED,
			"%s: libhdf5 cannot read it (%s), although its digest is right; if there is enough memory and "
			"it fails again, remove the file",
			a->path, clause);
}

/* ---- files ------------------------------------------------------------------------------------- */

static hid_t access_list(void)
{
	hid_t list;

	/* Everything is closed explicitly before exit. An exit handler that retries a failed write only adds noise
	 * after a full disk. */
	H5dont_atexit();
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	if ((list = H5Pcreate(H5P_FILE_ACCESS)) < 0)
		return list;
	if (H5Pset_fapl_sec2(list) < 0 || H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) < 0)
		goto fail;
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
	if (H5Pset_file_locking(list, 0, 1) < 0)
		goto fail;
#endif
	return list;
fail:
	H5Pclose(list);
	return -1;
}

hid_t xfp_h5_create_file(const char *path, uint64_t user_block)
{
	hid_t access, create = -1, file = -1;

	errno = 0;
	access = access_list();
	if (access < 0 || (create = H5Pcreate(H5P_FILE_CREATE)) < 0)
		goto done;
	if (H5Pset_obj_track_times(create, 0) < 0 || H5Pset_userblock(create, user_block) < 0)
		goto done;
	file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
done:
	if (create >= 0)
		H5Pclose(create);
	if (access >= 0)
		H5Pclose(access);
	return file;
}

/* Whether HDF5 follows the envelope; true if that cannot be read. */
static bool has_signature(const char *path)
{
	static const char signature[8] = "\211HDF\r\n\032\n";
	char stored[sizeof signature];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool differs;

	if (fd < 0)
		return true;
	differs = pread(fd, stored, sizeof stored, XFP_ENVELOPE_BYTES) == sizeof stored &&
		  memcmp(stored, signature, sizeof stored) != 0;
	close(fd);
	return !differs;
}

enum xfp_status xfp_h5_open_file(struct xfp_artifact *a, struct xfp_error *err)
{
	hid_t access = access_list();
	int errnum;

	if (access < 0)
		return xfp_fail(err, XFP_FAILED, "%s: cannot initialize libhdf5; memory may be exhausted", a->path);
	errno = 0;
	a->file = H5Fopen(a->path, H5F_ACC_RDONLY, access);
	errnum = errno;
	H5Pclose(access);
	if (a->file >= 0)
		return XFP_OK;
	return !errnum && !has_signature(a->path) ? xfp_h5_damaged(a, err, "not HDF5")
						  : refused(a, errnum, err, "cannot be opened");
}

/* ---- datasets ---------------------------------------------------------------------------------- */

static enum xfp_status write_failed(const struct xfp_artifact *a, const char *name, struct xfp_error *err)
{
	if (errno == ENOSPC || errno == EDQUOT)
		return xfp_fail(err, XFP_FAILED, "%s: %s; free some space and run again", a->path, strerror(errno));
	if (errno)
		return xfp_fail_errno(err, errno, "%s: cannot write \"%s\"", a->path, name);
	return xfp_fail(err, XFP_FAILED, "%s: cannot write \"%s\"; check the free disk space", a->path, name);
}

/* Create a dataset of `count` elements, or an empty extendable one. */
static hid_t create_dataset(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, bool grows)
{
	hsize_t dims = count, unlimited = H5S_UNLIMITED, chunk = CHUNK_ELEMENTS;
	hid_t space = -1, list = -1, set = -1;

	errno = 0;
	if ((space = H5Screate_simple(1, &dims, grows ? &unlimited : NULL)) < 0 ||
	    (list = H5Pcreate(H5P_DATASET_CREATE)) < 0 || H5Pset_obj_track_times(list, 0) < 0)
		goto done;
	if (grows) {
		if (H5Pset_chunk(list, 1, &chunk) < 0)
			goto done;
	} else if (H5Pset_layout(list, H5D_CONTIGUOUS) < 0 ||
		   /* Allocate now, so that the layout does not depend on the order of writes; unwritten elements read
		    * as zero, since the file is extended by truncation. */
		   H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) < 0 ||
		   H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0) {
		goto done;
	}
	set = H5Dcreate2(a->file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
done:
	if (list >= 0)
		H5Pclose(list);
	if (space >= 0)
		H5Sclose(space);
	return set;
}

enum xfp_status xfp_h5_has(struct xfp_artifact *a, const char *name, bool *has, struct xfp_error *err)
{
	htri_t found;

	errno = 0;
	found = H5Lexists(a->file, name, H5P_DEFAULT);
	*has = found > 0;
	return found < 0 ? refused(a, errno, err, "cannot read its root group") : XFP_OK;
}

/* Answers of libhdf5 about a dataset; a value is negative if the call failed. */
struct stored {
	hid_t set, space, list, type;
	int class, rank, layout, filters, files, same;
	hsize_t count;
};

/* All properties but the type are those that xfp writes: one dimension, stored in this file without filters. */
static bool is_ours(const struct stored *s)
{
	return s->class == H5S_SIMPLE && s->rank == 1 && (s->layout == H5D_CONTIGUOUS || s->layout == H5D_CHUNKED) &&
	       !s->filters && !s->files;
}

static bool examine(hid_t file, const char *name, hid_t type, struct stored *s)
{
	if ((s->set = H5Dopen2(file, name, H5P_DEFAULT)) < 0 || (s->space = H5Dget_space(s->set)) < 0 ||
	    (s->list = H5Dget_create_plist(s->set)) < 0 || (s->type = H5Dget_type(s->set)) < 0)
		return false;
	s->class = H5Sget_simple_extent_type(s->space);
	s->rank = s->class == H5S_SIMPLE ? H5Sget_simple_extent_ndims(s->space) : 0;
	s->layout = H5Pget_layout(s->list);
	s->filters = H5Pget_nfilters(s->list);
	s->files = H5Pget_external_count(s->list);
	s->same = type < 0 ? 1 : H5Tequal(s->type, type);
	if (s->rank == 1 && H5Sget_simple_extent_dims(s->space, &s->count, NULL) < 0)
		return false;
	return s->class >= 0 && s->rank >= 0 && s->layout >= 0 && s->filters >= 0 && s->files >= 0 && s->same >= 0;
}

/* Open a dataset and check that xfp could have written it: a hard link, one dimension, stored in this file without
 * filters, and of `type` (negative: any). */
static enum xfp_status open_dataset(struct xfp_artifact *a, const char *name, hid_t type, hid_t *out, uint64_t *count,
				    struct xfp_error *err)
{
	struct stored s = { -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0 };
	enum xfp_status status = XFP_OK;
	H5L_info_t link;
	htri_t has;

	errno = 0;
	if ((has = H5Lexists(a->file, name, H5P_DEFAULT)) < 0 ||
	    (has && H5Lget_info(a->file, name, &link, H5P_DEFAULT) < 0))
		status = refused(a, errno, err, "dataset \"%s\" cannot be looked up", name);
	else if (!has)
		status = xfp_h5_damaged(a, err, "dataset \"%s\" is missing", name);
	else if (link.type != H5L_TYPE_HARD)
		status = xfp_h5_damaged(a, err, "dataset \"%s\" is a link", name);
	else if (!examine(a->file, name, type, &s))
		status = refused(a, errno, err, "dataset \"%s\" cannot be opened", name);
	else if (!is_ours(&s))
		status = xfp_h5_damaged(a, err, "dataset \"%s\" is stored in another way", name);
	else if (!s.same)
		status = xfp_h5_damaged(a, err, "dataset \"%s\" has another type", name);
	if (s.type >= 0)
		H5Tclose(s.type);
	if (s.list >= 0)
		H5Pclose(s.list);
	if (s.space >= 0)
		H5Sclose(s.space);
	if (status && s.set >= 0)
		H5Dclose(s.set);
	if (status)
		return status;
	*out = s.set;
	*count = s.count;
	return XFP_OK;
}

/* Transfer elements [first, first + count) of an open dataset between the file and `data`. On failure errno is the
 * system's error, or 0. */
static bool transfer(hid_t set, hid_t type, uint64_t first, uint64_t count, void *in, const void *out)
{
	hsize_t start = first, length = count;
	hid_t file_space = -1, memory_space = -1;
	int errnum = 0;
	bool good = false;

	errno = 0;
	if (!count)
		return true;
	if ((file_space = H5Dget_space(set)) < 0 || (memory_space = H5Screate_simple(1, &length, NULL)) < 0)
		goto done;
	if (H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &length, NULL) < 0)
		goto done;
	if (in)
		good = H5Dread(set, type, memory_space, file_space, H5P_DEFAULT, in) >= 0;
	else
		good = H5Dwrite(set, type, memory_space, file_space, H5P_DEFAULT, out) >= 0;
done:
	errnum = errno;
	if (memory_space >= 0)
		H5Sclose(memory_space);
	if (file_space >= 0)
		H5Sclose(file_space);
	errno = errnum;
	return good;
}

enum xfp_status xfp_h5_write(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, const void *data,
			     struct xfp_error *err)
{
	hid_t set = create_dataset(a, name, type, count, false);
	bool good;

	if (set < 0)
		return write_failed(a, name, err);
	good = transfer(set, type, 0, count, NULL, data);
	if (H5Dclose(set) < 0 || !good)
		return write_failed(a, name, err);
	return XFP_OK;
}

enum xfp_status xfp_h5_reserve(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count,
			       struct xfp_error *err)
{
	hid_t set = create_dataset(a, name, type, count, false);

	return set < 0 || H5Dclose(set) < 0 ? write_failed(a, name, err) : XFP_OK;
}

enum xfp_status xfp_h5_stream(struct xfp_artifact *a, const char *name, hid_t type, struct xfp_error *err)
{
	hid_t set = create_dataset(a, name, type, 0, true);

	return set < 0 || H5Dclose(set) < 0 ? write_failed(a, name, err) : XFP_OK;
}

enum xfp_status xfp_h5_write_range(struct xfp_artifact *a, const char *name, hid_t type, uint64_t first, uint64_t count,
				   const void *data, struct xfp_error *err)
{
	uint64_t total, end;
	hid_t set;
	bool good;

	if (open_dataset(a, name, type, &set, &total, err))
		return xfp_fail(err, XFP_FAILED, "%s: cannot write dataset \"%s\": missing, or of another type",
				a->path, name);
	if (!xfp_add(first, count, &end) || end > total) {
		H5Dclose(set);
		return xfp_fail(err, XFP_FAILED, "%s: writing beyond the end of \"%s\"", a->path, name);
	}
	good = transfer(set, type, first, count, NULL, data);
	if (H5Dclose(set) < 0 || !good)
		return write_failed(a, name, err);
	return XFP_OK;
}

enum xfp_status xfp_h5_append(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, const void *data,
			      struct xfp_error *err)
{
	hsize_t extent;
	uint64_t total;
	hid_t set;
	bool good;

	if (open_dataset(a, name, type, &set, &total, err))
		return xfp_fail(err, XFP_FAILED, "%s: cannot write dataset \"%s\": missing, or of another type",
				a->path, name);
	extent = total + count;
	errno = 0;
	good = !count || (H5Dset_extent(set, &extent) >= 0 && transfer(set, type, total, count, NULL, data));
	if (H5Dclose(set) < 0 || !good)
		return write_failed(a, name, err);
	return XFP_OK;
}

enum xfp_status xfp_h5_read_range(struct xfp_artifact *a, const char *name, hid_t type, uint64_t first, uint64_t count,
				  void *data, struct xfp_error *err)
{
	enum xfp_status status;
	uint64_t total, end;
	hid_t set;

	if ((status = open_dataset(a, name, type, &set, &total, err)))
		return status;
	if (!xfp_add(first, count, &end) || end > total)
		status = xfp_h5_damaged(a, err, "dataset \"%s\" ends early", name);
	else if (!transfer(set, type, first, count, data, NULL))
		status = refused(a, errno, err, "dataset \"%s\" cannot be read", name);
	H5Dclose(set);
	return status;
}

enum xfp_status xfp_h5_read(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, void *data,
			    struct xfp_error *err)
{
	enum xfp_status status;
	uint64_t total;
	hid_t set;

	if ((status = open_dataset(a, name, type, &set, &total, err)))
		return status;
	if (total != count)
		status = xfp_h5_damaged(a, err, "dataset \"%s\" has %llu elements instead of %llu", name,
					(unsigned long long)total, (unsigned long long)count);
	else if (!transfer(set, type, 0, count, data, NULL))
		status = refused(a, errno, err, "dataset \"%s\" cannot be read", name);
	H5Dclose(set);
	return status;
}

enum xfp_status xfp_h5_count(struct xfp_artifact *a, const char *name, uint64_t *count, struct xfp_error *err)
{
	enum xfp_status status;
	hid_t set;

	if ((status = open_dataset(a, name, -1, &set, count, err)))
		return status;
	H5Dclose(set);
	return XFP_OK;
}

enum xfp_status xfp_h5_extent(struct xfp_artifact *a, const char *name, uint64_t *offset, uint64_t *bytes,
			      struct xfp_error *err)
{
	enum xfp_status status;
	hid_t set, type;
	size_t size = 0;
	uint64_t count;
	haddr_t where;
	int errnum;

	if ((status = open_dataset(a, name, -1, &set, &count, err)))
		return status;
	errno = 0;
	if ((type = H5Dget_type(set)) >= 0) {
		size = H5Tget_size(type);
		H5Tclose(type);
	}
	where = H5Dget_offset(set); /* undefined for a chunked dataset, too */
	errnum = errno;
	H5Dclose(set);
	if (!size || where == HADDR_UNDEF)
		return refused(a, errnum, err, "dataset \"%s\" has no place in the file", name);
	if (!xfp_mul(count, size, bytes))
		return xfp_h5_damaged(a, err, "dataset \"%s\" is too large", name);
	*offset = where;
	return XFP_OK;
}

enum xfp_status xfp_h5_descriptor(const struct xfp_artifact *a, int *descriptor, struct xfp_error *err)
{
	void *handle = NULL;

	errno = 0;
	if (H5Fget_vfd_handle(a->file, H5P_DEFAULT, &handle) < 0 || !handle)
		return refused(a, errno, err, "has no file descriptor");
	*descriptor = *(int *)handle;
	return XFP_OK;
}

/* ---- attributes of the root group -------------------------------------------------------------- */

static enum xfp_status write_attribute(struct xfp_artifact *a, const char *name, hid_t type, const void *value,
				       struct xfp_error *err)
{
	hid_t space = H5Screate(H5S_SCALAR), attribute = -1;
	bool good = false;

	errno = 0;
	if (space >= 0 && (attribute = H5Acreate2(a->file, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0)
		good = H5Awrite(attribute, type, value) >= 0;
	if (attribute >= 0 && H5Aclose(attribute) < 0)
		good = false;
	if (space >= 0)
		H5Sclose(space);
	return good ? XFP_OK : write_failed(a, name, err);
}

/* Open a scalar attribute and its type; the caller closes both. */
static enum xfp_status open_attribute(struct xfp_artifact *a, const char *name, hid_t *out, hid_t *type,
				      struct xfp_error *err)
{
	hid_t attribute = -1, space = -1;
	enum xfp_status status = XFP_OK;
	H5S_class_t class = H5S_NO_CLASS;
	htri_t has;

	errno = 0;
	*type = -1;
	if ((has = H5Aexists(a->file, name)) < 0)
		status = refused(a, errno, err, "attribute \"%s\" cannot be looked up", name);
	else if (!has)
		status = xfp_h5_damaged(a, err, "attribute \"%s\" is missing", name);
	else if ((attribute = H5Aopen(a->file, name, H5P_DEFAULT)) < 0 || (space = H5Aget_space(attribute)) < 0 ||
		 (class = H5Sget_simple_extent_type(space)) < 0 || (*type = H5Aget_type(attribute)) < 0)
		status = refused(a, errno, err, "attribute \"%s\" cannot be opened", name);
	else if (class != H5S_SCALAR)
		status = xfp_h5_damaged(a, err, "attribute \"%s\" is not a single value", name);
	if (space >= 0)
		H5Sclose(space);
	if (status && *type >= 0)
		H5Tclose(*type);
	if (status && attribute >= 0)
		H5Aclose(attribute);
	*out = attribute;
	return status;
}

static enum xfp_status read_attribute(struct xfp_artifact *a, const char *name, hid_t type, void *value,
				      struct xfp_error *err)
{
	enum xfp_status status;
	hid_t attribute, stored;
	htri_t same;

	if ((status = open_attribute(a, name, &attribute, &stored, err)))
		return status;
	errno = 0;
	if (!(same = H5Tequal(stored, type)))
		status = xfp_h5_damaged(a, err, "attribute \"%s\" has another type", name);
	else if (same < 0 || H5Aread(attribute, type, value) < 0)
		status = refused(a, errno, err, "attribute \"%s\" cannot be read", name);
	H5Tclose(stored);
	H5Aclose(attribute);
	return status;
}

enum xfp_status xfp_h5_write_u64(struct xfp_artifact *a, const char *name, uint64_t value, struct xfp_error *err)
{
	return write_attribute(a, name, H5T_NATIVE_UINT64, &value, err);
}

enum xfp_status xfp_h5_read_u64(struct xfp_artifact *a, const char *name, uint64_t *value, struct xfp_error *err)
{
	return read_attribute(a, name, H5T_NATIVE_UINT64, value, err);
}

enum xfp_status xfp_h5_write_f64(struct xfp_artifact *a, const char *name, double value, struct xfp_error *err)
{
	return write_attribute(a, name, H5T_NATIVE_DOUBLE, &value, err);
}

enum xfp_status xfp_h5_read_f64(struct xfp_artifact *a, const char *name, double *value, struct xfp_error *err)
{
	return read_attribute(a, name, H5T_NATIVE_DOUBLE, value, err);
}

enum xfp_status xfp_h5_write_text(struct xfp_artifact *a, const char *name, const char *value, struct xfp_error *err)
{
	size_t size = strlen(value);
	enum xfp_status status;
	hid_t type;

	if (size > MAX_ATTRIBUTE)
		return xfp_fail(err, XFP_FAILED, "%s: text of \"%s\" is too long (%zu bytes)", a->path, name, size);
	if ((type = H5Tcopy(H5T_C_S1)) < 0)
		return write_failed(a, name, err);
	/* A string type has at least one byte: an empty text is stored as one NUL. */
	if (H5Tset_size(type, size ? size : 1) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 ||
	    H5Tset_cset(type, H5T_CSET_UTF8) < 0)
		status = write_failed(a, name, err);
	else
		status = write_attribute(a, name, type, value, err);
	H5Tclose(type);
	return status;
}

enum xfp_status xfp_h5_read_text(struct xfp_artifact *a, const char *name, char **value, struct xfp_error *err)
{
	enum xfp_status status;
	hid_t attribute, type;
	H5T_class_t class;
	char *text = NULL;
	htri_t variable;
	size_t size;

	if ((status = open_attribute(a, name, &attribute, &type, err)))
		return status;
	errno = 0;
	size = H5Tget_size(type);
	class = H5Tget_class(type);
	variable = class == H5T_STRING ? H5Tis_variable_str(type) : 0;
	if (!size || class < 0 || variable < 0)
		status = refused(a, errno, err, "attribute \"%s\" cannot be read", name);
	else if (class != H5T_STRING || variable || H5Tget_strpad(type) != H5T_STR_NULLPAD ||
		 H5Tget_cset(type) != H5T_CSET_UTF8 || size > MAX_TEXT)
		status = xfp_h5_damaged(a, err, "attribute \"%s\" has another type", name);
	else if (!(text = calloc(1, size + 1)))
		status = xfp_no_memory_for(err, a->path);
	else if (H5Aread(attribute, type, text) < 0)
		status = refused(a, errno, err, "attribute \"%s\" cannot be read", name);
	else if (strlen(text) != size && !(size == 1 && !text[0]))
		status = xfp_h5_damaged(a, err, "attribute \"%s\" has a NUL", name);
	H5Tclose(type);
	H5Aclose(attribute);
	if (status)
		free(text);
	else
		*value = text;
	return status;
}
