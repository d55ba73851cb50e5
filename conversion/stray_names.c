/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/stray_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/suggestion.h"
#include "base/text/text.h"

#define PREFIX "XFP_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)
#define BLANKS " \t\n"
#define MAX_LETTERS 64 /* length up to which names are compared */

/* Variables that xfp reads or sets in addition to settings. */
static const char *const others[] = {
	"DATADIR",  "FAMILIES", "INSTRUCTIONS", "LAUNCH_FOLDER", "LAYER_THREADS", "LIBRARY", "MAKE_GIVEN",
	"MAKE_SET", "OTHERS",   "PIPELINES",    "RUN_BY",        "RUN_HOST",      "RUN_PID", "RUN_VERSION",
};
#define OTHERS (sizeof others / sizeof others[0])

/* Whether a variable belongs to xfp's tests. */
static bool is_for_tests(const char *name)
{
	return !strncmp(name, "TEST_", 5);
}

/* The setting that a name probably refers to, ignoring case; NULL if none. The option "output" is OUT in makefiles. */
static const char *nearest_setting(const char *name, const char *const *ours, size_t count, size_t max)
{
	char upper[MAX_LETTERS];
	size_t length = 0;

	for (; name[length] && length + 1 < sizeof upper; length++)
		upper[length] = (char)toupper((unsigned char)name[length]);
	upper[length] = '\0';
	return strcmp(upper, "OUTPUT") ? xfp_nearest_name(upper, ours, count, max) : "OUT";
}

/* ---- the environment --------------------------------------------------------------------------- */

/* The prefix XFP_ shows that xfp is meant, so two wrong letters are accepted even in short names. */
static enum xfp_status judge(const char *name, const char *const *ours, size_t count, FILE *ignored,
			     struct xfp_error *err)
{
	const char *meant = nearest_setting(name, ours, count, 2), *other = xfp_nearest_name(name, others, OTHERS, 2);

	if ((meant && !strcmp(meant, name)) || (other && !strcmp(other, name)) || is_for_tests(name))
		return XFP_OK;
	if (!meant)
		meant = other;
	if (meant)
		return xfp_fail(err, XFP_USAGE,
				"the environment has " PREFIX "%s, which is not a variable of xfp; did you mean " PREFIX
				"%s? Set that, or unset this",
				xfp_printable(name).text, meant);
	fprintf(ignored, " " PREFIX "%s", xfp_printable(name).text);
	return XFP_OK;
}

static enum xfp_status check_environment(const char *const *ours, size_t count, char **names, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_text text;
	FILE *ignored = xfp_text_begin(&text);

	if (!ignored)
		return xfp_no_memory(err);
	for (char **entry = environ; !status && *entry; entry++) {
		char *equals = strchr(*entry, '='), *name;

		/* An empty variable has no effect. */
		if (strncmp(*entry, PREFIX, PREFIX_LENGTH) || !equals || !equals[1])
			continue;
		name = strndup(*entry + PREFIX_LENGTH, (size_t)(equals - *entry) - PREFIX_LENGTH);
		status = name ? judge(name, ours, count, ignored, err) : xfp_no_memory(err);
		free(name);
	}
	if (!xfp_text_end(&text) && !status)
		status = xfp_no_memory(err);
	if (status || !text.size) {
		free(text.bytes);
		return status;
	}
	*names = text.bytes;
	return XFP_OK;
}

/* ---- makefiles --------------------------------------------------------------------------------- */

static enum xfp_status refuse(const char *name, const char *meant, struct xfp_error *err)
{
	if (!strcmp(name, "JOBS"))
		return xfp_fail(err, XFP_USAGE, "the makefile's variable JOBS is not a setting; use make -j");
	if (meant)
		return xfp_fail(err, XFP_USAGE,
				"the makefile's variable %s is not a setting; did you mean %s? List a variable of your "
				"own in XFP_OTHERS, see xfp-pipelines(7)",
				xfp_printable(name).text, meant);
	return xfp_fail(err, XFP_USAGE,
			"%s, on make's command line, is not a setting; see xfp-pipelines(7), and list a variable of "
			"your own in XFP_OTHERS",
			xfp_printable(name).text);
}

/* Whether a name is upper case, like settings in makefiles. Other names usually belong to the makefile; they are
 * treated as a setting only if they differ in case alone. */
static bool is_upper(const char *name)
{
	while (*name && !islower((unsigned char)*name))
		name++;
	return !*name;
}

/* A makefile may define any name. Short names are often two letters away from a setting, such as DIR from FIT. */
static enum xfp_status check_makefile(const char *variable, bool given, const char *const *ours, size_t count,
				      struct xfp_error *err)
{
	const char *names = getenv(variable);
	char *copy = strdup(names ? names : ""), *rest = copy, *name;
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	while (!status && (name = strsep(&rest, BLANKS))) {
		size_t max = given || (is_upper(name) && strlen(name) >= 6) ? 2 : is_upper(name) ? 1 : 0;
		const char *meant = *name ? nearest_setting(name, ours, count, max) : NULL;

		if (meant || (*name && given))
			status = refuse(name, meant, err);
	}
	free(copy);
	return status;
}

enum xfp_status xfp_stray_names(const char *const *ours, size_t count, char **ignored, struct xfp_error *err)
{
	enum xfp_status status = check_makefile("XFP_MAKE_GIVEN", true, ours, count, err);

	*ignored = NULL;
	if (!status)
		status = check_makefile("XFP_MAKE_SET", false, ours, count, err);
	return status ? status : check_environment(ours, count, ignored, err);
}
