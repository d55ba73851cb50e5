/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/text/size.h"
#include "commands/plan/print.h"
#include "commands/ui/pace.h"
#include "commands/ui/record.h"
#include "schemas/json_print.h"

static json_t *predictions_json(const struct xfp_plan_cluster *cluster)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < cluster->count; i++) {
		const struct xfp_plan_nodes_time *time = &cluster->time[i];

		xfp_json_add(&list,
			     XFP_JSON({ "nodes", xfp_json_count(cluster->nodes[i].nodes) },
				      { "seconds", json_real(time->total) }, { "work", json_real(time->work) },
				      { "units", json_real(time->units) }, { "steps", xfp_json_count(time->steps) },
				      { "launching", json_real(time->launching) }, { "disk", json_real(time->disk) },
				      { "prepare", json_real(time->prepare) },
				      { "layers", time->layers > 0 ? json_real(time->layers) : json_null() },
				      { "bundle", json_real(time->bundle) },
				      { "binds", xfp_json_text(xfp_plan_bound_name(time->binds)) }));
	}
	return list;
}

json_t *xfp_plan_nodes_json(const struct xfp_plan_cluster *cluster)
{
	if (!cluster->count)
		return json_null();
	return XFP_JSON({ "processors", xfp_json_count(cluster->nodes[0].processors) },
			{ "disk_bandwidth", xfp_json_count(cluster->nodes[0].bandwidth) },
			{ "launch_seconds", json_real(cluster->nodes[0].launch) },
			{ "verify", json_real(cluster->time[0].verify) }, { "predictions", predictions_json(cluster) });
}

enum xfp_status xfp_plan_print_nodes(const struct xfp_plan_cluster *cluster, struct xfp_error *err)
{
	const struct xfp_plan_nodes *nodes = &cluster->nodes[0];
	char text[32];
	enum xfp_status status;

	printf("\nSeconds on nodes of %u processor%s, a disk of %s/s, %g s to launch a step:\n\n",
	       (unsigned)nodes->processors, nodes->processors == 1 ? "" : "s",
	       xfp_human((double)nodes->bandwidth, "B", text), nodes->launch);
	status = xfp_record_table("nodes,total=seconds%.1f,work%.1f,units%.1f,steps,disk%.1f,layers?%.1f,"
				  "bundle%.1f,binds",
				  NULL, predictions_json(cluster), err);
	if (!status)
		printf("\nxfp verify --source then takes %s on the head node.\n",
		       xfp_duration_text(cluster->time[0].verify, text));
	return status;
}
