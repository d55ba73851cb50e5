/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - xfp cache: what is in a cache of artifacts, whether it is whole, and what of it may go. Each
 * command has a file of its own; this is the table of them and the frame that they run in.
 */
#include "commands/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/system/next_option.h"
#include "base/text/misspelt.h"
#include "commands/ui/commands.h"

static const struct xfp_cache_command *const commands[] = {
	&xfp_cache_ls, &xfp_cache_check, &xfp_cache_rebuild, &xfp_cache_gc, &xfp_cache_stats,
};
#define COMMANDS (sizeof commands / sizeof commands[0])

/* ---- the frame --------------------------------------------------------------------------------- */

enum { CACHE = 256, JSON, HELP, VERSION };

static const struct option common[] = {
	{ "cache", required_argument, NULL, CACHE },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, VERSION },
};
#define COMMON (sizeof common / sizeof common[0])
#define MOST_OPTIONS 16

static void usage(const struct xfp_cache_command *command, FILE *out)
{
	fprintf(out, "usage: xfp cache %s%s\n", command->name, command->synopsis);
}

static void help(const struct xfp_cache_command *command)
{
	usage(command, stdout);
	printf("\n%s\n\n"
	       "      --cache DIR   the cache (default: XFP_CACHE, or xfp-cache)\n"
	       "%s"
	       "      --json        one JSON object, see xfp-cache(1)\n"
	       "  -h, --help        print this help and exit\n"
	       "      --version     print the version and exit\n",
	       command->summary, command->options);
}

static const char *default_folder(void)
{
	const char *folder = getenv("XFP_CACHE");

	return folder && *folder ? folder : "xfp-cache";
}

/* XFP_OK to go on, -1 when all is done, or XFP_USAGE with what is wrong already said. */
static int parse(int argc, char **argv, const struct xfp_cache_command *command, struct xfp_cache_call *call)
{
	struct option options[MOST_OPTIONS] = { 0 };
	struct xfp_error err;
	size_t count = 0;
	int option;

	while (command->own && command->own[count].name && count < MOST_OPTIONS - COMMON - 1) {
		options[count] = command->own[count];
		count++;
	}
	memcpy(options + count, common, sizeof common);
	optind = 0; /* whatever was parsed before */
	while ((option = xfp_next_option_said(argc, argv, command->letters ? command->letters : "", options)) >= 0) {
		switch (option) {
		case CACHE:
			call->folder = optarg;
			break;
		case JSON:
			call->json = true;
			break;
		case HELP:
			help(command);
			return -1;
		case VERSION:
			printf("%s (xfp) %s\n", argv[0], PACKAGE_VERSION);
			return -1;
		case '?':
			usage(command, stderr);
			return XFP_USAGE;
		default:
			if (command->take(option, optarg, call, &err))
				break;
			fprintf(stderr, "%s: %s\n", argv[0], err.text);
			return XFP_USAGE;
		}
	}
	call->operand = argv[optind];
	if (argc - optind > (command->takes_operand ? 1 : 0)) {
		fprintf(stderr, "%s: '%s' is one argument too many\n", argv[0], xfp_printable(argv[argc - 1]).text);
		usage(command, stderr);
		return XFP_USAGE;
	}
	return XFP_OK;
}

static int run(const struct xfp_cache_command *command, int argc, char **argv)
{
	char *name = xfp_formatted("xfp cache %s", command->name);
	struct xfp_cache_call call = { .program = name, .folder = default_folder(), .keep_runs = 1 };
	struct xfp_error err = { 0 };
	int status;

	if (!name) {
		fputs("xfp cache: out of memory\n", stderr);
		return XFP_FAILED;
	}
	argv[0] = name;
	if (!(status = parse(argc, argv, command, &call))) {
		status = command->run(&call, &err);
		if (status && *err.text)
			fprintf(stderr, "%s: %s\n", name, err.text);
	}
	free(name);
	return status < 0 ? XFP_OK : status;
}

/* ---- which command ----------------------------------------------------------------------------- */

static void print_usage(FILE *out)
{
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "%s xfp cache %s%s\n", i ? "   or:" : "usage:", commands[i]->name, commands[i]->synopsis);
}

static void print_help(void)
{
	print_usage(stdout);
	puts("\nLooks after the cache of artifacts that conversions fill: the folder xfp-cache beside a bundle.\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  xfp cache %-9s%s\n", commands[i]->name, commands[i]->text);
	puts("\n"
	     "  -h, --help     print this help and exit; after a command: its options\n"
	     "      --version  print the version and exit");
}

static void say_unknown(const char *program, const char *word)
{
	const char *names[COMMANDS], *nearest;

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i]->name;
	nearest = xfp_meant(word, names, COMMANDS, xfp_slip(word));
	fprintf(stderr, "%s: no command '%s'%s%s%s\n", program, xfp_printable(word).text,
		nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

int xfp_main_cache(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (word && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
		print_help();
		return XFP_OK;
	}
	for (size_t i = 0; word && i < COMMANDS; i++)
		if (!strcmp(word, commands[i]->name))
			return run(commands[i], argc - 1, argv + 1);
	if (word)
		say_unknown(argv[0], word);
	print_usage(stderr);
	return XFP_USAGE;
}
