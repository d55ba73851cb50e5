/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/packed/fold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/filesystem.h"
#include "checkpoints/config_json.h"
#include "checkpoints/format.h"

static const struct xfp_fold_form *const forms[] = { &xfp_fold_fp8, &xfp_fold_mxfp4, &xfp_fold_gptq, &xfp_fold_awq };
#define FORMS (sizeof forms / sizeof *forms)
#define CONFIG_MAX ((size_t)1 << 20) /* a file of a dozen numbers, and of overrides for some tensors */

/* What quantizes activations, or the cache of keys and values: of no concern to weights. */
static const char *const of_activations[] = {
	".input_scale", "_input_scale", ".input_scale_ub", ".output_scale", ".k_scale", ".v_scale", ".q_scale",
};

/* ---- for the folds of single forms --------------------------------------------------------------- */

bool xfp_fold_ends_with(const char *name, const char *ending)
{
	size_t length = strlen(name), tail = strlen(ending);

	return length > tail && !strcmp(name + length - tail, ending);
}

uint32_t xfp_fold_find(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, size_t cut,
		       const char *ending)
{
	char name[XFP_MAX_NAME + 64];
	int64_t found;

	snprintf(name, sizeof name, "%.*s%s", (int)(strlen(tensor->name) - cut), tensor->name, ending);
	found = xfp_checkpoint_find(fold->checkpoint, name);
	return found < 0 || fold->gone[found] ? UINT32_MAX : (uint32_t)found;
}

struct xfp_component xfp_fold_component(const struct xfp_source_tensor *tensor, enum xfp_component_role role)
{
	return (struct xfp_component){ role, tensor->dtype, tensor->file, tensor->offset, tensor->bytes };
}

enum xfp_status xfp_fold_take(struct xfp_fold *fold, uint32_t number, struct xfp_recipe_part *part)
{
	const struct xfp_checkpoint *c = fold->checkpoint;

	part->version = xfp_codec_version(part->codec);
	if (fold->config_file != UINT32_MAX)
		part->components[part->component_count++] = (struct xfp_component){
			XFP_COMPONENT_CONFIG, XFP_U8, fold->config_file, 0, c->files[fold->config_file].identity.size,
		};
	fold->folded++;
	c->tensors[number].recipe = xfp_recipe_new(part);
	return c->tensors[number].recipe ? XFP_OK : xfp_no_memory_for(fold->err, c->folder);
}

enum xfp_status xfp_fold_bad(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, const char *format,
			     ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return xfp_no_memory_for(fold->err, fold->checkpoint->folder);
	xfp_fail(fold->err, XFP_BAD_INPUT, "%s: tensor %s: %s", fold->checkpoint->files[tensor->file].path,
		 xfp_printable(tensor->name).text, text);
	free(text);
	return XFP_BAD_INPUT;
}

enum xfp_status xfp_fold_bad_config(const struct xfp_fold *fold, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return xfp_no_memory_for(fold->err, fold->checkpoint->folder);
	xfp_fail(fold->err, XFP_BAD_INPUT, "%s/%s: %s", fold->checkpoint->folder, fold->config_name, text);
	free(text);
	return XFP_BAD_INPUT;
}

struct xfp_shape_text xfp_fold_shape(uint32_t rank, const uint64_t *shape)
{
	struct xfp_shape_text shown;
	size_t used = 1;

	strcpy(shown.text, "[");
	for (uint32_t d = 0; d < rank; d++)
		used += (size_t)snprintf(shown.text + used, sizeof shown.text - used, "%s%" PRIu64, d ? ", " : "",
					 shape[d]);
	snprintf(shown.text + used, sizeof shown.text - used, "]");
	return shown;
}

/* ---- what the config says ----------------------------------------------------------------------- */

/* The quantization_config, at the top or of the language model. */
static const json_t *quantization(const json_t *root)
{
	const json_t *config = json_object_get(root, "quantization_config");

	if (!json_object_size(config))
		config = json_object_get(json_object_get(root, "text_config"), "quantization_config");
	if (!json_object_size(config))
		config = json_object_get(root, "compression_config");
	return json_object_size(config) ? config : NULL;
}

static bool is_of(const struct xfp_fold_form *form, const char *method)
{
	for (const char *const *m = form->methods; *m; m++)
		if (!strcmp(*m, method))
			return true;
	return false;
}

/* Files that older tools wrote beside config.json, of codes in words of 32 bits: only where there are such. */
static enum xfp_status read_beside(struct xfp_fold *fold, json_t **root)
{
	static const char *const names[] = { "quantize_config.json", "quant_config.json" };
	const struct xfp_checkpoint *c = fold->checkpoint;
	enum xfp_status status = XFP_OK;
	bool packed = false;

	for (uint32_t t = 0; !packed && t < c->tensor_count; t++)
		packed = xfp_fold_ends_with(c->tensors[t].name, ".qweight");
	for (size_t i = 0; !status && packed && !*root && i < sizeof names / sizeof *names; i++) {
		char *path = xfp_path(c->folder, names[i]), *text = NULL;
		struct stat st;
		size_t size;

		if (!path)
			return xfp_no_memory_for(fold->err, c->folder);
		if (!stat(path, &st) || errno != ENOENT) {
			status = xfp_slurp_regular(path, CONFIG_MAX, &text, &size, fold->err);
			if (!status)
				status = xfp_config_json(text, path, root, fold->err);
			fold->config_name = names[i];
		}
		free(text);
		free(path);
	}
	if (!status && *root)
		fold->config = *root;
	return status;
}

/* Older files do not name it, and are known by what else they say. */
static const char *method_of(const json_t *config)
{
	const char *method = json_string_value(json_object_get(config, "quant_method"));

	if (method || !config)
		return method;
	if (json_object_get(config, "desc_act") || json_object_get(config, "damp_percent"))
		return "gptq";
	if (json_object_get(config, "zero_point") || json_object_get(config, "w_bit"))
		return "awq";
	return "an unnamed method";
}

/* The file of the config becomes one of those that tensors are read from. */
static enum xfp_status add_config_file(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	struct xfp_source_file *grown = realloc(c->files, (c->file_count + (size_t)1) * sizeof *grown), *file;
	struct stat st;

	if (!grown)
		return xfp_no_memory_for(fold->err, c->folder);
	c->files = grown;
	file = &grown[c->file_count];
	*file = (struct xfp_source_file){ .name = strdup(fold->config_name),
					  .path = xfp_path(c->folder, fold->config_name) };
	fold->config_file = c->file_count++;
	if (!file->name || !file->path)
		return xfp_no_memory_for(fold->err, c->folder);
	if (stat(file->path, &st))
		return xfp_fail_errno(fold->err, errno, "%s: cannot open", file->path);
	file->identity = xfp_identity_at(file->path, &st);
	return XFP_OK;
}

/* ---- afterwards --------------------------------------------------------------------------------- */

/* Scales of what is not there, or is not packed. */
static enum xfp_status find_left_over(const struct xfp_fold *fold, const struct xfp_fold_form *form)
{
	for (uint32_t t = 0; t < fold->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &fold->checkpoint->tensors[t];

		for (const char *const *ending = form->endings; !fold->gone[t] && !tensor->recipe && *ending; ending++)
			if (xfp_fold_ends_with(tensor->name, *ending))
				return xfp_fold_bad(fold, tensor,
						    "scales weights that are not there, or are not packed as they are "
						    "elsewhere (%s); download the checkpoint again, with its index",
						    form->name);
	}
	return XFP_OK;
}

static void drop_of_activations(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	const char *first = NULL;
	uint32_t count = 0;

	for (uint32_t t = 0; t < c->tensor_count; t++)
		for (size_t i = 0; !fold->gone[t] && i < sizeof of_activations / sizeof *of_activations; i++)
			if (xfp_fold_ends_with(c->tensors[t].name, of_activations[i])) {
				fold->gone[t] = true;
				if (!count++)
					first = c->tensors[t].name;
			}
	if (count)
		xfp_checkpoint_note(c,
				    "%" PRIu32 " tensor%s that only serve%s to quantize activations %s left out "
				    "(first: %s)",
				    count, count == 1 ? "" : "s", count == 1 ? "s" : "", count == 1 ? "is" : "are",
				    xfp_printable(first).text);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_source_tensor *)a)->name, ((const struct xfp_source_tensor *)b)->name);
}

/* Logical tensors are left, and each name once. */
static enum xfp_status close_ranks(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	uint32_t count = 0;

	for (uint32_t t = 0; t < c->tensor_count; t++) {
		if (fold->gone[t]) {
			free(c->tensors[t].name);
			continue;
		}
		c->tensors[t].name[strlen(c->tensors[t].name) - fold->cut[t]] = 0;
		if (fold->ending[t])
			strcat(c->tensors[t].name, fold->ending[t]);
		c->tensors[count++] = c->tensors[t];
	}
	c->tensor_count = count;
	qsort(c->tensors, count, sizeof *c->tensors, by_name);
	for (uint32_t t = 1; t < count; t++)
		if (!strcmp(c->tensors[t - 1].name, c->tensors[t].name))
			return xfp_fold_bad(fold, &c->tensors[t],
					    "is stored both packed and unpacked, and nothing says which one counts; "
					    "remove one of them");
	return XFP_OK;
}

/* Every form that the method is of, or any where there is none: a checkpoint may be packed in several. */
static enum xfp_status fold_forms(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	enum xfp_status status = XFP_OK;
	bool folds[FORMS] = { false }, known = false;

	for (size_t i = 0; !status && i < FORMS; i++) {
		uint32_t before = fold->folded;

		if (fold->method && !is_of(forms[i], fold->method))
			continue;
		known = true;
		status = forms[i]->fold(fold);
		folds[i] = fold->folded > before;
		if (folds[i] && !c->packed)
			c->packed = forms[i]->name;
	}
	if (!status && fold->method && known && !fold->folded)
		status = xfp_fold_bad_config(
			fold,
			"says that the weights are %s, but no tensor is; if they were unpacked, remove "
			"quantization_config from it, otherwise download the checkpoint again",
			xfp_printable(fold->method).text);
	for (size_t i = 0; !status && i < FORMS; i++)
		if (folds[i])
			status = find_left_over(fold, forms[i]);
	return status;
}

enum xfp_status xfp_checkpoint_fold(struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_fold fold = { .checkpoint = c, .config_name = "config.json", .config_file = UINT32_MAX, .err = err };
	enum xfp_status status = XFP_OK;
	char *where = xfp_path(c->folder, "config.json");
	json_t *root = NULL, *beside = NULL;

	if (!where)
		return xfp_no_memory_for(err, c->folder);
	if (c->config)
		status = xfp_config_json(c->config, where, &root, err);
	free(where);
	if (status)
		return status;
	fold.config = quantization(root);
	fold.gone = calloc(c->tensor_count + (size_t)1, sizeof *fold.gone);
	fold.cut = calloc(c->tensor_count + (size_t)1, sizeof *fold.cut);
	fold.ending = calloc(c->tensor_count + (size_t)1, sizeof *fold.ending);
	if (!fold.gone || !fold.cut || !fold.ending)
		status = xfp_no_memory_for(err, c->folder);
	else if (!fold.config)
		status = read_beside(&fold, &beside);
	fold.method = method_of(fold.config);
	if (!status && fold.config)
		status = add_config_file(&fold);
	if (!status)
		status = fold_forms(&fold);
	if (!status && fold.folded) {
		drop_of_activations(&fold);
		status = close_ranks(&fold);
	} else if (!status && fold.config_file != UINT32_MAX) {
		c->file_count--;
		free(c->files[c->file_count].name);
		free(c->files[c->file_count].path);
	}
	json_decref(root);
	json_decref(beside);
	free(fold.gone);
	free(fold.cut);
	free(fold.ending);
	return status;
}
