/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - the results of xfp inspect as one JSON object.
 */
#include <stdlib.h>
#include <string.h>

#include "commands/inspect/report.h"
#include "schemas/json_print.h"
#include "stages/inspect/name_groups.h"

/* ---- tensors ----------------------------------------------------------------------------------- */

static json_t *share_json(uint64_t part, const struct xfp_distribution *m)
{
	return m->count ? json_real((double)part / (double)m->count) : json_null();
}

json_t *xfp_record_of_moments(const struct xfp_distribution *m)
{
	return XFP_JSON({ "finite", xfp_json_count(m->count) }, { "nan", xfp_json_count(m->nans) },
			{ "infinite", xfp_json_count(m->infinities) }, { "min", xfp_json_number(m->min) },
			{ "max", xfp_json_number(m->max) }, { "mean", xfp_json_number(m->mean) },
			{ "sigma", xfp_json_number(m->sigma) }, { "kurtosis", xfp_json_number(m->kurtosis) },
			{ "beyond_3_sigma", share_json(m->beyond_3, m) },
			{ "beyond_4_sigma", share_json(m->beyond_4, m) },
			{ "largest_in_sigma", xfp_json_number(m->largest) });
}

/* "gate, up" as a list. */
static json_t *tensor_roles_json(const char *roles)
{
	json_t *list = json_array();

	while (*roles) {
		size_t length = strcspn(roles, ",");

		xfp_json_add(&list, json_stringn(roles, length));
		roles += length;
		roles += strspn(roles, ", ");
	}
	return list;
}

json_t *xfp_record_of_tensor(const struct xfp_list *list, const struct xfp_listed *line)
{
	const struct xfp_inspection *inspection = list->inspection;
	const struct xfp_source_tensor *tensor = &inspection->checkpoint->tensors[line->first];
	const char *fate = xfp_list_fate(inspection, line->first);
	json_t *shape = json_array(), *object;

	for (uint32_t d = 0; d < tensor->rank; d++)
		xfp_json_add(&shape, xfp_json_count(tensor->shape[d]));
	object = XFP_JSON(
		{ "name", xfp_json_text(line->name) }, { "fate", xfp_json_text_or_null(fate) },
		{ "reason", xfp_json_text_or_null(fate ? inspection->ledger->tensors[line->first].reason : NULL) },
		{ "class", xfp_json_text_or_null(xfp_list_class(inspection, line->first)) },
		{ "roles", tensor_roles_json(list->roles[line->first]) },
		{ "dtype", json_string(xfp_dtype_name(tensor->dtype)) }, { "shape", shape },
		{ "weights", xfp_json_count(line->weights) }, { "stored_bytes", xfp_json_count(line->stored) },
		{ "bits", line->weights ? json_real(xfp_inspection_bits(line->stored, line->weights)) : json_null() },
		{ "codec", xfp_json_text_or_null(xfp_source_packed(tensor)) },
		{ "file", xfp_json_text(inspection->checkpoint->files[tensor->file].name) });
	if (list->moments)
		xfp_json_put(&object, "stats",
			     line->moments.measured ? xfp_record_of_moments(&line->moments) : json_null());
	return object;
}

json_t *xfp_record_of_role(const struct xfp_listed_role *role)
{
	struct xfp_distribution moments = xfp_distribution_sum_end(&role->sum);

	return XFP_JSON({ "class", json_string(role->class_) }, { "roles", tensor_roles_json(role->roles) },
			{ "tensors", xfp_json_count(role->sum.tensors) }, { "weights", xfp_json_count(role->weights) },
			{ "stats", xfp_record_of_moments(&moments) });
}

static json_t *by_role_json(const struct xfp_list *list)
{
	json_t *array = json_array();
	uint32_t count;
	struct xfp_listed_role *roles = xfp_list_roles(list, &count);

	if (!roles) {
		json_decref(array);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		xfp_json_add(&array, xfp_record_of_role(&roles[i]));
	free(roles);
	return array;
}

/* ---- units and their formats ------------------------------------------------------------------- */

json_t *xfp_record_of_unit(const struct xfp_ledger_unit *unit)
{
	const char *plan = unit->plan == XFP_PLAN_FP8 ? "fp8" : unit->plan == XFP_PLAN_KEEP ? "keep" : "fit";

	return XFP_JSON({ "name", xfp_json_text(unit->name) }, { "class", json_string(xfp_class_name(unit->class_)) },
			{ "role", json_string(unit->role) }, { "plan", json_string(plan) },
			{ "dtype", json_string(xfp_dtype_name(unit->dtype)) }, { "rows", xfp_json_count(unit->rows) },
			{ "cols", xfp_json_count(unit->cols) }, { "experts", xfp_json_count(unit->experts) },
			{ "weights", xfp_json_count(xfp_unit_weights(unit)) });
}

/* The units of the listed tensors; all units if all tensors are listed. */
static json_t *units_json(const struct xfp_list *list)
{
	const struct xfp_ledger *ledger = list->inspection->refused.status ? NULL : list->inspection->ledger;
	bool *listed = calloc(list->inspection->checkpoint->tensor_count + (size_t)1, sizeof *listed);
	json_t *units = json_array();

	for (uint32_t i = 0; listed && i < list->count; i++)
		listed[list->chosen[i]] = true;
	for (uint32_t u = 0; listed && ledger && u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];
		uint32_t e = 0;

		while (e < unit->experts && !listed[ledger->matrices[unit->first_matrix + e].tensor])
			e++;
		if (e < unit->experts)
			xfp_json_add(&units, xfp_record_of_unit(unit));
	}
	if (!listed) {
		json_decref(units);
		return NULL;
	}
	free(listed);
	return units;
}

static json_t *roles_json(const struct xfp_rule *rule)
{
	json_t *roles = json_array();

	for (uint32_t i = 0; rule && i < rule->part_count; i++)
		xfp_json_add(&roles, xfp_json_text(rule->parts[i].role));
	return roles;
}

static json_t *rule_json(const struct xfp_rule *rule, uint32_t taken)
{
	return XFP_JSON({ "line", xfp_json_count(rule->line) },
			{ "action", json_string(xfp_rule_action_name(rule->action)) },
			{ "class", json_string(xfp_class_name(rule->class_)) }, { "roles", roles_json(rule) },
			{ "optional", json_boolean(rule->optional) }, { "pattern", xfp_json_text(rule->pattern) },
			{ "tensors", xfp_json_count(taken) });
}

static json_t *group_json(const struct xfp_name_group *group)
{
	return XFP_JSON({ "names", xfp_json_text(group->names) }, { "tensors", xfp_json_count(group->tensors) },
			{ "weights", xfp_json_count(group->weights) },
			{ "class", json_string(xfp_class_name(group->class_)) }, { "roles", roles_json(group->rule) },
			{ "fate", json_string(xfp_fate_name(group->fate)) },
			{ "line", group->rule ? xfp_json_count(group->rule->line) : json_null() });
}

static json_t *names_json(const struct xfp_inspection *inspection)
{
	json_t *list = json_array();
	struct xfp_name_groups groups;

	if (!inspection->ledger)
		return list;
	if (xfp_name_groups_make(inspection->ledger, inspection->findings.rules, &groups, NULL)) {
		json_decref(list);
		return NULL;
	}
	for (uint32_t i = 0; i < groups.count; i++)
		xfp_json_add(&list, group_json(&groups.list[i]));
	xfp_name_groups_free(&groups);
	return list;
}

static json_t *note_json(bool warning, const char *value)
{
	return XFP_JSON({ "warning", json_boolean(warning) }, { "text", xfp_json_text(value) });
}

static json_t *notes_json(const struct xfp_inspection *inspection)
{
	const struct xfp_notes *notes = &inspection->findings.notes;
	json_t *list = json_array();

	for (uint32_t i = 0; i < inspection->checkpoint->note_count; i++)
		xfp_json_add(&list, note_json(false, inspection->checkpoint->notes[i]));
	for (uint32_t i = 0; i < inspection->checkpoint->left_out_count; i++) {
		char *text = xfp_formatted(XFP_NOT_CARRIED "%s", inspection->checkpoint->left_out[i]);

		xfp_json_add(&list, text ? note_json(false, text) : NULL);
		free(text);
	}
	for (uint32_t i = 0; i < notes->count; i++)
		xfp_json_add(&list, note_json(notes->list[i].warning, notes->list[i].text));
	return list;
}

/* ---- files ------------------------------------------------------------------------------------- */

json_t *xfp_record_of_entry(const struct xfp_header_entry *entry)
{
	json_t *list = json_array();
	const char *value = entry->values;

	for (uint64_t v = 0; entry->list && v < entry->count; v++, value += strlen(value) + 1)
		xfp_json_add(&list, xfp_json_text(value));
	if (!entry->list) {
		json_decref(list);
		list = xfp_json_text(value);
	}
	return XFP_JSON({ "key", xfp_json_text(entry->key) }, { "type", xfp_json_text(entry->type) }, { "value", list },
			{ "meaning", xfp_json_text_or_null(entry->meaning) });
}

static json_t *file_json(const struct xfp_inspection *inspection, uint32_t file, const struct xfp_header *header)
{
	const struct xfp_checkpoint *c = inspection->checkpoint;
	json_t *entries = json_array();
	uint64_t tensors = 0;

	for (uint32_t t = 0; t < c->tensor_count; t++)
		tensors += c->tensors[t].file == file;
	for (uint32_t i = 0; i < header->count; i++)
		if (header->entries[i].file == file)
			xfp_json_add(&entries, xfp_record_of_entry(&header->entries[i]));
	return XFP_JSON({ "name", xfp_json_text(c->files[file].name) },
			{ "bytes", xfp_json_count(c->files[file].identity.size) },
			{ "tensors", xfp_json_count(tensors) }, { "entries", entries });
}

static json_t *header_json(const struct xfp_inspection *inspection, const struct xfp_header *header)
{
	json_t *files = json_array();

	for (uint32_t f = 0; f < inspection->checkpoint->file_count; f++)
		if (!xfp_inspection_is_config(inspection->checkpoint->files[f].name))
			xfp_json_add(&files, file_json(inspection, f, header));
	return files;
}

enum xfp_status xfp_inspection_json(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
				    const struct xfp_header *header, struct xfp_error *err)
{
	const struct xfp_inspection *inspection = list->inspection;
	const struct xfp_family *family = inspection->family.family;
	const struct xfp_ledger *ledger = inspection->refused.status ? NULL : inspection->ledger;
	json_t *tensors = json_array(), *rules = json_array(), *object;

	for (uint32_t i = 0; i < count; i++)
		xfp_json_add(&tensors, xfp_record_of_tensor(list, &lines[i]));
	for (uint32_t i = 0; ledger && i < family->rule_count; i++)
		xfp_json_add(&rules, rule_json(&family->rules[i], inspection->findings.taken[i]));
	object = XFP_JSON(
		{ "model", xfp_json_text(inspection->checkpoint->folder) },
		{ "family", xfp_json_text_or_null(family ? family->name : NULL) },
		{ "family_by", xfp_json_text_or_null(inspection->family.why) },
		{ "family_file", xfp_json_text_or_null(inspection->family.path) },
		{ "format", json_string(inspection->checkpoint->format) },
		{ "packed", xfp_json_text_or_null(inspection->checkpoint->packed) },
		{ "refused", xfp_json_text_or_null(inspection->refused.status ? inspection->refused.text : NULL) },
		{ "tensors", tensors }, { "units", units_json(list) }, { "names", names_json(inspection) },
		{ "rules", rules }, { "notes", notes_json(inspection) });
	if (header)
		xfp_json_put(&object, "files", header_json(inspection, header));
	if (list->moments)
		xfp_json_put(&object, "by_role", by_role_json(list));
	return xfp_json_print(object, err);
}
