/* SPDX-License-Identifier: Apache-2.0 */
#include "model/text.h"

#include <stdlib.h>
#include <string.h>

/* Encode a short text with and without them. */
enum xfp_status xfp_text_around(const struct xfp_tokenizer *tokenizer, struct xfp_token_ids *prefix,
				struct xfp_token_ids *suffix, struct xfp_error *err)
{
	struct xfp_token_ids plain = { 0 };
	enum xfp_status status = xfp_tokenizer_encode(tokenizer, "a", 1, false, &plain, err);
	size_t first = 0;

	if (!status)
		status = xfp_tokenizer_encode(tokenizer, "a", 1, true, prefix, err);
	while (!status && first + plain.count < prefix->count &&
	       memcmp(prefix->id + first, plain.id, plain.count * sizeof *plain.id))
		first++;
	for (size_t i = first + plain.count; !status && i < prefix->count; i++)
		if (!xfp_ids_add(suffix, prefix->id[i]))
			status = xfp_no_memory(err);
	prefix->count = first;
	free(plain.id);
	return status;
}

enum xfp_status xfp_text_encode(const struct xfp_tokenizer *tokenizer, const char *text, size_t size,
				struct xfp_text_ids *ids, struct xfp_error *err)
{
	enum xfp_status status;

	*ids = (struct xfp_text_ids){ .defects = "" };
	if (!xfp_text_defects_text(text, size, ids->defects))
		*ids->defects = 0;
	status = xfp_text_around(tokenizer, &ids->prefix, &ids->suffix, err);
	return status ? status : xfp_tokenizer_encode(tokenizer, text, size, false, &ids->ids, err);
}

void xfp_text_ids_free(struct xfp_text_ids *ids)
{
	free(ids->prefix.id);
	free(ids->ids.id);
	free(ids->suffix.id);
	*ids = (struct xfp_text_ids){ .defects = "" };
}
