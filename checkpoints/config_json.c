/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/config_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Python writes NaN and Infinity, which are not JSON. No field in use can have these values, so they are replaced by
 * zeros of the same length. */
static void blank_nonfinite(char *text)
{
	static const char *const words[] = { "Infinity", "NaN" };
	bool in_string = false;

	for (char *p = text; *p; p++) {
		if (in_string && *p == '\\' && p[1]) {
			p++;
			continue;
		}
		if (*p == '"')
			in_string = !in_string;
		if (in_string)
			continue;
		for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
			size_t length = strlen(words[i]);

			if (!strncmp(p, words[i], length)) {
				memset(p, ' ', length);
				*p = '0';
			}
		}
	}
}

enum xfp_status xfp_config_json(const char *text, const char *where, json_t **root, struct xfp_error *err)
{
	char *copy = strdup(text);
	json_error_t error;

	*root = NULL;
	if (!copy)
		return xfp_no_memory(err);
	blank_nonfinite(copy);
	errno = 0;
	*root = json_loads(copy, 0, &error);
	free(copy);
	/* jansson reports a syntax error when memory runs out. */
	if (!*root && errno == ENOMEM)
		return xfp_no_memory_for(err, where);
	if (!*root)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: line %d: %s; download the file again", where, error.line,
				error.text);
	if (json_is_object(*root))
		return XFP_OK;
	json_decref(*root);
	*root = NULL;
	return xfp_fail(err, XFP_BAD_INPUT, "%s: is not a JSON object; download the file again", where);
}
