/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/generate/report.h"

#include <stdio.h>

#include "base/text/screen.h"
#include "base/text/size.h"
#include "schemas/json_print.h"

static const char *end_name(enum xfp_text_end end)
{
	static const char *const names[] = {
		[XFP_END_NONE] = "none",     [XFP_END_TOKEN] = "token",     [XFP_END_TEXT] = "text",
		[XFP_END_LENGTH] = "length", [XFP_END_CONTEXT] = "context", [XFP_END_INTERRUPTED] = "interrupted"
	};

	return names[end];
}

static json_t *text_json(const char *text, size_t size)
{
	return xfp_json_text_of(text ? text : "", size);
}

static json_t *ids_json(const uint32_t *ids, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		xfp_json_add(&list, json_integer(ids[i]));
	return list;
}

static json_t *written_json(const struct xfp_generated_text *w)
{
	return XFP_JSON({ "prompt", text_json(w->prompt, w->prompt_size) }, { "text", text_json(w->text, w->size) },
			{ "end", xfp_json_text(end_name(w->end)) },
			{ "prompt_tokens", ids_json(w->ids.id, w->prompt_count) },
			{ "tokens", ids_json(w->ids.id + w->prompt_count, w->ids.count - w->prompt_count) });
}

enum xfp_status xfp_generate_print_json(const struct xfp_generation *g, struct xfp_error *err)
{
	json_t *texts = json_array();

	for (size_t i = 0; i < g->count; i++)
		xfp_json_add(&texts, written_json(&g->texts[i]));
	return xfp_json_print(
		XFP_JSON({ "model", xfp_json_text(g->model.name) },
			 { "family", xfp_json_text(g->model.description->family) },
			 { "context", json_integer(g->context) }, { "parallel", json_integer(g->parallel) },
			 { "memory", xfp_json_count(g->memory) }, { "cache", xfp_json_count(g->cache) },
			 { "texts", texts }, { "prompt_tokens", xfp_json_count(g->prompt_tokens) },
			 { "prompt_seconds", json_real(g->prompt_seconds) }, { "tokens", xfp_json_count(g->tokens) },
			 { "seconds", json_real(g->seconds) }, { "steps", xfp_json_count(g->steps) },
			 { "weights_read", xfp_json_count(g->bytes) },
			 { "bandwidth", g->bandwidth > 0 ? json_real(g->bandwidth) : json_null() }),
		err);
}

/* Texts of a batch, each after its number. */
void xfp_generate_print(const struct xfp_generation *g, bool raw)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct xfp_generated_text *w = &g->texts[i];

		if (w->end == XFP_END_NONE)
			continue;
		printf("%s--- %zu\n", i ? "\n" : "", i + 1);
		xfp_screen_print(w->text, w->size, raw);
		if (!w->size || w->text[w->size - 1] != '\n')
			putchar('\n');
	}
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* Decimals for three significant digits. */
static int decimals(double value)
{
	return value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
}

static void print_rate(const char *what, size_t tokens, double seconds)
{
	double rate = (double)tokens / seconds;

	if (tokens && seconds > 0)
		fprintf(stderr, "%s: %zu token%s in %.*f s, %.*f per second\n", what, tokens, plural(tokens),
			decimals(seconds), seconds, decimals(rate), rate);
}

/* Texts that end because the context is full. */
static void print_full(const struct xfp_generation *g)
{
	bool whole = g->context == g->model.description->context;
	size_t full = 0;

	for (size_t i = 0; i < g->count; i++)
		full += g->texts[i].end == XFP_END_CONTEXT;
	if (full && g->count > 1)
		fprintf(stderr, "%zu of %zu texts end", full, g->count);
	else if (full)
		fputs("the text ends", stderr);
	if (full)
		fprintf(stderr, " where %s of %u token%s is full%s\n", whole ? "the model's context" : "the context",
			(unsigned)g->context, plural(g->context), whole ? "" : "; --context makes room for more");
}

void xfp_generate_report(const struct xfp_generation *g)
{
	char memory[32], cached[32], bytes[32], rate[32];

	print_full(g);
	fprintf(stderr, "context: %u token%s, %u at a time, %s of KV cache in %s of memory\n", (unsigned)g->context,
		plural(g->context), (unsigned)g->parallel, xfp_size_text(g->cache, g->request.memory_binary, cached),
		xfp_size_text(g->memory, g->request.memory_binary, memory));
	print_rate("prompt", g->prompt_tokens, g->prompt_seconds);
	print_rate("text", g->tokens, g->seconds);
	if (g->bandwidth > 0 && g->seconds > 0)
		fprintf(stderr, "weights: %s per step, read at %s per second, %.0f %% of memory bandwidth\n",
			xfp_human((double)g->bytes / (double)g->steps, "B", bytes),
			xfp_human((double)g->bytes / g->seconds, "B", rate),
			100 * (double)g->bytes / g->seconds / g->bandwidth);
}
