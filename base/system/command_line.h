/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_line.h - parse the command line of every tool: a table of options, --help and --version, errors for unknown
 * options and missing values, and the remaining arguments.
 *
 * A tool fills a table on its stack; each row says where its value is stored. --help is generated from the same rows,
 * so every option has a text.
 */
#ifndef XFP_COMMAND_LINE_H
#define XFP_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/xfp_error.h"

/*
 * Every command prints what shells complete if its only argument is "--completions" (commands/completions/). The
 * completion of a value is one of:
 *   -               none: a switch
 *   ?               cannot be listed
 *   a|b|c           one of these
 *   CLASS=          a class and "="
 *   DIR, FILE       a folder, a file
 *   BUNDLE, RUN     .xfp files; and work folders
 *   MODEL           folders, .safetensors and .gguf files, names in the Hugging Face cache; BUNDLE|MODEL: .xfp, too
 *   FAMILY, PROFILE a name from the data folder
 *   UNIT            a unit of the work folder
 */

/* One option. The members from `set` to `parse` say where the value is stored: `set` alone or with another. */
struct xfp_option {
	const char *name;           /* without "--" */
	char letter;                /* short form; 0: none */
	const char *value;          /* name of the value in --help; NULL: a switch */
	const char *text;           /* for --help, which wraps it to the screen */
	const char *complete;       /* a completion; NULL: `choices`, or the value's name if that is one */
	bool path;                  /* the value is a path and is cleaned (path.h) */
	bool *set;                  /* set to true */
	const char **into;          /* set to the value, a pointer into argv; the last one wins */
	char **copy;                /* set to an allocated copy of the value, which must not be empty */
	const char *const *choices; /* the allowed values, ended by NULL; stored in `into`, or in: */
	unsigned *choice;           /* set to the index of the value */
	uint64_t *into_size;        /* set to the value, a size (size.h) */
	bool *binary;               /* the size must have a unit; set to whether that is a power of 1024 */
	uint32_t *into_32;          /* set to the value, a whole number within `range` */
	uint64_t *into_64;          /* set to the value, a whole number within `range` */
	struct xfp_option_range {
		const char *what; /* for messages: "a number of jobs"; an example of a size */
		uint64_t min, max;
	} range;
	/* Parse any other value. `where` names the option (or environment variable) in messages; `value` is NULL for a
	 * switch. Returns XFP_USAGE for an invalid value. */
	enum xfp_status (*parse)(const struct xfp_option *option, const char *where, const char *value,
				 struct xfp_error *err);
	void *context; /* argument for `take` */
};

struct xfp_command_line {
	const char *usage;                /* starts with the command's name; alternatives start with "\n   or: " */
	const char *summary;              /* sentences for --help; lines that begin with a blank stay unchanged */
	const struct xfp_option *options; /* ends with an entry without a name; --help and --version are added */
	unsigned column;                  /* column of the texts in --help; 0: two beyond the widest option */
	const char *operand;              /* a completion for arguments; NULL: none */
	/* The usage line names no options: help is terse, and errors end with a pointer to --help. */
	bool brief;

	/* Set by parsing: */
	const char *program; /* argv[0], the prefix of messages */
	char **arguments;    /* the arguments that are not options, in argv; existing paths are cleaned (path.h) */
	int argument_count;
	bool printed; /* --help, --version or --completions was given and printed; nothing else was parsed */
};

/* Convert "min-cos-lazy" to "XFP_MIN_COS_LAZY", the environment variable that may hold an option's default. */
#define XFP_OPTION_VARIABLE 40
void xfp_option_variable(const char *option, char name[XFP_OPTION_VARIABLE]);

/* Store the value of an option, from its environment variable or another source; `where` names that in messages. */
enum xfp_status xfp_option_use(const struct xfp_option *option, const char *where, const char *value,
			       struct xfp_error *err);

/* Parse the command line without printing errors. Returns XFP_USAGE, or the status of `parse`. */
enum xfp_status xfp_command_line_parse(struct xfp_command_line *line, int argc, char **argv, struct xfp_error *err);

/* The same after the environment was read, with this status and error: they are returned, except for --help and the
 * like. */
enum xfp_status xfp_command_line_parse_after(struct xfp_command_line *line, int argc, char **argv,
					     enum xfp_status status, struct xfp_error *err);

/* Parse the command line and print errors to stderr. Returns true to continue; otherwise *status is the exit status. */
bool xfp_command_line_read(struct xfp_command_line *line, int argc, char **argv, int *status);

/* Report an error that only the command can detect: the message (NULL: none), then the usage. Returns XFP_USAGE. */
int xfp_command_line_refuse(const struct xfp_command_line *line, const char *format, ...) XFP_PRINTF(2, 3);

/* The only argument, a bundle; NULL, after printing an error, if there is none or more than one. */
const char *xfp_command_line_bundle(const struct xfp_command_line *line);

/* Print usage lines, prefixed with "usage:" or "   or:" and wrapped to the screen between bracketed groups. */
void xfp_print_usage(FILE *out, const char *label, const char *usage);

/* Print "Try 'PROGRAM --help'" after an error, for brief commands. */
void xfp_point_to_help(const char *program);

#endif
