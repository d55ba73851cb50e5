/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_line.h - the frame in which every tool reads its command line: a table of options, --help and --version,
 * what is unknown or lacks a value, and the arguments that are left.
 *
 * A tool fills a table on its stack, each row of which says where its value goes. --help is made of the same rows,
 * so an option cannot be without a text.
 */
#ifndef XFP_COMMAND_LINE_H
#define XFP_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/xfp_error.h"

/* One option. One of the members from `set` to `take` says where its value goes. */
struct xfp_option {
	const char *name;           /* without "--" */
	char letter;                /* its short form; 0: none */
	const char *value;          /* what --help calls its value; NULL: a switch */
	const char *text;           /* for --help, which breaks it to fit the screen */
	bool path;                  /* the value is a path, and cleaned (path.h) */
	bool *set;                  /* becomes true */
	const char **into;          /* becomes the value, which is the caller's argv; the last one counts */
	const char *const *choices; /* names that the value must be one of, ended by NULL; then `into`, or: */
	unsigned *choice;           /* becomes the number of the name */
	uint64_t *into_size;        /* becomes the value, a size (size.h) */
	uint32_t *into_32;          /* becomes the value, a whole number within `range` */
	uint64_t *into_64;          /* the same */
	struct xfp_option_range {
		const char *what; /* for messages: "a number of jobs" */
		uint64_t least, most;
	} range;
	/* Anything else. `where` is the option (or the variable) for messages, `value` NULL for a switch. Fails with
	 * XFP_USAGE where the value is no good. */
	enum xfp_status (*take)(const struct xfp_option *option, const char *where, const char *value,
				struct xfp_error *err);
	void *context; /* for `take` */
};

struct xfp_command_line {
	const char *usage;                /* from the command's name on; another way begins with "\n   or: " */
	const char *summary;              /* sentences for --help; lines that begin with a blank stay as they are */
	const struct xfp_option *options; /* ended by one without a name; --help and --version are not among them */
	unsigned column;                  /* of the texts in --help; 0: two beyond the widest option */
	/* The usage line names no options: help is terse, and what is wrong is followed by a pointer to it. */
	bool brief;

	/* Once it is read: */
	const char *program; /* argv[0], as messages begin */
	char **arguments;    /* what is not an option, in argv; paths that exist are cleaned (path.h) */
	int argument_count;
	bool told; /* --help or --version was asked for and printed, and nothing else looked at */
};

/* "min-cos-lazy" -> "XFP_MIN_COS_LAZY", the variable of the environment that may hold an option's default. */
#define XFP_OPTION_VARIABLE 40
void xfp_option_variable(const char *option, char name[XFP_OPTION_VARIABLE]);

/* Read it; the caller tells what is wrong. XFP_USAGE, or what `take` returned. */
enum xfp_status xfp_command_line_parse(struct xfp_command_line *line, int argc, char **argv, struct xfp_error *err);

/* The same, and says on stderr what is wrong. True to go on; otherwise *status is what the command ends with. */
bool xfp_command_line_read(struct xfp_command_line *line, int argc, char **argv, int *status);

/* For what only the command can know: a message (NULL: none), then the usage. Returns XFP_USAGE. */
int xfp_command_line_refuse(const struct xfp_command_line *line, const char *format, ...) XFP_PRINTF(2, 3);

/* The only argument, a bundle; NULL, with what is wrong said, when there is none or more than one. */
const char *xfp_command_line_bundle(const struct xfp_command_line *line);

/* Lines of a usage, "usage:" or "   or:" before them, broken between what stands in brackets to fit the screen. */
void xfp_print_usage(FILE *out, const char *label, const char *usage);

/* Of brief commands, to end a message about the command line with. */
void xfp_point_to_help(const char *program);

#endif
