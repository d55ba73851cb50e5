/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/inspect/synthesized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/system/file.h"
#include "schemas/digest.h"

#define SYNTHESIZED_FOLDER "made" /* in the work folder */
#define LARGEST_SYNTHESIZED_FILE ((size_t)1 << 30)

/* Write a file unless it is unchanged, since a new identity makes stages run again. */
static enum xfp_status write_synthesized(const char *folder, const struct xfp_synthesized_file *file,
					 struct xfp_ledger_synthesized *synthesized, struct xfp_error *err)
{
	struct xfp_digest *digest = xfp_digest_new();
	enum xfp_status status = XFP_OK;
	uint8_t bytes[16];
	size_t size = 0;
	char *old = NULL;

	if (!digest)
		return xfp_no_memory(err);
	xfp_digest_update(digest, file->bytes, file->size);
	xfp_digest_final(digest, bytes);
	xfp_hex(bytes, sizeof bytes, synthesized->hex);
	if (!(synthesized->path = xfp_path(folder, file->name)))
		return xfp_no_memory(err);
	if (xfp_slurp(synthesized->path, LARGEST_SYNTHESIZED_FILE, &old, &size, NULL) || size != file->size ||
	    memcmp(old, file->bytes, size) != 0)
		status = xfp_write_file(synthesized->path, file->bytes, file->size, false, err);
	free(old);
	return status;
}

enum xfp_status xfp_inspection_write_synthesized(const char *work, const struct xfp_checkpoint *checkpoint,
						 struct xfp_ledger *ledger, struct xfp_error *err)
{
	char *below = checkpoint->synthesized_count ? xfp_path(work, SYNTHESIZED_FOLDER) : NULL, *folder = NULL;
	enum xfp_status status = XFP_OK;

	if (!checkpoint->synthesized_count)
		return XFP_OK;
	if (!below)
		return xfp_no_memory(err);
	/* The ledger's reader may have another current folder. */
	if (!(status = xfp_mkdirs(below, err)) && !(folder = realpath(below, NULL)))
		status = xfp_fail_errno(err, errno, "%s: cannot resolve the full path", below);
	for (uint32_t m = 0, e = 0; !status && m < checkpoint->synthesized_count; m++) {
		while (strcmp(ledger->extras[e], checkpoint->synthesized[m].name) != 0)
			e++;
		status = write_synthesized(folder, &checkpoint->synthesized[m], &ledger->synthesized[e], err);
	}
	free(folder);
	free(below);
	return status;
}
