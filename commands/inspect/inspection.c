/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/inspect/inspection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoints/hub.h"
#include "stages/inspect/refuse.h"

/* Stages run in the work folder, so the ledger needs absolute paths. Symbolic links are not resolved: config.json is
 * next to the link, not next to its target. */
static char *absolute(const char *path)
{
	char *here, *result;

	if (*path == '/')
		return strdup(path);
	if (!(here = getcwd(NULL, 0)))
		return NULL;
	while (!strncmp(path, "./", 2))
		path += 1 + strspn(path + 1, "/");
	result = !*path || !strcmp(path, ".") ? strdup(here) : xfp_path(here, path);
	free(here);
	return result;
}

/* Note that the classes of an unknown model are a guess. */
static enum xfp_status note_guess(const struct xfp_model_config *config, const struct xfp_family *family,
				  struct xfp_findings *findings, struct xfp_error *err)
{
	const char *type = xfp_model_config_type(config, 0);

	if (!xfp_model_config_present(config))
		return xfp_notes_add(&findings->notes, true, err,
				     "there is no config.json; names are interpreted by the rules of family %s: "
				     "check the classes",
				     family->name);
	return xfp_notes_add(&findings->notes, true, err,
			     "no family claims model_type %s; names are interpreted by the rules of family %s: check "
			     "the classes",
			     type ? type : "(missing)", family->name);
}

/* Keep the first reason. Errors other than bad input remain failures. */
static enum xfp_status refuse(struct xfp_inspection *inspection, enum xfp_status status, const struct xfp_error *err)
{
	if (status != XFP_BAD_INPUT)
		return status;
	if (!inspection->refused.status)
		inspection->refused = *err;
	inspection->refused.status = XFP_BAD_INPUT;
	return XFP_OK;
}

/* If packed weights are inconsistent, open the checkpoint without unpacking, so that their parts can be listed. */
static enum xfp_status open_model(const char *model, struct xfp_inspection *inspection, struct xfp_error *err)
{
	enum xfp_status status = xfp_checkpoint_open(model, &inspection->checkpoint, err);
	struct xfp_error again = { .status = XFP_OK };

	if (status != XFP_BAD_INPUT || xfp_checkpoint_open_stored(model, &inspection->checkpoint, &again))
		return status;
	return refuse(inspection, status, err);
}

static enum xfp_status classify(const struct xfp_inspection_request *request, struct xfp_inspection *inspection,
				struct xfp_error *err)
{
	struct xfp_family_request family = { .family = request->family, .folder = request->families };
	enum xfp_status status;
	char *where = xfp_path(inspection->checkpoint->folder, "config.json");

	if (!where)
		return xfp_no_memory(err);
	status = xfp_model_config_parse(inspection->checkpoint->config, where, &inspection->config, err);
	free(where);
	if (status)
		return status;
	if ((status = refuse(inspection, xfp_refuse_quantized(inspection->checkpoint, inspection->config, err), err)) ||
	    (status = xfp_family_find(&family, inspection->config, &inspection->family, err)))
		return status;
	status = xfp_classify(inspection->checkpoint, inspection->config, inspection->family.family, request->policy,
			      &inspection->ledger, &inspection->findings, err);
	return status || inspection->family.why
		       ? status
		       : note_guess(inspection->config, inspection->family.family, &inspection->findings, err);
}

enum xfp_status xfp_inspection_open(const struct xfp_inspection_request *request, struct xfp_inspection *inspection,
				    struct xfp_error *err)
{
	char *found = NULL, *model = NULL;
	enum xfp_status status;

	*inspection = (struct xfp_inspection){ .refused = { .status = XFP_OK } };
	if ((status = xfp_model_find(request->model, &found, err)))
		goto done;
	if (!(model = absolute(found))) {
		status = xfp_fail_errno(err, errno, "%s: cannot resolve the full path", request->model);
		goto done;
	}
	if (!(status = open_model(model, inspection, err)))
		status = refuse(inspection, classify(request, inspection, err), err);
done:
	free(found);
	free(model);
	return status;
}

void xfp_inspection_free(struct xfp_inspection *inspection)
{
	xfp_findings_free(&inspection->findings);
	xfp_ledger_free(inspection->ledger);
	xfp_family_choice_free(&inspection->family);
	xfp_model_config_free(inspection->config);
	xfp_checkpoint_close(inspection->checkpoint);
	*inspection = (struct xfp_inspection){ .refused = { .status = XFP_OK } };
}

uint64_t xfp_inspection_weights(const struct xfp_source_tensor *tensor)
{
	uint64_t weights = 1;

	for (uint32_t d = 0; d < tensor->rank; d++)
		weights *= tensor->shape[d];
	return weights;
}

double xfp_inspection_bits(uint64_t stored, uint64_t weights)
{
	return weights ? (double)stored * 8 / (double)weights : 0;
}
