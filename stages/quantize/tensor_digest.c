/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/tensor_digest.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoints/checkpoint.h"
#include "schemas/digest.h"
#include "stages/quantize/rows.h"

#define BLOCK_BYTES ((uint64_t)1 << 20)

/* The same bytes are other numbers in another type. */
static void add_form(struct xfp_digest *sum, const struct xfp_ledger_tensor *tensor)
{
	const char *dtype = xfp_dtype_name(tensor->dtype);

	xfp_digest_update(sum, dtype, strlen(dtype) + 1);
	xfp_digest_update(sum, &tensor->rank, sizeof tensor->rank);
	xfp_digest_update(sum, tensor->shape, tensor->rank * sizeof *tensor->shape);
}

enum xfp_status xfp_tensor_digest(const struct xfp_ledger *ledger, uint32_t number, uint8_t digest[16],
				  struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_tensor_source(ledger, number);
	struct xfp_element_reader *reader = NULL;
	struct xfp_digest *sum = xfp_digest_new();
	void *block = malloc(BLOCK_BYTES);
	enum xfp_status status = sum && block ? xfp_elements_open(&source, &reader, err) : xfp_no_memory(err);

	if (!status)
		add_form(sum, &ledger->tensors[number]);
	for (uint64_t done = 0, some; !status && done < source.bytes; done += some) {
		some = source.bytes - done < BLOCK_BYTES ? source.bytes - done : BLOCK_BYTES;
		if (!(status = xfp_elements_read(reader, done, some, block, err)))
			xfp_digest_update(sum, block, some);
	}
	xfp_elements_close(reader);
	if (sum)
		xfp_digest_final(sum, status ? NULL : digest);
	free(block);
	return status;
}
