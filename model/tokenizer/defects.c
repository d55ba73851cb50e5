/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/defects.h"

#include <stdio.h>

#include "model/tokenizer/unicode/unicode.h"

#define INVALID_SHARE 1000 /* one invalid byte in that many is tolerated */

struct xfp_text_defects xfp_text_defects(const char *text, size_t size)
{
	struct xfp_text_defects found = { 0 };
	size_t step;

	for (size_t at = 0; at < size; at += step) {
		size_t bad;
		int length = xfp_utf8_length(text + at, size - at, &bad);

		step = length > 0 ? (size_t)length : length ? (size_t)-length : bad;
		if (length <= 0) {
			if (!found.invalid)
				found.first_invalid = at;
			found.invalid += step;
		} else if (!text[at]) {
			if (!found.nuls++)
				found.first_nul = at;
		}
	}
	return found;
}

bool xfp_text_defects_text(const char *text, size_t size, char message[XFP_TEXT_DEFECTS])
{
	struct xfp_text_defects found = xfp_text_defects(text, size);
	char nuls[64] = "", invalid[96] = "";

	if (!found.nuls && found.invalid <= size / INVALID_SHARE)
		return false;
	if (found.nuls)
		snprintf(nuls, sizeof nuls, "%zu NUL byte%s, the first at offset %zu", found.nuls,
			 found.nuls == 1 ? "" : "s", found.first_nul);
	if (found.invalid)
		snprintf(invalid, sizeof invalid, "%zu byte%s of invalid UTF-8 (%.2g %%), the first at offset %zu",
			 found.invalid, found.invalid == 1 ? "" : "s", 100 * (double)found.invalid / (double)size,
			 found.first_invalid);
	snprintf(message, XFP_TEXT_DEFECTS, "%s%s%s; check that it is a text in UTF-8", nuls,
		 *nuls && *invalid ? ", " : "", invalid);
	return true;
}
