/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.h - builds a shell command that resumes a conversion.
 */
#ifndef XFP_RESUME_H
#define XFP_RESUME_H

#include <stdbool.h>

struct xfp_resume {
	char *command;     /* quoted for a shell; NULL: unknown (started by a makefile) */
	char *folder;      /* absolute folder to run it in; NULL: unknown */
	bool other_folder; /* the user's shell is in another folder (make -C) */
};

/* Find the command for a run that was started as `argv` with the environment settings `inherited` (options.h).
 * convert.mk sets XFP_RUN_BY and XFP_RUN_PID if make started the run: the command is then that make, since the makefile
 * has the settings. Unknown members are NULL. */
struct xfp_resume xfp_resume_find(char *const *inherited, char *const *argv);
void xfp_resume_free(struct xfp_resume *resume);

/* Returns "cd FOLDER && COMMAND", or COMMAND alone, allocated; NULL if out of memory. */
char *xfp_resume_text(const char *command, const char *folder, bool with_folder);

#endif
