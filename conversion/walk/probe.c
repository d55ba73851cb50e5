/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/walk/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/system/temporary.h"
#include "base/utf8.h"
#include "conversion/run_make.h"
#include "schemas/json_print.h"

#define MAX_TEXT (64u << 20)
#define MAX_OUTPUT (256u << 20)
#define MAX_IDS (1u << 16)
#define TOKENS "64"     /* of each continuation */
#define NOT_STARTED 126 /* statuses of a shell: it could not run the command, */
#define KILLED 128      /* or a signal ended it */
#define BUNDLE "probe.xfp"
#define OUTPUT "output"
#define STATUS "status"
#define ERRORS "errors"
#define PROMPTS "prompts.jsonl"

/* ---- files of the folder ------------------------------------------------------------------------- */

static void remove_in(const struct xfp_walk_prober *p, const char *name)
{
	char *path = p->folder ? xfp_path(p->folder, name) : NULL;

	if (path)
		xfp_temporary_remove(path);
}

static void remove_bundle(const struct xfp_walk_prober *p)
{
	remove_in(p, BUNDLE);
	remove_in(p, BUNDLE ".eval");
	remove_in(p, BUNDLE ".work");
}

static enum xfp_status read_in(const struct xfp_walk_prober *p, const char *name, char **text, struct xfp_error *err)
{
	char *path = xfp_path(p->folder, name);
	enum xfp_status status = path ? xfp_slurp(path, MAX_OUTPUT, text, NULL, err) : xfp_no_memory(err);

	free(path);
	return status;
}

/* The last line that a program wrote to stderr; NULL: none. The caller frees it. */
static char *last_error(const struct xfp_walk_prober *p)
{
	char *text = NULL, *line, *result;

	if (read_in(p, ERRORS, &text, NULL))
		return NULL;
	for (size_t length = strlen(text); length && strchr(" \r\n", text[length - 1]);)
		text[--length] = '\0';
	line = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
	result = *line ? strdup(xfp_printable(line).text) : NULL;
	free(text);
	return result;
}

/* ---- programs ---------------------------------------------------------------------------------- */

/* Run a program in the group that ends with xfp: its output and its exit status go to files of the folder. Returns
 * XFP_FAILED if it did not end by itself, with *timed_out set if that was for the deadline, in `seconds`; 0: none. */
static enum xfp_status run_program(const struct xfp_walk_prober *p, const char *const *argv, uint32_t seconds,
				   int *exit_status, bool *timed_out, struct xfp_error *err)
{
	static const char script[] = "\"$@\" >\"$0/" OUTPUT "\"; echo $? >\"$0/" STATUS "\"";
	struct xfp_conversion_place place = { .tick_ms = 20 };
	const char *words[128] = { "sh", "-c", script, p->folder };
	char *errors = xfp_path(p->folder, ERRORS), *text = NULL;
	enum xfp_status status = errors ? XFP_OK : xfp_no_memory(err);
	size_t count = 0;

	while (argv[count])
		count++;
	if (count + 5 > sizeof words / sizeof *words)
		status = xfp_fail(err, XFP_USAGE, "too many options for a walk with --probe");
	if (!status) {
		memcpy(words + 4, argv, count * sizeof *words);
		place.log = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (place.log < 0)
			status = xfp_fail_errno(err, errno, "%s", errors);
	}
	free(errors);
	if (status)
		return status;
	remove_in(p, STATUS);
	place.deadline = seconds ? xfp_now() + seconds : 0;
	xfp_run(&place, p->c->signals, words, NULL, NULL, NULL, err);
	close(place.log);
	*timed_out = seconds && xfp_now() >= place.deadline;
	if (p->c->signals->interrupted)
		return xfp_fail(err, XFP_FAILED, "interrupted");
	/* The file is empty if the disk is full, or if the shell was killed before it wrote. */
	if (read_in(p, STATUS, &text, NULL) || !*text)
		status = *timed_out ? XFP_FAILED : xfp_fail(err, XFP_FAILED, "%s: ended without a status", argv[0]);
	else
		*exit_status = (int)strtol(text, NULL, 10);
	*timed_out &= status != XFP_OK;
	free(text);
	return status;
}

/* Run a program of xfp that prints a JSON object. */
static enum xfp_status run_json(const struct xfp_walk_prober *p, const char *const *argv, json_t **root,
				struct xfp_error *err)
{
	char *text = NULL, *why;
	int exit_status;
	bool timed_out;
	enum xfp_status status = run_program(p, argv, 0, &exit_status, &timed_out, err);

	if (status)
		return status;
	if (exit_status) {
		why = last_error(p);
		status = xfp_child_status(exit_status);
		if (why)
			xfp_fail(err, status, "%s", why);
		else
			xfp_fail(err, status, "%s: ended with status %d", argv[0], exit_status);
		free(why);
		return status;
	}
	if ((status = read_in(p, OUTPUT, &text, err)))
		return status;
	if (!(*root = json_loads(text, 0, NULL)))
		status = xfp_fail(err, XFP_FAILED, "%s: printed no JSON", argv[0]);
	free(text);
	return status;
}

/* ---- judging ----------------------------------------------------------------------------------- */

static enum xfp_status count_text(const json_t *text, uint64_t *repeated, uint64_t *total, struct xfp_error *err)
{
	const json_t *tokens = json_object_get(text, "tokens");
	size_t count = json_array_size(tokens) < MAX_IDS ? json_array_size(tokens) : MAX_IDS;
	uint32_t *ids = malloc((count + 1) * sizeof *ids);

	if (!ids)
		return xfp_no_memory(err);
	for (size_t i = 0; i < count; i++)
		ids[i] = (uint32_t)json_integer_value(json_array_get(tokens, i));
	xfp_walk_count_repeats(ids, count, repeated, total);
	free(ids);
	return XFP_OK;
}

/* Continue the prompts greedily, and compute the share of repeated 4-grams. */
static enum xfp_status continue_prompts(const struct xfp_walk_prober *p, const char *model, double *repeats,
					struct xfp_error *err)
{
	char *prompts = xfp_path(p->folder, PROMPTS);
	const char *const argv[] = { "xfp-generate", "--json", "-n", TOKENS, "--batch", prompts, "--", model, NULL };
	uint64_t repeated = 0, total = 0;
	json_t *root = NULL;
	enum xfp_status status = prompts ? run_json(p, argv, &root, err) : xfp_no_memory(err);

	for (size_t i = 0; !status && i < json_array_size(json_object_get(root, "texts")); i++)
		status = count_text(json_array_get(json_object_get(root, "texts"), i), &repeated, &total, err);
	*repeats = total ? (double)repeated / (double)total : 0;
	json_decref(root);
	free(prompts);
	return status;
}

static double number_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : INFINITY; /* NaN and infinity are null in JSON */
}

static enum xfp_status judge_by_text(const struct xfp_walk_prober *p, const char *bundle, struct xfp_walk_probe *probe,
				     struct xfp_error *err)
{
	const char *const argv[] = { "xfp-eval", "--json",       "--fast", "--source", p->c->request->model,
				     "--text",   p->judge->text, "--",     bundle,     NULL };
	json_t *root = NULL;
	enum xfp_status status = run_json(p, argv, &root, err);

	if (status)
		return status;
	probe->kl = number_of(json_object_get(root, "kl"), "mean");
	probe->agreement = json_number_value(json_object_get(root, "top1_agreement"));
	probe->perplexity = number_of(root, "perplexity");
	probe->source_perplexity = number_of(json_object_get(root, "source"), "perplexity");
	probe->measured = true;
	json_decref(root);
	if ((status = continue_prompts(p, bundle, &probe->repeats, err)))
		return status;
	if (xfp_walk_is_garbage(&p->judge->criteria, probe, p->walk->source_repeats))
		probe->verdict = XFP_WALK_GARBAGE;
	return XFP_OK;
}

static enum xfp_status judge_by_command(const struct xfp_walk_prober *p, const char *bundle,
					struct xfp_walk_probe *probe, struct xfp_error *err)
{
	char *script = xfp_formatted("%s \"$@\"", p->judge->command), *output = NULL, *why;
	const char *const argv[] = { "sh", "-c", script, "sh", bundle, NULL };
	int exit_status = 0;
	bool timed_out = false;
	enum xfp_status status =
		script ? run_program(p, argv, p->judge->seconds, &exit_status, &timed_out, err) : xfp_no_memory(err);

	free(script);
	if (timed_out && status)
		return xfp_fail(err, XFP_FAILED,
				"--probe-command: still running after %" PRIu32
				" s, and was killed; --probe-timeout allows more",
				p->judge->seconds);
	if (status)
		return status;
	if (exit_status >= NOT_STARTED) {
		why = last_error(p);
		status = xfp_fail(err, exit_status < KILLED ? XFP_USAGE : XFP_FAILED,
				  "--probe-command: ended with status %d%s%s", exit_status, why ? ": " : "",
				  why ? why : "");
		free(why);
		return status;
	}
	if ((status = read_in(p, OUTPUT, &output, err)))
		return status;
	probe->scored = xfp_walk_last_number(output, &probe->score);
	free(output);
	if (exit_status)
		probe->verdict = XFP_WALK_GARBAGE;
	else if (!probe->scored)
		return xfp_fail(err, XFP_BAD_INPUT,
				"--probe-command: the last line of its output ends without a number; print the score "
				"there, more is better");
	return XFP_OK;
}

/* ---- probing ----------------------------------------------------------------------------------- */

static void report_step(const struct xfp_walk_prober *p, const struct xfp_walk_point *point, const char *what)
{
	char name[XFP_WALK_NAME], *text = xfp_formatted("%s: %s", p->name(point, name), what);

	if (text && !p->c->request->quiet)
		XFP_NOTIFY(p->c, .kind = XFP_NOTICE_MESSAGE, .text = text);
	free(text);
}

/* Convert into the bundle of the folder. Options of the point and of the walk come last, before "--". */
static enum xfp_status build(const struct xfp_walk_prober *p, const struct xfp_walk_point *point, const char *bundle,
			     struct xfp_walk_probe *probe, struct xfp_error *err)
{
	char *work = xfp_path(p->folder, BUNDLE ".work");
	const char *const last[] = {
		"-o", bundle, "--work", work, "--cache", p->c->request->cache, "--json", "-q", NULL
	};
	size_t count = 0, first = 1, used = 2;
	const char **argv = NULL;
	json_t *root = NULL;
	enum xfp_status status = work ? XFP_OK : xfp_no_memory(err);

	while (p->words[count])
		count++;
	if (!status && !(argv = calloc(count + XFP_WALK_WORDS + sizeof last / sizeof *last + 2, sizeof *argv)))
		status = xfp_no_memory(err);
	if (!status) {
		argv[0] = "xfp";
		argv[1] = "convert";
		for (; first < count && strcmp(p->words[first], "--") != 0; first++)
			argv[used++] = p->words[first];
		for (char *const *word = point->words; *word; word++)
			argv[used++] = *word;
		for (const char *const *word = last; *word; word++)
			argv[used++] = *word;
		for (; first < count; first++)
			argv[used++] = p->words[first];
		status = run_json(p, argv, &root, err);
	}
	if (!status) {
		const char *sha256 = json_string_value(json_object_get(root, "sha256"));

		snprintf(probe->sha256, sizeof probe->sha256, "%s", sha256 ? sha256 : "");
		probe->bytes = (uint64_t)json_integer_value(json_object_get(root, "bytes"));
	}
	json_decref(root);
	free(argv);
	free(work);
	return status;
}

/* Another point may have a bundle of the same units, which only records other floors. */
static const struct xfp_walk_probe *find_same(const struct xfp_walk_prober *p, const struct xfp_walk_probe *probe)
{
	for (uint32_t i = 0; *probe->weights && i < p->walk->count; i++) {
		const struct xfp_walk_probe *other = &p->walk->point[i].probe;

		if ((other->verdict == XFP_WALK_PASSED || other->verdict == XFP_WALK_GARBAGE) &&
		    !strcmp(other->weights, probe->weights))
			return other;
	}
	return NULL;
}

/* Use the judgement of another bundle. */
static void copy_judgement(const struct xfp_walk_probe *from, struct xfp_walk_probe *probe)
{
	struct xfp_walk_probe own = *probe;

	*probe = *from;
	memcpy(probe->sha256, own.sha256, sizeof own.sha256);
	probe->bytes = own.bytes;
	probe->gpu = own.gpu;
}

/* The size on a GPU, from what the bundle's units are measured as. */
static enum xfp_status measure(const struct xfp_walk_prober *p, const struct xfp_walk_point *point,
			       struct xfp_walk_probe *probe, struct xfp_error *err)
{
	struct xfp_walk_point measured = *point;
	enum xfp_status status = p->measure(p->own, &measured, err);

	probe->gpu = measured.gpu;
	memcpy(probe->weights, measured.digest, sizeof probe->weights);
	return status;
}

static enum xfp_status probe_point(const struct xfp_walk_prober *p, struct xfp_walk_point *point, struct xfp_error *err)
{
	char *bundle = xfp_path(p->folder, BUNDLE);
	struct xfp_walk_probe probe = { .verdict = XFP_WALK_PASSED };
	const struct xfp_walk_probe *same = NULL;
	struct xfp_walk_point built = *point;
	enum xfp_status status = bundle ? XFP_OK : xfp_no_memory(err);

	report_step(p, point, "converting");
	if (!status && !(status = build(p, point, bundle, &probe, err)))
		status = measure(p, point, &probe, err);
	built.probe = probe;
	if (!status && p->walk->limit.bytes && xfp_walk_cost(p->walk, &built) > p->walk->limit.bytes) {
		probe.verdict = XFP_WALK_TOO_LARGE;
	} else if (!status && (same = find_same(p, &probe))) {
		copy_judgement(same, &probe);
		report_step(p, point, "has the units of a bundle that was judged");
	} else if (!status) {
		report_step(p, point, "judging");
		if (p->judge->text)
			status = judge_by_text(p, bundle, &probe, err);
		if (!status && p->judge->command && probe.verdict == XFP_WALK_PASSED)
			status = judge_by_command(p, bundle, &probe, err);
	}
	if (!status)
		point->probe = probe;
	/* An interrupted conversion or evaluation resumes. */
	if (!p->c->signals->interrupted)
		remove_bundle(p);
	free(bundle);
	return status;
}

enum xfp_status xfp_walk_probe_points(struct xfp_walk_prober *p, struct xfp_error *err)
{
	enum xfp_status status = xfp_walk_results_apply(p, err);
	uint32_t next;

	/* What a command leaves running, as a server, must not keep the locks. */
	fcntl(p->c->place.lock, F_SETFD, FD_CLOEXEC);
	fcntl(p->c->place.cache_lock, F_SETFD, FD_CLOEXEC);
	while (!status && (next = xfp_walk_find_boundaries(p->walk, true).next) != XFP_WALK_NONE) {
		char name[XFP_WALK_NAME];

		status = probe_point(p, &p->walk->point[next], err);
		if (!status)
			status = xfp_walk_results_write(p, err);
		else if (!p->c->signals->interrupted)
			xfp_context(err, status, "%s", p->name(&p->walk->point[next], name));
	}
	return status;
}

/* ---- beginning and end --------------------------------------------------------------------------- */

/* Write one JSON text a line. */
static enum xfp_status write_prompts(const struct xfp_walk_prober *p, const char *text, size_t size,
				     struct xfp_error *err)
{
	struct xfp_walk_prompt prompts[XFP_WALK_PROMPTS];
	unsigned count = xfp_walk_cut_prompts(text, size, prompts);
	char *path = xfp_path(p->folder, PROMPTS),
	     *lines = calloc(1, XFP_WALK_PROMPTS * (6 * XFP_WALK_PROMPT_BYTES + 4));
	enum xfp_status status = path && lines ? XFP_OK : xfp_no_memory(err);
	size_t used = 0;

	if (!status && !count)
		status = xfp_fail(err, XFP_BAD_INPUT, "--text %s: is too short to cut prompts from it",
				  xfp_printable(p->judge->text).text);
	for (unsigned i = 0; !status && i < count; i++) {
		json_t *prompt = json_stringn(prompts[i].text, prompts[i].size);
		char *line = prompt ? json_dumps(prompt, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

		if (!line)
			status = xfp_no_memory(err);
		else
			used += (size_t)sprintf(lines + used, "%s\n", line);
		free(line);
		json_decref(prompt);
	}
	if (!status)
		status = xfp_write_file(path, lines, used, false, err);
	free(lines);
	free(path);
	return status;
}

static enum xfp_status begin_text(struct xfp_walk_prober *p, const char *text, size_t size, struct xfp_error *err)
{
	enum xfp_status status = write_prompts(p, text, size, err);

	if (status || p->walk->source_repeats >= 0)
		return status;
	if (!p->c->request->quiet)
		XFP_NOTIFY(p->c, .kind = XFP_NOTICE_MESSAGE, .text = "the source continues the prompts");
	status = continue_prompts(p, p->c->request->model, &p->walk->source_repeats, err);
	if (status == XFP_BAD_INPUT && err) {
		const struct xfp_error why = *err;

		xfp_fail(err, status, "%s; --probe-command CMD, without --text, judges bundles with another program",
			 why.text);
	}
	return status ? status : xfp_walk_results_write(p, err);
}

enum xfp_status xfp_walk_probe_begin(struct xfp_walk_prober *p, struct xfp_error *err)
{
	char *text = NULL;
	size_t size = 0;
	enum xfp_status status = XFP_OK;

	p->walk->source_repeats = -1;
	if (p->judge->text && (status = xfp_slurp_regular(p->judge->text, MAX_TEXT, &text, &size, err)))
		return xfp_context(err, status, "--text");
	if (text && !xfp_utf8_valid(text, size))
		status = xfp_fail(err, XFP_BAD_INPUT, "--text %s: is not UTF-8", xfp_printable(p->judge->text).text);
	if (!status && !(p->folder = xfp_formatted("%s.walk", p->c->request->out)))
		status = xfp_no_memory(err);
	(void)(status || (status = xfp_mkdirs(p->folder, err)) || (status = xfp_walk_results_key(p, text, size, err)) ||
	       (status = xfp_walk_results_read(p, err)) || (text && (status = begin_text(p, text, size, err))));
	free(text);
	return status;
}

void xfp_walk_probe_end(struct xfp_walk_prober *p)
{
	static const char *const files[] = { PROMPTS, OUTPUT, STATUS, ERRORS };

	for (size_t i = 0; p->folder && i < sizeof files / sizeof *files; i++)
		remove_in(p, files[i]);
	/* That of an interrupted walk whose point this one did not probe. */
	if (p->folder && !p->c->signals->interrupted)
		remove_bundle(p);
	if (p->folder)
		rmdir(p->folder); /* if nothing was kept */
	free(p->folder);
	free(p->results);
	p->folder = p->results = NULL;
}
