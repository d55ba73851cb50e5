/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run_inspect.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "conversion/run_make.h"
#include "schemas/setting.h"
#include "stages/work/stages.h"

/* A command line, terminated by NULL. */
struct argument_words {
	char **word;
	size_t count;
	bool failed; /* out of memory */
};

/* Append a word, taking ownership of it. */
static void add_own(struct argument_words *words, char *word)
{
	char **grown = realloc(words->word, (words->count + 2) * sizeof *grown);

	if (grown)
		words->word = grown;
	if (!grown || !word) {
		words->failed = true;
		free(word);
		return;
	}
	grown[words->count++] = word;
	grown[words->count] = NULL;
}

static void add(struct argument_words *words, const char *word)
{
	add_own(words, strdup(word));
}

static void words_free(struct argument_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->word[i]);
	free(words->word);
}

/* Add the parameters that determine the units and their fates. */
static void add_policy(struct argument_words *words, const struct xfp_parameters *p)
{
	char text[24];

	add(words, "--lm-head");
	add(words, xfp_setting_name(XFP_SETTING_LM_HEAD, p->lm_head));
	if (p->keep_embeddings)
		add(words, "--keep-embeddings");
	for (int i = 0; i < XFP_CLASSES; i++)
		if (p->format[i].form != XFP_FORM_AUTO)
			add_own(words, xfp_formatted("--format=%s=%s", xfp_class_name((enum xfp_class)i),
						     xfp_format_text(p->format[i], text)));
	for (uint32_t i = 0; i < p->override_count; i++) {
		add(words, "--override");
		add_own(words, xfp_override_text(&p->overrides[i]));
	}
}

int xfp_run_inspect(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	struct argument_words words = { .word = NULL };
	int status;

	add(&words, XFP_INSPECT_PROGRAM);
	add(&words, "--work");
	add(&words, work);
	add_policy(&words, &c->parameters);
	if (c->request->family) {
		add(&words, "--family");
		add(&words, c->request->family);
	}
	add(&words, "--");
	add(&words, c->request->model);
	if (words.failed)
		status = (int)xfp_no_memory(err);
	else
		status = xfp_run_program(c, (const char *const *)words.word, err);
	words_free(&words);
	return status;
}
