/* SPDX-License-Identifier: Apache-2.0 */
#include "model/end_tokens.h"

#include <stdlib.h>

#include "base/system/file.h"
#include "model/special_tokens.h"

static enum xfp_status read_ends(const struct xfp_model *model, const char *text, const char *name,
				 struct xfp_token_ids *ends, struct xfp_error *err)
{
	char *where = xfp_formatted("%s: %s", xfp_weights_path(model->weights), name);
	enum xfp_status status =
		where ? xfp_special_tokens(text, where, "eos_token_id", ends, err) : xfp_no_memory(err);

	free(where);
	return status;
}

enum xfp_status xfp_end_tokens_read(const struct xfp_model *model, struct xfp_token_ids *ends, struct xfp_error *err)
{
	static const char name[] = "generation_config.json";
	char *text;
	size_t size;
	enum xfp_status status = xfp_weights_file(model->weights, name, &text, &size, err);

	if (!status && text)
		status = read_ends(model, text, name, ends, err);
	if (!status && !ends->count && xfp_weights_config(model->weights))
		status = read_ends(model, xfp_weights_config(model->weights), "config.json", ends, err);
	free(text);
	return status;
}
