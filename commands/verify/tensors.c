/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.c - compare the tensors of a bundle with those of a checkpoint.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "checkpoints/equal.h"
#include "commands/verify/verify.h"
#include "schemas/layout/classes.h"

#define BLOCK ((size_t)1 << 20)

/* ---- tensors ----------------------------------------------------------------------------------- */

/* Whether a tensor of the checkpoint has these bytes. */
static enum xfp_status has_bytes(const struct xfp_checkpoint *source, const struct xfp_source_tensor *tensor,
				 const uint8_t *data, bool *same, struct xfp_error *err)
{
	struct xfp_matrix_source from = xfp_checkpoint_source(source, tensor);
	struct xfp_element_reader *reader = NULL;
	uint8_t *block = malloc(BLOCK);
	enum xfp_status status = block ? xfp_elements_open(&from, &reader, err) : xfp_no_memory(err);

	*same = true;
	for (uint64_t done = 0; !status && *same && done < tensor->bytes; done += BLOCK) {
		size_t size = tensor->bytes - done < BLOCK ? tensor->bytes - done : BLOCK;

		if (!(status = xfp_elements_read(reader, done, size, block, err)))
			*same = !memcmp(block, data + done, size);
	}
	xfp_elements_close(reader);
	free(block);
	return status;
}

/* "BF16 48x64" */
static void put_kind(char text[160], enum xfp_dtype dtype, const uint64_t *shape, uint32_t rank)
{
	size_t used = (size_t)snprintf(text, 160, "%s %s", xfp_dtype_name(dtype), rank ? "" : "scalar");

	for (uint32_t d = 0; d < rank && used < 160; d++)
		used += (size_t)snprintf(text + used, 160 - used, "%s%" PRIu64, d ? "x" : "", shape[d]);
}

static enum xfp_status verify_tensor(const struct xfp_bundle *bundle, const struct xfp_tensor_info *tensor,
				     const struct xfp_checkpoint *source, bool *same, struct xfp_faults *faults,
				     struct xfp_error *err)
{
	int64_t found = xfp_checkpoint_find(source, tensor->name), other;
	struct xfp_printable name = xfp_printable(tensor->name);
	const struct xfp_source_tensor *theirs;
	struct xfp_tensor_info equal = { .name = "" };
	enum xfp_status status;
	bool equals;

	*same = false;
	if (found < 0)
		return xfp_faults_add(faults, err, XFP_UNMET, "tensor %s: not in the checkpoint", name.text);
	theirs = &source->tensors[found];
	if (theirs->dtype != (enum xfp_dtype)tensor->dtype || theirs->rank != tensor->rank ||
	    (tensor->rank && memcmp(theirs->shape, tensor->shape, tensor->rank * sizeof theirs->shape[0]))) {
		char ours[160], of_source[160];

		put_kind(ours, (enum xfp_dtype)tensor->dtype, tensor->shape, tensor->rank);
		put_kind(of_source, theirs->dtype, theirs->shape, theirs->rank);
		return xfp_faults_add(faults, err, XFP_UNMET,
				      "tensor %s: the bundle was made from %s, but the checkpoint has %s", name.text,
				      ours, of_source);
	}
	*same = true;
	if (tensor->data) {
		status = has_bytes(source, theirs, tensor->data, &equals, err);
		if (!status && !equals)
			status = xfp_faults_add(faults, err, XFP_UNMET, "tensor %s: differs from the checkpoint",
						name.text);
		return status;
	}
	if (tensor->fate != XFP_FATE_TIED)
		return XFP_OK;
	xfp_bundle_tensor(bundle, tensor->tied, &equal);
	other = xfp_checkpoint_find(source, equal.name);
	if (other < 0 || source->tensors[other].bytes != theirs->bytes)
		return XFP_OK; /* reported with the other tensor */
	status = xfp_source_tensors_equal(source, theirs, &source->tensors[other], &equals, err);
	if (!status && !equals)
		status = xfp_faults_add(faults, err, XFP_UNMET, "tensor %s: differs from %s in the checkpoint",
					name.text, xfp_printable(equal.name).text);
	return status;
}

enum xfp_status xfp_verify_tensors(const struct xfp_bundle *bundle, const struct xfp_checkpoint *source, bool *same,
				   struct xfp_faults *faults, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_tensor_info tensor;

	for (uint32_t t = 0; !status && xfp_bundle_tensor(bundle, t, &tensor); t++)
		status = verify_tensor(bundle, &tensor, source, &same[t], faults, err);
	for (uint32_t t = 0; !status && t < source->tensor_count; t++)
		if (xfp_bundle_find_tensor(bundle, source->tensors[t].name) == XFP_NOT_FOUND)
			status = xfp_faults_add(faults, err, XFP_UNMET,
						"tensor %s: in the checkpoint, not in the bundle",
						xfp_printable(source->tensors[t].name).text);
	return status;
}
