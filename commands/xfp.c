/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp.c - the front end: one table of commands. To add a command, declare it in commands.h, list it here and write
 * man/xfp-NAME.1.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suggestion.h"
#include "base/xfp_error.h"
#include "commands/convert/options.h"
#include "commands/ui/commands.h"
#include "stages/settings/data.h"

struct command {
	const char *name;
	int (*main)(int argc, char **argv); /* NULL: a program of its own, xfp-NAME */
	const char *text;                   /* NULL: plumbing, not listed */
	bool converts;                      /* parses its environment itself, with its options */
};

static const struct command commands[] = {
	{ "convert", xfp_main_convert, "quantize a checkpoint into a bundle", true },
	{ "inspect", xfp_main_inspect, "list a checkpoint's tensors and statistics of its weights", false },
	{ "plan", xfp_main_plan, "predict bits, memory, disk and time of a conversion", true },
	{ "walk", xfp_main_walk, "list floors from aggressive to conservative, and recommend some", true },
	{ "compare", xfp_main_compare, "compare bits and error of every mode and common formats", false },
	{ "status", xfp_main_status, "show the progress of a conversion, or how it ended", false },
	{ "info", xfp_main_info, "print the contents of a bundle", false },
	{ "report", xfp_main_report, "write a page about a bundle: where it loses, what would help", false },
	{ "verify", xfp_main_verify, "check a bundle, alone or against its checkpoint", false },
	{ "eval", NULL, "measure perplexity, and the divergence from a source", false },
	{ "generate", NULL, "generate text with a bundle or a checkpoint", false },
	{ "unpack", xfp_main_unpack, "write a bundle as a safetensors checkpoint", false },
	{ "cache", xfp_main_cache, "list, check and prune the cache; export and import surveys", false },
	{ "prepare", xfp_main_prepare, NULL, true },
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static void help(FILE *out)
{
	int width = 0;

	fputs("usage: xfp COMMAND [ARGUMENT ...]\n"
	      "   or: xfp --pipelines\n"
	      "\n"
	      "XFP quantizes the weights of language models: name a profile, a size or\n"
	      "floors for the quality, and it finds the bits that each matrix needs.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].text && (int)strlen(commands[i].name) > width)
			width = (int)strlen(commands[i].name);
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].text)
			fprintf(out, "  xfp %-*s  %s\n", width, commands[i].name, commands[i].text);
	fputs("\n"
	      "xfp help COMMAND lists the options of a command, man xfp-COMMAND explains\n"
	      "them.\n"
	      "xfp --pipelines prints the folder of the make rules, for makefiles to include.\n",
	      out);
}

static int print_version(void)
{
	printf("xfp %s\n", PACKAGE_VERSION);
	return XFP_OK;
}

static int print_pipelines(void)
{
	struct xfp_error err = { 0 };
	char *folder;
	enum xfp_status status = xfp_data_folder(XFP_PIPELINES, &folder, &err);

	if (status)
		fprintf(stderr, "xfp: %s\n", err.text);
	else
		puts(folder);
	free(folder);
	return (int)status;
}

static bool only_asks(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--completions"))
		return true;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help") || !strcmp(argv[i], "--version"))
			return true;
	return false;
}

/* Commands that compute a model are linked with kernels that take a third of a build, and quickstart does without. */
static int run_program(const char *name, char **argv)
{
	char *program = xfp_formatted("xfp-%s", name), *folder = xfp_tool_folder();
	/* Without /proc the folder is unknown, and PATH decides, as for the stages of a conversion. */
	char *path = program && folder ? xfp_path(folder, program) : program;

	if (path) {
		execvp(path, argv);
		if (errno == ENOENT && folder)
			fprintf(stderr, "xfp %s: %s does not exist; make -C %s builds it, make install installs it\n",
				name, xfp_printable(path).text, xfp_printable(folder).text);
		else
			fprintf(stderr, "xfp %s: %s: %s\n", name, xfp_printable(path).text, strerror(errno));
	} else {
		fputs("xfp: out of memory\n", stderr);
	}
	if (path != program)
		free(path);
	free(folder);
	free(program);
	return XFP_FAILED;
}

static int run(const struct command *command, int argc, char **argv)
{
	char *name = xfp_formatted("xfp %s", command->name);
	struct xfp_error err = { 0 };
	int status;

	if (!name) {
		fputs("xfp: out of memory\n", stderr);
		return XFP_FAILED;
	}
	argv[0] = name;
	if (argc > 1 && !strcmp(argv[1], "--version"))
		status = print_version();
	else if (!command->converts && !only_asks(argc, argv) && (status = xfp_options_check_names(name, &err)))
		fprintf(stderr, "%s: %s\n", name, err.text);
	else
		status = command->main ? command->main(argc, argv) : run_program(command->name, argv);
	free(name);
	return status;
}

static int refuse(const char *word)
{
	/* Names that other programs use for these commands. */
	static const struct {
		const char *word, *command;
	} others[] = {
		{ "quantize", "convert" }, { "quantise", "convert" }, { "compress", "convert" }, { "run", "generate" },
		{ "chat", "generate" },    { "perplexity", "eval" },  { "ppl", "eval" },
	};
	const char *names[COMMANDS + 4] = { "help", "--help", "--version", "--pipelines" };
	char meant[XFP_DID_YOU_MEAN];
	size_t count = 4;

	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].text)
			names[count++] = commands[i].name;
	xfp_did_you_mean("", word, names, count, meant);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(word, others[i].word))
			snprintf(meant, sizeof meant, "; did you mean %s?", others[i].command);
	fprintf(stderr, "xfp: no %s '%s'%s%s xfp --help lists them\n", *word == '-' ? "option" : "command",
		xfp_printable(word).text, meant, *meant ? "" : ";");
	return XFP_USAGE;
}

static int dispatch(int argc, char **argv)
{
	char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		help(stderr);
		return XFP_USAGE;
	}
	if (!strcmp(word, "--version"))
		return print_version();
	if (!strcmp(word, "--pipelines"))
		return print_pipelines();
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || (!strcmp(word, "help") && argc == 2)) {
		help(stdout);
		return XFP_OK;
	}
	/* "xfp help cache gc" is "xfp cache gc --help"; "xfp help help" is "xfp help" */
	if (!strcmp(word, "help")) {
		word = argv[2];
		if (!strcmp(word, "help") || *word == '-') {
			help(stdout);
			return XFP_OK;
		}
		memmove(argv + 2, argv + 3, (size_t)(argc - 3) * sizeof *argv);
		argv[argc - 1] = "--help";
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(word, commands[i].name))
			return run(&commands[i], argc - 1, argv + 1);
	return refuse(word);
}

int main(int argc, char **argv)
{
	return xfp_command_program(argc, argv, "xfp", dispatch);
}
