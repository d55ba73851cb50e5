/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/next_option.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/suggestion.h"

#define MAX_LETTERS 16
#define MAX_OPTIONS 64

static bool is_letter_of(int option, const struct option *options)
{
	for (; options->name; options++)
		if (options->val == option)
			return false;
	return true;
}

/* List the options that begin with a word, as in "--outlier-sigma, --outlier-cap"; false if there are fewer than
 * two. */
static bool list_beginning(const char *word, const struct option *options, char *list, size_t size)
{
	size_t length = strlen(word), used = 0;
	int count = 0;

	list[0] = '\0';
	for (; options->name; options++)
		if (!strncmp(options->name, word, length)) {
			if (used < size)
				used += (size_t)snprintf(list + used, size - used, "%s--%s", count ? ", " : "",
							 options->name);
			count++;
		}
	return count > 1;
}

/* Our name for an option of other tools that edit distance would not find. */
static const char *foreign_name(const char *word, const struct option *options)
{
	static const struct {
		const char *theirs, *ours;
	} names[] = {
		{ "preset", "profile" },   { "quant", "profile" },        { "quant-type", "profile" },
		{ "qtype", "profile" },    { "quantize", "profile" },     { "quantization", "profile" },
		{ "size", "target-size" }, { "max-size", "target-size" }, { "bpw", "target-bpw" },
		{ "vram", "envelope" },    { "threads", "jobs" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (const struct option *o = options; o->name && !strcmp(word, names[i].theirs); o++)
			if (!strcmp(o->name, names[i].ours))
				return o->name;
	return NULL;
}

/* Report a long option that getopt rejected: unknown or ambiguous. */
static void report_unknown(const char *given, const struct option *options, struct xfp_error *err)
{
	const char *names[MAX_OPTIONS];
	size_t length = strcspn(given + 2, "="), count = 0;
	char word[64], list[400], meant[XFP_DID_YOU_MEAN];
	const char *other;

	snprintf(word, sizeof word, "%.*s", (int)length, given + 2);
	if (length && list_beginning(word, options, list, sizeof list)) {
		xfp_fail(err, XFP_USAGE, "option --%s is ambiguous: it could be %s", xfp_printable(word).text, list);
		return;
	}
	if ((other = foreign_name(word, options))) {
		xfp_fail(err, XFP_USAGE, "unknown option --%s; did you mean --%s?", word, other);
		return;
	}
	while (count < MAX_OPTIONS && options[count].name) {
		names[count] = options[count].name;
		count++;
	}
	xfp_fail(err, XFP_USAGE, "unknown option --%s%s", xfp_printable(word).text,
		 xfp_did_you_mean("--", word, names, count, meant));
}

int xfp_next_option(int argc, char **argv, const char *letters, const struct option *options, struct xfp_error *err)
{
	char all[MAX_LETTERS];
	int option;

	snprintf(all, sizeof all, ":h%s", letters);
	opterr = 0;
	option = getopt_long(argc, argv, all, options, NULL);
	if (option == 'h') {
		const struct option *help = options;

		while (help->name && strcmp(help->name, "help"))
			help++;
		if (help->name)
			return help->val;
		option = '?';
		optopt = 'h';
	}
	if (option == ':')
		xfp_fail(err, XFP_USAGE, "%s requires a value", xfp_printable(argv[optind - 1]).text);
	else if (option == '?' && optopt && !is_letter_of(optopt, options))
		xfp_fail(err, XFP_USAGE, "%s takes no value", xfp_printable(argv[optind - 1]).text);
	else if (option == '?' && optopt)
		xfp_fail(err, XFP_USAGE, "unknown option -%s", xfp_printable((char[2]){ (char)optopt, '\0' }).text);
	else if (option == '?')
		report_unknown(argv[optind - 1], options, err);
	return option == ':' ? '?' : option;
}
