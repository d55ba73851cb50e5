/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/refuse.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"

/* Endings that only packed weights and their scales have, of those that are left when a checkpoint is open. */
static const char *const endings[] = {
	".qweight",      ".qzeros",  ".q_weight",  ".weight_packed", "_scale_inv",
	".weight_scale", ".trellis", ".quant_map", "_proj_blocks",
};

static bool is_packed(const char *name)
{
	size_t length = strlen(name);

	for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
		size_t ending = strlen(endings[e]);

		if (length > ending && !strcmp(name + length - ending, endings[e]))
			return true;
	}
	return false;
}

enum xfp_status xfp_refuse_quantized(const struct xfp_checkpoint *checkpoint, const struct xfp_model_config *config,
				     struct xfp_error *err)
{
	/* Of what was unpacked, config.json still tells the method. */
	const char *method = checkpoint->packed ? NULL : xfp_model_config_quantized(config), *tensor = NULL;
	enum xfp_status status;
	char *by, *shown;

	for (uint32_t i = 0; !tensor && i < checkpoint->tensor_count; i++)
		if (is_packed(checkpoint->tensors[i].name))
			tensor = checkpoint->tensors[i].name;
	if (!method && !tensor)
		return XFP_OK;
	by = method ? xfp_formatted("quant_method %s in config.json", xfp_printable(method).text) : strdup("");
	shown = tensor ? xfp_formatted("%stensor %s", method ? ", " : "", xfp_printable(tensor).text) : strdup("");
	if (by && shown)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: is quantized already (%s%s), in a form that this version does not read; convert "
				  "the unquantized checkpoint, or a copy of this one with its weights as bf16",
				  checkpoint->folder, by, shown);
	else
		status = xfp_no_memory(err);
	free(by);
	free(shown);
	return status;
}
