/* SPDX-License-Identifier: Apache-2.0 */
#include "model/skipped.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "model/forward/tensors.h"

static bool begins_with_any(const char *name, const char *const *prefixes)
{
	for (; *prefixes; prefixes++) {
		if (!strncmp(name, *prefixes, strlen(*prefixes)))
			return true;
	}
	return false;
}

/* Modules of their own, or layers after the last. */
static bool predicts_more(const char *name, const char *body, const struct xfp_description *d)
{
	static const char *const modules[] = { "mtp.", "mtp_", NULL };
	const char layers[] = "layers.";

	if (strncmp(name, body, strlen(body)))
		return begins_with_any(name, modules);
	name += strlen(body);
	if (!strncmp(name, layers, strlen(layers)))
		return d->mtp_layers && strtoul(name + strlen(layers), NULL, 10) >= d->layers;
	return begins_with_any(name, modules);
}

/* A tower that reads images or sound, or its projection into the text model. */
static bool sees_or_hears(const char *name)
{
	static const char *const modules[] = {
		"visual.", "vision_", "audio_tower.", "multi_modal_projector.", "mm_projector.", "connector.", NULL
	};
	const char model[] = "model.";

	return begins_with_any(strncmp(name, model, strlen(model)) ? name : name + strlen(model), modules);
}

enum xfp_status xfp_skipped_note(const struct xfp_model *model, char **note, struct xfp_error *err)
{
	static const char *const what[] = { "", "multi-token prediction", "vision or audio",
					    "multi-token prediction, vision or audio" };
	const char *body = xfp_find_names(model->description, model->weights)->body, *name;
	size_t predicting = 0, seeing = 0;

	*note = NULL;
	for (uint32_t i = 0; (name = xfp_weights_name(model->weights, i)); i++) {
		if (predicts_more(name, body, model->description))
			predicting++;
		else if (sees_or_hears(name))
			seeing++;
	}
	if (!predicting && !seeing)
		return XFP_OK;
	*note = xfp_formatted("%s: computed without %zu tensor%s of %s", xfp_printable(model->name).text,
			      predicting + seeing, predicting + seeing == 1 ? "" : "s",
			      what[(predicting > 0) + 2 * (seeing > 0)]);
	return *note ? XFP_OK : xfp_no_memory(err);
}
