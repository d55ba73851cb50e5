/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/unicode/growable.h"

#include <stdlib.h>

#define FIRST_BYTES 256

bool xfp_grow(void *items, size_t item_size, size_t count, size_t more, size_t *capacity)
{
	size_t wanted = *capacity ? *capacity : (FIRST_BYTES + item_size - 1) / item_size;
	void *old, *grown;

	if (more > SIZE_MAX / 4 / item_size || count > SIZE_MAX / 4 / item_size)
		return false;
	while (wanted < count + more)
		wanted *= 2;
	if (wanted == *capacity)
		return true;
	memcpy(&old, items, sizeof old);
	if (!(grown = realloc(old, wanted * item_size)))
		return false;
	memcpy(items, &grown, sizeof grown);
	*capacity = wanted;
	return true;
}

void xfp_pieces_free(struct xfp_pieces *pieces)
{
	free(pieces->text.bytes);
	free(pieces->piece);
	*pieces = (struct xfp_pieces){ 0 };
}

bool xfp_pieces_add(struct xfp_pieces *pieces, struct xfp_text_piece piece)
{
	if (!piece.size)
		return true;
	if (!xfp_grow(&pieces->piece, sizeof *pieces->piece, pieces->count, 1, &pieces->capacity))
		return false;
	pieces->piece[pieces->count++] = piece;
	return true;
}
