/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/inspect/list.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/glob.h"
#include "base/text/suggestion.h"
#include "schemas/parameters.h"

#define NONE UINT32_MAX

const char *const xfp_list_orders[XFP_LIST_ORDERS + 1] = {
	"name", "file", "size", "bits", "sigma", "kurtosis", "beyond3", "beyond4", "largest",
};

const char *xfp_list_class(const struct xfp_inspection *inspection, uint32_t tensor)
{
	return inspection->ledger ? xfp_class_name(inspection->ledger->tensors[tensor].class_) : NULL;
}

const char *xfp_list_fate(const struct xfp_inspection *inspection, uint32_t tensor)
{
	return inspection->ledger && !inspection->refused.status
		       ? xfp_fate_name(inspection->ledger->tensors[tensor].fate)
		       : NULL;
}

/* ---- roles and stacks -------------------------------------------------------------------------- */

static bool has_role(const char *roles, const char *role)
{
	size_t length = strlen(role);

	for (const char *at = roles; at && *at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
		if (!strncmp(at, role, length) && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static bool add_role(char **roles, const char *role)
{
	char *joined;

	if (has_role(*roles, role))
		return true;
	if (!(joined = xfp_formatted("%s%s%s", *roles ? *roles : "", *roles ? ", " : "", role)))
		return false;
	free(*roles);
	*roles = joined;
	return true;
}

static bool is_stack_of_tensors(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit)
{
	const struct xfp_ledger_matrix *matrix = &ledger->matrices[unit->first_matrix];

	return unit->experts > 1 && matrix[0].tensor != matrix[1].tensor;
}

static enum xfp_status find_roles(struct xfp_list *list, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = list->inspection->ledger;

	for (uint32_t u = 0; ledger && u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];

		for (uint32_t e = 0; e < unit->experts; e++) {
			uint32_t t = ledger->matrices[unit->first_matrix + e].tensor;

			if (!add_role(&list->roles[t], unit->role))
				return xfp_no_memory(err);
			if (is_stack_of_tensors(ledger, unit))
				list->stack[t] = u;
		}
	}
	for (uint32_t t = 0; t < list->inspection->checkpoint->tensor_count; t++)
		if (!list->roles[t] && !(list->roles[t] = strdup("")))
			return xfp_no_memory(err);
	return XFP_OK;
}

/* ---- selecting tensors ------------------------------------------------------------------------- */

static bool role_matches(const char *pattern, const char *roles)
{
	char role[128];

	for (const char *at = roles; *at;) {
		size_t length = strcspn(at, ",");

		snprintf(role, sizeof role, "%.*s", (int)length, at);
		if (xfp_glob_matches(pattern, role))
			return true;
		at += length;
		at += strspn(at, ", ");
	}
	return false;
}

static bool matches(const struct xfp_list *list, const char *pattern, uint32_t t)
{
	const char *role = xfp_after_prefix(pattern, XFP_ROLE_PREFIX),
		   *class = xfp_after_prefix(pattern, XFP_CLASS_PREFIX);
	const char *name = list->inspection->checkpoint->tensors[t].name;

	if (class)
		return list->inspection->ledger && !strcmp(class, xfp_list_class(list->inspection, t));
	if (role)
		return role_matches(role, list->roles[t]);
	return !strcmp(pattern, name) || xfp_glob_matches(pattern, name);
}

/* Candidates for suggestions. In a model with a hundred thousand names, the first few thousand suffice. */
#define LOOKED_AT 4096

/* Collect each role (or class) once. */
static uint32_t gather(const struct xfp_list *list, bool roles, const char **names)
{
	const struct xfp_checkpoint *c = list->inspection->checkpoint;
	uint32_t count = 0;

	for (uint32_t t = 0; t < c->tensor_count && t < LOOKED_AT; t++) {
		const char *name = roles ? list->roles[t] : c->tensors[t].name;
		uint32_t known = 0;

		while (roles && known < count && strcmp(names[known], name) != 0)
			known++;
		if (!roles || (*name && known == count))
			names[count++] = name;
	}
	return count;
}

static bool has_class(const struct xfp_inspection *inspection, enum xfp_class class)
{
	uint32_t t = 0;

	while (t < inspection->ledger->tensor_count && inspection->ledger->tensors[t].class_ != class)
		t++;
	return t < inspection->ledger->tensor_count;
}

/* "; those of the model are q, k, v" for roles or classes; "" if the model has none. */
static void put_those(const struct xfp_list *list, bool roles, char text[XFP_DID_YOU_MEAN])
{
	const char *names[LOOKED_AT];
	uint32_t count = roles ? gather(list, true, names) : XFP_CLASSES;
	size_t used = 0;

	*text = '\0';
	for (uint32_t i = 0; i < count && used < XFP_DID_YOU_MEAN; i++) {
		const char *name = roles ? names[i] : xfp_class_name((enum xfp_class)i);

		if (*name && (roles || has_class(list->inspection, (enum xfp_class)i)))
			used += (size_t)snprintf(text + used, XFP_DID_YOU_MEAN - used, "%s%s",
						 used ? ", " : "; those of the model are ", name);
	}
}

/* Suggest what an unknown name may have meant. */
static void put_suggestion(const struct xfp_list *list, const char *name, char text[XFP_DID_YOU_MEAN])
{
	const struct xfp_checkpoint *c = list->inspection->checkpoint;
	const char *names[LOOKED_AT];
	enum xfp_class class;
	uint32_t parts = 0;

	for (uint32_t t = 0; t < c->tensor_count; t++) {
		if (has_role(list->roles[t], name)) {
			snprintf(text, XFP_DID_YOU_MEAN, "; for the role write role:%s", name);
			return;
		}
		parts += strstr(c->tensors[t].name, name) != NULL;
	}
	if (list->inspection->ledger && xfp_class_parse(name, &class) && has_class(list->inspection, class))
		snprintf(text, XFP_DID_YOU_MEAN, "; for the class write class:%s", name);
	else if (parts)
		snprintf(text, XFP_DID_YOU_MEAN, "; '*%s*' would take %" PRIu32, name, parts);
	else
		xfp_did_you_mean("", name, names, gather(list, false, names), text);
	if (!*text)
		snprintf(text, XFP_DID_YOU_MEAN, "; without TENSOR, --tensors lists them all");
}

static enum xfp_status refuse_pattern(const struct xfp_list *list, const char *pattern, struct xfp_error *err)
{
	const char *role = xfp_after_prefix(pattern, XFP_ROLE_PREFIX),
		   *class = xfp_after_prefix(pattern, XFP_CLASS_PREFIX);
	const char *names[LOOKED_AT], *what = role ? "of this role" : class ? "of this class" : "named so";
	char meant[XFP_DID_YOU_MEAN] = "", text[XFP_NO_CLASS];
	enum xfp_class value;

	if ((role || class) && !list->inspection->ledger)
		return xfp_fail(err, XFP_USAGE, "TENSOR '%s': roles and classes of this model are unknown",
				xfp_printable(pattern).text);
	if (class && !xfp_class_parse(class, &value))
		return xfp_fail(err, XFP_USAGE, "TENSOR '%s': %s", xfp_printable(pattern).text,
				xfp_no_such_class(class, text));
	if (role)
		xfp_did_you_mean("", role, names, gather(list, true, names), meant);
	if ((role || class) && !*meant)
		put_those(list, role, meant);
	else if (!role)
		put_suggestion(list, pattern, meant);
	return xfp_fail(err, XFP_USAGE, "TENSOR '%s': no tensor is %s%s", xfp_printable(pattern).text, what,
			xfp_printable(meant).text);
}

/* Compare names, runs of digits by value. */
static int by_name(const char *a, const char *b)
{
	const char *x = a, *y = b;

	while (*x && *y) {
		if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
			const char *m = x + strspn(x, "0"), *n = y + strspn(y, "0");
			size_t i = strspn(m, "0123456789"), j = strspn(n, "0123456789");
			int order = i != j ? (i > j) - (i < j) : memcmp(m, n, i);

			if (order)
				return order;
			x = m + i;
			y = n + j;
		} else if (*x != *y) {
			break;
		} else {
			x++;
			y++;
		}
	}
	return *x != *y ? ((unsigned char)*x > (unsigned char)*y) - ((unsigned char)*x < (unsigned char)*y)
			: strcmp(a, b);
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct xfp_source_tensor *tensors = context;

	return by_name(tensors[*(const uint32_t *)a].name, tensors[*(const uint32_t *)b].name);
}

enum xfp_status xfp_list_choose(const struct xfp_inspection *inspection, const struct xfp_list_request *request,
				struct xfp_list *list, struct xfp_error *err)
{
	const struct xfp_checkpoint *c = inspection->checkpoint;
	size_t size = c->tensor_count + (size_t)1;
	bool *taken = calloc(request->pattern_count + (size_t)1, sizeof *taken);
	enum xfp_status status = XFP_OK;

	*list = (struct xfp_list){
		.inspection = inspection,
		.roles = calloc(size, sizeof *list->roles),
		.stack = calloc(size, sizeof *list->stack),
		.chosen = calloc(size, sizeof *list->chosen),
	};
	if (!taken || !list->roles || !list->stack || !list->chosen) {
		status = xfp_no_memory(err);
		goto done;
	}
	memset(list->stack, 0xff, size * sizeof *list->stack);
	if ((status = find_roles(list, err)))
		goto done;
	for (uint32_t t = 0; t < c->tensor_count; t++) {
		bool wanted = !request->pattern_count;

		for (uint32_t p = 0; p < request->pattern_count; p++)
			if (matches(list, request->patterns[p], t))
				wanted = taken[p] = true;
		if (wanted)
			list->chosen[list->count++] = t;
	}
	for (uint32_t p = 0; !status && p < request->pattern_count; p++)
		if (!taken[p])
			status = refuse_pattern(list, request->patterns[p], err);
	if (list->count)
		qsort_r(list->chosen, list->count, sizeof *list->chosen, compare_names, c->tensors);
done:
	free(taken);
	return status;
}

void xfp_list_free(struct xfp_list *list)
{
	for (uint32_t t = 0; list->roles && t < list->inspection->checkpoint->tensor_count; t++)
		free(list->roles[t]);
	free(list->roles);
	free(list->stack);
	free(list->chosen);
	*list = (struct xfp_list){ 0 };
}

/* ---- lines ------------------------------------------------------------------------------------- */

static bool alike(const struct xfp_inspection *inspection, uint32_t a, uint32_t b)
{
	const struct xfp_source_tensor *x = &inspection->checkpoint->tensors[a],
				       *y = &inspection->checkpoint->tensors[b];

	return x->dtype == y->dtype && x->rank == y->rank && !memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) &&
	       xfp_source_stored_bytes(x) == xfp_source_stored_bytes(y) && xfp_source_packed(x) == xfp_source_packed(y);
}

struct sorting {
	const struct xfp_list *list;
	const struct xfp_list_request *request;
};

static double key_of(const struct xfp_listed *line, unsigned order)
{
	const struct xfp_distribution *m = &line->moments;
	double count = m->count ? (double)m->count : NAN;

	if (order >= XFP_LIST_BY_SIGMA && !m->measured)
		return NAN;
	switch (order) {
	case XFP_LIST_BY_SIZE:
		return (double)line->stored;
	case XFP_LIST_BY_BITS:
		return xfp_inspection_bits(line->stored, line->weights);
	case XFP_LIST_BY_SIGMA:
		return m->sigma;
	case XFP_LIST_BY_KURTOSIS:
		return m->kurtosis;
	case XFP_LIST_BY_BEYOND_3:
		return (double)m->beyond_3 / count;
	case XFP_LIST_BY_BEYOND_4:
		return (double)m->beyond_4 / count;
	default:
		return m->largest;
	}
}

static int by_place(const struct xfp_source_tensor *x, const struct xfp_source_tensor *y)
{
	if (x->file != y->file)
		return (x->file > y->file) - (x->file < y->file);
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int compare_lines(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	const struct xfp_listed *x = a, *y = b;
	const struct xfp_source_tensor *tensors = s->list->inspection->checkpoint->tensors;
	int order = 0;

	if (s->request->order == XFP_LIST_BY_FILE) {
		order = by_place(&tensors[x->first], &tensors[y->first]);
	} else if (s->request->order != XFP_LIST_BY_NAME) {
		double p = key_of(x, s->request->order), q = key_of(y, s->request->order);

		/* Entries without this number come last in either order. */
		if (isnan(p) || isnan(q))
			return isnan(p) && isnan(q) ? by_name(x->name, y->name) : isnan(p) ? 1 : -1;
		order = (p < q) - (p > q);
	}
	if (!order)
		order = by_name(x->name, y->name);
	return s->request->reverse ? -order : order;
}

static void finish_line(struct xfp_listed *line, const struct xfp_distribution_sum *sum)
{
	/* A single tensor keeps the figures measured. */
	if (line->tensors > 1)
		line->moments = xfp_distribution_sum_end(sum);
}

struct xfp_listed *xfp_list_lines(const struct xfp_list *list, const struct xfp_list_request *request, bool each,
				  uint32_t *count)
{
	const struct xfp_ledger *ledger = list->inspection->ledger;
	struct sorting sorting = { list, request };
	struct xfp_listed *lines = calloc(list->count + (size_t)1, sizeof *lines);
	struct xfp_distribution_sum *sums = calloc(list->count + (size_t)1, sizeof *sums);
	uint32_t *of_unit = calloc((ledger ? ledger->unit_count : 0) + (size_t)1, sizeof *of_unit);

	*count = 0;
	for (uint32_t i = 0; lines && sums && of_unit && i < list->count; i++) {
		uint32_t t = list->chosen[i], unit = each ? NONE : list->stack[t], at = *count;
		const struct xfp_source_tensor *tensor = &list->inspection->checkpoint->tensors[t];

		if (unit != NONE && of_unit[unit] && alike(list->inspection, lines[of_unit[unit] - 1].first, t))
			at = of_unit[unit] - 1;
		if (at == *count) {
			lines[at] = (struct xfp_listed){ .name = tensor->name, .first = t };
			if (unit != NONE)
				of_unit[unit] = at + 1;
			++*count;
		}
		if (lines[at].tensors++)
			lines[at].name = ledger->units[unit].name;
		lines[at].weights += xfp_inspection_weights(tensor);
		lines[at].stored += xfp_source_stored_bytes(tensor);
		if (list->moments) {
			lines[at].moments = list->moments[t];
			xfp_distribution_sum_add(&sums[at], &list->moments[t]);
		}
	}
	for (uint32_t i = 0; i < *count; i++)
		finish_line(&lines[i], &sums[i]);
	if (*count)
		qsort_r(lines, *count, sizeof *lines, compare_lines, &sorting);
	if (!sums || !of_unit) {
		free(lines);
		lines = NULL;
	}
	free(sums);
	free(of_unit);
	return lines;
}

struct xfp_listed_role *xfp_list_roles(const struct xfp_list *list, uint32_t *count)
{
	const struct xfp_inspection *inspection = list->inspection;
	struct xfp_listed_role *roles = calloc(list->count + (size_t)1, sizeof *roles);

	*count = 0;
	for (int class = 0; roles && inspection->ledger && class < XFP_CLASSES; class ++) {
		uint32_t begin = *count;

		for (uint32_t i = 0; i < list->count; i++) {
			uint32_t t = list->chosen[i], at = begin;

			if ((int)inspection->ledger->tensors[t].class_ != class || !list->moments[t].measured)
				continue;
			while (at < *count && strcmp(roles[at].roles, list->roles[t]) != 0)
				at++;
			if (at == *count) {
				roles[at].class_ = xfp_class_name((enum xfp_class) class);
				roles[at].roles = list->roles[t];
				++*count;
			}
			roles[at].weights += xfp_inspection_weights(&inspection->checkpoint->tensors[t]);
			xfp_distribution_sum_add(&roles[at].sum, &list->moments[t]);
		}
	}
	return roles;
}
