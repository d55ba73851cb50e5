/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - xfp generate: texts from prompts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/system/output.h"
#include "base/system/signals.h"
#include "base/text/screen.h"
#include "base/utf8.h"
#include "commands/generate/report.h"
#include "commands/ui/commands.h"
#include "model/generate/generate.h"
#include "model/generate/prompts.h"

#define MAX_THREADS 1024
#define MAX_TOKENS 0x1000000
#define MAX_PARALLEL 1024

/* ---- options ------------------------------------------------------------------------------------ */

/* A temperature, or a share of 1. */
static enum xfp_status parse_real(const struct xfp_option *option, const char *where, const char *text,
				  struct xfp_error *err)
{
	bool share = !strcmp(option->name, "top-p");
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || *end || !(value >= 0) || value > (share ? 1 : 100) || (share && value <= 0))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a number %s", where, text,
				share ? "above 0, up to 1" : "from 0 to 100");
	*(double *)option->context = value;
	return XFP_OK;
}

static enum xfp_status parse_stop(const struct xfp_option *option, const char *where, const char *text,
				  struct xfp_error *err)
{
	struct xfp_strings *stops = option->context;
	const char **grown;

	if (!*text)
		return xfp_fail(err, XFP_USAGE, "%s: is empty and would end every text at once", where);
	if (!xfp_utf8_valid(text, strlen(text)))
		return xfp_fail(err, XFP_USAGE, "%s: is not UTF-8, so no text can contain it", where);
	if (!(grown = realloc(stops->text, (stops->count + 1) * sizeof *grown)))
		return xfp_no_memory(err);
	grown[stops->count++] = text;
	stops->text = grown;
	return XFP_OK;
}

/* ---- callbacks of the generation ----------------------------------------------------------------- */

struct generate_run {
	const char *program;
	struct xfp_signals signals;
	bool streamed, raw; /* streamed: print a single text while it grows */
	size_t printed;     /* bytes of it */
};

static bool stop(void *context)
{
	struct generate_run *run = context;

	return xfp_signals_arrived(&run->signals);
}

static bool print_text(void *context, const struct xfp_generated_text *w)
{
	struct generate_run *run = context;

	if (!run->streamed)
		return true;
	if (w->shown > run->printed)
		xfp_screen_print(w->text + run->printed, w->shown - run->printed, run->raw);
	run->printed = w->shown;
	if (w->end && (!w->size || w->text[w->size - 1] != '\n'))
		putchar('\n');
	return xfp_output_flush();
}

static void warn(void *context, const char *message)
{
	struct generate_run *run = context;

	fprintf(stderr, "%s: %s\n", run->program, message);
}

/* ---- the command --------------------------------------------------------------------------------- */

static const char *what_is_wrong(const struct xfp_generation_request *g, int arguments)
{
	if (!g->prompt && !g->batch)
		return "--prompt or --batch is missing; give a prompt with --prompt TEXT";
	if (g->prompt && g->batch)
		return "--prompt and --batch exclude each other";
	if (arguments != 1)
		return arguments ? "more than one bundle or model; give a prompt with --prompt 'TEXT', in quotes"
				 : "no bundle or model";
	if (g->sampling.temperature <= 0 && (g->sampling.top_k || g->sampling.top_p < 1))
		return "--top-k and --top-p need a --temperature above 0; at 0 the most probable token is selected";
	return NULL;
}

static int run(struct xfp_generation *g, struct generate_run *run, bool json)
{
	struct xfp_error err;
	int status;

	xfp_mapped_begin(run->program, g->request.model, NULL);
	/* Signals are not held yet: one that comes while a pipe is read ends the process. */
	status = (int)xfp_prompts_read(g, &err);
	xfp_signals_block(&run->signals);
	if (!status)
		status = (int)xfp_generate(g, &err);
	if (!status && json)
		status = (int)xfp_generate_print_json(g, &err);
	else if (!status && g->request.batch)
		xfp_generate_print(g, run->raw);
	if (status && !g->interrupted)
		fprintf(stderr, "%s: %s\n", run->program, err.text);
	else if (!status && xfp_output_flush())
		xfp_generate_report(g);
	xfp_mapped_end();
	xfp_generation_close(g);
	xfp_signals_release(&run->signals);
	return status;
}

int xfp_main_generate(int argc, char **argv)
{
	struct xfp_generation_request request = { .max_tokens = 256, .parallel = 8, .sampling = { .top_p = 1 } };
	struct generate_run state = { .program = argv[0] };
	struct xfp_generation g = { .callbacks = { &state, stop, print_text, warn } };
	bool json = false, seeded = false;
	const struct xfp_option options[] = {
		{ .name = "prompt", .value = "TEXT", .text = "text to continue", .into = &request.prompt },
		{ .name = "batch",
		  .path = true,
		  .value = "FILE",
		  .text = "file of prompts, one per line; in FILE.jsonl, JSON\nstrings, or objects with a "
			  "\"prompt\"; - is standard input",
		  .into = &request.batch },
		{ .name = "max-tokens",
		  .letter = 'n',
		  .value = "N",
		  .text = "generate at most N tokens per prompt; default: 256",
		  .into_32 = &request.max_tokens,
		  .range = { "a whole number", 1, MAX_TOKENS } },
		{ .name = "temperature",
		  .value = "T",
		  .text = "sample tokens, with probabilities of logits / T;\ndefault: 0, the most probable token",
		  .parse = parse_real,
		  .context = &request.sampling.temperature },
		{ .name = "top-k",
		  .value = "N",
		  .text = "sample from the N most probable tokens",
		  .into_32 = &request.sampling.top_k,
		  .range = { "a whole number", 1, MAX_TOKENS } },
		{ .name = "top-p",
		  .value = "P",
		  .text = "sample from the fewest tokens whose probabilities\nsum to P",
		  .parse = parse_real,
		  .context = &request.sampling.top_p },
		{ .name = "seed",
		  .value = "N",
		  .text = "seed of the random numbers; default: 0",
		  .set = &seeded,
		  .into_64 = &request.sampling.seed,
		  .range = { "a whole number", 0, UINT64_MAX } },
		{ .name = "stop",
		  .value = "TEXT",
		  .text = "end before this text; may be repeated",
		  .parse = parse_stop,
		  .context = &request.stops },
		{ .name = "context",
		  .value = "N",
		  .text = "size of the KV cache in tokens, prompt included;\ndefault: what the prompts need",
		  .into_32 = &request.context,
		  .range = { "a whole number", 1, MAX_TOKENS } },
		{ .name = "parallel",
		  .value = "N",
		  .text = "prompts of a batch to run together; default: 8",
		  .into_32 = &request.parallel,
		  .range = { "a whole number", 1, MAX_PARALLEL } },
		{ .name = "memory",
		  .value = "SIZE",
		  .complete = "1GiB|2GiB|4GiB|8GiB",
		  .text = "refuse a context that needs more memory",
		  .into_size = &request.memory,
		  .binary = &request.memory_binary,
		  .range.what = "2GiB" },
		{ .name = "threads",
		  .value = "N",
		  .text = "number of threads; default: one for each processor",
		  .into_32 = &request.threads,
		  .range = { "a whole number", 1, MAX_THREADS } },
		{ .name = "raw",
		  .text = "write control characters to a terminal unchanged;\ndefault: show them as \\xNN",
		  .set = &state.raw },
		{ .name = "json", .text = "print one JSON object", .set = &json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp generate --prompt TEXT|--batch FILE [OPTION ...] BUNDLE|MODEL",
		.operand = "BUNDLE|MODEL",
		.summary = "Generates text from a prompt, using a bundle or a checkpoint. Speed is reported on stderr.",
		.options = options,
	};
	const char *wrong;
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		goto done;
	if ((wrong = what_is_wrong(&request, line.argument_count))) {
		status = xfp_command_line_refuse(&line, "%s", wrong);
		goto done;
	}
	if (seeded && request.sampling.temperature <= 0)
		fprintf(stderr,
			"%s: --seed has no effect without a --temperature above 0; at 0 the most probable token is "
			"selected\n",
			argv[0]);
	request.model = line.arguments[0];
	g.request = request;
	state.streamed = !request.batch && !json;
	status = run(&g, &state, json);
done:
	free(request.stops.text);
	return status;
}
