/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results.c - probes on disk: one JSON object with a key, and a list of probes, each with the digest of its parameters.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/system/file.h"
#include "conversion/walk/probe.h"
#include "schemas/json_print.h"

#define RESULTS "walk.json"
#define MAX_SIZE (16u << 20)

static const char *const verdicts[] = { [XFP_WALK_UNKNOWN] = "unknown",
					[XFP_WALK_PASSED] = "passed",
					[XFP_WALK_GARBAGE] = "garbage",
					[XFP_WALK_TOO_LARGE] = "too large" };

static void add_text(struct xfp_sha256 *sha, const char *text)
{
	xfp_sha256_update(sha, text, strlen(text) + 1);
}

static void end_hex(struct xfp_sha256 *sha, char hex[65])
{
	uint8_t digest[32];

	xfp_sha256_final(sha, digest);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

enum xfp_status xfp_walk_results_key(struct xfp_walk_prober *p, const char *text, size_t size, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = p->c->units.ledger;
	char *criteria = xfp_formatted("%s %.9g %.9g %s", PACKAGE_VERSION, p->judge->criteria.repeats,
				       p->judge->criteria.agreement, p->judge->command ? p->judge->command : "");
	struct xfp_sha256 sha;

	if (!criteria)
		return xfp_no_memory(err);
	xfp_sha256_init(&sha);
	add_text(&sha, criteria);
	add_text(&sha, ledger->model);
	add_text(&sha, ledger->family);
	for (uint32_t i = 0; i < ledger->file_count; i++)
		xfp_sha256_update(&sha, &ledger->files[i].identity, sizeof ledger->files[i].identity);
	if (text)
		xfp_sha256_update(&sha, text, size);
	end_hex(&sha, p->key);
	free(criteria);
	return XFP_OK;
}

/* The digest of everything that decides the bundle of a point. */
static enum xfp_status digest_of(const struct xfp_walk_prober *p, const struct xfp_walk_point *point, char hex[65],
				 struct xfp_error *err)
{
	const struct xfp_goal *goal = &p->c->request->goal;
	struct xfp_parameters parameters = point->target ? p->c->parameters : point->parameters;
	struct xfp_sha256 sha;
	char *json;

	parameters.calibration = p->c->parameters.calibration; /* options do not tell the tokens */
	if (!(json = xfp_parameters_to_json(&parameters)))
		return xfp_no_memory(err);
	xfp_sha256_init(&sha);
	add_text(&sha, json);
	for (char *const *word = point->words; *word; word++)
		add_text(&sha, *word);
	for (uint32_t i = 0; point->target && i < goal->weight_count; i++) {
		add_text(&sha, goal->weights[i].pattern);
		xfp_sha256_update(&sha, &goal->weights[i].milli, sizeof goal->weights[i].milli);
	}
	end_hex(&sha, hex);
	free(json);
	return XFP_OK;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static double number_of(const json_t *object, const char *name, double missing)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : missing;
}

enum xfp_status xfp_walk_results_read(struct xfp_walk_prober *p, struct xfp_error *err)
{
	char *path = xfp_path(p->folder, RESULTS), *text = NULL;
	json_t *root = NULL;
	const char *key;

	if (!path)
		return xfp_no_memory(err);
	if (!xfp_slurp_regular(path, MAX_SIZE, &text, NULL, NULL))
		root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	key = json_string_value(json_object_get(root, "key"));
	if (key && !strcmp(key, p->key)) {
		p->results = text;
		p->walk->source_repeats = number_of(root, "source_repeats", -1);
		text = NULL;
	}
	json_decref(root);
	free(text);
	free(path);
	return XFP_OK;
}

static const json_t *find_probe(const json_t *list, const char *digest)
{
	const json_t *probe;
	size_t i;

	json_array_foreach(list, i, probe)
	{
		const char *own = json_string_value(json_object_get(probe, "digest"));

		if (own && !strcmp(own, digest))
			return probe;
	}
	return NULL;
}

static void read_probe(const json_t *json, struct xfp_walk_probe *probe)
{
	const char *verdict = json_string_value(json_object_get(json, "verdict"));
	const char *sha256 = json_string_value(json_object_get(json, "sha256"));
	const char *weights = json_string_value(json_object_get(json, "weights"));

	if (!verdict || !sha256 || strlen(sha256) != 64)
		return;
	*probe = (struct xfp_walk_probe){
		.bytes = (uint64_t)json_integer_value(json_object_get(json, "bytes")),
		.measured = json_is_true(json_object_get(json, "measured")),
		.scored = json_is_number(json_object_get(json, "score")),
		.kl = number_of(json, "kl", INFINITY),
		.agreement = number_of(json, "agreement", 0),
		.perplexity = number_of(json, "perplexity", INFINITY),
		.source_perplexity = number_of(json, "source_perplexity", INFINITY),
		.repeats = number_of(json, "repeats", 1),
		.score = number_of(json, "score", 0),
	};
	snprintf(probe->sha256, sizeof probe->sha256, "%s", sha256);
	if (weights && strlen(weights) == 64)
		memcpy(probe->weights, weights, sizeof probe->weights);
	for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
		if (!strcmp(verdict, verdicts[i]))
			probe->verdict = (enum xfp_walk_verdict)i;
}

enum xfp_status xfp_walk_results_apply(struct xfp_walk_prober *p, struct xfp_error *err)
{
	json_t *root = p->results ? json_loads(p->results, 0, NULL) : NULL;
	enum xfp_status status = XFP_OK;
	char digest[65];

	for (uint32_t i = 0; root && !status && i < p->walk->count; i++) {
		struct xfp_walk_point *point = &p->walk->point[i], measured = *point;
		const json_t *probe;

		if ((status = digest_of(p, point, digest, err)) ||
		    !(probe = find_probe(json_object_get(root, "probes"), digest)))
			continue;
		read_probe(probe, &point->probe);
		/* The limit and the number of GPUs may differ from those of the earlier walk. */
		if (p->walk->limit.goal->kind == XFP_GOAL_ENVELOPE && (status = p->measure(p->own, &measured, err)))
			break;
		point->probe.gpu = measured.gpu;
		if (p->walk->limit.bytes && xfp_walk_cost(p->walk, point) > p->walk->limit.bytes)
			point->probe.verdict = XFP_WALK_TOO_LARGE;
		else if (point->probe.verdict == XFP_WALK_TOO_LARGE)
			point->probe = (struct xfp_walk_probe){ .verdict = XFP_WALK_UNKNOWN };
	}
	json_decref(root);
	return status;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static json_t *probe_json(const char *digest, const struct xfp_walk_probe *probe)
{
	return XFP_JSON({ "digest", xfp_json_text(digest) }, { "verdict", xfp_json_text(verdicts[probe->verdict]) },
			{ "sha256", xfp_json_text(probe->sha256) }, { "weights", xfp_json_text(probe->weights) },
			{ "bytes", xfp_json_count(probe->bytes) }, { "measured", json_boolean(probe->measured) },
			{ "kl", xfp_json_number(probe->kl) }, { "agreement", xfp_json_number(probe->agreement) },
			{ "perplexity", xfp_json_number(probe->perplexity) },
			{ "source_perplexity", xfp_json_number(probe->source_perplexity) },
			{ "repeats", xfp_json_number(probe->repeats) },
			{ "score", probe->scored ? xfp_json_number(probe->score) : json_null() });
}

/* Add the probes of the file that are not those of this walk's points. */
static void add_others(const struct xfp_walk_prober *p, json_t **list)
{
	json_t *root = p->results ? json_loads(p->results, 0, NULL) : NULL, *probe;
	size_t i;

	json_array_foreach(json_object_get(root, "probes"), i, probe)
	{
		const char *digest = json_string_value(json_object_get(probe, "digest"));

		if (digest && *list && !find_probe(*list, digest))
			xfp_json_add(list, json_incref(probe));
	}
	json_decref(root);
}

enum xfp_status xfp_walk_results_write(struct xfp_walk_prober *p, struct xfp_error *err)
{
	char *path = xfp_path(p->folder, RESULTS), digest[65], *text = NULL;
	json_t *list = json_array(), *root;
	enum xfp_status status = path ? XFP_OK : xfp_no_memory(err);

	for (uint32_t i = 0; !status && i < p->walk->count; i++)
		if (*p->walk->point[i].probe.sha256 && !(status = digest_of(p, &p->walk->point[i], digest, err)))
			xfp_json_add(&list, probe_json(digest, &p->walk->point[i].probe));
	add_others(p, &list);
	root = XFP_JSON(
		{ "key", xfp_json_text(p->key) },
		{ "source_repeats", p->walk->source_repeats >= 0 ? json_real(p->walk->source_repeats) : json_null() },
		{ "probes", list });
	if (!status && (!root || !(text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)))))
		status = xfp_no_memory(err);
	if (!status)
		status = xfp_write_file(path, text, strlen(text), false, err);
	json_decref(root);
	if (status) {
		free(text);
	} else {
		free(p->results);
		p->results = text;
	}
	free(path);
	return status;
}
