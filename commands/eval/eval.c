/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.c - xfp eval: perplexity of a model, and its distance from the source.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/system/signals.h"
#include "base/text/suffix.h"
#include "commands/eval/interrupted.h"
#include "commands/eval/print.h"
#include "commands/eval/progress.h"
#include "commands/ui/commands.h"
#include "model/evaluate/evaluate.h"

#define MAX_THREADS 1024
#define MAX_LENGTH (1 << 24)
#define LARGE_BLOCK (1 << 20) /* bytes from which malloc maps memory */

/* Whether an argument is a text or token ids rather than a model: standard input, an extension of texts, or a file
 * without an extension of weights. */
static bool is_text(const char *path)
{
	static const char *const weights[] = {
		".xfp", ".gguf", ".safetensors", ".bin", ".pt", ".pth", ".zip", ".json"
	};
	struct stat st;

	for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
		if (xfp_ends_with(path, weights[i]))
			return false;
	}
	return !strcmp(path, "-") || xfp_ends_with(path, ".txt") || xfp_ends_with(path, ".npy") ||
	       (!stat(path, &st) && !S_ISDIR(st.st_mode));
}

static int refuse_arguments(const struct xfp_command_line *line)
{
	for (int i = 0; line->argument_count > 1 && i < line->argument_count; i++) {
		const char *path = line->arguments[i];
		bool ids = xfp_ends_with(path, ".npy");

		if (is_text(path))
			return xfp_command_line_refuse(line, "more than one bundle or model; %s given with --%s %s",
						       ids ? "token ids are" : "a text is", ids ? "tokens" : "text",
						       xfp_printable(path).text);
	}
	return xfp_command_line_refuse(line, "%s",
				       line->argument_count ? "more than one bundle or model" : "no bundle or model");
}

/* Context of the evaluation's callbacks. */
struct eval_run {
	const char *program;
	struct xfp_signals signals;
	struct xfp_eval_progress progress;
};

static bool stop(void *context)
{
	struct eval_run *run = context;

	return xfp_signals_arrived(&run->signals);
}

static void show_progress(void *context, const struct xfp_evaluation *evaluation)
{
	struct eval_run *run = context;

	xfp_eval_progress(&run->progress, evaluation);
}

static void warn(void *context, const char *message)
{
	struct eval_run *run = context;

	xfp_meter_clear(&run->progress.meter);
	fprintf(stderr, "%s: %s\n", run->program, message);
}

/* After the models are open, a signal ends the evaluation as soon as no weights are being read and a state is saved. */
static int evaluate(struct xfp_evaluation *e, struct eval_run *run, bool json, char *const *argv)
{
	struct xfp_error err;
	int status;

	xfp_eval_opening(true);
	if ((status = (int)xfp_evaluation_open(e, &err))) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return status;
	}
	xfp_signals_block(&run->signals);
	xfp_eval_opening(false);
	xfp_meter_begin(&run->progress.meter);
	status = (int)xfp_evaluation_run(e, &err);
	xfp_meter_clear(&run->progress.meter);
	if (!status && json)
		status = (int)xfp_eval_print_json(e, &err);
	else if (!status)
		xfp_eval_print(e);
	if (status && !e->stopped)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	else if (status)
		xfp_eval_print_interrupted(e, argv);
	xfp_signals_release(&run->signals);
	return status;
}

int xfp_main_eval(int argc, char **argv)
{
	struct xfp_evaluation_request request = { 0 };
	struct eval_run run = { .program = argv[0] };
	struct xfp_evaluation e = { .callbacks = { &run, stop, show_progress, warn } };
	bool json = false;
	const struct xfp_option options[] = {
		{ .name = "source",
		  .path = true,
		  .value = "MODEL",
		  .text = "compare with the model that the bundle was made from",
		  .into = &request.source },
		{ .name = "tokens",
		  .path = true,
		  .value = "FILE",
		  .text = "token ids in .npy format: integers [sequences, length],\nor [length]; - is standard input",
		  .into = &request.tokens_path },
		{ .name = "text",
		  .path = true,
		  .value = "FILE",
		  .text = "text to encode with the model's tokenizer; - is standard\ninput",
		  .into = &request.text_path },
		{ .name = "length",
		  .value = "N",
		  .text = "cut the text into sequences of N tokens; default: 512, or\n"
			  "the model's context; of an encoder: truncate texts",
		  .into_32 = &request.length,
		  .range = { "a number of tokens", 2, MAX_LENGTH } },
		{ .name = "embeddings",
		  .path = true,
		  .value = "FILE",
		  .text = "of an encoder: write the embeddings, f32 [texts, width], in\n.npy format",
		  .into = &request.embeddings_path },
		{ .name = "memory",
		  .value = "SIZE",
		  .text = "memory limit, such as 24GiB; default: half of the available\nmemory",
		  .into_size = &request.memory,
		  .binary = &request.memory_binary,
		  .range.what = "24GiB" },
		{ .name = "state",
		  .path = true,
		  .value = "FILE",
		  .text = "save finished layers here, to resume after an interruption;\ndefault: BUNDLE.eval",
		  .into = &request.state_path },
		{ .name = "threads",
		  .value = "N",
		  .text = "number of threads; default: one for each processor",
		  .into_32 = &request.threads,
		  .range = { "a number of threads", 1, MAX_THREADS } },
		{ .name = "fast",
		  .text = "compute in f32 with the fastest instructions: several times\nas fast, but bits differ "
			  "between machines",
		  .set = &request.fast },
		{ .name = "single",
		  .text = "with --fast: compute one token at a time, as xfp generate\ndoes; much slower",
		  .set = &request.single },
		{ .name = "json", .text = "print one JSON object", .set = &json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp eval [--source MODEL] --tokens FILE|--text FILE [--length N] "
			 "[--embeddings FILE] [--memory SIZE] [--state FILE] [--threads N] [--fast [--single]] "
			 "[--json] BUNDLE|MODEL",
		.operand = "BUNDLE|MODEL",
		.summary =
			"Measures the perplexity of a bundle or a checkpoint on a text: how well the model predicts\n"
			"each token from those before it. With --source, also measures the divergence from the\n"
			"source, and the error of each layer. Without --fast, results have the same bits anywhere.\n"
			"Of an encoder, compares the embeddings of texts, one a line.",
		.options = options,
	};
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	if (line.argument_count != 1)
		return refuse_arguments(&line);
	if (!request.tokens_path == !request.text_path)
		return xfp_command_line_refuse(&line, "%s",
					       request.tokens_path
						       ? "both --tokens and --text"
						       : "--tokens or --text is missing; name a text with --text FILE");
	if (request.length && !request.text_path)
		return xfp_command_line_refuse(&line, "%s",
					       "--length applies to --text; sequences of --tokens have "
					       "a length of their own");
	if (request.single && !request.fast)
		return xfp_command_line_refuse(&line, "%s",
					       "--single applies to --fast; other results do not depend on how many "
					       "tokens are computed together");
	request.model = line.arguments[0];
	/* Return freed memory to the system: memory that malloc keeps is not part of the estimate. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	xfp_mapped_begin(argv[0], request.model, NULL);
	if (request.source)
		xfp_mapped_begin(argv[0], request.source, NULL);
	e.request = request;
	status = evaluate(&e, &run, json, argv);
	xfp_mapped_end();
	xfp_evaluation_close(&e);
	return status;
}
