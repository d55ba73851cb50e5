/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_config.c - find the quantization config of a checkpoint.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/filesystem.h"
#include "base/text/suffix.h"
#include "checkpoints/config_json.h"
#include "checkpoints/open/fold.h"

#define CONFIG_MAX ((size_t)64 << 20) /* modelopt may list every tensor */

/* Files next to config.json, used if it contains no quantization config. */
static const struct other_config {
	const char *name;
	const char *member;   /* member with the config; NULL for the whole file */
	const char *requires; /* string that a config of weights must contain; or NULL */
	const char *method;   /* NULL if the config names it or implies it */
	const char *codes;    /* use it only if tensor names have this ending; NULL: always */
} other_config[] = {
	{ "hf_quant_config.json", "quantization", "quant_algo", "modelopt", NULL },
	{ "quantize_config.json", NULL, NULL, NULL, ".qweight" },
	{ "quant_config.json", NULL, NULL, NULL, ".qweight" },
};

/* Return the quantization_config, at the top level or of the language model. */
static const json_t *quantization(const json_t *root)
{
	const json_t *config = json_object_get(root, "quantization_config");

	if (!json_object_size(config))
		config = json_object_get(json_object_get(root, "text_config"), "quantization_config");
	if (!json_object_size(config))
		config = json_object_get(root, "compression_config");
	return json_object_size(config) ? config : NULL;
}

/* Older files do not name the method; other members identify it. */
static const char *method_of(const json_t *config)
{
	const char *method = json_string_value(json_object_get(config, "quant_method"));

	if (method)
		return method;
	if (json_object_get(config, "desc_act") || json_object_get(config, "damp_percent"))
		return "gptq";
	if (json_object_get(config, "zero_point") || json_object_get(config, "w_bit"))
		return "awq";
	return "an unnamed method";
}

static bool has_codes(const struct xfp_checkpoint *c, const char *ending)
{
	for (uint32_t t = 0; t < c->tensor_count; t++)
		if (xfp_stem(c->tensors[t].name, ending))
			return true;
	return false;
}

/* Read a file, allocated; NULL if it does not exist. In an archive it was read with the other small files. */
static enum xfp_status slurp_other_config(struct xfp_fold *fold, const char *name, const char *path, char **text,
					  struct stat *st)
{
	const struct xfp_checkpoint *c = fold->checkpoint;
	size_t size;

	*text = NULL;
	for (uint32_t m = 0; c->apart && m < c->synthesized_count; m++)
		if (!strcmp(c->synthesized[m].name, name) && !(*text = strdup(c->synthesized[m].bytes)))
			return xfp_no_memory_for(fold->err, path);
	if (c->apart || (stat(path, st) && errno == ENOENT))
		return XFP_OK;
	return xfp_slurp_regular(path, CONFIG_MAX, text, &size, fold->err);
}

/* Parse the file to *root if it exists. */
static enum xfp_status read_other_config(struct xfp_fold *fold, const struct other_config *file, json_t **root)
{
	char *path = xfp_path(fold->checkpoint->folder, file->name), *text = NULL;
	enum xfp_status status = XFP_OK;
	const json_t *config;
	struct stat st = { 0 };

	if (!path)
		return xfp_no_memory_for(fold->err, fold->checkpoint->folder);
	if (!(status = slurp_other_config(fold, file->name, path, &text, &st)) && text)
		status = xfp_config_json(text, path, root, fold->err);
	config = file->member ? json_object_get(*root, file->member) : *root;
	if (!status && config && (!file->requires || json_is_string(json_object_get(config, file->requires)))) {
		fold->config = config;
		fold->config_name = file->name;
		fold->config_identity = xfp_identity_at(path, &st);
		fold->method = file->method ? file->method : method_of(config);
	}
	free(text);
	free(path);
	return status;
}

/* Add the file of the config to the files that tensors depend on. */
static enum xfp_status add_config_file(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	struct xfp_source_file *grown = realloc(c->files, (c->file_count + (size_t)1) * sizeof *grown), *file;

	if (!grown)
		return xfp_no_memory_for(fold->err, c->folder);
	c->files = grown;
	file = &grown[c->file_count];
	*file = (struct xfp_source_file){ .name = strdup(fold->config_name),
					  .path = xfp_path(c->folder, fold->config_name),
					  .identity = fold->config_identity };
	fold->config_file = c->file_count++;
	return file->name && file->path ? XFP_OK : xfp_no_memory_for(fold->err, c->folder);
}

enum xfp_status xfp_fold_read_config(struct xfp_fold *fold, json_t **root)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	char *where = xfp_path(c->folder, "config.json");
	enum xfp_status status = XFP_OK;

	fold->config_name = "config.json";
	fold->config_identity = c->config_identity;
	fold->config_file = UINT32_MAX;
	if (!where)
		return xfp_no_memory_for(fold->err, c->folder);
	if (c->config)
		status = xfp_config_json(c->config, where, root, fold->err);
	free(where);
	if ((fold->config = quantization(*root)))
		fold->method = method_of(fold->config);
	for (size_t i = 0; !status && !fold->config && i < sizeof other_config / sizeof *other_config; i++) {
		if (other_config[i].codes && !has_codes(c, other_config[i].codes))
			continue;
		json_decref(*root);
		*root = NULL;
		status = read_other_config(fold, &other_config[i], root);
	}
	/* In an archive, the config is in the file of the weights. */
	return status || !fold->config || c->apart ? status : add_config_file(fold);
}

void xfp_fold_drop_config(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;

	if (fold->config_file == UINT32_MAX)
		return;
	c->file_count--;
	free(c->files[c->file_count].name);
	free(c->files[c->file_count].path);
	fold->config_file = UINT32_MAX;
}
