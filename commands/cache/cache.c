/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - xfp cache: list, check, rebuild and collect a cache of artifacts. Each subcommand has its own file; this
 * one has the table of subcommands and the code that they share.
 */
#include "commands/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suggestion.h"
#include "commands/ui/commands.h"

static const struct xfp_cache_command *const commands[] = {
	&xfp_cache_ls,    &xfp_cache_check,  &xfp_cache_rebuild, &xfp_cache_gc,
	&xfp_cache_stats, &xfp_cache_export, &xfp_cache_import,
};
#define COMMANDS (sizeof commands / sizeof commands[0])

/* ---- running a subcommand ---------------------------------------------------------------------- */

static const char *default_folder(void)
{
	const char *folder = getenv("XFP_CACHE");

	return folder && *folder ? folder : "xfp-cache";
}

/* Returns true to continue. Otherwise the caller exits with *status. */
static bool parse(int argc, char **argv, const struct xfp_cache_command *command, struct xfp_cache_call *call,
		  int *status)
{
	struct xfp_option options[XFP_CACHE_OPTIONS + 3] = {
		{ .name = "cache",
		  .path = true,
		  .value = "DIR",
		  .text = "the cache (default: XFP_CACHE, or xfp-cache)",
		  .set = &call->named,
		  .into = &call->folder },
	};
	struct xfp_command_line line = {
		.usage = command->usage,
		.summary = command->summary,
		.options = options,
		.column = 20,
		.operand = command->operand,
	};
	size_t count = command->options ? command->options(call, options + 1) : 0;

	options[count + 1] = (struct xfp_option){ .name = "json",
						  .text = "print one JSON object, see xfp-cache(1)",
						  .set = &call->json };
	if (!xfp_command_line_read(&line, argc, argv, status))
		return false;
	if (line.argument_count > (command->operand ? 1 : 0)) {
		*status = xfp_command_line_refuse(&line, "unexpected argument '%s'",
						  xfp_printable(line.arguments[line.argument_count - 1]).text);
		return false;
	}
	call->operand = line.argument_count ? line.arguments[0] : NULL;
	return true;
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
	if (parse(argc, argv, command, &call, &status)) {
		status = command->run(&call, &err);
		if (status && *err.text)
			fprintf(stderr, "%s: %s\n", name, err.text);
	}
	free(name);
	return status;
}

/* ---- the table of subcommands ------------------------------------------------------------------ */

static void print_usage(FILE *out)
{
	for (size_t i = 0; i < COMMANDS; i++)
		xfp_print_usage(out, i ? "   or:" : "usage:", commands[i]->usage);
}

static void print_help(void)
{
	print_usage(stdout);
	puts("\nLists, checks and prunes the cache of artifacts that conversions fill, the\n"
	     "folder xfp-cache next to a bundle, and shares its surveys.\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  xfp cache %-9s%s\n", commands[i]->name, commands[i]->text);
	puts("\n"
	     "  -h, --help     print this help and exit; after a command: its options\n"
	     "      --version  print the version and exit");
}

static void say_unknown(const char *program, const char *word)
{
	const char *names[COMMANDS];
	char meant[XFP_DID_YOU_MEAN];

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i]->name;
	fprintf(stderr, "%s: no %s '%s'%s\n", program, *word == '-' ? "option" : "command", xfp_printable(word).text,
		xfp_did_you_mean("", word, names, COMMANDS, meant));
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
	else
		fprintf(stderr, "%s: expected a command: ls, check, rebuild, gc, stats, export or import\n", argv[0]);
	print_usage(stderr);
	return XFP_USAGE;
}
