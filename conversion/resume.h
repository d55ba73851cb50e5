/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.h - the command that goes on with a conversion, to be pasted into a shell.
 */
#ifndef XFP_RESUME_H
#define XFP_RESUME_H

#include <stdbool.h>

struct xfp_resume {
	char *command;  /* quoted for a shell; NULL: not known (a makefile started us) */
	char *folder;   /* where it has to be run, absolute; NULL: not known */
	bool elsewhere; /* the shell that started this is in another folder (make -C) */
};

/* Of a run that was started as `argv`, with what the environment set beside that (options.h). convert.mk
 * says in XFP_RUN_BY and XFP_RUN_PID that it is make's to run us again, as that was started: settings
 * are in the makefile. What cannot be found out is NULL. */
struct xfp_resume xfp_resume_find(char *const *inherited, char *const *argv);
void xfp_resume_free(struct xfp_resume *resume);

/* "cd FOLDER && COMMAND", or without the cd; the caller frees. NULL when out of memory. */
char *xfp_resume_text(const char *command, const char *folder, bool with_folder);

#endif
