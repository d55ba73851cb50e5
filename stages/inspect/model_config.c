/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/model_config.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text/whole_number.h"
#include "checkpoints/config_json.h"

struct xfp_model_config {
	bool present;
	json_t *root; /* an object */
	json_t *text; /* its text_config, borrowed, or NULL */
};

enum xfp_status xfp_model_config_parse(const char *text, const char *where, struct xfp_model_config **out,
				       struct xfp_error *err)
{
	struct xfp_model_config *config = calloc(1, sizeof *config);
	enum xfp_status status;

	*out = NULL;
	if (!config)
		return xfp_no_memory(err);
	config->present = text != NULL;
	if ((status = xfp_config_json(text ? text : "{}", where, &config->root, err))) {
		xfp_model_config_free(config);
		return status;
	}
	config->text = json_object_get(config->root, "text_config");
	if (!json_is_object(config->text))
		config->text = NULL;
	*out = config;
	return XFP_OK;
}

void xfp_model_config_free(struct xfp_model_config *config)
{
	if (!config)
		return;
	json_decref(config->root);
	free(config);
}

bool xfp_model_config_present(const struct xfp_model_config *config)
{
	return config->present;
}

static json_t *field(const struct xfp_model_config *config, const char *key)
{
	json_t *value = json_object_get(config->text, key);

	if (!value || json_is_null(value))
		value = json_object_get(config->root, key);
	return value;
}

const char *xfp_model_config_type(const struct xfp_model_config *config, unsigned which)
{
	return json_string_value(json_object_get(which ? config->text : config->root, "model_type"));
}

const char *xfp_model_config_architecture(const struct xfp_model_config *config, size_t i)
{
	return json_string_value(json_array_get(json_object_get(config->root, "architectures"), i));
}

bool xfp_model_config_number(const struct xfp_model_config *config, const char *key, uint64_t *value)
{
	json_t *json = field(config, key);
	uint64_t hidden, heads;

	if (json_is_integer(json) && json_integer_value(json) >= 0) {
		*value = (uint64_t)json_integer_value(json);
		return true;
	}
	if (!strcmp(key, "num_key_value_heads"))
		return xfp_model_config_number(config, "num_attention_heads", value);
	if (!strcmp(key, "head_dim") && xfp_model_config_number(config, "hidden_size", &hidden) &&
	    xfp_model_config_number(config, "num_attention_heads", &heads) && heads) {
		*value = hidden / heads;
		return true;
	}
	return false;
}

bool xfp_model_config_assume(struct xfp_model_config *config, const char *key, uint64_t value)
{
	if (value > INT64_MAX)
		return false;
	return !json_object_set_new(config->root, key, json_integer((json_int_t)value));
}

bool xfp_model_config_product(const struct xfp_model_config *config, const char *product, uint64_t *value)
{
	uint64_t result = 1;

	for (const char *p = product;; p++) {
		size_t length = strcspn(p, "*");
		uint64_t factor = 0;
		char key[128];

		if (!length || length >= sizeof key)
			return false;
		memcpy(key, p, length);
		key[length] = 0;
		if (isdigit((unsigned char)*key)) {
			if (!xfp_whole_number_parse(key, 0, UINT64_MAX, &factor))
				return false;
		} else if (!xfp_model_config_number(config, key, &factor)) {
			return false;
		}
		if (!xfp_mul(result, factor, &result))
			return false;
		p += length;
		if (!*p)
			break;
	}
	*value = result;
	return true;
}

bool xfp_model_config_bool(const struct xfp_model_config *config, const char *key, bool missing)
{
	json_t *json = field(config, key);

	return json_is_boolean(json) ? json_is_true(json) : missing;
}

const char *xfp_model_config_quantized(const struct xfp_model_config *config)
{
	static const char *const keys[] = { "quantization_config", "compression_config" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		json_t *json = field(config, keys[i]);
		const char *method = json_string_value(json_object_get(json, "quant_method"));

		if (method)
			return method;
		if (json_object_size(json))
			return "an unnamed method";
	}
	return NULL;
}
