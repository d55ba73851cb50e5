/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "model/text.h"

enum xfp_status xfp_evaluation_tokenizer(const struct xfp_model *model, const struct xfp_model *other,
					 struct xfp_tokenizer **tokenizer, struct xfp_error *err)
{
	enum xfp_status status = xfp_model_tokenizer(model, tokenizer, err);

	if (!status && !*tokenizer && other)
		status = xfp_model_tokenizer(model = other, tokenizer, err);
	if (!status && !*tokenizer)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: has no tokenizer.json, which --text needs; convert the model from a folder "
				  "that has it, or use --tokens",
				  xfp_weights_path(model->weights));
	return status;
}

/* Cut the text into sequences, each with the prefix before it. */
static enum xfp_status cut(const char *path, const struct xfp_text_ids *encoded, size_t length,
			   struct xfp_tokens *tokens, struct xfp_error *err)
{
	const struct xfp_token_ids *prefix = &encoded->prefix, *text = &encoded->ids;
	size_t own;
	uint32_t *to;

	if (!text->count || prefix->count + text->count < 2)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: is %s, so there is nothing to predict; use a text of at least two tokens", path,
				text->count ? "a single token" : "empty");
	if (length <= prefix->count)
		return xfp_fail(err, XFP_USAGE, "--length %zu: leaves no room after the %zu tokens that begin a text",
				length, prefix->count);
	own = length - prefix->count;
	if (own > text->count)
		own = text->count;
	*tokens = (struct xfp_tokens){ .sequences = text->count / own,
				       .length = prefix->count + own,
				       .left_out = text->count % own };
	if (!(tokens->ids = malloc(tokens->sequences * tokens->length * sizeof *tokens->ids)))
		return xfp_no_memory_for(err, path);
	to = tokens->ids;
	for (size_t s = 0; s < tokens->sequences; s++, to += tokens->length) {
		if (prefix->count)
			memcpy(to, prefix->id, prefix->count * sizeof *to);
		memcpy(to + prefix->count, text->id + s * own, own * sizeof *to);
	}
	return XFP_OK;
}

enum xfp_status xfp_tokens_of_text(const char *path, const struct xfp_model *model, const struct xfp_model *other,
				   size_t length, struct xfp_tokens *tokens, char defects[XFP_TEXT_DEFECTS],
				   struct xfp_error *err)
{
	struct xfp_text_ids ids = { .defects = "" };
	struct xfp_tokenizer *tokenizer = NULL;
	char *text = NULL;
	enum xfp_status status;
	size_t size;

	*tokens = (struct xfp_tokens){ 0 };
	*defects = 0;
	if ((status = xfp_evaluation_tokenizer(model, other, &tokenizer, err)) ||
	    (status = xfp_slurp_input(path, XFP_LARGEST_TEXT, &text, &size, err)))
		goto done;
	if (!(status = xfp_text_encode(tokenizer, text, size, &ids, err)))
		status = cut(xfp_input_name(path), &ids, length, tokens, err);
	memcpy(defects, ids.defects, sizeof ids.defects);
done:
	free(text);
	xfp_text_ids_free(&ids);
	xfp_tokenizer_free(tokenizer);
	return status;
}
