/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_check.c - check formats and overrides against the tensors of a ledger.
 *
 * A misspelled name must be reported at once, not discovered in the finished bundle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/suggestion.h"
#include "schemas/policy.h"

#define NEAREST 3
#define LONGEST 256 /* longest name for which distances are computed */

/* ---- nearness ---------------------------------------------------------------------------------- */

/* The number of letters to change, add or remove until the pattern matches; characters matched by * and ? are free. */
static unsigned distance(const char *pattern, const char *name)
{
	unsigned before[LONGEST + 1], row[LONGEST + 1];
	size_t length = strnlen(name, LONGEST);

	for (size_t j = 0; j <= length; j++)
		before[j] = (unsigned)j;
	for (; *pattern; pattern++) {
		bool any = *pattern == '*';

		row[0] = before[0] + !any;
		for (size_t j = 1; j <= length; j++) {
			unsigned same = before[j - 1] + !(any || *pattern == '?' || *pattern == name[j - 1]),
				 skip = before[j] + !any, add = row[j - 1] + !any;

			row[j] = same < skip ? same : skip;
			row[j] = row[j] < add ? row[j] : add;
		}
		memcpy(before, row, sizeof row);
	}
	return before[length];
}

struct nearest {
	const char *name[NEAREST];
	unsigned distance[NEAREST], count;
};

/* The distance within which a name is near: that of a misspelling of the pattern's characters, * and ? excepted. */
static unsigned max_distance(const char *pattern)
{
	char letters[LONGEST + 1];
	size_t count = 0;

	for (; *pattern && count < LONGEST; pattern++)
		if (*pattern != '*' && *pattern != '?')
			letters[count++] = *pattern;
	letters[count] = '\0';
	return (unsigned)xfp_max_distance(letters);
}

/* Insert a name, if it is near, into the list of nearest names, nearest first, without duplicates. */
static void consider(struct nearest *nearest, const char *pattern, const char *name)
{
	unsigned far = distance(pattern, name), at = nearest->count;

	if (far > max_distance(pattern))
		return;
	for (unsigned i = 0; i < nearest->count; i++)
		if (!strcmp(nearest->name[i], name))
			return;
	while (at && nearest->distance[at - 1] > far)
		at--;
	if (at == NEAREST)
		return;
	if (nearest->count < NEAREST)
		nearest->count++;
	for (unsigned i = nearest->count - 1; i > at; i--) {
		nearest->name[i] = nearest->name[i - 1];
		nearest->distance[i] = nearest->distance[i - 1];
	}
	nearest->name[at] = name;
	nearest->distance[at] = far;
}

static void add_text(char *list, size_t size, const char *separator, const char *text)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? separator : "", text);
}

/* ---- the output head --------------------------------------------------------------------------- */

/* The matrix that a model without an output head of its own may use instead: the embedding that is a unit or, without
 * one, the largest, which is that of the vocabulary. */
static const struct xfp_ledger_tensor *find_embedding(const struct xfp_ledger *ledger)
{
	const struct xfp_ledger_tensor *found = NULL;

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		if (tensor->class_ != XFP_CLASS_EMBEDDING || tensor->rank != 2)
			continue;
		if (tensor->fate == XFP_FATE_QUANTIZED)
			return tensor;
		if (!found || tensor->bytes > found->bytes)
			found = tensor;
	}
	return found;
}

static bool is_tied(const struct xfp_ledger_unit *unit)
{
	return unit->class_ == XFP_CLASS_EMBEDDING && !strcmp(unit->role, XFP_ROLE_TIED);
}

enum xfp_status xfp_policy_check_head(const struct xfp_ledger *ledger, const char *asked, struct xfp_error *err)
{
	const struct xfp_ledger_tensor *tied = NULL, *embedding = find_embedding(ledger);
	struct xfp_printable name;

	for (uint32_t u = 0; u < ledger->unit_count; u++)
		if (is_tied(&ledger->units[u]))
			return XFP_OK;
	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		if (tensor->class_ == XFP_CLASS_LM_HEAD && tensor->fate != XFP_FATE_TIED)
			return XFP_OK;
		if (tensor->class_ == XFP_CLASS_LM_HEAD) {
			tied = tensor;
			embedding = tensor->tied < ledger->tensor_count ? &ledger->tensors[tensor->tied] : embedding;
		}
	}
	if (!embedding)
		return xfp_fail(err, XFP_USAGE, "%s: the model has no output head", asked);
	name = xfp_printable(embedding->name);
	if (tied)
		return xfp_fail(err, XFP_USAGE,
				"%s: the model has no output head of its own: %s is tied to %s, which is kept "
				"unchanged; to change that, use --format embedding=FORMAT or --override '%s=FORMAT'",
				asked, xfp_printable(tied->name).text, name.text, name.text);
	return xfp_fail(err, XFP_USAGE,
			"%s: the model has no output head; if %s serves as one, give its format: "
			"--format embedding=FORMAT or --override '%s=FORMAT'",
			asked, name.text, name.text);
}

static bool mentions_head(const struct xfp_override *override)
{
	return strstr(override->pattern, "lm_head") ||
	       xfp_override_matches(override, "lm_head.weight", "lm_head", XFP_CLASS_LM_HEAD);
}

/* ---- overrides --------------------------------------------------------------------------------- */

static bool has_unit(const struct xfp_ledger *ledger, const struct xfp_override *override)
{
	for (uint32_t u = 0; u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];

		if (xfp_override_matches(override, unit->name, unit->role, unit->class_))
			return true;
	}
	return false;
}

/* The tensor with exactly that name, or else the first that the pattern matches. */
static const struct xfp_ledger_tensor *find_tensor(const struct xfp_ledger *ledger, const struct xfp_override *override)
{
	const struct xfp_ledger_tensor *found = NULL;

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		if (!strcmp(tensor->name, override->pattern))
			return tensor;
		if (!found && !xfp_after_prefix(override->pattern, XFP_ROLE_PREFIX) &&
		    xfp_override_matches(override, tensor->name, "", tensor->class_))
			found = tensor;
	}
	return found;
}

/* The unit that the tensor belongs to, or the stack of an expert's matrix. NULL: none. */
static const struct xfp_ledger_unit *unit_of(const struct xfp_ledger *ledger, const struct xfp_ledger_tensor *tensor)
{
	for (uint32_t u = 0; u < ledger->unit_count; u++)
		for (uint32_t m = 0; m < ledger->units[u].experts; m++)
			if (&ledger->tensors[ledger->matrices[ledger->units[u].first_matrix + m].tensor] == tensor)
				return &ledger->units[u];
	return NULL;
}

/* Whether an embedding may be kept because it is the output head, for which keep was requested. */
static bool is_kept_as_head(const struct xfp_parameters *parameters, const char *name)
{
	struct xfp_policy policy = xfp_policy_of(parameters, name, XFP_ROLE_TIED, XFP_CLASS_EMBEDDING);

	return xfp_policy_plan(&policy) == XFP_PLAN_KEEP;
}

/* Explain why an override that matches a tensor, but no unit, has no effect. */
static enum xfp_status explain(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
			       const struct xfp_override *override, const struct xfp_ledger_tensor *tensor,
			       const char *text, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = unit_of(ledger, tensor);
	bool named = !strcmp(tensor->name, override->pattern);

	if (unit)
		return xfp_fail(err, XFP_USAGE,
				"--override '%s': matches only parts of stacks, but the experts of a stack share one "
				"decision; name the stack, as in %s",
				text, xfp_printable(unit->name).text);
	if (!override->is_floor && (override->format.form == XFP_FORM_KEEP || override->format.form == XFP_FORM_AUTO))
		return XFP_OK; /* this branch names it */
	if (tensor->fate == XFP_FATE_TIED)
		return xfp_fail(
			err, XFP_USAGE,
			"--override '%s': %s is not stored separately (%s); name the tensor that it is tied to, or "
			"class:lm_head",
			text, xfp_printable(tensor->name).text, tensor->reason);
	if (tensor->fate == XFP_FATE_DROPPED)
		return xfp_fail(err, XFP_USAGE, "--override '%s': %s is not stored separately (%s)", text,
				xfp_printable(tensor->name).text, tensor->reason);
	if (override->is_floor)
		return xfp_fail(err, XFP_USAGE, "--override '%s': %s is kept unchanged and needs no floor (%s)", text,
				xfp_printable(tensor->name).text, tensor->reason);
	if (tensor->class_ == XFP_CLASS_EMBEDDING && strstr(tensor->reason, "as asked for") &&
	    is_kept_as_head(parameters, tensor->name))
		return xfp_fail(err, XFP_USAGE,
				"--override '%s': %s is also the output head, and one of the two is set to keep, "
				"which takes precedence: see --lm-head and --format",
				text, xfp_printable(tensor->name).text);
	if (tensor->rank == 2 && xfp_dtype_is_weight(tensor->dtype) && !named &&
	    !xfp_policy_extends(parameters, tensor->class_))
		return xfp_fail(
			err, XFP_USAGE,
			"--override '%s': matches no unit, only tensors that the family's rules keep, such as %s; to "
			"change the format of such a tensor, give its full name",
			text, xfp_printable(tensor->name).text);
	if (tensor->rank == 2 && xfp_dtype_is_weight(tensor->dtype) && !named)
		return xfp_fail(
			err, XFP_USAGE,
			"--override '%s': matches no unit, only tensors that the family's rules keep, such as %s; to "
			"change their format, give the full name, or --format %s=FORMAT",
			text, xfp_printable(tensor->name).text, xfp_class_name(tensor->class_));
	return xfp_fail(err, XFP_USAGE,
			"--override '%s': %s is not a matrix of floating-point weights (%s, %" PRIu32
			" dimension%s), and can only be kept",
			text, xfp_printable(tensor->name).text, xfp_dtype_name(tensor->dtype), tensor->rank,
			tensor->rank == 1 ? "" : "s");
}

static enum xfp_status nothing_matches(const struct xfp_ledger *ledger, const struct xfp_override *override,
				       const char *text, struct xfp_error *err)
{
	const char *role = xfp_after_prefix(override->pattern, XFP_ROLE_PREFIX),
		   *wanted = role ? role : override->pattern;
	struct nearest nearest = { .count = 0 };
	char list[3 * sizeof(struct xfp_printable)] = "";

	enum xfp_class class;

	if (mentions_head(override)) {
		char asked[sizeof(struct xfp_printable) + 16];

		snprintf(asked, sizeof asked, "--override '%s'", text);
		if (xfp_policy_check_head(ledger, asked, err))
			return XFP_USAGE;
	}
	if (xfp_after_prefix(override->pattern, XFP_CLASS_PREFIX))
		return xfp_fail(err, XFP_USAGE, "--override '%s': the model has no tensor of this class", text);
	for (uint32_t u = 0; u < ledger->unit_count; u++)
		if (!strcmp(override->pattern, ledger->units[u].role))
			return xfp_fail(err, XFP_USAGE,
					"--override '%s': matches no unit by name; to match the role, use role:%s",
					text, xfp_printable(override->pattern).text);
	if (xfp_class_parse(wanted, &class))
		return xfp_fail(err, XFP_USAGE, "--override '%s': matches no unit; to match the class, use class:%s",
				text, xfp_class_name(class));
	for (uint32_t u = 0; !role && !strpbrk(wanted, "*?[") && u < ledger->unit_count; u++)
		if (strstr(ledger->units[u].name, wanted))
			return xfp_fail(err, XFP_USAGE,
					"--override '%s': matches no unit; names that contain it match '*%s*'", text,
					xfp_printable(wanted).text);
	for (uint32_t u = 0; u < ledger->unit_count; u++)
		consider(&nearest, wanted, role ? ledger->units[u].role : ledger->units[u].name);
	for (unsigned i = 0; i < nearest.count; i++)
		add_text(list, sizeof list, ", ", xfp_printable(nearest.name[i]).text);
	if (!*list)
		return xfp_fail(err, XFP_USAGE, "--override '%s': matches no unit; xfp inspect -v lists them", text);
	return xfp_fail(err, XFP_USAGE, "--override '%s': matches no unit; the nearest %s: %s", text,
			role ? "roles are" : "names are", list);
}

static enum xfp_status check_override(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
				      const struct xfp_override *override, struct xfp_error *err)
{
	const struct xfp_ledger_tensor *tensor;
	enum xfp_status status;
	char *text;

	if (has_unit(ledger, override))
		return XFP_OK;
	if (!(text = xfp_override_text(override)))
		return xfp_no_memory(err);
	tensor = find_tensor(ledger, override);
	status = tensor ? explain(parameters, ledger, override, tensor, xfp_printable(text).text, err)
			: nothing_matches(ledger, override, xfp_printable(text).text, err);
	free(text);
	return status;
}

/* ---- formats ----------------------------------------------------------------------------------- */

/* Mark the classes that have a unit, or a kept matrix that --format would make a unit. */
static void list_possible(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
			  bool possible[XFP_CLASSES])
{
	for (uint32_t u = 0; u < ledger->unit_count; u++)
		possible[ledger->units[u].class_] = true;
	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		if (tensor->fate == XFP_FATE_KEPT && tensor->rank == 2 && xfp_dtype_is_weight(tensor->dtype) &&
		    tensor->bytes && xfp_policy_extends(parameters, tensor->class_))
			possible[tensor->class_] = true;
	}
}

/* Find an embedding that the rules keep and formats do not apply to: position embeddings, or embeddings that a family
 * keeps. */
static const char *find_kept(const struct xfp_ledger *ledger, enum xfp_class class_)
{
	for (uint32_t t = 0; class_ == XFP_CLASS_EMBEDDING && t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];

		if (tensor->class_ == class_ && tensor->fate == XFP_FATE_KEPT && tensor->rank == 2 &&
		    xfp_dtype_is_weight(tensor->dtype) && tensor->bytes)
			return tensor->name;
	}
	return NULL;
}

/* A class that the model does not have is not an error: profiles are for all models. */
static enum xfp_status check_formats(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
				     struct xfp_error *err)
{
	bool possible[XFP_CLASSES] = { false }, present[XFP_CLASSES] = { false };
	char list[400] = "", buf[24];
	const char *kept, *format;

	list_possible(parameters, ledger, possible);
	for (uint32_t t = 0; t < ledger->tensor_count; t++)
		present[ledger->tensors[t].class_] |= ledger->tensors[t].fate == XFP_FATE_KEPT;
	for (int class_ = 0; class_ < XFP_CLASSES; class_++)
		if (possible[class_])
			add_text(list, sizeof list, ", ", xfp_class_name((enum xfp_class)class_));
	for (int class_ = 0; class_ < XFP_CLASSES; class_++) {
		struct xfp_format asked = parameters->format[class_];

		if (asked.form == XFP_FORM_AUTO || asked.form == XFP_FORM_KEEP || !present[class_] || possible[class_])
			continue;
		format = xfp_format_text(asked, buf);
		kept = find_kept(ledger, (enum xfp_class)class_);
		if (kept && is_kept_as_head(parameters, kept))
			continue;
		if (kept)
			return xfp_fail(err, XFP_USAGE,
					"--format %s=%s: the family's rules keep %s; to change that, use "
					"--override '%s=%s'",
					xfp_class_name((enum xfp_class)class_), format, xfp_printable(kept).text,
					xfp_printable(kept).text, format);
		return xfp_fail(err, XFP_USAGE,
				"--format %s=%s: no tensor of this class is a matrix that can have this format; "
				"classes with such matrices: %s",
				xfp_class_name((enum xfp_class)class_), format, *list ? list : "none");
	}
	return XFP_OK;
}

enum xfp_status xfp_policy_check(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
				 struct xfp_error *err)
{
	enum xfp_status status = check_formats(parameters, ledger, err);

	for (uint32_t i = 0; !status && i < parameters->override_count; i++)
		status = check_override(parameters, ledger, &parameters->overrides[i], err);
	return status;
}
