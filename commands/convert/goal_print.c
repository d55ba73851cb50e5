/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/goal_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/size.h"
#include "base/text/table.h"
#include "conversion/goal/allocation.h"
#include "conversion/low_floors.h"
#include "schemas/json_print.h"

static uint64_t padding(const struct xfp_bundle_breakdown *breakdown)
{
	return breakdown->file - breakdown->units - breakdown->kept - breakdown->carried - breakdown->index;
}

static double bits(const struct xfp_conversion *c)
{
	uint64_t elements = xfp_ledger_elements(c->units.ledger);

	return elements ? (double)c->solved.breakdown.file * 8 / (double)elements : 0;
}

void xfp_goal_print(const struct xfp_conversion *c, int column)
{
	const struct xfp_solved *solved = &c->solved;
	const struct xfp_bundle_breakdown *breakdown = &solved->breakdown;
	char a[64], b[32], d[32], *low;

	if (!c->request->goal.kind || !solved->budget)
		return;
	if (!solved->binding)
		printf("%-*s%s is not binding: the most bits take %s\n", column, "goal", c->request->goal.option,
		       xfp_allocation_text(c, solved->max, a));
	else
		printf("%-*s%s: %s, %.2f %% of it\n", column, "goal", c->request->goal.option,
		       xfp_allocation_text(c, solved->total, a),
		       100.0 * (double)solved->total / (double)solved->budget);
	printf("%*s%.3f bits per weight overall; tokenizer and config %s,\n%*sindex %s, padding %s\n", column, "",
	       bits(c), xfp_human((double)breakdown->carried, "B", a), column, "",
	       xfp_human((double)breakdown->index, "B", b), xfp_human((double)padding(breakdown), "B", d));
	if ((low = xfp_low_cosines(c))) {
		printf("%*s", column, "");
		xfp_fold_in(stdout, low, (unsigned)column);
	}
	free(low);
}

json_t *xfp_goal_json(const struct xfp_conversion *c)
{
	static const char *const kinds[] = { "none", "size", "bpw", "envelope" };
	const struct xfp_solved *solved = &c->solved;
	const struct xfp_bundle_breakdown *breakdown = &solved->breakdown;

	if (!c->request->goal.kind || !solved->budget)
		return json_null();
	return XFP_JSON(
		{ "kind", xfp_json_text(kinds[c->request->goal.kind]) }, { "allowed", xfp_json_count(solved->budget) },
		{ "taken", xfp_json_count(solved->total) }, { "most", xfp_json_count(solved->max) },
		{ "binding", json_boolean(solved->binding) }, { "rounds", xfp_json_count(solved->steps) },
		{ "error", json_real(solved->error) }, { "bits", json_real(bits(c)) },
		{ "elements", xfp_json_count(xfp_ledger_elements(c->units.ledger)) },
		{ "file", xfp_json_count(breakdown->file) }, { "carried", xfp_json_count(breakdown->carried) },
		{ "index", xfp_json_count(breakdown->index) }, { "padding", xfp_json_count(padding(breakdown)) });
}
