/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/command_line.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/next_option.h"
#include "base/system/path.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/suggestion.h"
#include "base/text/table.h"
#include "base/text/whole_number.h"

enum { HELP = 256, VERSION, FIRST };

/* ---- the text of --help -------------------------------------------------------------------------- */

#define USAGE_FURTHER 11 /* indentation of usage lines that are continued */

/* The number of columns up to the next possible line break: never a blank inside brackets. */
static size_t usage_word(const char *text)
{
	int depth = 0;
	size_t length = 0;

	for (; text[length] && text[length] != '\n' && (depth || text[length] != ' '); length++)
		depth += (text[length] == '[') - (text[length] == ']');
	return length;
}

void xfp_print_usage(FILE *out, const char *label, const char *text)
{
	size_t width = xfp_screen_width(), at = strlen(label) + 1;

	fprintf(out, "%s ", label);
	while (*text) {
		size_t blanks = strspn(text, " \n"), word = usage_word(text + blanks);

		/* An alternative ("or:") starts a line of its own; other lines are joined. */
		if (*text == '\n' && !strncmp(text + blanks, "or:", 3)) {
			fputs("\n   ", out);
			at = 3;
			text += blanks;
			continue;
		}
		if (at > USAGE_FURTHER && at + blanks + word > width) {
			fprintf(out, "\n%*s", USAGE_FURTHER, "");
			text += blanks;
			at = USAGE_FURTHER;
			blanks = 0;
		}
		fprintf(out, "%s%.*s", blanks ? " " : "", (int)word, text + blanks);
		at += (blanks > 0) + word;
		text += blanks + word;
	}
	putc('\n', out);
}

/* Join the lines of the source, to be broken again for the screen. Lines that begin with a blank are lists and stay
 * unchanged. */
static void join_lines(char *text)
{
	for (char *p = text; (p = strchr(p, '\n')); p++)
		if (p[1] && p[1] != ' ' && p[1] != '\n' && p > text && p[-1] != '\n')
			*p = ' ';
}

static void print_summary(const char *text)
{
	char *copy = strdup(text), *rest = copy, *part;

	if (!copy) {
		puts(text);
		return;
	}
	join_lines(copy);
	while ((part = strsep(&rest, "\n"))) {
		if (*part == ' ' || !*part)
			puts(part);
		else
			xfp_fold_in(stdout, part, 0);
	}
	free(copy);
}

/* Write "  -o, --output OUT.xfp"; returns its width in columns. */
static unsigned write_option(const struct xfp_option *option, char text[64])
{
	char letter[] = "    ";

	if (option->letter)
		snprintf(letter, sizeof letter, "-%c, ", option->letter);
	return (unsigned)snprintf(text, 64, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
				  option->value ? option->value : "");
}

static void print_option(const struct xfp_option *option, unsigned column)
{
	char *copy = strdup(option->text), left[64];
	unsigned at = write_option(option, left);

	fputs(left, stdout);
	if (at >= column) {
		putchar('\n');
		at = 0;
	} else if (at + 1 == column) {
		at--; /* at least two blanks, even if the text then starts late */
	}
	printf("%*s", (int)(column - at), "");
	if (copy)
		join_lines(copy);
	xfp_fold_in(stdout, copy ? copy : option->text, column);
	free(copy);
}

static void print_help(const struct xfp_command_line *line)
{
	const struct xfp_option last[] = {
		{ .name = "help", .letter = 'h', .text = line->brief ? "this text" : "print this help and exit" },
		{ .name = "version", .text = line->brief ? "the version" : "print the version and exit" },
	};
	unsigned column = line->column;
	char left[64];

	if (!column) {
		column = write_option(&last[1], left) + 2;
		for (const struct xfp_option *o = line->options; o->name; o++)
			if (write_option(o, left) + 2 > column)
				column = write_option(o, left) + 2;
	}
	xfp_print_usage(stdout, "usage:", line->usage);
	putchar('\n');
	print_summary(line->summary);
	putchar('\n');
	for (const struct xfp_option *o = line->options; o->name; o++)
		print_option(o, column);
	print_option(&last[0], column);
	print_option(&last[1], column);
}

static void print_version(const struct xfp_command_line *line)
{
	if (line->brief)
		printf("xfp %s\n", PACKAGE_VERSION);
	else
		printf("%s (xfp) %s\n", line->program, PACKAGE_VERSION);
}

static void print_completion(const struct xfp_option *option)
{
	static const char *const kinds[] = { "DIR", "FILE", "MODEL", "BUNDLE", NULL };
	size_t i = 0;

	if (!option->value) {
		puts("-");
	} else if (option->complete) {
		puts(option->complete);
	} else if (option->choices) {
		for (; option->choices[i]; i++)
			printf("%s%s", i ? "|" : "", option->choices[i]);
		putchar('\n');
	} else {
		while (kinds[i] && strcmp(option->value, kinds[i]))
			i++;
		puts(kinds[i] ? kinds[i] : "?");
	}
}

/* Answer "--completions": a line "OPTION VALUE" for each option, and "* VALUE" for arguments. */
static void print_completions(const struct xfp_command_line *line)
{
	for (const struct xfp_option *o = line->options; o->name; o++) {
		printf("--%s ", o->name);
		print_completion(o);
		if (!o->letter)
			continue;
		printf("-%c ", o->letter);
		print_completion(o);
	}
	puts("-h -\n--help -\n--version -");
	if (line->operand)
		printf("* %s\n", line->operand);
}

void xfp_point_to_help(const char *program)
{
	fprintf(stderr, "Try '%s --help'.\n", program);
}

/* ---- the environment ----------------------------------------------------------------------------- */

void xfp_option_variable(const char *option, char name[XFP_OPTION_VARIABLE])
{
	snprintf(name, XFP_OPTION_VARIABLE, "XFP_%s", option);
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* Convert the table for getopt_long: values from FIRST on are indices into the table. The string for short options is
 * returned in `letters`. */
static struct option *names_of(const struct xfp_option *options, size_t count, char **letters)
{
	struct option *names = calloc(count + 3, sizeof *names);
	char *to = *letters = malloc(count * 2 + 1);

	if (!names || !to) {
		free(names);
		free(to);
		*letters = NULL;
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		int takes = options[i].value ? required_argument : no_argument;

		names[i] = (struct option){ options[i].name, takes, NULL,
					    options[i].letter ? options[i].letter : FIRST + (int)i };
		if (options[i].letter)
			*to++ = options[i].letter;
		if (options[i].letter && options[i].value)
			*to++ = ':';
	}
	*to = '\0';
	names[count] = (struct option){ "help", no_argument, NULL, HELP };
	names[count + 1] = (struct option){ "version", no_argument, NULL, VERSION };
	return names;
}

static const struct xfp_option *option_of(const struct xfp_option *options, int id)
{
	if (id >= FIRST)
		return &options[id - FIRST];
	while (options->letter != (char)id)
		options++;
	return options;
}

static enum xfp_status choose(const struct xfp_option *option, const char *where, const char *value,
			      struct xfp_error *err)
{
	char names[160] = "", meant[XFP_DID_YOU_MEAN];
	const char *const *all = option->choices;
	size_t used = 0;
	unsigned count = 0;

	for (; all[count]; count++) {
		if (!strcmp(value, all[count])) {
			if (option->choice)
				*option->choice = count;
			return XFP_OK;
		}
		if (used < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
						 !count           ? ""
						 : all[count + 1] ? ", "
								  : " or ",
						 all[count]);
	}
	return xfp_fail(err, XFP_USAGE, "%s '%s': expected %s%s", where, value, names,
			xfp_did_you_mean("", value, all, count, meant));
}

static enum xfp_status use_size(const struct xfp_option *option, const char *where, const char *value,
				struct xfp_error *err)
{
	uint64_t size;
	bool good = xfp_size_parse(value, &size);

	if (!good && !option->binary)
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a size such as 500MB, 20G or 4GiB", where, value);
	if (option->binary && (!good || xfp_size_is_bare(value, size)))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a size such as %s; " XFP_SIZE_UNITS, where, value,
				option->range.what);
	if (option->binary)
		*option->binary = xfp_size_is_binary(value);
	*option->into_size = size;
	return XFP_OK;
}

static enum xfp_status use_copy(const struct xfp_option *option, const char *where, const char *value,
				struct xfp_error *err)
{
	char *copy;

	if (!*value)
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected %s", where, value, option->range.what);
	if (!(copy = strdup(value)))
		return xfp_no_memory(err);
	free(*option->copy);
	*option->copy = copy;
	return XFP_OK;
}

static enum xfp_status use_value(const struct xfp_option *option, const char *where, const char *value,
				 struct xfp_error *err)
{
	const struct xfp_option_range *range = &option->range;

	if (option->parse)
		return option->parse(option, where, value, err);
	if (option->choices)
		return choose(option, where, value, err);
	if (option->copy)
		return use_copy(option, where, value, err);
	if (option->into_size)
		return use_size(option, where, value, err);
	if (option->into_32)
		return xfp_whole_number_32(where, value, range->what, (uint32_t)range->min, (uint32_t)range->max,
					   option->into_32, err);
	if (option->into_64)
		return xfp_whole_number(where, value, range->what, range->min, range->max, option->into_64, err);
	return XFP_OK;
}

enum xfp_status xfp_option_use(const struct xfp_option *option, const char *where, const char *value,
			       struct xfp_error *err)
{
	enum xfp_status status = use_value(option, where, value, err);

	if (!status && option->set)
		*option->set = true;
	if (!status && option->into)
		*option->into = value;
	return status;
}

/* *misread: the command line is wrong, not the value of an option. */
static enum xfp_status parse(struct xfp_command_line *line, int argc, char **argv, bool *misread, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct option *names;
	size_t count = 0;
	char *letters, where[64];
	int id;

	line->program = argv[0];
	*misread = false;
	if (argc == 2 && !strcmp(argv[1], "--completions")) {
		print_completions(line);
		line->printed = true;
		return XFP_OK;
	}
	while (line->options[count].name)
		count++;
	if (!(names = names_of(line->options, count, &letters)))
		return xfp_no_memory(err);
	optind = 0; /* restart getopt */
	while (!status && !line->printed && (id = xfp_next_option(argc, argv, letters, names, err)) != -1) {
		if (id == '?') {
			*misread = true;
			status = XFP_USAGE;
		} else if (id == HELP || id == VERSION) {
			(id == HELP ? print_help : print_version)(line);
			line->printed = true;
		} else {
			const struct xfp_option *option = option_of(line->options, id);

			if (option->path)
				xfp_path_clean(optarg);
			snprintf(where, sizeof where, "--%s", option->name);
			status = xfp_option_use(option, where, option->value ? optarg : NULL, err);
		}
	}
	line->arguments = argv + optind;
	line->argument_count = argc - optind;
	for (int i = 0; i < line->argument_count; i++)
		if (!access(line->arguments[i], F_OK))
			xfp_path_clean(line->arguments[i]);
	free(names);
	free(letters);
	return status;
}

enum xfp_status xfp_command_line_parse(struct xfp_command_line *line, int argc, char **argv, struct xfp_error *err)
{
	bool misread;

	return parse(line, argc, argv, &misread, err);
}

enum xfp_status xfp_command_line_parse_after(struct xfp_command_line *line, int argc, char **argv,
					     enum xfp_status status, struct xfp_error *err)
{
	enum xfp_status parsed = xfp_command_line_parse(line, argc, argv, status ? NULL : err);

	return line->printed ? XFP_OK : status ? status : parsed;
}

bool xfp_command_line_read(struct xfp_command_line *line, int argc, char **argv, int *status)
{
	struct xfp_error err = { .status = XFP_OK };
	bool misread;

	if (!(*status = (int)parse(line, argc, argv, &misread, &err)))
		return !line->printed;
	fprintf(stderr, "%s: %s\n", line->program, err.text);
	if (line->brief && *status == XFP_USAGE)
		xfp_point_to_help(line->program);
	else if (misread)
		xfp_print_usage(stderr, "usage:", line->usage);
	return false;
}

int xfp_command_line_refuse(const struct xfp_command_line *line, const char *format, ...)
{
	va_list arguments;

	if (format) {
		fprintf(stderr, "%s: ", line->program);
		va_start(arguments, format);
		xfp_screen_vprintf(stderr, format, arguments);
		va_end(arguments);
		putc('\n', stderr);
	}
	if (line->brief)
		xfp_point_to_help(line->program);
	else
		xfp_print_usage(stderr, "usage:", line->usage);
	return XFP_USAGE;
}

const char *xfp_command_line_bundle(const struct xfp_command_line *line)
{
	if (line->argument_count == 1)
		return line->arguments[0];
	if (line->argument_count)
		xfp_command_line_refuse(line, "expected one BUNDLE, got '%s' as well", line->arguments[1]);
	else
		xfp_command_line_refuse(line, "missing BUNDLE");
	return NULL;
}
