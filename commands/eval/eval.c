/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.c - xfp eval: perplexity of a bundle, or of a checkpoint, on token ids.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "checkpoints/hub.h"
#include "commands/eval/npy.h"
#include "commands/ui/commands.h"
#include "model/forward/loss.h"
#include "schemas/json_print.h"

#define MOST_THREADS 1024

struct eval {
	const char *path; /* as it was given */
	const char *tokens_path;
	unsigned threads; /* 0: one for each processor */
	struct xfp_tokens tokens;
	struct xfp_weights *weights;
	struct xfp_description *description;
	struct xfp_loss loss;
	double seconds;
};

static enum xfp_status take_threads(const struct xfp_option *option, const char *where, const char *text,
				    struct xfp_error *err)
{
	unsigned *threads = option->context;
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !value || value > MOST_THREADS)
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a number of threads from 1 to %d", where, text,
				MOST_THREADS);
	*threads = (unsigned)value;
	return XFP_OK;
}

static enum xfp_status evaluate(struct eval *e, struct xfp_error *err)
{
	struct xfp_forward *forward = NULL;
	struct xfp_team *team = NULL;
	enum xfp_status status;
	char *found = NULL;
	double began = xfp_now();

	if ((status = xfp_tokens_read(e->tokens_path, &e->tokens, err)) ||
	    (status = xfp_model_find(e->path, &found, err)) || (status = xfp_weights_open(found, &e->weights, err)) ||
	    (status = xfp_description_read(xfp_weights_config(e->weights), e->path, &e->description, err)) ||
	    (status = xfp_team_start(e->threads, &team, err)) ||
	    (status = xfp_forward_open(e->description, e->weights, team, e->tokens.sequences, e->tokens.length,
				       &forward, err)))
		goto done;
	status = xfp_forward_loss(forward, e->tokens.ids, NULL, NULL, &e->loss, err);
	e->seconds = xfp_now() - began;
done:
	xfp_forward_close(forward);
	xfp_team_end(team);
	free(found);
	return status;
}

static enum xfp_status print_json(const struct eval *e, struct xfp_error *err)
{
	return xfp_json_print(
		XFP_JSON({ "model", xfp_json_text(e->path) }, { "family", xfp_json_text(e->description->family) },
			 { "sequences", json_integer((json_int_t)e->tokens.sequences) },
			 { "length", json_integer((json_int_t)e->tokens.length) },
			 { "predicted", json_integer((json_int_t)e->loss.predicted) },
			 { "loss", json_real(e->loss.mean) }, { "perplexity", json_real(e->loss.perplexity) },
			 { "seconds", json_real(e->seconds) }),
		err);
}

static void print_text(const struct eval *e)
{
	printf("%zu %s of %zu tokens, of which %" PRIu64 " were to be foretold\n", e->tokens.sequences,
	       e->tokens.sequences == 1 ? "sequence" : "sequences", e->tokens.length, e->loss.predicted);
	printf("perplexity %.6g (%.6g nats a token)\n", e->loss.perplexity, e->loss.mean);
}

int xfp_main_eval(int argc, char **argv)
{
	struct eval e = { 0 };
	bool json = false;
	const struct xfp_option options[] = {
		{ .name = "tokens",
		  .value = "FILE",
		  .text = "ids of the text, as numpy.save writes them: integers\n[sequences, length], or [length]",
		  .into = &e.tokens_path },
		{ .name = "threads",
		  .value = "N",
		  .text = "threads; default: one for each processor",
		  .take = take_threads,
		  .context = &e.threads },
		{ .name = "json", .text = "one JSON object", .set = &json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp eval --tokens FILE [--threads N] [--json] BUNDLE|MODEL",
		.summary =
			"Tells the perplexity of a bundle, or of a checkpoint, on a text: how well it foretells each\n"
			"token from those before it. The result is the same bits on any machine.",
		.options = options,
	};
	struct xfp_error err;
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	if (line.argument_count != 1)
		return xfp_command_line_refuse(
			&line, "%s", line.argument_count ? "more than one bundle or model" : "no bundle or model");
	if (!e.tokens_path)
		return xfp_command_line_refuse(&line, "%s", "--tokens is missing");
	e.path = line.arguments[0];
	xfp_mapped_begin(argv[0], e.path, NULL);
	status = (int)evaluate(&e, &err);
	if (!status && json)
		status = (int)print_json(&e, &err);
	else if (!status)
		print_text(&e);
	if (status)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	xfp_mapped_end();
	xfp_description_free(e.description);
	xfp_weights_close(e.weights);
	free(e.tokens.ids);
	return status;
}
