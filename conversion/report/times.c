/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "conversion/report/inputs.h"
#include "stages/work/bundle_stamp.h"
#include "stages/work/verified.h"

static void add_event(struct xfp_report_times *times, const struct xfp_event *event)
{
	bool made = !strcmp(event->outcome, "made"), hit = !strcmp(event->outcome, "hit");
	struct xfp_report_stage *stage = times->stages;

	if ((!made && !hit) || xfp_event_is_verify(event))
		return;
	while (stage < times->stages + times->count && strcmp(stage->name, event->stage))
		stage++;
	if (stage == times->stages + XFP_REPORT_STAGES)
		return;
	if (stage == times->stages + times->count) {
		memcpy(stage->name, event->stage, sizeof stage->name);
		times->count++;
	}
	stage->made += made;
	stage->hits += hit;
	stage->seconds += event->seconds;
	times->seconds += event->seconds;
	if (event->seconds > stage->longest)
		stage->longest = event->seconds;
}

static int longest_first(const void *a, const void *b)
{
	const struct xfp_report_stage *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return strcmp(x->name, y->name);
}

enum xfp_status xfp_report_read_times(const char *work, const struct xfp_report *report, struct xfp_report_times *times,
				      struct xfp_error *err)
{
	struct xfp_bundle_stamp stamp;
	enum xfp_status status;
	char *text = NULL, *rest, *line;
	struct xfp_events_reader reader = { .final = true };
	bool sound;

	*times = (struct xfp_report_times){ .count = 0 };
	if ((status = xfp_bundle_stamp_read(work, &stamp, &sound, err)))
		return status;
	if (!sound || strcmp(stamp.sha256, report->sha256))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: not the work folder of this bundle; name the OUT.xfp.work that it was made with",
				work);
	status = xfp_events_read(work, &reader, &text, err);
	xfp_events_reader_free(&reader);
	if (status)
		return status;
	for (rest = text; rest && (line = strsep(&rest, "\n")) && rest;) {
		struct xfp_event event;

		if (xfp_event_parse(line, &event))
			add_event(times, &event);
	}
	free(text);
	qsort(times->stages, times->count, sizeof *times->stages, longest_first);
	return XFP_OK;
}
