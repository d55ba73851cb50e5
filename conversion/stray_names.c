/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/stray_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/misspelt.h"
#include "base/text/text.h"

#define PREFIX "XFP_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)
#define BLANKS " \t\n"
#define MOST_LETTERS 64 /* of a name, as far as nearness goes */

/* What is read from the environment beside the settings. */
static const char *const others[] = {
	"DATADIR", "FAMILIES", "INSTRUCTIONS", "MAKE_GIVEN", "MAKE_SET", "OTHERS", "PIPELINES", "RUN_BY", "RUN_PID",
};
#define OTHERS (sizeof others / sizeof others[0])

/* The variables of our own tests. */
static bool is_for_tests(const char *name)
{
	return !strncmp(name, "TEST_", 5);
}

/* The setting that a name is probably meant for, whatever its capitals, NULL where there is none. What options call
 * output is OUT in makefiles. */
static const char *meant_by(const char *name, const char *const *ours, size_t count, size_t most)
{
	char upper[MOST_LETTERS];
	size_t length = 0;

	for (; name[length] && length + 1 < sizeof upper; length++)
		upper[length] = (char)toupper((unsigned char)name[length]);
	upper[length] = '\0';
	return strcmp(upper, "OUTPUT") ? xfp_meant(upper, ours, count, most) : "OUT";
}

/* ---- the environment --------------------------------------------------------------------------- */

/* Whoever writes XFP_ has us in mind, so two letters are forgiven however short the name is. */
static enum xfp_status judge(const char *name, const char *const *ours, size_t count, FILE *ignored,
			     struct xfp_error *err)
{
	const char *meant = meant_by(name, ours, count, 2), *other = xfp_meant(name, others, OTHERS, 2);

	if ((meant && !strcmp(meant, name)) || (other && !strcmp(other, name)) || is_for_tests(name))
		return XFP_OK;
	if (!meant)
		meant = other;
	if (meant)
		return xfp_fail(err, XFP_USAGE,
				"the environment has " PREFIX "%s, which is no variable of xfp; did you mean " PREFIX
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

		/* One that is empty asks for nothing. */
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
		return xfp_fail(err, XFP_USAGE,
				"the makefile's variable JOBS is no setting: make's own -j says how many");
	if (meant)
		return xfp_fail(err, XFP_USAGE,
				"the makefile's variable %s is no setting; did you mean %s? One of your own is to be "
				"named in XFP_OTHERS, see xfp-pipelines(7)",
				xfp_printable(name).text, meant);
	return xfp_fail(err, XFP_USAGE,
			"%s, on make's command line, is no setting; those are in xfp-pipelines(7), and a variable of "
			"your own is to be named in XFP_OTHERS there",
			xfp_printable(name).text);
}

/* Whether a name is written as makefiles write settings. Others are often a makefile's own, and only those that differ
 * in nothing but their capitals are taken for a setting. */
static bool is_upper(const char *name)
{
	while (*name && !islower((unsigned char)*name))
		name++;
	return !*name;
}

/* Any name may stand in a makefile. Of the short ones many are two letters from ours, such as DIR from FIT. */
static enum xfp_status check_makefile(const char *variable, bool given, const char *const *ours, size_t count,
				      struct xfp_error *err)
{
	const char *names = getenv(variable);
	char *copy = strdup(names ? names : ""), *rest = copy, *name;
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	while (!status && (name = strsep(&rest, BLANKS))) {
		size_t most = given || (is_upper(name) && strlen(name) >= 6) ? 2 : is_upper(name) ? 1 : 0;
		const char *meant = *name ? meant_by(name, ours, count, most) : NULL;

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
