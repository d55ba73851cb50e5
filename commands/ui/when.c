/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/when.h"

#include <string.h>

#include "base/text/utc.h"

json_t *xfp_json_time(int64_t seconds)
{
	char text[32];

	return strcmp(xfp_utc(seconds, text), "-") ? json_string(text) : json_null();
}
