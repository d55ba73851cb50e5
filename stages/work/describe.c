/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/describe.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text/text.h"
#include "cache/key.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/policy.h"

/* ---- fates ------------------------------------------------------------------------------------- */

/* The reason why the unit is stored at source precision; allocated. */
static char *why_kept(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters, uint32_t u)
{
	const struct xfp_ledger_unit *unit = &ledger->units[u];
	struct xfp_policy policy = xfp_policy_of_unit(parameters, unit);
	const char *class = xfp_class_name(unit->class_),
		   *or_nonfinite = parameters->on_nonfinite == XFP_NONFINITE_KEEP
					   ? " (or it has weights that are no numbers)"
					   : "";
	char floor[24], *by, *reason;

	switch (unit->plan) {
	case XFP_PLAN_FP8:
		return xfp_formatted("%s: kept at source precision, which fp8 would not hold or not undercut", class);
	case XFP_PLAN_KEEP:
		by = xfp_policy_format_by(parameters, &policy);
		if (!by && (policy.format_by >= 0 || policy.format_by == XFP_BY_CLASS))
			return NULL;
		if (!by)
			return xfp_formatted("%s: kept as asked for", class);
		reason = xfp_formatted("%s: kept as asked for by %s", class, by);
		free(by);
		return reason;
	default:
		if (policy.fixed)
			return xfp_formatted("%s: kept at source precision, %s bits would take no less%s", class,
					     xfp_bits_format(policy.format.bits, floor), or_nonfinite);
		return xfp_formatted("%s: kept at source precision, no smaller candidate meets the floor %s%s", class,
				     xfp_decimal_format(policy.floor, XFP_NANO, floor), or_nonfinite);
	}
}

/* The reason that a unit gives for the fate of its tensor; allocated. */
static char *reason_of(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters, uint32_t u,
		       const struct xfp_stored_form *taken)
{
	const char *class = xfp_class_name(ledger->units[u].class_);

	if (taken->mode == XFP_MODE_KEEP)
		return why_kept(ledger, parameters, u);
	if (taken->mode == XFP_MODE_FP8)
		return xfp_formatted("%s: fp8, one scale a row", class);
	return xfp_formatted("%s: %s, %" PRIu32 " bits", class, xfp_mode_name(taken->mode), taken->k);
}

/* Call `visit` for each tensor of each unit, in order, with its fate and reason; for a tensor with several units, one
 * that quantizes it is last. `quantized` is [tensors], all false. */
static enum xfp_status each_fate(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				 const struct xfp_stored_form *taken, bool *quantized,
				 void (*visit)(void *own, uint32_t tensor, char *reason, bool quantized), void *own,
				 struct xfp_error *err)
{
	for (uint32_t u = 0; u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];
		bool keeps = taken[u].mode == XFP_MODE_KEEP;
		char *reason = reason_of(ledger, parameters, u, &taken[u]);

		for (uint32_t m = 0; reason && m < unit->experts; m++) {
			uint32_t tensor = ledger->matrices[unit->first_matrix + m].tensor;
			char *copy;

			if (keeps && quantized[tensor])
				continue; /* another unit of it is quantized */
			if (!(copy = strdup(reason))) {
				free(reason);
				return xfp_no_memory(err);
			}
			quantized[tensor] = !keeps;
			visit(own, tensor, copy, !keeps);
		}
		if (!reason)
			return xfp_no_memory(err);
		free(reason);
	}
	return XFP_OK;
}

static void settle(void *own, uint32_t tensor, char *reason, bool quantized)
{
	struct xfp_ledger_tensor *t = &((struct xfp_ledger *)own)->tensors[tensor];

	free(t->reason);
	t->reason = reason;
	t->fate = quantized ? XFP_FATE_QUANTIZED : XFP_FATE_KEPT;
}

enum xfp_status xfp_fates_settle(struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				 const struct xfp_stored_form *taken, struct xfp_error *err)
{
	bool *quantized = calloc(ledger->tensor_count + (size_t)1, sizeof *quantized);
	enum xfp_status status;

	if (!quantized)
		return xfp_no_memory(err);
	for (uint32_t t = 0; t < ledger->tensor_count; t++)
		if (ledger->tensors[t].fate == XFP_FATE_QUANTIZED)
			ledger->tensors[t].fate = XFP_FATE_KEPT; /* unless a unit quantizes it */
	status = each_fate(ledger, parameters, taken, quantized, settle, ledger, err);
	free(quantized);
	return status;
}

static void store_length(void *own, uint32_t tensor, char *reason, bool quantized)
{
	(void)quantized;
	((uint64_t *)own)[tensor] = strlen(reason);
	free(reason);
}

enum xfp_status xfp_fates_bytes(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				const struct xfp_stored_form *taken, uint64_t *bytes, struct xfp_error *err)
{
	bool *quantized = calloc(ledger->tensor_count + (size_t)1, sizeof *quantized);
	uint64_t *length = calloc(ledger->tensor_count + (size_t)1, sizeof *length);
	enum xfp_status status = quantized && length ? XFP_OK : xfp_no_memory(err);

	for (uint32_t t = 0; !status && t < ledger->tensor_count; t++)
		length[t] = strlen(ledger->tensors[t].reason);
	if (!status)
		status = each_fate(ledger, parameters, taken, quantized, store_length, length, err);
	*bytes = 0;
	for (uint32_t t = 0; !status && t < ledger->tensor_count; t++)
		*bytes += length[t];
	free(quantized);
	free(length);
	return status;
}

/* ---- xfp.json ---------------------------------------------------------------------------------- */

static bool has_synthesized(const struct xfp_ledger *ledger)
{
	for (uint32_t e = 0; e < ledger->extra_count; e++)
		if (xfp_ledger_extra_is_synthesized(ledger, e))
			return true;
	return false;
}

/* Also for "pytorch" in "pytorch in a zip". */
static bool is_format(const char *format, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(format, name, length) && (!format[length] || format[length] == ' ');
}

/* "MEDIAN,P5,ERROR" of each unit, "-" if it was not calibrated; allocated. */
static char *outputs_text(const struct xfp_ledger *ledger, const struct xfp_output_measure *const *outputs)
{
	struct xfp_text text;

	if (!xfp_text_begin(&text))
		return NULL;
	for (uint32_t u = 0; u < ledger->unit_count; u++) {
		const struct xfp_output_measure *o = outputs[u];

		fputs(u ? " " : "", text.stream);
		if (o)
			fprintf(text.stream, "%.6f,%.6f,%.6f", o->median < 0 ? 0 : o->median, o->p5 < 0 ? 0 : o->p5,
				o->error < 9 ? o->error : 9);
		else
			fputc('-', text.stream);
	}
	return xfp_text_end(&text) ? text.bytes : NULL;
}

static bool add_outputs(json_t *root, const struct xfp_ledger *ledger, const struct xfp_output_measure *const *outputs)
{
	char *text = outputs_text(ledger, outputs);
	bool added = text && !json_object_set_new(root, "outputs", json_string(text));

	free(text);
	return added;
}

char *xfp_describe(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
		   const struct xfp_output_measure *const *outputs)
{
	char *text = xfp_parameters_to_json(parameters), *json = NULL;
	json_t *algorithms = json_object(), *values = text ? json_loads(text, 0, NULL) : NULL, *root = NULL;
	bool ok = algorithms && values;

	free(text);
	text = NULL;
	for (int i = 0; ok && i < XFP_ALGORITHMS; i++)
		if (xfp_algorithm_decides(&xfp_algorithms[i], parameters))
			ok = !json_object_set_new(algorithms, xfp_algorithms[i].name,
						  json_integer(xfp_algorithms[i].version));
	for (int i = 0; ok && i < XFP_MAKERS; i++)
		if (has_synthesized(ledger) && is_format(ledger->format, xfp_makers[i].name))
			ok = !json_object_set_new(algorithms, xfp_makers[i].name, json_integer(xfp_makers[i].version));
	if (ok)
		root = json_pack("{s:s, s:i, s:s, s:O, s:O}", "format", "xfp", "version", XFP_BUNDLE_VERSION, "family",
				 ledger->family, "algorithms", algorithms, "parameters", values);
	ok = root && (!*parameters->calibration.sha256 || add_outputs(root, ledger, outputs));
	text = ok ? json_dumps(root, JSON_INDENT(2)) : NULL;
	if (text)
		json = xfp_formatted("%s\n", text);
	free(text);
	json_decref(algorithms);
	json_decref(values);
	json_decref(root);
	return json;
}
