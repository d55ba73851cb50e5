/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.c - xfp eval: perplexity of a bundle, or of a checkpoint, and how far it is from its source.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/text/size.h"
#include "base/text/whole_number.h"
#include "commands/eval/eval.h"
#include "commands/ui/commands.h"

#define MOST_THREADS 1024
#define MOST_LENGTH (1 << 24)
#define LARGE_BLOCK (1 << 20) /* bytes, from which on memory is mapped on its own */

static enum xfp_status take_threads(const struct xfp_option *option, const char *where, const char *text,
				    struct xfp_error *err)
{
	return xfp_whole_number_32(where, text, "a number of threads", 1, MOST_THREADS, option->context, err);
}

static enum xfp_status take_length(const struct xfp_option *option, const char *where, const char *text,
				   struct xfp_error *err)
{
	size_t *length = option->context;
	uint32_t number = 0;
	enum xfp_status status = xfp_whole_number_32(where, text, "a number of tokens", 2, MOST_LENGTH, &number, err);

	*length = number;
	return status;
}

static enum xfp_status take_memory(const struct xfp_option *option, const char *where, const char *text,
				   struct xfp_error *err)
{
	struct xfp_eval *e = option->context;

	e->memory_binary = xfp_size_is_binary(text);
	if (!xfp_size_parse(text, &e->memory) || xfp_size_is_bare(text, e->memory))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a size such as 24GiB; " XFP_SIZE_UNITS, where, text);
	return XFP_OK;
}

static bool has_ending(const char *path, const char *ending)
{
	size_t length = strlen(path), size = strlen(ending);

	return length >= size && !strcmp(path + length - size, ending);
}

/* Whether an argument names a text or token ids rather than a model: standard input, a usual ending, or a file with
 * none of the endings that weights have. */
static bool is_text(const char *path)
{
	static const char *const weights[] = {
		".xfp", ".gguf", ".safetensors", ".bin", ".pt", ".pth", ".zip", ".json"
	};
	struct stat st;

	for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
		if (has_ending(path, weights[i]))
			return false;
	}
	return !strcmp(path, "-") || has_ending(path, ".txt") || has_ending(path, ".npy") ||
	       (!stat(path, &st) && !S_ISDIR(st.st_mode));
}

static int refuse_arguments(const struct xfp_command_line *line)
{
	for (int i = 0; line->argument_count > 1 && i < line->argument_count; i++) {
		const char *path = line->arguments[i];
		bool ids = has_ending(path, ".npy");

		if (is_text(path))
			return xfp_command_line_refuse(line, "more than one bundle or model; %s given with --%s %s",
						       ids ? "token ids are" : "a text is", ids ? "tokens" : "text",
						       xfp_printable(path).text);
	}
	return xfp_command_line_refuse(line, "%s",
				       line->argument_count ? "more than one bundle or model" : "no bundle or model");
}

static void close_model(struct xfp_eval_model *model)
{
	xfp_description_free(model->description);
	xfp_weights_close(model->weights);
	free(model->found);
}

/* After the models are open, a signal ends the evaluation as soon as no weights are being read and a state is saved. */
static int run(struct xfp_eval *e, char *const *argv)
{
	struct xfp_error err;
	int status;

	xfp_eval_opening(true);
	if ((status = (int)xfp_eval_open(e, &err))) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return status;
	}
	xfp_signals_hold(&e->signals);
	xfp_eval_opening(false);
	status = (int)xfp_evaluate(e, &err);
	if (!status && e->json)
		status = (int)xfp_eval_print_json(e, &err);
	else if (!status)
		xfp_eval_print(e);
	if (status && !e->signals.interrupted)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	else if (status)
		xfp_eval_say_interrupted(e, argv);
	xfp_signals_release(&e->signals);
	return status;
}

int xfp_main_eval(int argc, char **argv)
{
	struct xfp_eval e = { 0 };
	const struct xfp_option options[] = {
		{ .name = "source",
		  .path = true,
		  .value = "MODEL",
		  .text = "what the bundle was made of, to compare with",
		  .into = &e.source.given },
		{ .name = "tokens",
		  .path = true,
		  .value = "FILE",
		  .text = "ids of the text, as numpy.save writes them: integers\n"
			  "[sequences, length], or [length]; - is standard input",
		  .into = &e.tokens_path },
		{ .name = "text",
		  .path = true,
		  .value = "FILE",
		  .text = "the text itself, for the model's tokenizer; - is standard\ninput",
		  .into = &e.text_path },
		{ .name = "length",
		  .value = "N",
		  .text = "tokens of the sequences that the text is cut into; default:\n512, or the model's context",
		  .take = take_length,
		  .context = &e.length },
		{ .name = "memory",
		  .value = "SIZE",
		  .text = "to keep within, such as 24GiB; default: half of what the\nmachine has available",
		  .take = take_memory,
		  .context = &e },
		{ .name = "state",
		  .path = true,
		  .value = "FILE",
		  .text = "where it is kept how far it is, to go on after an end;\ndefault: BUNDLE.eval",
		  .into = &e.state_path },
		{ .name = "threads",
		  .value = "N",
		  .text = "threads; default: one for each processor",
		  .take = take_threads,
		  .context = &e.threads },
		{ .name = "fast",
		  .text = "compute in f32, by the fastest instructions: some times as\nfast, and not the same bits on "
			  "every machine",
		  .set = &e.fast },
		{ .name = "json", .text = "one JSON object", .set = &e.json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp eval [--source MODEL] --tokens FILE|--text FILE [--length N] [--memory SIZE] "
			 "[--state FILE] [--threads N] [--fast] [--json] BUNDLE|MODEL",
		.summary =
			"Tells the perplexity of a bundle, or of a checkpoint, on a text: how well it foretells each\n"
			"token from those before it; and with its source, how far it is from what that expects, and\n"
			"which layers take it there. Without --fast the result is the same bits on any machine.",
		.options = options,
	};
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	if (line.argument_count != 1)
		return refuse_arguments(&line);
	if (!e.tokens_path == !e.text_path)
		return xfp_command_line_refuse(&line, "%s",
					       e.tokens_path ? "both --tokens and --text"
							     : "--tokens is missing, or --text; a text is given with "
							       "--text FILE");
	if (e.length && !e.text_path)
		return xfp_command_line_refuse(&line, "%s", "--length is for --text; --tokens has its own");
	e.judged.given = line.arguments[0];
	/* Memory that was freed goes back: what is left of it for later would be beyond what was reckoned with. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	xfp_mapped_begin(argv[0], e.judged.given, NULL);
	if (e.source.given)
		xfp_mapped_begin(argv[0], e.source.given, NULL);
	status = run(&e, argv);
	xfp_mapped_end();
	close_model(&e.judged);
	close_model(&e.source);
	free(e.tokens.ids);
	free(e.layers);
	free(e.kept_path);
	return status;
}
