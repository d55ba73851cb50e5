/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/artifact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "schemas/envelope.h"
#include "schemas/h5.h"

enum xfp_status xfp_artifact_check(const char *path, struct xfp_error *err)
{
	return xfp_envelope_check(&(struct xfp_artifact){ .path = (char *)path }, true, err);
}

enum xfp_status xfp_artifact_check_header(const char *path, struct xfp_error *err)
{
	return xfp_envelope_check(&(struct xfp_artifact){ .path = (char *)path }, false, err);
}

/* ---- writing ----------------------------------------------------------------------------------- */

enum xfp_status xfp_artifact_create(const char *path, struct xfp_artifact *artifact, struct xfp_error *err)
{
	char *copy = strdup(path);
	hid_t file;

	if (!copy)
		return xfp_no_memory_for(err, path);
	if ((file = xfp_h5_create_file(path, XFP_ENVELOPE_BYTES)) < 0) {
		free(copy);
		return xfp_fail_errno(err, errno ? errno : EIO, "%s: cannot create", path);
	}
	*artifact = (struct xfp_artifact){ .file = file, .writing = true, .path = copy };
	return XFP_OK;
}

enum xfp_status xfp_artifact_finish(struct xfp_artifact *a, const struct xfp_artifact_label *label,
				    struct xfp_error *err)
{
	enum xfp_status status;
	herr_t closed;

	(void)((status = xfp_h5_write_text(a, "kind", label->kind, err)) ||
	       (status = xfp_h5_write_u64(a, "version", label->version, err)) ||
	       (status = xfp_h5_write_text(a, "key", label->key, err)) ||
	       (status = xfp_h5_write_text(a, "key_text", label->key_text, err)) ||
	       (status = xfp_h5_write_text(a, "unit", label->unit, err)) ||
	       (status = xfp_h5_write_f64(a, "seconds", label->seconds, err)));
	errno = 0;
	closed = H5Fclose(a->file);
	a->file = -1;
	if (!status && closed < 0)
		status = xfp_fail_errno(err, errno ? errno : EIO, "%s: cannot write", a->path);
	if (!status)
		status = xfp_envelope_seal(a->path, err);
	xfp_artifact_close(a);
	return status;
}

/* ---- reading ----------------------------------------------------------------------------------- */

enum xfp_status xfp_artifact_get_label(struct xfp_artifact *a, struct xfp_artifact_label *label, struct xfp_error *err)
{
	char *kind = NULL, *key = NULL, *key_text = NULL, *unit = NULL;
	uint64_t version = 0;
	double seconds = 0;
	enum xfp_status status;

	(void)((status = xfp_h5_read_text(a, "kind", &kind, err)) ||
	       (status = xfp_h5_read_u64(a, "version", &version, err)) ||
	       (status = xfp_h5_read_text(a, "key", &key, err)) ||
	       (status = xfp_h5_read_text(a, "key_text", &key_text, err)) ||
	       (status = xfp_h5_read_text(a, "unit", &unit, err)) ||
	       (status = xfp_h5_read_f64(a, "seconds", &seconds, err)));
	if (!status && version > UINT32_MAX)
		status = xfp_h5_damaged(a, err, "impossible version");
	*label = (struct xfp_artifact_label){ kind, (uint32_t)version, key, key_text, unit, seconds };
	if (status)
		xfp_artifact_label_free(label);
	return status;
}

static enum xfp_status check_label(struct xfp_artifact *a, const char *kind, uint32_t version, const char *key,
				   struct xfp_error *err)
{
	struct xfp_artifact_label label;
	enum xfp_status status;

	if ((status = xfp_artifact_get_label(a, &label, err)))
		return status;
	if (kind && strcmp(label.kind, kind))
		status = xfp_h5_damaged(a, err, "kind \"%s\" instead of \"%s\"", xfp_printable(label.kind).text, kind);
	else if (kind && label.version != version)
		status = xfp_h5_damaged(a, err, "layout version %u instead of %u", label.version, version);
	else if (key && strcmp(label.key, key))
		status = xfp_h5_damaged(a, err, "made for key %s", xfp_printable(label.key).text);
	xfp_artifact_label_free(&label);
	return status;
}

static enum xfp_status open_checked(const char *path, const char *kind, uint32_t version, const char *key,
				    struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_artifact a = { .file = -1 };
	enum xfp_status status;

	if (!(a.path = strdup(path)))
		return xfp_no_memory_for(err, path);
	if (!(status = xfp_h5_open_file(&a, err)))
		status = check_label(&a, kind, version, key, err);
	if (status)
		xfp_artifact_close(&a);
	else
		*artifact = a;
	return status;
}

static enum xfp_status open_once(const char *path, const char *kind, uint32_t version, const char *key,
				 struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = xfp_artifact_check(path, err);

	return status ? status : open_checked(path, kind, version, key, artifact, err);
}

/* Callers remove a damaged artifact. Another host may have replaced this one while it was read (NFS: ESTALE), so what
 * is there now is opened before they do. */
enum xfp_status xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
				  struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = open_once(path, kind, version, key, artifact, err);

	return status == XFP_DAMAGED || (status == XFP_FAILED && errno == ESTALE)
		       ? open_once(path, kind, version, key, artifact, err)
		       : status;
}

void xfp_artifact_close(struct xfp_artifact *artifact)
{
	if (artifact->path && artifact->file >= 0)
		H5Fclose(artifact->file);
	free(artifact->path);
	*artifact = (struct xfp_artifact){ .file = -1 };
}

void xfp_artifact_label_free(struct xfp_artifact_label *label)
{
	free((char *)label->kind);
	free((char *)label->key);
	free((char *)label->key_text);
	free((char *)label->unit);
	*label = (struct xfp_artifact_label){ 0 };
}
