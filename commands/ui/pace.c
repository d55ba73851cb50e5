/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/pace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/text/size.h"

double xfp_pace_rate(const struct xfp_pace *pace)
{
	return pace->elapsed > 0 ? pace->fresh / pace->elapsed : 0;
}

double xfp_pace_remaining(const struct xfp_pace *pace)
{
	double rate = xfp_pace_rate(pace), all = pace->total - pace->cached;
	bool enough = pace->fresh >= all / XFP_PACE_SHARE || pace->elapsed >= XFP_PACE_SECONDS;
	bool known = pace->guessed <= pace->fresh / 2 || pace->fresh >= all / 2;

	return rate > 0 && enough && known ? (all - pace->fresh) / rate : -1;
}

void xfp_pace_text(const struct xfp_pace *pace, char *text, size_t size)
{
	double left = xfp_pace_remaining(pace);
	char a[32], b[32], more[128] = "";
	int length = 0;

	if (xfp_pace_rate(pace) > 0) {
		length = snprintf(more, sizeof more, ", %s/s", xfp_human(xfp_pace_rate(pace), "", a));
		if (left >= 1 && left < XFP_PACE_MAX)
			length += snprintf(more + length, sizeof more - (size_t)length, ", ETA %s",
					   xfp_clock_text(left, b));
	}
	if (pace->cached > 0)
		snprintf(more + length, sizeof more - (size_t)length, ", %s cached", xfp_human(pace->cached, "", a));
	snprintf(text, size, "%s of %s weights%s", xfp_human(pace->cached + pace->fresh, "", a),
		 xfp_human(pace->total, "", b), more);
}

const char *xfp_clock_text(double seconds, char text[32])
{
	uint64_t s = (uint64_t)seconds;

	snprintf(text, 32, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60), (unsigned)(s % 60));
	return text;
}

const char *xfp_duration_text(double seconds, char text[32])
{
	if (seconds >= 99.5)
		return xfp_clock_text(seconds, text);
	snprintf(text, 32, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
	return text;
}

const char *xfp_rough_time_text(double seconds, char text[48])
{
	if (seconds >= 5400)
		snprintf(text, 48, "%.1f h", seconds / 3600);
	else if (seconds >= 90)
		snprintf(text, 48, "%.0f min", seconds / 60);
	else
		snprintf(text, 48, "%.0f s", seconds);
	return text;
}

const char *xfp_remaining_text(double seconds, char text[48])
{
	if (seconds >= 90)
		snprintf(text, 48, "about %.0f min left", seconds / 60);
	else
		snprintf(text, 48, "about %.0f s left", seconds);
	return text;
}
