/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/refuse.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suffix.h"

/* Name endings that only packed weights and their scales have, among the tensors that remain after opening a
 * checkpoint. */
static const char *const endings[] = {
	".qweight",      ".qzeros",  ".q_weight",  ".weight_packed", "_scale_inv",
	".weight_scale", ".trellis", ".quant_map", ".SCB",           "_proj_blocks",
};

/* Remedies for quantized forms in which models are rarely published. */
static const struct {
	const char *method, *ending, *remedy;
} advice[] = {
	{ "bitsandbytes", ".quant_map",
	  "by bitsandbytes, which rounds a published model as it is loaded: convert that one" },
	{ "bitsandbytes", ".SCB", "by bitsandbytes, which rounds a published model as it is loaded: convert that one" },
	{ "exl3", ".trellis", "as EXL3, which only its kernels decode: convert the model that it was made from" },
};

static bool is_packed(const char *name)
{
	for (size_t e = 0; e < sizeof endings / sizeof *endings; e++)
		if (xfp_ends_with(name, endings[e]))
			return true;
	return false;
}

static const char *remedy(const char *method, const char *tensor)
{
	for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
		if (method ? !strcmp(method, advice[i].method) : xfp_ends_with(tensor, advice[i].ending))
			return advice[i].remedy;
	return "in a form that this version does not read; convert the unquantized checkpoint, or a copy of this one "
	       "with its weights as bf16";
}

static enum xfp_status refuse_unread(const struct xfp_checkpoint *checkpoint, struct xfp_error *err)
{
	for (uint32_t i = 0; i < checkpoint->tensor_count; i++) {
		const struct xfp_source_tensor *tensor = &checkpoint->tensors[i];

		if (tensor->unread)
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: tensor %s: %s, which can be listed but not read; use a file of the model "
					"in another type",
					checkpoint->files[tensor->file].path, xfp_printable(tensor->name).text,
					tensor->unread);
	}
	return checkpoint->unread ? xfp_fail(err, XFP_BAD_INPUT, "%s: is %s; use the model as it was published",
					     checkpoint->files[0].path, checkpoint->unread)
				  : XFP_OK;
}

enum xfp_status xfp_refuse_quantized(const struct xfp_checkpoint *checkpoint, const struct xfp_model_config *config,
				     struct xfp_error *err)
{
	/* For an unpacked checkpoint, config.json still names the method. */
	const char *method = checkpoint->packed ? NULL : xfp_model_config_quantized(config), *tensor = NULL;
	enum xfp_status status = refuse_unread(checkpoint, err);
	char *by, *shown;

	if (status)
		return status;
	for (uint32_t i = 0; !tensor && i < checkpoint->tensor_count; i++)
		if (is_packed(checkpoint->tensors[i].name))
			tensor = checkpoint->tensors[i].name;
	if (!method && !tensor)
		return XFP_OK;
	by = method ? xfp_formatted("quant_method %s in config.json", xfp_printable(method).text) : strdup("");
	shown = tensor ? xfp_formatted("%stensor %s", method ? ", " : "", xfp_printable(tensor).text) : strdup("");
	if (by && shown)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: already quantized (%s%s), %s", checkpoint->folder, by, shown,
				  remedy(method, tensor));
	else
		status = xfp_no_memory(err);
	free(by);
	free(shown);
	return status;
}
