/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cache/key.h"
#include "runtime/xfp.h"
#include "schemas/digest.h"
#include "stages/quantize/rows.h"

#define LARGEST ((size_t)256 << 20) /* limit for small files, as in inspect */
#define BLOCK ((uint64_t)1 << 20)

/* XXH3-128 of a tensor's bytes, as stored in bundles. */
static enum xfp_status digest_tensor(const struct xfp_ledger *ledger, uint32_t number, struct xfp_signals *signals,
				     uint8_t digest[16], struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_tensor_source(ledger, number);
	struct xfp_element_reader *reader = NULL;
	struct xfp_digest *state = xfp_digest_new();
	void *block = malloc(BLOCK);
	enum xfp_status status;

	/* Use the current file; whether it was modified is not checked here. */
	source.identity = NULL;
	status = state && block ? xfp_elements_open(&source, &reader, err) : xfp_no_memory(err);
	for (uint64_t done = 0; !status && done < source.bytes; done += BLOCK) {
		uint64_t size = source.bytes - done < BLOCK ? source.bytes - done : BLOCK;

		if (signals && xfp_signals_arrived(signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (!(status = xfp_elements_read(reader, done, size, block, err)))
			xfp_digest_update(state, block, size);
	}
	if (state)
		xfp_digest_final(state, digest);
	xfp_elements_close(reader);
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
			status = digest_tensor(ledger, t, signals, digest, err);
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
		char *path = xfp_ledger_extra_path(ledger, f), *text = NULL;
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
