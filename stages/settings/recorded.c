/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/recorded.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "schemas/layout/bundle_layout.h"

/* False: not a maker. */
static bool read_maker(const char *name, const json_t *value, struct xfp_recorded *recorded)
{
	for (int i = 0; i < XFP_MAKERS; i++)
		if (!strcmp(name, xfp_makers[i].name)) {
			recorded->made[i] = (unsigned)json_integer_value(value);
			return true;
		}
	return false;
}

static void read_algorithms(json_t *root, struct xfp_recorded *recorded)
{
	json_t *algorithms = json_object_get(root, "algorithms"), *value;
	const char *name;

	for (int i = 0; i < XFP_ALGORITHMS; i++)
		recorded->version[i] = 1;
	json_object_foreach (algorithms, name, value) {
		int i = 0;

		while (i < XFP_ALGORITHMS && strcmp(name, xfp_algorithms[i].name))
			i++;
		if (i < XFP_ALGORITHMS)
			recorded->version[i] = (unsigned)json_integer_value(value);
		else if (!read_maker(name, value, recorded) && !recorded->unknown)
			recorded->unknown = strdup(name);
	}
}

/* Read "MEDIAN,P5,ERROR" of each unit, or "-"; malformed words count as "-". False if memory runs out. */
static bool read_outputs(const json_t *root, uint32_t units, struct xfp_recorded *recorded)
{
	const char *at = json_string_value(json_object_get(root, "outputs"));

	if (!at)
		return true;
	if (!(recorded->outputs = calloc(units + (size_t)1, sizeof *recorded->outputs)))
		return false;
	for (uint32_t u = 0; u < units; u++, at += strcspn(at, " "), at += *at == ' ') {
		struct xfp_output_measure *o = &recorded->outputs[u];

		if (sscanf(at, "%lf,%lf,%lf", &o->median, &o->p5, &o->error) != 3)
			o->error = -1;
	}
	return true;
}

/* Whether a family's name is a plain name, not a path. */
static bool is_family(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+";

	return name && *name && *name != '-' && name[strspn(name, letters)] == '\0';
}

enum xfp_status xfp_recorded_read(const struct xfp_bundle *bundle, const char *path, struct xfp_recorded *recorded,
				  struct xfp_error *err)
{
	char *where = xfp_formatted("%s: " XFP_MEMBER_JSON, path), *text = NULL;
	struct xfp_recorded read = { .family = NULL };
	struct xfp_error problem = { .status = XFP_OK };
	struct xfp_bundle_info info;
	json_t *root, *parameters;
	enum xfp_status status;

	xfp_bundle_describe(bundle, &info);
	root = json_loadb(info.json, info.json_bytes, JSON_REJECT_DUPLICATES, NULL);
	parameters = json_object_get(root, "parameters");
	if (parameters)
		text = json_dumps(parameters, 0);
	if (!where || (parameters && !text))
		status = xfp_no_memory(err);
	else if (!text)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: lacks the parameters that it was made with", where);
	else if (!is_family(info.family))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: invalid family name '%s'", path,
				  xfp_printable(info.family).text);
	else
		status = xfp_parameters_from_json(text, where, info.units, &read.parameters, &problem);
	if (problem.status)
		xfp_fail(err, status, "%s%s", problem.text,
			 status == XFP_BAD_INPUT ? "; download the bundle or convert the model again" : "");
	if (!status && (!(read.family = strdup(info.family)) || !read_outputs(root, info.units, &read)))
		status = xfp_no_memory(err);
	if (!status)
		read_algorithms(root, &read);
	json_decref(root);
	free(where);
	free(text);
	if (status)
		xfp_recorded_free(&read);
	else
		*recorded = read;
	return status;
}

void xfp_recorded_free(struct xfp_recorded *recorded)
{
	xfp_parameters_free(&recorded->parameters);
	free(recorded->family);
	free(recorded->unknown);
	free(recorded->outputs);
	*recorded = (struct xfp_recorded){ .family = NULL };
}

const struct xfp_output_measure *xfp_recorded_outputs(const struct xfp_recorded *recorded, uint32_t unit)
{
	const struct xfp_output_measure *o = recorded && recorded->outputs ? &recorded->outputs[unit] : NULL;

	return o && o->error >= 0 ? o : NULL;
}

struct xfp_policy xfp_recorded_policy(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	return xfp_policy_of(&recorded->parameters, unit->name, unit->role, (enum xfp_class)unit->class_);
}

uint32_t xfp_recorded_sample(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	struct xfp_policy policy = xfp_recorded_policy(recorded, unit);

	if (policy.fixed || xfp_policy_plan(&policy) != XFP_PLAN_FIT)
		return 0;
	return xfp_sample_experts(&recorded->parameters.moe_sample, unit->experts);
}

static const char *below_floor(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	if (!recorded)
		return "below its floor";
	if (xfp_recorded_policy(recorded, unit).fixed)
		return "below its floor: its bits are fixed";
	if (!xfp_recorded_sample(recorded, unit))
		return "below its floor: no candidate meets it, and this is the best";
	if (recorded->parameters.on_miss == XFP_MISS_BEST)
		return "below its floor: no candidate meets it, or only the experts that decided do";
	return "below its floor: only the experts that decided meet it";
}

const char *xfp_unit_missed(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	struct xfp_policy policy;

	if (!unit->met)
		return below_floor(recorded, unit);
	if (!recorded || unit->mode != XFP_MODE_KEEP)
		return NULL;
	policy = xfp_recorded_policy(recorded, unit);
	if (policy.format.form == XFP_FORM_KEEP)
		return NULL;
	if (policy.format.form == XFP_FORM_FP8)
		return "at source precision: fp8 cannot represent it, or is not smaller";
	if (policy.fixed)
		return "at source precision: these bits are not smaller";
	if (recorded->parameters.on_nonfinite == XFP_NONFINITE_KEEP)
		return "at source precision: no smaller candidate meets its floor, or it has NaN or infinity";
	return "at source precision: no smaller candidate meets its floor";
}
