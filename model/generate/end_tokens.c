/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generate/end_tokens.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "checkpoints/config_json.h"

static enum xfp_status add_end(struct xfp_token_ids *ends, json_t *value, const char *where, struct xfp_error *err)
{
	json_int_t id = json_integer_value(value);
	uint32_t *grown;

	if (!json_is_integer(value) || id < 0 || id > UINT32_MAX)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: eos_token_id is neither a token nor a list of tokens", where);
	if (!(grown = realloc(ends->id, (ends->count + 1) * sizeof *grown)))
		return xfp_no_memory(err);
	grown[ends->count++] = (uint32_t)id;
	ends->id = grown;
	return XFP_OK;
}

static enum xfp_status read_ends(const struct xfp_model *model, const char *text, const char *name,
				 struct xfp_token_ids *ends, struct xfp_error *err)
{
	char *where = xfp_formatted("%s: %s", xfp_weights_path(model->weights), name);
	json_t *root = NULL, *ids;
	enum xfp_status status = where ? xfp_config_json(text, where, &root, err) : xfp_no_memory(err);

	ids = json_object_get(root, "eos_token_id");
	if (!ids || json_is_null(ids))
		ids = json_object_get(json_object_get(root, "text_config"), "eos_token_id");
	if (!status && json_is_array(ids)) {
		for (size_t i = 0; !status && i < json_array_size(ids); i++)
			status = add_end(ends, json_array_get(ids, i), where, err);
	} else if (!status && ids && !json_is_null(ids)) {
		status = add_end(ends, ids, where, err);
	}
	json_decref(root);
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
