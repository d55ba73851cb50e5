/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdlib.h>

#include "base/system/file.h"
#include "checkpoints/hub.h"
#include "model/tokenizer/files.h"

enum xfp_status xfp_model_open(const char *name, struct xfp_model *model, struct xfp_error *err)
{
	enum xfp_status status;

	*model = (struct xfp_model){ .name = name };
	if ((status = xfp_model_find(name, &model->path, err)) ||
	    (status = xfp_weights_open(model->path, &model->weights, err)))
		return status;
	return xfp_description_read(xfp_weights_config(model->weights), name, &model->description, err);
}

void xfp_model_close(struct xfp_model *model)
{
	xfp_description_free(model->description);
	xfp_weights_close(model->weights);
	free(model->path);
}

enum xfp_status xfp_model_check_decoder(const struct xfp_model *model, struct xfp_error *err)
{
	if (!model->description->encoder)
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: is an encoder (%s), which does not generate text; xfp eval compares its embeddings",
			model->name, model->description->family);
}

static enum xfp_status read_file(void *weights, const char *name, char **bytes, size_t *size, struct xfp_error *err)
{
	return xfp_weights_file(weights, name, bytes, size, err);
}

enum xfp_status xfp_model_tokenizer(const struct xfp_model *model, struct xfp_tokenizer **out, struct xfp_error *err)
{
	const struct xfp_tokenizer_files files = { read_file, model->weights, xfp_weights_path(model->weights) };

	return xfp_tokenizer_open_files(&files, out, err);
}
