/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "stages/settings/data.h"

#define LONGEST_COMMAND (1 << 20)

char *xfp_resume_text(const char *command, const char *folder, bool with_folder)
{
	struct xfp_text text;
	FILE *out;

	if (!with_folder || !folder)
		return strdup(command);
	if (!(out = xfp_text_begin(&text)))
		return NULL;
	fputs("cd ", out);
	xfp_shell_quote(out, folder);
	fprintf(out, " && %s", command);
	return xfp_text_end(&text) ? text.bytes : NULL;
}

/* ---- make -------------------------------------------------------------------------------------- */

/* Detect -C DIR in all its forms. `left` receives the remaining flags of the word, "" if none; *takes_next: DIR is the
 * next word. */
static bool changes_folder(const char *word, char left[32], bool *takes_next)
{
	size_t letters = 0;

	left[0] = '\0';
	*takes_next = false;
	if (!strncmp(word, "--directory", 11) && (!word[11] || word[11] == '=')) {
		*takes_next = !word[11];
		return true;
	}
	if (word[0] != '-' || word[1] == '-')
		return false;
	letters = strspn(word + 1, "BbdeikLmnpqRrsStvw"); /* flags without a value */
	if (word[1 + letters] != 'C' || letters >= 30)
		return false;
	if (letters)
		snprintf(left, 32, "%.*s", (int)letters + 1, word);
	*takes_next = !word[2 + letters];
	return true;
}

/* The command line of process `pid` without -C: it has changed to that folder, and so have we. */
static char *command_of_make(const char *pid, bool *other_folder)
{
	char *path = xfp_formatted("/proc/%ld/cmdline", strtol(pid, NULL, 10)), *words = NULL, left[32];
	struct xfp_text text = { 0 };
	size_t size = 0;
	FILE *out = NULL;
	bool skip = false;

	if (!path || xfp_slurp(path, LONGEST_COMMAND, &words, &size, NULL) || !size || !(out = xfp_text_begin(&text)))
		goto done;
	for (const char *word = words; word < words + size; word += strlen(word) + 1) {
		bool drop = skip;

		skip = false;
		if (!drop && word > words && changes_folder(word, left, &skip)) {
			*other_folder = true;
			if (*left)
				fprintf(out, " %s", left);
			drop = true;
		}
		if (drop)
			continue;
		if (word > words)
			fputc(' ', out);
		xfp_shell_quote(out, word);
	}
done:
	free(words);
	free(path);
	return xfp_text_end(&text) ? text.bytes : NULL;
}

/* ---- xfp --------------------------------------------------------------------------------------- */

static char *own_command(char *const *inherited, char *const *argv)
{
	const char *families = getenv(XFP_FAMILY_PATH);
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (!out)
		return NULL;
	if (families && *families) { /* has no option */
		fputs(XFP_FAMILY_PATH "=", out);
		xfp_shell_quote(out, families);
		fputc(' ', out);
	}
	fputs(argv[0], out); /* "xfp convert" */
	/* Inherited settings come first, since the last of two options takes effect. */
	for (; inherited && *inherited; inherited++) {
		fputc(' ', out);
		xfp_shell_quote(out, *inherited);
	}
	while (*++argv) {
		fputc(' ', out);
		xfp_shell_quote(out, *argv);
	}
	return xfp_text_end(&text) ? text.bytes : NULL;
}

struct xfp_resume xfp_resume_find(char *const *inherited, char *const *argv)
{
	const char *by = getenv("XFP_RUN_BY"), *pid = getenv("XFP_RUN_PID");
	struct xfp_resume resume = { .folder = getcwd(NULL, 0) };

	if (!by || strcmp(by, "make"))
		resume.command = own_command(inherited, argv);
	else if (pid)
		resume.command = command_of_make(pid, &resume.other_folder);
	return resume;
}

void xfp_resume_free(struct xfp_resume *resume)
{
	free(resume->command);
	free(resume->folder);
	*resume = (struct xfp_resume){ 0 };
}
