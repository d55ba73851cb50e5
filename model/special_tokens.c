/* SPDX-License-Identifier: Apache-2.0 */
#include "model/special_tokens.h"

#include <jansson.h>

#include "checkpoints/config_json.h"

static enum xfp_status add(struct xfp_token_ids *ids, json_t *value, const char *where, const char *member,
			   struct xfp_error *err)
{
	json_int_t id = json_integer_value(value);

	if (!json_is_integer(value) || id < 0 || id > UINT32_MAX)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: %s is neither a token nor a list of tokens", where, member);
	return xfp_ids_add(ids, (uint32_t)id) ? XFP_OK : xfp_no_memory(err);
}

enum xfp_status xfp_special_tokens(const char *config, const char *where, const char *member, struct xfp_token_ids *ids,
				   struct xfp_error *err)
{
	json_t *root = NULL, *value;
	enum xfp_status status = xfp_config_json(config, where, &root, err);

	value = json_object_get(root, member);
	if (!value || json_is_null(value))
		value = json_object_get(json_object_get(root, "text_config"), member);
	if (!status && json_is_array(value)) {
		for (size_t i = 0; !status && i < json_array_size(value); i++)
			status = add(ids, json_array_get(value, i), where, member, err);
	} else if (!status && value && !json_is_null(value)) {
		status = add(ids, value, where, member, err);
	}
	json_decref(root);
	return status;
}
