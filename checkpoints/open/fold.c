/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/open/fold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/sort.h"
#include "base/system/filesystem.h"
#include "base/text/suffix.h"
#include "checkpoints/config_json.h"
#include "checkpoints/note.h"

static const struct xfp_fold_form *const forms[] = { &xfp_fold_fp8, &xfp_fold_mxfp4,      &xfp_fold_gptq,
						     &xfp_fold_awq, &xfp_fold_compressed, &xfp_fold_modelopt,
						     &xfp_fold_exl2 };
#define FORMS (sizeof forms / sizeof *forms)

/* Endings of tensors that quantize activations or the KV cache, and so do not affect weights. */
static const char *const of_activations[] = {
	".input_scale",      "_input_scale",    ".input_scale_ub",    ".input_global_scale",
	".input_zero_point", ".output_scale",   ".output_zero_point", ".k_scale",
	".v_scale",          ".q_scale",        ".k_zero_point",      ".v_zero_point",
	".k_global_scale",   ".v_global_scale", ".q_global_scale",
};

/* ---- helpers for folds --------------------------------------------------------------------------- */

uint32_t xfp_fold_find(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, size_t cut,
		       const char *ending)
{
	char name[XFP_MAX_NAME + 64];
	int64_t found;

	snprintf(name, sizeof name, "%.*s%s", (int)(strlen(tensor->name) - cut), tensor->name, ending);
	found = xfp_checkpoint_find(fold->checkpoint, name);
	return found < 0 || fold->consumed[found] || fold->checkpoint->tensors[found].recipe ? UINT32_MAX
											     : (uint32_t)found;
}

enum xfp_status xfp_fold_read(struct xfp_fold *fold, const struct xfp_source_tensor *tensor, void *out)
{
	const struct xfp_source_file *file = &fold->checkpoint->files[tensor->file];
	enum xfp_status status;
	struct stat st;

	if (fold->open_file != tensor->file) {
		if (fold->open_file != UINT32_MAX)
			close(fold->fd);
		fold->open_file = UINT32_MAX;
		if ((status = xfp_open_identified(file->path, &file->identity, &fold->fd, &st, fold->err)))
			return status;
		fold->open_file = tensor->file;
	}
	status = xfp_pread(fold->fd, out, tensor->bytes, tensor->offset, file->path, fold->err);
	return status ? xfp_context(fold->err, status, "tensor %s", xfp_printable(tensor->name).text) : XFP_OK;
}

struct xfp_component xfp_fold_component(const struct xfp_source_tensor *tensor, enum xfp_component_role role)
{
	return (struct xfp_component){ role, tensor->dtype, tensor->file, tensor->offset, tensor->bytes };
}

enum xfp_status xfp_fold_make_tensor(struct xfp_fold *fold, uint32_t number, struct xfp_recipe_part *part)
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

	va_start(args, format);
	xfp_fail_args(fold->err, XFP_BAD_INPUT, format, args);
	va_end(args);
	return xfp_context(fold->err, XFP_BAD_INPUT, "%s: tensor %s", fold->checkpoint->files[tensor->file].path,
			   xfp_printable(tensor->name).text);
}

enum xfp_status xfp_fold_missing(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, const char *what,
				 const char *ending)
{
	return xfp_fold_bad(fold, tensor,
			    "has no %s: the tensor with %s is missing; download the checkpoint again, or name its "
			    "folder if this is one of several files",
			    what, ending);
}

enum xfp_status xfp_fold_bad_config(const struct xfp_fold *fold, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	xfp_fail_args(fold->err, XFP_BAD_INPUT, format, args);
	va_end(args);
	return xfp_context(fold->err, XFP_BAD_INPUT, "%s/%s", fold->checkpoint->folder, fold->config_name);
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

/* ---- checks after folding ----------------------------------------------------------------------- */

/* Report scales whose weights are missing or not packed. */
static enum xfp_status find_orphans(const struct xfp_fold *fold, const struct xfp_fold_form *form)
{
	for (uint32_t t = 0; t < fold->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &fold->checkpoint->tensors[t];

		for (const char *const *ending = form->endings; !fold->consumed[t] && !tensor->recipe && *ending;
		     ending++)
			if (xfp_stem(tensor->name, *ending))
				return xfp_fold_bad(fold, tensor,
						    "scales weights that are missing, or are not packed like those "
						    "elsewhere (%s); download the checkpoint again, with its index",
						    form->name);
	}
	return XFP_OK;
}

/* 8-bit floats may be kept, unless something scales them: then their values are not the weights. */
static enum xfp_status find_unexplained(const struct xfp_fold *fold)
{
	static const char *const scales[] = { "_scale", "_scale_inv", "_weight_scale", "_scales" };

	for (uint32_t t = 0; t < fold->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &fold->checkpoint->tensors[t];
		bool eight = tensor->dtype >= XFP_F8_E4M3 && tensor->dtype <= XFP_F8_E5M2FNUZ;

		for (size_t i = 0; eight && !fold->consumed[t] && i < sizeof scales / sizeof *scales; i++)
			if (xfp_fold_find(fold, tensor, 0, scales[i]) != UINT32_MAX)
				return xfp_fold_bad(fold, tensor,
						    "is %s, and %s%s scales it in a form that is not read; convert the "
						    "unquantized checkpoint",
						    xfp_dtype_name(tensor->dtype), xfp_printable(tensor->name).text,
						    scales[i]);
	}
	return XFP_OK;
}

static void drop_of_activations(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	const char *first = NULL;
	uint32_t count = 0;

	for (uint32_t t = 0; t < c->tensor_count; t++)
		for (size_t i = 0; !fold->consumed[t] && i < sizeof of_activations / sizeof *of_activations; i++)
			if (xfp_stem(c->tensors[t].name, of_activations[i])) {
				fold->consumed[t] = true;
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

/* Remove components, so that logical tensors remain; each name must be unique. */
static enum xfp_status remove_components(struct xfp_fold *fold)
{
	struct xfp_checkpoint *c = fold->checkpoint;
	uint32_t count = 0;

	for (uint32_t t = 0; t < c->tensor_count; t++) {
		if (fold->consumed[t]) {
			free(c->tensors[t].name);
			continue;
		}
		c->tensors[t].name[strlen(c->tensors[t].name) - fold->cut[t]] = 0;
		if (fold->ending[t])
			strcat(c->tensors[t].name, fold->ending[t]);
		c->tensors[count++] = c->tensors[t];
	}
	c->tensor_count = count;
	xfp_sort(c->tensors, count, sizeof *c->tensors, by_name);
	for (uint32_t t = 1; t < count; t++)
		if (!strcmp(c->tensors[t - 1].name, c->tensors[t].name))
			return xfp_fold_bad(fold, &c->tensors[t],
					    "is stored both packed and unpacked, and nothing says which one counts; "
					    "remove one of them");
	return XFP_OK;
}

static bool is_of(const struct xfp_fold_form *form, const char *method)
{
	for (const char *const *m = form->methods; *m; m++)
		if (!strcmp(*m, method))
			return true;
	return false;
}

static bool is_scale(const struct xfp_source_tensor *tensor)
{
	for (size_t i = 0; i < FORMS; i++)
		for (const char *const *ending = forms[i]->endings; *ending; ending++)
			if (xfp_stem(tensor->name, *ending))
				return true;
	return false;
}

/* PyTorch files may store components transposed, which no codec supports. */
static enum xfp_status find_views(const struct xfp_fold *fold)
{
	for (uint32_t t = 0; t < fold->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &fold->checkpoint->tensors[t];
		bool eight = tensor->dtype >= XFP_F8_E4M3 && tensor->dtype <= XFP_F8_E5M2FNUZ;

		if (tensor->recipe && (fold->method || eight) &&
		    (!xfp_dtype_is_weight(tensor->dtype) || is_scale(tensor)))
			return xfp_fold_bad(
				fold, tensor,
				"is a view, transposed or a slice, and packed weights are read only as they "
				"are: save it with .contiguous()");
	}
	return XFP_OK;
}

/* Try every form of the method, or all forms without one: a checkpoint may use several. */
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
			"says that the weights are %s, but no tensor is; if they were unpacked, remove %s, otherwise "
			"download the checkpoint again",
			xfp_printable(fold->method).text,
			strcmp(fold->config_name, "config.json") ? "this file" : "quantization_config from it");
	for (size_t i = 0; !status && i < FORMS; i++)
		if (folds[i])
			status = find_orphans(fold, forms[i]);
	return status || (fold->method && !known) ? status : find_unexplained(fold);
}

enum xfp_status xfp_checkpoint_fold(struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_fold fold = { .checkpoint = c, .open_file = UINT32_MAX, .err = err };
	json_t *root = NULL;
	enum xfp_status status;

	fold.consumed = calloc(c->tensor_count + (size_t)1, sizeof *fold.consumed);
	fold.cut = calloc(c->tensor_count + (size_t)1, sizeof *fold.cut);
	fold.ending = calloc(c->tensor_count + (size_t)1, sizeof *fold.ending);
	if (!fold.consumed || !fold.cut || !fold.ending)
		status = xfp_no_memory_for(err, c->folder);
	else
		status = xfp_fold_read_config(&fold, &root);
	if (!status)
		status = find_views(&fold);
	if (!status)
		status = fold_forms(&fold);
	if (!status && fold.folded) {
		drop_of_activations(&fold);
		status = remove_components(&fold);
	} else if (!status)
		xfp_fold_drop_config(&fold);
	if (fold.open_file != UINT32_MAX)
		close(fold.fd);
	json_decref(root);
	free(fold.consumed);
	free(fold.cut);
	free(fold.ending);
	return status;
}
