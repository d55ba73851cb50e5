/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/open/compressed_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

static const struct {
	const char *name;
	enum xfp_compressed_form form;
} formats[] = {
	{ "dense", XFP_COMPRESSED_NONE },
	{ "float-quantized", XFP_COMPRESSED_BYTES },
	{ "int-quantized", XFP_COMPRESSED_BYTES },
	{ "naive-quantized", XFP_COMPRESSED_BYTES },
	{ "mxfp8-quantized", XFP_COMPRESSED_BYTES },
	{ "pack-quantized", XFP_COMPRESSED_WORDS },
	{ "nvfp4-pack-quantized", XFP_COMPRESSED_NVFP4 },
	{ "mxfp4-pack-quantized", XFP_COMPRESSED_MXFP4 },
};

static enum xfp_status read_format(const struct xfp_fold *fold, const json_t *format, enum xfp_compressed_form *out)
{
	const char *name = json_string_value(format);

	if (!name)
		return XFP_OK;
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i].name, name)) {
			*out = formats[i].form;
			return XFP_OK;
		}
	return xfp_fold_bad_config(
		fold,
		"weights are compressed as %.64s, a form that this version does not read; convert the "
		"unquantized checkpoint, or a copy of this one with its weights as bf16",
		xfp_printable(name).text);
}

static enum xfp_status bad_group(const struct xfp_fold *fold, const char *group, const char *what)
{
	return xfp_fold_bad_config(fold, "config_groups.%.64s.weights.%s; download the file again",
				   xfp_printable(group).text, what);
}

/* Read a positive number; `otherwise` if it is missing or null. */
static bool read_size(const json_t *value, uint64_t otherwise, uint64_t *out)
{
	*out = otherwise;
	if (!value || json_is_null(value))
		return true;
	*out = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && json_integer_value(value) > 0;
}

/* Parse [rows, columns], or the older form "rows x columns". */
static bool read_block(const json_t *value, struct xfp_scale_blocks *scaling)
{
	unsigned rows, cols;
	char behind;

	if (json_is_string(value)) {
		if (sscanf(json_string_value(value), "%6ux%6u%c", &rows, &cols, &behind) != 2)
			return false;
		*scaling = (struct xfp_scale_blocks){ rows, cols };
		return rows && cols;
	}
	return json_array_size(value) == 2 && read_size(json_array_get(value, 0), 0, &scaling->rows) &&
	       read_size(json_array_get(value, 1), 0, &scaling->cols) && scaling->rows && scaling->cols;
}

static enum xfp_status read_scaling(const struct xfp_fold *fold, const char *group, const json_t *weights,
				    struct xfp_scale_blocks *scaling)
{
	const char *strategy = json_string_value(json_object_get(weights, "strategy"));
	const json_t *size = json_object_get(weights, "group_size");
	uint64_t number = 0;

	if (!strategy)
		strategy = !size || json_is_null(size)      ? "tensor"
			   : json_integer_value(size) == -1 ? "channel"
							    : "group";
	if (!strcmp(strategy, "tensor")) {
		*scaling = (struct xfp_scale_blocks){ 0, 0 };
	} else if (!strcmp(strategy, "channel")) {
		*scaling = (struct xfp_scale_blocks){ 1, 0 };
	} else if (!strcmp(strategy, "group") || !strcmp(strategy, "tensor_group")) {
		if (!read_size(size, 0, &number) || !number)
			return bad_group(fold, group, "group_size is not a number of weights");
		*scaling = (struct xfp_scale_blocks){ 1, number };
	} else if (!strcmp(strategy, "block")) {
		if (!read_block(json_object_get(weights, "block_structure"), scaling))
			return bad_group(fold, group, "block_structure is not two numbers of rows and columns");
	} else {
		return bad_group(fold, group, "strategy must be tensor, channel, group, tensor_group or block");
	}
	return XFP_OK;
}

static enum xfp_status read_set(const struct xfp_fold *fold, const char *name, const json_t *group,
				enum xfp_compressed_form form, struct xfp_compressed_set *set)
{
	const json_t *weights = json_object_get(group, "weights");
	const char *type = json_string_value(json_object_get(weights, "type"));
	enum xfp_status status;

	*set = (struct xfp_compressed_set){ .form = form,
					    .symmetric = !json_is_false(json_object_get(weights, "symmetric")) };
	if (type && strcmp(type, "int") != 0 && strcmp(type, "float") != 0)
		return bad_group(fold, name, "type must be int or float");
	set->floats = type && !strcmp(type, "float");
	if (!read_size(json_object_get(weights, "num_bits"), 8, &set->bits) || set->bits > 32)
		return bad_group(fold, name, "num_bits is not a number of bits");
	if ((status = read_scaling(fold, name, weights, &set->scaling)))
		return status;
	return read_format(fold, json_object_get(group, "format"), &set->form);
}

/* The format of a group overrides the global one. */
enum xfp_status xfp_compressed_sets(const struct xfp_fold *fold, struct xfp_compressed_set **sets, uint32_t *count)
{
	const json_t *groups = json_object_get(fold->config, "config_groups"), *group;
	const json_t *sparsity = json_object_get(fold->config, "sparsity_config");
	const json_t *format = json_object_get(fold->config, "format");
	bool mixed = json_is_string(format) && !strcmp(json_string_value(format), "mixed-precision");
	enum xfp_compressed_form form = XFP_COMPRESSED_ANY, sparse;
	enum xfp_status status;
	const char *name;

	if ((status = read_format(fold, json_object_get(sparsity, "format"), &sparse)) ||
	    (!mixed && (status = read_format(fold, format, &form))))
		return status;
	if (!(*sets = calloc(json_object_size(groups) + 1, sizeof **sets)))
		return xfp_no_memory_for(fold->err, fold->checkpoint->folder);
	json_object_foreach ((json_t *)(uintptr_t)groups, name, group) {
		if (!json_is_object(group))
			return xfp_fold_bad_config(fold,
						   "config_groups.%.64s is not an object; download the file again",
						   xfp_printable(name).text);
		if (!json_is_object(json_object_get(group, "weights")))
			continue;
		if ((status = read_set(fold, name, group, form, &(*sets)[(*count)++])))
			return status;
	}
	if (!*count)
		return xfp_fold_bad_config(
			fold, "has no config_groups that say how weights are quantized; download the file again");
	return XFP_OK;
}
