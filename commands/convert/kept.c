/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cache/key.h"
#include "commands/convert/read_through.h"
#include "runtime/xfp.h"
#include "schemas/digest.h"

#define LARGEST ((size_t)256 << 20) /* of a small file, as inspect has it */

static void take(void *context, const void *data, size_t size)
{
	xfp_digest_update(context, data, size);
}

/* XXH3-128 of a tensor's bytes in its file. */
static enum xfp_status digest_tensor(const struct xfp_ledger *ledger, const struct xfp_ledger_tensor *tensor,
				     struct xfp_signals *signals, uint8_t digest[16], struct xfp_error *err)
{
	struct xfp_digest *state = xfp_digest_new();
	enum xfp_status status;

	if (!state)
		return xfp_no_memory(err);
	status = xfp_read_through(ledger->files[tensor->file].path, tensor->offset, tensor->bytes, signals, take, state,
				  err);
	xfp_digest_final(state, digest);
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
