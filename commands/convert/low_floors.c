/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/low_floors.h"

#include <stdio.h>

#include "base/system/file.h"
#include "schemas/policy.h"

struct lowest {
	uint32_t floor;
	enum xfp_class class_;
	bool any;
};

static void look(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit, bool goal,
		 struct lowest *strict, struct lowest *lazy)
{
	const struct xfp_policy policy = xfp_policy_of_unit(parameters, unit);
	bool routed = unit->class_ == XFP_CLASS_ROUTED_EXPERT;
	struct lowest *lowest = routed ? lazy : strict;

	if (unit->plan != XFP_PLAN_FIT || policy.fixed || (goal && !policy.floor) ||
	    (routed ? policy.floor >= XFP_LOW_LAZY : policy.floor > XFP_LOW_STRICT))
		return;
	if (!lowest->any || policy.floor < lowest->floor)
		*lowest = (struct lowest){ policy.floor, unit->class_, true };
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

char *xfp_low_floors(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger, bool goal)
{
	struct lowest strict = { 0 }, lazy = { 0 };
	char a[64], b[64];

	for (uint32_t i = 0; i < ledger->unit_count; i++)
		look(parameters, &ledger->units[i], goal, &strict, &lazy);
	if (!strict.any && !lazy.any)
		return NULL;
	return xfp_formatted("floors this low have ruined models (%s%s%s): with 0.98 throughout, some three bits, "
			     "one kept half of its right answers; see Floors in xfp-convert(1)",
			     named(&strict, a), strict.any && lazy.any ? ", " : "", named(&lazy, b));
}
