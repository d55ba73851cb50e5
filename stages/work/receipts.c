/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/receipts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *receipt_path(const char *work, uint32_t unit)
{
	return xfp_formatted("%s/u%06" PRIu32 "-receipt", work, unit);
}

enum xfp_status xfp_receipt_publish(const char *work, uint32_t unit, const char *name, const struct xfp_key *key,
				    const struct xfp_receipt *receipt, struct xfp_error *err)
{
	const struct xfp_artifact_label label = { .kind = XFP_RECEIPT_KIND,
						  .version = XFP_RECEIPT_VERSION,
						  .key = key->hex,
						  .key_text = key->text,
						  .unit = name };
	char *path = receipt_path(work, unit);
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status = path ? xfp_pending_open(path, &pending, err) : xfp_no_memory(err);

	if (!status)
		status = xfp_artifact_create(pending.path, &artifact, err);
	if (!status)
		status = xfp_receipt_write(&artifact, receipt, err);
	if (!status)
		status = xfp_artifact_finish(&artifact, &label, err);
	if (!status)
		status = xfp_pending_publish(&pending, false, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	free(path);
	return status;
}

enum xfp_status xfp_receipt_find(const char *work, uint32_t unit, struct xfp_receipt *receipt, char key[33],
				 struct xfp_error *err)
{
	char *path = receipt_path(work, unit);
	struct xfp_artifact_label label = { 0 };
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status;

	*receipt = (struct xfp_receipt){ 0 };
	*key = 0;
	if (!path)
		return xfp_no_memory(err);
	if (access(path, F_OK) && errno == ENOENT) {
		free(path);
		return XFP_OK;
	}
	status = xfp_artifact_open(path, XFP_RECEIPT_KIND, XFP_RECEIPT_VERSION, NULL, &artifact, err);
	if (!status)
		status = xfp_artifact_get_label(&artifact, &label, err);
	if (!status)
		status = xfp_receipt_read(&artifact, receipt, err);
	if (!status)
		memcpy(key, label.key, 33);
	xfp_artifact_label_free(&label);
	xfp_artifact_close(&artifact);
	free(path);
	return status;
}

bool xfp_receipt_exists(const char *work, uint32_t unit)
{
	char *path = receipt_path(work, unit);
	bool exists = path && !access(path, F_OK);

	free(path);
	return exists;
}

void xfp_receipt_remove(const char *work, uint32_t unit)
{
	char *path = receipt_path(work, unit);

	if (path)
		unlink(path);
	free(path);
}

static enum xfp_status sync_receipt(const char *work, uint32_t unit, struct xfp_error *err)
{
	char *path = receipt_path(work, unit);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	enum xfp_status status = path ? XFP_OK : xfp_no_memory(err);

	if (path && ((fd < 0 && errno != ENOENT) || (fd >= 0 && fsync(fd))))
		status = xfp_fail_errno(err, errno, "%s: cannot sync", path);
	if (fd >= 0)
		close(fd);
	free(path);
	return status;
}

enum xfp_status xfp_receipts_sync(const char *work, uint32_t first, uint32_t end, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t unit = first; !status && unit < end; unit++)
		status = sync_receipt(work, unit, err);
	return status || first >= end ? status : xfp_sync_folder(work, err);
}

/* ---- keys -------------------------------------------------------------------------------------- */

char *xfp_receipt_keys_text(char (*key)[33])
{
	char text[XFP_STAMPS * 33 + 1] = "";

	for (int s = 0; s < XFP_STAMPS; s++) {
		strcat(text, s ? " " : "");
		strcat(text, *key[s] ? key[s] : "-");
	}
	return strdup(text);
}

bool xfp_receipt_keys(const struct xfp_receipt *receipt, char (*key)[33])
{
	char *copy = strdup(receipt->keys), *rest = copy;
	bool good = copy;

	for (int s = 0; good && s < XFP_STAMPS; s++) {
		const char *word = strsep(&rest, " ");

		good = word && (!strcmp(word, "-") || (strlen(word) == 32 && strspn(word, "0123456789abcdef") == 32));
		if (good)
			strcpy(key[s], *word == '-' ? "" : word);
	}
	good = good && !rest;
	free(copy);
	return good;
}
