/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/goal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text/size.h"
#include "schemas/policy.h"

#define MICRO 1000000u
#define MILLI 1000u
#define MAX_BITS 64
#define MAX_GPUS 65536u
#define MAX_WEIGHT 1000000u

void xfp_goal_free(struct xfp_goal *goal)
{
	for (uint32_t i = 0; i < goal->weight_count; i++)
		free(goal->weights[i].pattern);
	free(goal->weights);
	goal->weights = NULL;
	goal->weight_count = 0;
}

/* ---- sizes ------------------------------------------------------------------------------------- */

bool xfp_goal_parse_size(const char *text, uint64_t *bytes)
{
	size_t whole = strspn(text, "0123456789"),
	       decimals = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	const char *unit = decimals ? text + whole + 1 + decimals : text + whole;
	size_t blanks = strspn(unit, " ");
	uint64_t one, rest = 0, scale = 1, count = 0;
	char word[16];

	unit += unit[blanks] ? blanks : 0;
	if (!whole || whole > 18 || decimals > 3 || strlen(unit) > 8 || (text[whole] == '.' && !decimals))
		return false;
	snprintf(word, sizeof word, "1%s", unit);
	if (!xfp_size_parse(word, &one) || (decimals && one < MILLI))
		return false;
	for (size_t i = 0; i < whole; i++)
		count = count * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < decimals; i++, scale *= 10)
		rest = rest * 10 + (uint64_t)(text[whole + 1 + i] - '0');
	if (!xfp_mul(count, one, bytes) || *bytes > UINT64_MAX / 8)
		return false;
	*bytes += one * rest / scale;
	return *bytes > 0;
}

bool xfp_goal_parse_bpw(const char *text, uint32_t *micro)
{
	return xfp_decimal_parse(text, MICRO, micro) && *micro && *micro <= MAX_BITS * MICRO;
}

bool xfp_goal_parse_envelope(const char *text, uint32_t *gpus, uint64_t *bytes)
{
	size_t digits = strspn(text, "0123456789");

	*gpus = 1;
	if (text[digits] == 'x' || text[digits] == 'X') {
		if (!digits || digits > 5)
			return false;
		*gpus = (uint32_t)strtoul(text, NULL, 10);
		text += digits + 1;
	}
	return *gpus && *gpus <= MAX_GPUS && xfp_goal_parse_size(text, bytes);
}

bool xfp_goal_parse_reserve(const char *text, uint64_t *bytes, bool *bare)
{
	char *copy = strdup(text), *rest = copy, *item;
	bool ok = copy != NULL;

	*bytes = 0;
	*bare = false;
	while (ok && (item = strsep(&rest, ","))) {
		char *equals = strchr(item, '=');
		uint64_t one;

		ok = equals && equals > item && xfp_goal_parse_size(equals + 1, &one) && *bytes + one >= one;
		if (ok) {
			*bytes += one;
			*bare |= xfp_size_is_bare(equals + 1, one);
		}
	}
	free(copy);
	return ok;
}

/* ---- weights ----------------------------------------------------------------------------------- */

static enum xfp_status add_weight(struct xfp_goal *goal, const char *name, uint32_t milli, struct xfp_error *err)
{
	struct xfp_weight *grown = realloc(goal->weights, (goal->weight_count + (size_t)1) * sizeof *grown);
	bool role = xfp_after_prefix(name, XFP_ROLE_PREFIX) != NULL;
	char *pattern = NULL;

	if (!grown)
		return xfp_no_memory(err);
	goal->weights = grown;
	if (asprintf(&pattern, "%s%s", role ? "" : XFP_CLASS_PREFIX, name) < 0)
		return xfp_no_memory(err);
	goal->weights[goal->weight_count++] = (struct xfp_weight){ pattern, milli };
	return XFP_OK;
}

enum xfp_status xfp_goal_add_weights(struct xfp_goal *goal, const char *text, struct xfp_error *err)
{
	char *copy = strdup(text), *rest = copy, *item, list[XFP_CLASS_LIST];
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	while (!status && (item = strsep(&rest, ","))) {
		char *equals = strrchr(item, '=');
		const char *role = xfp_after_prefix(item, XFP_ROLE_PREFIX);
		enum xfp_class class_;
		uint32_t milli;

		if (equals)
			*equals = 0;
		if (!equals || !xfp_decimal_parse(equals + 1, MILLI, &milli) || !milli || milli > MAX_WEIGHT * MILLI)
			status = xfp_fail(err, XFP_USAGE,
					  "expected weights from 0.001 to 1000000, with at most three decimals, as in "
					  "attention=2,role:down=1.5");
		else if (!role && !xfp_class_parse(item, &class_))
			status = xfp_fail(err, XFP_USAGE, "no class '%s'; classes are %s, and role:NAME is a role",
					  item, xfp_class_list(list));
		else
			status = add_weight(goal, item, milli, err);
	}
	free(copy);
	return status;
}

/* The effect of a unit's relative error on the model's output, relative to a projection of attention: measured one unit
 * at a time on a sentence encoder and a mixture of experts. Embedding and head are the first and last layer, so their
 * errors do not accumulate with others. */
static const uint32_t default_milli[XFP_CLASSES] = {
	[XFP_CLASS_DENSE_MLP] = 3000,
	[XFP_CLASS_ROUTED_EXPERT] = 700,
	[XFP_CLASS_EMBEDDING] = 3000,
	[XFP_CLASS_LM_HEAD] = 4500,
};

double xfp_goal_weight(const struct xfp_goal *goal, const struct xfp_ledger_unit *unit)
{
	double weight = (double)(default_milli[unit->class_] ? default_milli[unit->class_] : MILLI) / MILLI;

	for (uint32_t i = 0; i < goal->weight_count; i++) {
		const struct xfp_override pattern = { .pattern = goal->weights[i].pattern };

		if (xfp_override_matches(&pattern, unit->name, unit->role, unit->class_))
			weight = (double)goal->weights[i].milli / MILLI;
	}
	return weight;
}

/* ---- elements ---------------------------------------------------------------------------------- */

uint64_t xfp_ledger_elements(const struct xfp_ledger *ledger)
{
	uint64_t elements = 0;

	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];
		uint64_t own = 1;

		if (tensor->fate == XFP_FATE_TIED)
			continue;
		for (uint32_t d = 0; d < tensor->rank; d++)
			own *= tensor->shape[d];
		elements += own;
	}
	return elements;
}
