/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - xfp generate: text that a bundle, or a checkpoint, makes of a prompt.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/file.h"
#include "base/system/mapped.h"
#include "base/system/output.h"
#include "base/system/signals.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/whole_number.h"
#include "base/utf8.h"
#include "checkpoints/hub.h"
#include "commands/generate/generate.h"
#include "commands/ui/commands.h"

#define MOST_THREADS 1024
#define MOST_TOKENS 0x1000000
#define MOST_PARALLEL 1024

/* ---- options ------------------------------------------------------------------------------------ */

static enum xfp_status take_count(const struct xfp_option *option, const char *where, const char *text,
				  struct xfp_error *err)
{
	uint32_t most = !strcmp(option->name, "threads")    ? MOST_THREADS
			: !strcmp(option->name, "parallel") ? MOST_PARALLEL
							    : MOST_TOKENS;

	return xfp_whole_number_32(where, text, "a whole number", 1, most, option->context, err);
}

static enum xfp_status take_seed(const struct xfp_option *option, const char *where, const char *text,
				 struct xfp_error *err)
{
	struct xfp_generate *g = option->context;

	g->seeded = true;
	return xfp_whole_number(where, text, "a whole number", 0, UINT64_MAX, &g->sampling.seed, err);
}

/* Temperatures, and shares of 1. */
static enum xfp_status take_real(const struct xfp_option *option, const char *where, const char *text,
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

static enum xfp_status take_memory(const struct xfp_option *option, const char *where, const char *text,
				   struct xfp_error *err)
{
	struct xfp_generate *g = option->context;

	g->memory_binary = xfp_size_is_binary(text);
	if (!xfp_size_parse(text, &g->memory) || xfp_size_is_bare(text, g->memory))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a size such as 2GiB; " XFP_SIZE_UNITS, where, text);
	return XFP_OK;
}

static enum xfp_status take_stop(const struct xfp_option *option, const char *where, const char *text,
				 struct xfp_error *err)
{
	struct xfp_strings *stops = option->context;
	const char **grown;

	if (!*text)
		return xfp_fail(err, XFP_USAGE, "%s: is empty, and would end every text at once", where);
	if (!xfp_utf8_valid(text, strlen(text)))
		return xfp_fail(err, XFP_USAGE, "%s: is not UTF-8, as every text is, and would end none", where);
	if (!(grown = realloc(stops->text, (stops->count + 1) * sizeof *grown)))
		return xfp_no_memory(err);
	grown[stops->count++] = text;
	stops->text = grown;
	return XFP_OK;
}

/* ---- what is done ------------------------------------------------------------------------------- */

static enum xfp_status open_tokenizer(struct xfp_generate *g, struct xfp_error *err)
{
	const char *path = xfp_weights_path(g->weights);
	char *json, *shown;
	size_t size;
	enum xfp_status status = xfp_weights_file(g->weights, "tokenizer.json", &json, &size, err);

	if (status)
		return status;
	if (!json)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: has no tokenizer.json, which a prompt needs; convert the model from a folder "
				"that has it",
				path);
	shown = xfp_formatted("%s: tokenizer.json", path);
	status = shown ? xfp_tokenizer_open(json, size, shown, &g->tokenizer, err) : xfp_no_memory(err);
	free(shown);
	free(json);
	return status;
}

/* A single text, as it grows. */
static bool print_more(const struct xfp_generate *g, struct xfp_written *w)
{
	if (w->shown > w->printed)
		xfp_screen_print(w->text + w->printed, w->shown - w->printed, g->raw);
	w->printed = w->shown;
	if (w->end && (!w->size || w->text[w->size - 1] != '\n'))
		putchar('\n');
	return xfp_output_flush();
}

static bool print_nothing(const struct xfp_generate *g, struct xfp_written *w)
{
	(void)g, (void)w;
	return true;
}

/* Watch of the tokenizer: a signal ends the encoding of prompts. */
static bool goes_on(void *signals)
{
	return !xfp_signals_came(signals);
}

static enum xfp_status generate(struct xfp_generate *g, struct xfp_signals *signals, struct xfp_error *err)
{
	char *found = NULL;
	enum xfp_status status;

	if ((status = xfp_model_find(g->path, &found, err)) || (status = xfp_weights_open(found, &g->weights, err)) ||
	    (status = xfp_description_read(xfp_weights_config(g->weights), g->path, &g->description, err)) ||
	    (status = open_tokenizer(g, err)) || (status = xfp_ends_read(g, err)))
		goto done;
	xfp_tokenizer_watch(g->tokenizer, goes_on, signals);
	if (xfp_weights_has_crcs(g->weights))
		fprintf(stderr,
			"xfp generate: %s: the CRC-32 of its members is not checked here; xfp convert checks it\n",
			xfp_printable(g->path).text);
	status = xfp_make(g, g->batch || g->json ? print_nothing : print_more, signals, err);
done:
	free(found);
	return status;
}

static void release(struct xfp_generate *g)
{
	for (size_t i = 0; i < g->count; i++)
		xfp_written_free(&g->written[i]);
	free(g->written);
	free(g->ends.id);
	free(g->stops.text);
	xfp_tokenizer_free(g->tokenizer);
	xfp_description_free(g->description);
	xfp_weights_close(g->weights);
}

static const char *what_is_wrong(const struct xfp_generate *g, int arguments)
{
	if (!g->prompt && !g->batch)
		return "--prompt or --batch is missing; a prompt is given with --prompt TEXT";
	if (g->prompt && g->batch)
		return "--prompt and --batch exclude each other";
	if (arguments != 1)
		return arguments ? "more than one bundle or model; a prompt is given with --prompt 'TEXT', in quotes"
				 : "no bundle or model";
	if (g->sampling.temperature <= 0 && (g->sampling.top_k || g->sampling.top_p < 1))
		return "--top-k and --top-p need a --temperature above 0; at 0 the most probable token is taken";
	return NULL;
}

static int run(struct xfp_generate *g, const char *program)
{
	struct xfp_signals signals;
	struct xfp_error err;
	int status;

	xfp_mapped_begin(program, g->path, NULL);
	/* Before signals are held: one that comes while a pipe is read ends the process. */
	status = (int)xfp_prompts_read(g, &err);
	xfp_signals_hold(&signals);
	if (!status)
		status = (int)generate(g, &signals, &err);
	if (!status && g->json)
		status = (int)xfp_generate_print_json(g, &err);
	else if (!status && g->batch)
		xfp_generate_print(g);
	if (status && !signals.interrupted)
		fprintf(stderr, "%s: %s\n", program, err.text);
	else if (!status && xfp_output_flush())
		xfp_generate_report(g);
	xfp_mapped_end();
	release(g);
	xfp_signals_release(&signals);
	return status;
}

int xfp_main_generate(int argc, char **argv)
{
	struct xfp_generate g = { .most = 256, .parallel = 8, .sampling = { .top_p = 1 } };
	const struct xfp_option options[] = {
		{ .name = "prompt", .value = "TEXT", .text = "what the text begins with", .into = &g.prompt },
		{ .name = "batch",
		  .path = true,
		  .value = "FILE",
		  .text = "prompts, one a line; of FILE.jsonl, JSON strings,\nor objects with a \"prompt\"; - is "
			  "standard input",
		  .into = &g.batch },
		{ .name = "max-tokens",
		  .letter = 'n',
		  .value = "N",
		  .text = "tokens that are made of a prompt, at most; default: 256",
		  .take = take_count,
		  .context = &g.most },
		{ .name = "temperature",
		  .value = "T",
		  .text = "draw tokens, by probabilities of logits / T;\ndefault: 0, the most probable one",
		  .take = take_real,
		  .context = &g.sampling.temperature },
		{ .name = "top-k",
		  .value = "N",
		  .text = "of the N most probable tokens",
		  .take = take_count,
		  .context = &g.sampling.top_k },
		{ .name = "top-p",
		  .value = "P",
		  .text = "of the fewest that come to this share of probability",
		  .take = take_real,
		  .context = &g.sampling.top_p },
		{ .name = "seed",
		  .value = "N",
		  .text = "what is drawn depends on it; default: 0",
		  .take = take_seed,
		  .context = &g },
		{ .name = "stop",
		  .value = "TEXT",
		  .text = "end before this text; may be given again",
		  .take = take_stop,
		  .context = &g.stops },
		{ .name = "context",
		  .value = "N",
		  .text = "tokens of prompt and text that there is room for;\ndefault: what the prompts need",
		  .take = take_count,
		  .context = &g.context },
		{ .name = "parallel",
		  .value = "N",
		  .text = "prompts of a batch that go together; default: 8",
		  .take = take_count,
		  .context = &g.parallel },
		{ .name = "memory",
		  .value = "SIZE",
		  .text = "refuse a context that takes more",
		  .take = take_memory,
		  .context = &g },
		{ .name = "threads",
		  .value = "N",
		  .text = "threads; default: one for each processor",
		  .take = take_count,
		  .context = &g.threads },
		{ .name = "raw",
		  .text = "write control characters of the text to a terminal, too;\ndefault: show them as \\xNN",
		  .set = &g.raw },
		{ .name = "json", .text = "one JSON object", .set = &g.json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp generate --prompt TEXT|--batch FILE [OPTION ...] BUNDLE|MODEL",
		.summary =
			"Goes on from a prompt: writes text, token by token, as a bundle's model, or a checkpoint's,\n"
			"has it. How fast that went is said on stderr.",
		.options = options,
	};
	const char *wrong;
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status)) {
		free(g.stops.text);
		return status;
	}
	if ((wrong = what_is_wrong(&g, line.argument_count))) {
		free(g.stops.text);
		return xfp_command_line_refuse(&line, "%s", wrong);
	}
	if (g.seeded && g.sampling.temperature <= 0)
		fprintf(stderr,
			"%s: --seed has no effect without a --temperature above 0; at 0 the most probable token "
			"is taken\n",
			argv[0]);
	g.path = line.arguments[0];
	return run(&g, argv[0]);
}
