/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/unchanged.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/system/filesystem.h"
#include "base/system/read_through.h"
#include "cache/key.h"
#include "conversion/kept.h"
#include "runtime/xfp.h"
#include "schemas/digest.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/recipe/recipe.h"

/* ---- the key ----------------------------------------------------------------------------------- */

static bool XFP_PRINTF(2, 3) add(struct xfp_digest *digest, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (size < 0)
		return false;
	xfp_digest_update(digest, text, (size_t)size + 1);
	free(text);
	return true;
}

static bool add_identity(struct xfp_digest *digest, const struct xfp_identity *id)
{
	return add(digest, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64, id->device, id->inode, id->size,
		   id->mtime_ns, id->ctime_ns);
}

/* Add the identity of a small file or, for a generated one, its content, since a dry run generates it again
 * elsewhere. */
static bool add_extra(struct xfp_digest *digest, const struct xfp_ledger *ledger, uint32_t extra)
{
	struct xfp_identity id = { 0 };
	struct stat st;
	char *path;
	bool ok;

	if (xfp_ledger_extra_is_synthesized(ledger, extra))
		return add(digest, "%s", ledger->synthesized[extra].hex);
	path = xfp_ledger_extra_path(ledger, extra);
	if (path && !stat(path, &st))
		id = xfp_identity_of(&st);
	ok = path && add_identity(digest, &id);
	free(path);
	return ok;
}

static bool add_ledger(struct xfp_digest *digest, const struct xfp_ledger *ledger)
{
	bool ok = add(digest, "%s", ledger->family);

	for (uint32_t i = 0; ok && i < ledger->file_count; i++)
		ok = add_identity(digest, &ledger->files[i].identity);
	for (uint32_t i = 0; ok && i < ledger->tensor_count; i++) {
		const struct xfp_ledger_tensor *t = &ledger->tensors[i];

		ok = add(digest, "%s", t->name) && add(digest, "%s", t->reason) &&
		     add(digest, "%d %d %d %" PRIu32 " %" PRIu64 " %" PRIu64, t->dtype, t->class_, t->fate, t->file,
			 t->offset, t->bytes);
		if (t->recipe) {
			uint8_t sha256[32];

			xfp_recipe_digest(t->recipe, ledger->files, sha256);
			xfp_digest_update(digest, sha256, sizeof sha256);
		}
	}
	for (uint32_t i = 0; ok && i < ledger->extra_count; i++) {
		ok = add(digest, "%s", ledger->extras[i]) && add_extra(digest, ledger, i);
	}
	return ok;
}

/* Add the algorithms that made the dropped artifacts. */
static bool add_algorithms(struct xfp_digest *digest, const struct xfp_parameters *parameters)
{
	bool ok = add(digest, "alone");

	for (int i = 0; ok && i < XFP_ALGORITHMS; i++)
		if (xfp_algorithm_decides(&xfp_algorithms[i], parameters))
			ok = add(digest, "%s %u", xfp_algorithms[i].name, xfp_algorithms[i].version);
	return ok;
}

static bool add_goal(struct xfp_digest *digest, const struct xfp_goal *goal)
{
	bool ok = !goal->kind || add(digest, "goal %d %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64, goal->kind,
				     goal->bytes, goal->micro, goal->gpus, goal->reserve);

	for (uint32_t i = 0; ok && goal->kind && i < goal->weight_count; i++)
		ok = add(digest, "%s %" PRIu32, goal->weights[i].pattern, goal->weights[i].milli);
	return ok;
}

enum xfp_status xfp_bundle_stamp_key(const struct xfp_conversion *c, bool standalone, char key[33],
				     struct xfp_error *err)
{
	const struct xfp_goal *goal = &c->request->goal;
	struct xfp_parameters own = c->parameters;
	char *parameters;
	struct xfp_digest *digest = xfp_digest_new();
	uint8_t bytes[16] = { 0 };
	bool ok;

	/* The solution of a goal is known only while artifacts exist. */
	if (standalone && goal->kind) {
		own.assigned = NULL;
		own.assigned_count = 0;
	}
	parameters = xfp_parameters_to_json(&own);
	ok = digest && parameters && add(digest, "%s %d", PACKAGE_VERSION, XFP_BUNDLE_VERSION) &&
	     add(digest, "%s", parameters) && add_ledger(digest, c->units.ledger);

	if (standalone)
		ok = ok && add_algorithms(digest, &own) && add_goal(digest, goal);
	for (uint32_t i = 0; ok && i < c->units.ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[i];

		ok = add(digest, "%s", unit->name) && add(digest, "%s %d %s %s", unit->role, unit->class_,
							  standalone ? "" : c->units.state[i].key[XFP_STAMP_CHOICE],
							  standalone ? "" : c->units.state[i].key[XFP_STAMP_PACKED]);
	}
	if (digest)
		xfp_digest_final(digest, bytes);
	free(parameters);
	xfp_hex(bytes, 16, key);
	return ok ? XFP_OK : xfp_no_memory(err);
}

/* ---- the bundle -------------------------------------------------------------------------------- */

enum xfp_status xfp_bundle_stamp_fill(const char *path, struct xfp_bundle_stamp *stamp, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	char sum[XFP_SUM_BYTES + 1] = "";
	struct xfp_bundle_info info;
	enum xfp_status status;
	struct stat st;
	int fd;

	/* xfp_bundle_open compares the index with xfp.sum, which must be in its place. */
	if ((status = xfp_bundle_open(path, &bundle, err)))
		return status;
	xfp_bundle_describe(bundle, &info);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		status = xfp_fail_errno(err, errno, "%s", path);
	else
		status = xfp_pread(fd, sum, XFP_SUM_BYTES, info.file_bytes - 3 * (uint64_t)XFP_TAR_BLOCK, path, err);
	if (!status) {
		stamp->identity = xfp_identity_of(&st);
		xfp_key_of_text(sum, stamp->index);
	}
	if (fd >= 0)
		close(fd);
	xfp_bundle_close(bundle);
	return status;
}

/* Whether OUT is unmodified since the stamp was written. */
static enum xfp_status is_as_written(const struct xfp_conversion *c, const struct xfp_bundle_stamp *stamp, bool *same,
				     struct xfp_error *err)
{
	struct xfp_bundle_stamp now = { .key = "" };
	enum xfp_status status = xfp_bundle_stamp_fill(c->request->out, &now, err);

	*same = !status && !strcmp(now.index, stamp->index);
	if (*same && c->request->rehash) {
		status = xfp_sha256_file(c->request->out, c->signals, now.sha256, err);
		*same = !status && !strcmp(now.sha256, stamp->sha256);
	}
	return status == XFP_BAD_INPUT ? XFP_OK : status;
}

enum xfp_status xfp_bundle_stamp_matches(const struct xfp_conversion *c, bool standalone,
					 struct xfp_bundle_stamp *stamp, bool *matches, struct xfp_error *err)
{
	struct xfp_identity now;
	enum xfp_status status;
	struct stat st;
	char key[33];
	bool sound;

	*matches = false;
	/* Without artifacts, weights that are read again could only be compared with the bundle. */
	if (standalone && c->request->rehash)
		return XFP_OK;
	status = xfp_bundle_stamp_read(c->request->work, stamp, &sound, err);
	if (status || !sound || stat(c->request->out, &st))
		return status;
	now = xfp_identity_at(c->request->out, &st);
	if (!xfp_identity_equal(&now, &stamp->identity))
		return XFP_OK;
	if ((status = xfp_bundle_stamp_key(c, standalone, key, err)) || strcmp(key, stamp->key))
		return status;
	status = is_as_written(c, stamp, matches, err);
	/* Detect changes that did not affect a file's times. Units were already digested. */
	if (!status && *matches && c->request->rehash && !c->request->dry_run)
		return xfp_kept_is_same(c->units.ledger, c->request->out, c->signals, matches, err);
	if (!status && !*matches)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_BUNDLE_DAMAGED);
	return status;
}
