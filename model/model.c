/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdlib.h>

#include "base/system/file.h"
#include "checkpoints/hub.h"

#define TOKENIZER "tokenizer.json"

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

enum xfp_status xfp_model_tokenizer(const struct xfp_model *model, struct xfp_tokenizer **out, struct xfp_error *err)
{
	const char *path = xfp_weights_path(model->weights);
	char *json, *where;
	size_t size;
	enum xfp_status status = xfp_weights_file(model->weights, TOKENIZER, &json, &size, err);

	*out = NULL;
	if (status || !json)
		return status;
	where = xfp_formatted("%s: " TOKENIZER, path);
	status = where ? xfp_tokenizer_open(json, size, where, out, err) : xfp_no_memory(err);
	free(where);
	free(json);
	return status;
}
