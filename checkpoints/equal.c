/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/equal.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1 << 20)

enum xfp_status xfp_source_tensors_equal(const struct xfp_checkpoint *checkpoint, const struct xfp_source_tensor *a,
					 const struct xfp_source_tensor *b, bool *equal, struct xfp_error *err)
{
	const struct xfp_source_tensor *tensors[2] = { a, b };
	unsigned char *block[2] = { malloc(BLOCK), malloc(BLOCK) };
	struct xfp_element_reader *reader[2] = { NULL, NULL };
	enum xfp_status status = XFP_OK;

	for (int i = 0; i < 2; i++) {
		struct xfp_matrix_source source = xfp_checkpoint_source(checkpoint, tensors[i]);

		if (!block[i]) {
			status = xfp_no_memory(err);
			goto done;
		}
		if ((status = xfp_elements_open(&source, &reader[i], err)))
			goto done;
	}
	*equal = true;
	for (uint64_t at = 0; *equal && at < a->bytes; at += BLOCK) {
		size_t size = a->bytes - at < BLOCK ? (size_t)(a->bytes - at) : BLOCK;

		for (int i = 0; i < 2; i++)
			if ((status = xfp_elements_read(reader[i], at, size, block[i], err)))
				goto done;
		*equal = !memcmp(block[0], block[1], size);
	}
done:
	for (int i = 0; i < 2; i++) {
		free(block[i]);
		xfp_elements_close(reader[i]);
	}
	return status;
}
