/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/whole_number.h"

#include "base/bytes.h"

bool xfp_whole_number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || !xfp_mul(value, 10, &value) ||
		    !xfp_add(value, (uint64_t)(*text - '0'), &value))
			return false;
	}
	if (value < min || value > max)
		return false;
	*number = value;
	return true;
}

enum xfp_status xfp_whole_number(const char *where, const char *text, const char *what, uint64_t min, uint64_t max,
				 uint64_t *number, struct xfp_error *err)
{
	if (xfp_whole_number_parse(text, min, max, number))
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE, "%s '%s': expected %s from %ju to %ju", where, text, what, (uintmax_t)min,
			(uintmax_t)max);
}

enum xfp_status xfp_whole_number_32(const char *where, const char *text, const char *what, uint32_t min, uint32_t max,
				    uint32_t *number, struct xfp_error *err)
{
	uint64_t value = *number;
	enum xfp_status status = xfp_whole_number(where, text, what, min, max, &value, err);

	*number = (uint32_t)value;
	return status;
}
