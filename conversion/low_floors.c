/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/low_floors.h"

#include <stdio.h>

#include "base/system/file.h"
#include "conversion/estimate/estimate.h"
#include "schemas/policy.h"

struct lowest {
	uint32_t floor;
	enum xfp_class class_;
	bool any;
};

static void update_lowest(enum xfp_class class_, uint32_t floor, struct lowest *strict, struct lowest *lazy)
{
	bool routed = class_ == XFP_CLASS_ROUTED_EXPERT;
	struct lowest *lowest = routed ? lazy : strict;

	if ((routed ? floor < XFP_LOW_LAZY : floor <= XFP_LOW_STRICT) && (!lowest->any || floor < lowest->floor))
		*lowest = (struct lowest){ floor, class_, true };
}

static void look(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit, bool goal,
		 struct lowest *strict, struct lowest *lazy)
{
	const struct xfp_policy policy = xfp_policy_of_unit(parameters, unit);

	if (unit->plan == XFP_PLAN_FIT && !policy.fixed && (!goal || policy.floor))
		update_lowest(unit->class_, policy.floor, strict, lazy);
}

/* "attention 0.96" */
static const char *named(const struct lowest *lowest, char text[64])
{
	char floor[24];

	*text = '\0';
	if (lowest->any)
		snprintf(text, 64, "%s %s", xfp_class_name(lowest->class_),
			 xfp_decimal_format(lowest->floor, XFP_NANO, floor));
	return text;
}

static char *floor_warning(const char *what, const struct xfp_parameters *parameters, const char *strict,
			   const char *lazy)
{
	return xfp_formatted("%s this low have ruined models%s (%s%s%s): with 0.98 for all units, about three bits, "
			     "one lost half of its right answers; see Floors in xfp-convert(1)",
			     what, *parameters->calibration.sha256 ? " without calibration" : "", strict,
			     *strict && *lazy ? ", " : "", lazy);
}

char *xfp_low_floors(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger, bool goal)
{
	struct lowest strict = { 0 }, lazy = { 0 };
	char a[64], b[64];

	for (uint32_t i = 0; i < ledger->unit_count; i++)
		look(parameters, &ledger->units[i], goal, &strict, &lazy);
	if (!strict.any && !lazy.any)
		return NULL;
	return floor_warning("floors", parameters, named(&strict, a), named(&lazy, b));
}

char *xfp_low_cosines(const struct xfp_conversion *c)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	double lost[XFP_CLASSES] = { 0 }, weights[XFP_CLASSES] = { 0 };
	struct lowest strict = { 0 }, lazy = { 0 };
	char a[64], b[64];

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];
		const struct xfp_estimate e = xfp_estimate(&input, u, XFP_EXPECTED);

		if (unit->plan != XFP_PLAN_FIT || xfp_policy_of_unit(&c->parameters, unit).fixed)
			continue;
		weights[unit->class_] += (double)xfp_unit_weights(unit);
		lost[unit->class_] += (double)xfp_unit_weights(unit) * (1 - e.cos_median);
	}
	for (int i = 0; i < XFP_CLASSES; i++) {
		const double cosine = weights[i] > 0 ? 1 - lost[i] / weights[i] : 1;

		/* Print four digits: values known before measuring are no more accurate. */
		if (cosine > 0)
			update_lowest((enum xfp_class)i, (uint32_t)(cosine * 1e4 + .5) * (XFP_NANO / 10000), &strict,
				      &lazy);
	}
	if (!strict.any && !lazy.any)
		return NULL;
	return floor_warning("cosines", &c->parameters, named(&strict, a), named(&lazy, b));
}
