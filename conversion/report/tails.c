/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tails.c - the tails of the source's weights, by role, from xfp inspect --stats.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/report/inputs.h"
#include "conversion/report/json_input.h"

#define COMMAND "xfp inspect MODEL --stats --json"
#define MAX_ROLES 10000

/* A member that is null if it is undefined: NaN then. */
static double statistic(struct xfp_json_input *input, const json_t *stats, const char *key)
{
	return json_is_null(json_object_get(stats, key)) ? NAN : xfp_json_input_number(input, stats, key);
}

/* Write the roles as "gate, up". */
static void join_roles(struct xfp_json_input *input, const json_t *object, struct xfp_report_tail *tail)
{
	json_t *list = xfp_json_input_list(input, object, "roles"), *role;
	size_t i, used = 0;

	json_array_foreach(list, i, role)
	{
		const char *name = json_string_value(role);

		if (!name)
			xfp_json_input_fault(input, "roles", "a list of texts");
		if (name && used < sizeof tail->roles)
			used += (size_t)snprintf(tail->roles + used, sizeof tail->roles - used, "%s%s", i ? ", " : "",
						 name);
	}
}

static void read_tail(struct xfp_json_input *input, const json_t *object, struct xfp_report_tail *tail)
{
	const json_t *stats = xfp_json_input_object(input, object, "stats");
	double min, max;

	snprintf(tail->class_name, sizeof tail->class_name, "%s", xfp_json_input_text(input, object, "class"));
	join_roles(input, object, tail);
	tail->tensors = xfp_json_input_count(input, object, "tensors");
	tail->weights = xfp_json_input_count(input, object, "weights");
	min = statistic(input, stats, "min");
	max = statistic(input, stats, "max");
	tail->max = fmax(fabs(min), fabs(max));
	tail->sigma = statistic(input, stats, "sigma");
	tail->kurtosis = statistic(input, stats, "kurtosis");
	tail->beyond_3 = statistic(input, stats, "beyond_3_sigma");
	tail->beyond_4 = statistic(input, stats, "beyond_4_sigma");
	tail->largest = statistic(input, stats, "largest_in_sigma");
}

static void read_tails(struct xfp_json_input *input, struct xfp_report_tails *tails)
{
	json_t *list = xfp_json_input_list(input, input->root, "by_role"), *object;
	size_t i;

	if (json_array_size(list) > MAX_ROLES)
		xfp_json_input_fault(input, "by_role", "a list of roles");
	if (input->status)
		return;
	tails->list = calloc(json_array_size(list) + 1, sizeof *tails->list);
	if (!tails->list) {
		input->status = xfp_no_memory(input->err);
		return;
	}
	json_array_foreach(list, i, object)
	{
		if (!input->status)
			read_tail(input, object, &tails->list[tails->count++]);
	}
}

enum xfp_status xfp_report_read_tails(const char *path, const struct xfp_report *report, struct xfp_report_tails *tails,
				      struct xfp_error *err)
{
	struct xfp_json_input input;

	*tails = (struct xfp_report_tails){ .count = 0 };
	if (!xfp_json_input_open(&input, path, COMMAND, err)) {
		xfp_json_input_family(&input, report->info.family);
		if (!input.status)
			read_tails(&input, tails);
	}
	json_decref(input.root);
	if (input.status)
		xfp_report_tails_free(tails);
	return input.status;
}

void xfp_report_tails_free(struct xfp_report_tails *tails)
{
	free(tails->list);
	*tails = (struct xfp_report_tails){ .count = 0 };
}
