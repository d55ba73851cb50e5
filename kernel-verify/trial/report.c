/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - the list of ops, the filter of groups, and the report on each group.
 */
#include <stdlib.h>
#include <string.h>

#include "base/system/output.h"
#include "base/text/glob.h"
#include "kernel-verify/trial/trial.h"

void xfp_kernel_op_add(struct xfp_kernel_ops *ops, const char *name, unsigned k, int kind, unsigned sets,
		       xfp_trial_fn *run)
{
	struct xfp_kernel_op *op = &ops->op[ops->count++];
	const char *at = strstr(name, "%u");

	if (ops->count > XFP_MAX_OPS)
		abort();
	*op = (struct xfp_kernel_op){ .run = run, .k = k, .kind = kind, .sets = sets, .trials = 96, .exact = true };
	if (at)
		snprintf(op->name, sizeof op->name, "%.*s%u%s", (int)(at - name), name, k, at + 2);
	else
		snprintf(op->name, sizeof op->name, "%s", name);
}

bool xfp_kernel_wanted(const struct xfp_kernel_request *request, const char *op, enum xfp_kernel_set set)
{
	char group[64];

	if (!request->filter)
		return true;
	snprintf(group, sizeof group, "%s %s", op, xfp_kernel_set_name(set));
	return xfp_glob_matches(request->filter, op) || xfp_glob_matches(request->filter, group);
}

/* ---- output -------------------------------------------------------------------------------------------- */

void xfp_report_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void group_as_json(struct xfp_kernel_report *report, const char *op, enum xfp_kernel_set set, unsigned trials,
			  unsigned failed, const char (*failures)[640], unsigned kept)
{
	printf("%s\n    {\"op\": ", report->any ? "," : "");
	report->any = true;
	xfp_report_string(op);
	printf(", \"set\": \"%s\", \"trials\": %u, \"failed\": %u, \"failures\": [", xfp_kernel_set_name(set), trials,
	       failed);
	for (unsigned i = 0; i < kept; i++) {
		printf(i ? ", " : "");
		xfp_report_string(failures[i]);
	}
	printf("]}");
}

void xfp_report_group(struct xfp_kernel_report *report, const char *op, enum xfp_kernel_set set, unsigned trials,
		      unsigned failed, const char (*failures)[640], unsigned kept)
{
	report->groups++;
	report->trials += trials;
	report->failed += failed;
	report->failed_groups += failed != 0;
	if (report->request->json) {
		group_as_json(report, op, set, trials, failed, failures, kept);
		return;
	}
	if (!failed) {
		printf("%s %s: %u ok\n", op, xfp_kernel_set_name(set), trials);
		goto done;
	}
	printf("%s %s: %u of %u FAILED\n", op, xfp_kernel_set_name(set), failed, trials);
	for (unsigned i = 0; i < kept; i++)
		printf("    %s\n", failures[i]);
	if (kept < failed)
		printf("    and %u more\n", failed - kept);
done:
	if (set == XFP_SET_CUDA)
		xfp_output_flush(); /* results so far stay visible if the run is stopped */
}
