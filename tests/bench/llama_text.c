/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_text - measure the time per token of llama.cpp's text generation. generate.py builds it against llama.cpp's
 * headers and libraries, which you must build first.
 *
 *     llama_text quantize IN.gguf OUT.gguf              to Q4_K_M
 *     llama_text run FILE.gguf THREADS PROMPT TOKENS    prints milliseconds and processor milliseconds a token
 */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void quiet(enum ggml_log_level level, const char *text, void *context)
{
	(void)context;
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static int quantize(const char *in, const char *out)
{
	struct llama_model_quantize_params params = llama_model_quantize_default_params();

	params.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_M;
	return (int)llama_model_quantize(in, out, &params);
}

static llama_token best(const float *logits, int count)
{
	int at = 0;

	for (int i = 1; i < count; i++)
		at = logits[i] > logits[at] ? i : at;
	return at;
}

static int run(const char *file, int threads, int prompt, int tokens)
{
	struct llama_context_params params = llama_context_default_params();
	struct llama_model *model = llama_model_load_from_file(file, llama_model_default_params());
	struct llama_context *context;
	llama_token *ids = calloc((size_t)prompt, sizeof *ids), next;
	int vocabulary;
	double wall, processor;

	params.n_ctx = (uint32_t)(prompt + tokens);
	params.n_threads = params.n_threads_batch = threads;
	if (!model || !ids || !(context = llama_init_from_model(model, params)))
		return 1;
	vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
	for (int i = 0; i < prompt; i++)
		ids[i] = i * 37 % vocabulary;
	if (llama_decode(context, llama_batch_get_one(ids, prompt)))
		return 1;
	next = best(llama_get_logits_ith(context, -1), vocabulary);
	wall = seconds(CLOCK_MONOTONIC);
	processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < tokens; i++) {
		if (llama_decode(context, llama_batch_get_one(&next, 1)))
			return 1;
		next = best(llama_get_logits_ith(context, -1), vocabulary);
	}
	printf("%.3f %.3f\n", 1e3 * (seconds(CLOCK_MONOTONIC) - wall) / tokens,
	       1e3 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - processor) / tokens);
	llama_free(context);
	llama_model_free(model);
	free(ids);
	return 0;
}

int main(int count, char **words)
{
	llama_log_set(quiet, NULL);
	llama_backend_init();
	if (count == 4 && !strcmp(words[1], "quantize"))
		return quantize(words[2], words[3]);
	if (count == 6 && !strcmp(words[1], "run"))
		return run(words[2], atoi(words[3]), atoi(words[4]), atoi(words[5]));
	fputs("usage: llama_text quantize IN OUT | run FILE THREADS PROMPT TOKENS\n", stderr);
	return 2;
}
