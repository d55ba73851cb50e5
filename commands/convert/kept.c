/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/kept.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cache/key.h"
#include "runtime/xfp.h"
#include "schemas/digest.h"

#define BLOCK ((size_t)1 << 20)
#define LARGEST ((size_t)256 << 20) /* of a small file, as inspect has it */

/* XXH3-128 of a tensor's bytes in its file. */
static enum xfp_status digest_tensor(const struct xfp_ledger *ledger, const struct xfp_ledger_tensor *tensor,
				     struct xfp_signals *signals, uint8_t digest[16], struct xfp_error *err)
{
	const char *path = ledger->files[tensor->file].path;
	struct xfp_digest *state = xfp_digest_new();
	uint8_t *block = malloc(BLOCK);
	enum xfp_status status = XFP_OK;
	struct stat st;
	int fd = -1;

	if (!state || !block)
		status = xfp_no_memory(err);
	else
		status = xfp_open_regular(path, &fd, &st, err);
	for (uint64_t done = 0; !status && done < tensor->bytes; done += BLOCK) {
		size_t size = tensor->bytes - done < BLOCK ? (size_t)(tensor->bytes - done) : BLOCK;

		if (signals && xfp_signals_came(signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (!(status = xfp_pread(fd, block, size, tensor->offset + done, path, err)))
			xfp_digest_update(state, block, size);
	}
	if (state)
		xfp_digest_final(state, digest);
	if (fd >= 0)
		close(fd);
	free(block);
	return status;
}

static enum xfp_status tensors_are_same(const struct xfp_ledger *ledger, const struct xfp_bundle *bundle,
					struct xfp_signals *signals, bool *same, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t t = 0; !status && *same && t < ledger->tensor_count; t++) {
		uint32_t number = xfp_bundle_find_tensor(bundle, ledger->tensors[t].name);
		struct xfp_tensor_info info;
		uint8_t digest[16];

		if (number == XFP_NOT_FOUND || !xfp_bundle_tensor(bundle, number, &info)) {
			*same = false;
		} else if (info.data) {
			status = digest_tensor(ledger, &ledger->tensors[t], signals, digest, err);
			*same = !status && !memcmp(digest, info.source, sizeof digest);
		}
	}
	return status;
}

static enum xfp_status files_are_same(const struct xfp_ledger *ledger, const struct xfp_bundle *bundle, bool *same,
				      struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t f = 0; !status && *same && f < ledger->extra_count; f++) {
		char *path = xfp_path(ledger->model, ledger->extras[f]), *text = NULL;
		uint32_t number = xfp_bundle_find_file(bundle, ledger->extras[f]);
		struct xfp_file_info info = { 0 };
		size_t size = 0;

		if (!path)
			status = xfp_no_memory(err);
		else if (!(status = xfp_slurp(path, LARGEST, &text, &size, err)))
			*same = number != XFP_NOT_FOUND && xfp_bundle_file(bundle, number, &info) &&
				info.bytes == size && !memcmp(text, info.data, size);
		free(text);
		free(path);
	}
	return status;
}

enum xfp_status xfp_kept_is_same(const struct xfp_ledger *ledger, const char *path, struct xfp_signals *signals,
				 bool *same, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	enum xfp_status status = xfp_bundle_open(path, &bundle, err);

	*same = true;
	if (!status)
		status = tensors_are_same(ledger, bundle, signals, same, err);
	if (!status)
		status = files_are_same(ledger, bundle, same, err);
	xfp_bundle_close(bundle);
	return status;
}
