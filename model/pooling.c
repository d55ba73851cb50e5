/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pooling.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

#define MODULES "modules.json"
#define SETTINGS "sentence_bert_config.json"
#define PROMPTS "config_sentence_transformers.json"
#define FILE_NAME 160

struct pooling_reader {
	const struct xfp_model *model;
	struct xfp_pooling *pooling;
	const char *file; /* the one being read */
	enum xfp_status status;
	struct xfp_error *err;
};

static XFP_PRINTF(2, 3) void refuse(struct pooling_reader *r, const char *format, ...)
{
	va_list arguments;

	if (r->status)
		return;
	va_start(arguments, format);
	xfp_fail_args(r->err, XFP_BAD_INPUT, format, arguments);
	va_end(arguments);
	r->status = xfp_context(r->err, XFP_BAD_INPUT, "%s: %s", xfp_printable(r->model->name).text, r->file);
}

/* Parse one of the model's files, for the caller to release. NULL if it does not exist. */
static json_t *read_json(struct pooling_reader *r, const char *file)
{
	char *bytes = NULL;
	json_t *root = NULL;
	size_t size = 0;

	r->file = file;
	if (r->status || (r->status = xfp_weights_file(r->model->weights, file, &bytes, &size, r->err)) || !bytes)
		return NULL;
	if (!(root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL)))
		refuse(r, "is not valid JSON; download the file again");
	else if (strcmp(file, MODULES) && !json_is_object(root))
		refuse(r, "is not a JSON object; download the file again");
	free(bytes);
	return root;
}

/* A text, "" if it is missing or null. */
static const char *text_of(struct pooling_reader *r, json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (value && !json_is_null(value) && !json_is_string(value))
		refuse(r, "%s is not a text", key);
	return json_is_string(value) ? json_string_value(value) : "";
}

/* A flag, false if it is missing or null. */
static bool is_set(struct pooling_reader *r, json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (value && !json_is_null(value) && !json_is_boolean(value))
		refuse(r, "%s is neither true nor false", key);
	return json_is_true(value);
}

/* The class of a module: "Pooling" of "sentence_transformers.models.Pooling". */
static const char *class_of(struct pooling_reader *r, json_t *module)
{
	const char *type = text_of(r, module, "type"), *dot = strrchr(type, '.');

	return dot ? dot + 1 : type;
}

static const struct {
	const char *title, *key; /* the key of older files */
	bool supported;
	enum xfp_pooling_mode mode;
} modes[] = {
	{ "mean", "pooling_mode_mean_tokens", true, XFP_POOL_MEAN },
	{ "cls", "pooling_mode_cls_token", true, XFP_POOL_CLS },
	{ "max", "pooling_mode_max_tokens", true, XFP_POOL_MAX },
	{ "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", false, XFP_POOL_MEAN },
	{ "weightedmean", "pooling_mode_weightedmean_tokens", false, XFP_POOL_MEAN },
	{ "lasttoken", "pooling_mode_lasttoken", false, XFP_POOL_MEAN },
};
#define MODES (sizeof modes / sizeof *modes)

/* The mode by its name, in newer files, or else the only one whose key is true. */
static void read_mode(struct pooling_reader *r, json_t *config)
{
	json_t *name = json_object_get(config, "pooling_mode");
	unsigned found = 0;
	size_t mode = 0;

	if (name && !json_is_string(name)) {
		refuse(r, "pooling_mode is not the name of one mode");
		return;
	}
	for (size_t i = 0; i < MODES; i++) {
		if (name ? strcmp(json_string_value(name), modes[i].title) : !is_set(r, config, modes[i].key))
			continue;
		found++;
		mode = i;
	}
	if (name && !found)
		refuse(r, "pooling_mode %s is not supported; mean, cls and max are",
		       xfp_printable(json_string_value(name)).text);
	else if (!found)
		refuse(r, "names no pooling mode");
	else if (found > 1)
		refuse(r, "names several pooling modes, which are not supported together");
	else if (!modes[mode].supported)
		refuse(r, "%s is not supported; mean, cls and max are", name ? modes[mode].title : modes[mode].key);
	r->pooling->mode = modes[mode].mode;
	r->pooling->title = modes[mode].title;
}

static void read_pooling(struct pooling_reader *r, const char *folder)
{
	char file[FILE_NAME];
	json_t *config, *width;

	if (!*folder || *folder == '.' || strchr(folder, '/') || strlen(folder) + sizeof "/config.json" > sizeof file) {
		refuse(r, "the path of Pooling, \"%s\", is not a folder of the model", xfp_printable(folder).text);
		return;
	}
	snprintf(file, sizeof file, "%s/config.json", folder);
	config = read_json(r, file);
	if (!config)
		refuse(r, "is missing, but " MODULES " names it; download it, and convert a bundle again");
	if (!r->status)
		read_mode(r, config);
	width = json_object_get(config, "word_embedding_dimension");
	if (width && json_integer_value(width) != (json_int_t)r->model->description->hidden)
		refuse(r, "word_embedding_dimension is not the model's hidden_size");
	json_decref(config);
	r->file = MODULES;
}

/* Modules must be the transformer itself, then Pooling, then perhaps Normalize. */
static void read_modules(struct pooling_reader *r, json_t *modules)
{
	static const char *const order[] = { "Transformer", "Pooling", "Normalize" };
	size_t count = json_array_size(modules);

	for (size_t i = 0; !r->status && i < count; i++) {
		json_t *module = json_array_get(modules, i);
		const char *class = class_of(r, module);

		if (i > 2 || strcmp(class, order[i]))
			refuse(r,
			       "module %zu, \"%s\", is not supported; Transformer, Pooling and Normalize are, in this "
			       "order",
			       i, xfp_printable(class).text);
		else if (i == 0 && *text_of(r, module, "path"))
			refuse(r, "the transformer is in the folder %s; name that folder as the model",
			       xfp_printable(text_of(r, module, "path")).text);
		else if (i == 1)
			read_pooling(r, text_of(r, module, "path"));
	}
	if (!r->status && count < 2)
		refuse(r, "does not list Transformer and Pooling");
	r->pooling->normalize = count == 3;
}

static void read_settings(struct pooling_reader *r)
{
	json_t *settings = read_json(r, SETTINGS), *longest = json_object_get(settings, "max_seq_length");
	json_int_t number = json_integer_value(longest);

	if (is_set(r, settings, "do_lower_case"))
		refuse(r, "do_lower_case is true, which is not supported");
	if (longest && !json_is_null(longest) && !(json_is_integer(longest) && number >= 1 && number <= INT32_MAX))
		refuse(r, "max_seq_length is not a valid number of tokens");
	else
		r->pooling->longest = (uint32_t)number;
	json_decref(settings);
	settings = read_json(r, PROMPTS);
	if (*text_of(r, settings, "default_prompt_name"))
		refuse(r, "default_prompt_name is not null; prompts are not supported");
	json_decref(settings);
}

enum xfp_status xfp_pooling_read(const struct xfp_model *model, struct xfp_pooling *pooling, struct xfp_error *err)
{
	struct pooling_reader r = { .model = model, .pooling = pooling, .err = err };
	json_t *modules;

	*pooling = (struct xfp_pooling){ .mode = XFP_POOL_MEAN, .title = modes[0].title };
	modules = read_json(&r, MODULES);
	if (modules) {
		pooling->named = true;
		read_modules(&r, modules);
	}
	json_decref(modules);
	if (!r.status)
		read_settings(&r);
	return r.status;
}

/* ---- computing ---------------------------------------------------------------------------------- */

static float pool_element(enum xfp_pooling_mode mode, const float *x, size_t tokens, size_t width)
{
	double sum = 0, max = *x;

	if (mode == XFP_POOL_CLS)
		return *x;
	for (size_t t = 0; t < tokens; t++, x += width) {
		sum += *x;
		max = *x > max ? *x : max;
	}
	return (float)(mode == XFP_POOL_MAX ? max : sum / (double)tokens);
}

void xfp_pool(const struct xfp_pooling *pooling, const float *x, size_t tokens, size_t width, float *embedding)
{
	double squares = 0, length;

	for (size_t i = 0; i < width; i++) {
		embedding[i] = pool_element(pooling->mode, x + i, tokens, width);
		squares += (double)embedding[i] * embedding[i];
	}
	length = sqrt(squares);
	for (size_t i = 0; pooling->normalize && i < width; i++)
		embedding[i] = (float)(embedding[i] / (length > 1e-12 ? length : 1e-12));
}
