/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/utc.h"

#include <stdio.h>
#include <time.h>

const char *xfp_utc(int64_t seconds, char text[32])
{
	time_t time = (time_t)seconds;
	struct tm tm;

	if (!seconds || !gmtime_r(&time, &tm) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(text, 32, "-");
	return text;
}
