/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/read_back.h"

#include <stdlib.h>
#include <string.h>

void fuzz_must(bool holds)
{
	if (!holds)
		abort();
}

unsigned char *fuzz_read_elements(const struct xfp_matrix_source *source, uint64_t piece)
{
	struct xfp_element_reader *reader;
	unsigned char *all = malloc(source->bytes + 1);

	fuzz_must(!xfp_elements_open(source, &reader, NULL));
	for (uint64_t at = 0; at < source->bytes; at += piece)
		fuzz_must(!xfp_elements_read(reader, at, source->bytes - at < piece ? source->bytes - at : piece,
					     all + at, NULL));
	xfp_elements_close(reader);
	return all;
}

void fuzz_read_matrices(struct xfp_matrix_source source, const struct xfp_source_tensor *t, const unsigned char *all,
			const uint8_t blocks[FUZZ_VIEWS])
{
	uint64_t cols = t->shape[t->rank - 1], rows = t->shape[t->rank - 2], size = xfp_dtype_bits(t->dtype) / 8;
	uint64_t last = t->bytes / size - rows * cols;
	const struct xfp_view views[FUZZ_VIEWS] = {
		{ last, rows, cols, cols, 1 },
		{ last, cols, rows, 1, cols },
		{ last, rows, (cols + 1) / 2, cols, 2 },
		{ last + cols / 2, (rows + 1) / 2, 1, 2 * cols, 1 },
	};

	for (size_t v = 0; v < FUZZ_VIEWS; v++) {
		const struct xfp_view *view = &views[v];
		unsigned char *got = malloc(view->rows * view->cols * size + 1);
		struct xfp_matrix_reader *reader;
		uint64_t some = 1 + blocks[v] % 4;

		source.view = *view;
		fuzz_must(!xfp_matrix_open(&source, &reader, NULL));
		for (uint64_t r = 0; r < view->rows; r += some)
			fuzz_must(!xfp_matrix_read(reader, r, view->rows - r < some ? view->rows - r : some,
						   got + r * view->cols * size, NULL));
		for (uint64_t r = 0; r < view->rows; r++)
			for (uint64_t c = 0; c < view->cols; c++)
				fuzz_must(!memcmp(
					got + (r * view->cols + c) * size,
					all + (view->base + r * view->row_stride + c * view->col_stride) * size, size));
		xfp_matrix_close(reader);
		free(got);
	}
}
