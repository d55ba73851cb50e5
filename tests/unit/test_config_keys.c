/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of config.json, of each family, one and two at a time: the loss is that of transformers, or the key
 * is refused by name. tests/models/config_keys.py writes config_keys.json.
 */
#include <jansson.h>
#include <math.h>

#include "runtime/team.h"
#include "tests/unit/tiny_model.h"

enum { SEQUENCES = 2, LENGTH = 21, IDS = 13 };
#define TOLERANCE 2e-5 /* of a loss, relative; that of config_keys.py */

/* As in config_keys.py. */
static double mean_loss(const struct xfp_forward *forward, uint32_t vocabulary, const uint32_t *ids,
			struct xfp_error *err)
{
	float *x = malloc(SEQUENCES * LENGTH * forward->description->hidden * sizeof *x);
	float *logits = malloc(SEQUENCES * LENGTH * (size_t)vocabulary * sizeof *logits);
	double loss = 0;

	assert_true(x && logits);
	assert_int_equal(xfp_forward_embed(forward, ids, x, err), XFP_OK);
	for (uint32_t layer = 0; layer < forward->description->layers; layer++)
		assert_int_equal(xfp_forward_layer(forward, layer, x, err), XFP_OK);
	assert_int_equal(xfp_forward_norm(forward, x, err), XFP_OK);
	assert_int_equal(xfp_forward_logits(forward, x, 0, vocabulary, logits, err), XFP_OK);
	for (size_t t = 0; t < SEQUENCES * LENGTH; t++) {
		const float *row = logits + t * vocabulary;
		double sum = 0;

		if (t % LENGTH == LENGTH - 1)
			continue;
		for (uint32_t i = 0; i < vocabulary; i++)
			sum += exp((double)row[i]);
		loss += log(sum) - row[ids[t + 1]];
	}
	free(x);
	free(logits);
	return loss / (SEQUENCES * (LENGTH - 1));
}

/* NAN, with a message in `err`, if the model is refused. */
static double loss_of(void **state, struct xfp_team *team, const char *config, struct xfp_error *err)
{
	static const struct xfp_tensor_names nested = { .body = "model.language_model.", .head = "lm_head.weight" };
	struct tiny_file *file = new_file();
	struct xfp_description *d = NULL;
	struct xfp_weights *weights = NULL;
	struct xfp_forward *forward = NULL;
	uint32_t ids[SEQUENCES * LENGTH];
	double loss = NAN;

	for (size_t i = 0; i < SEQUENCES * LENGTH; i++)
		ids[i] = (uint32_t)((i % LENGTH * (i % LENGTH) + 5 * (i / LENGTH)) % IDS);
	if (strstr(config, "\"text_config\""))
		file->names = &nested;
	if (xfp_description_read(config, "config.json", &d, err))
		goto done;
	write_tiny(state, config, d, file);
	if (xfp_weights_open(*state, &weights, err) ||
	    xfp_forward_open(d, weights, team, SEQUENCES, LENGTH, &forward, err))
		goto done;
	loss = mean_loss(forward, d->vocabulary, ids, err);
done:
	xfp_forward_close(forward);
	xfp_weights_close(weights);
	xfp_description_free(d);
	free(file);
	return loss;
}

/* Sets "KEY" or "text_config.KEY". */
static void set_key(json_t *config, const char *path, json_t *value)
{
	const char *dot = strchr(path, '.');

	assert_int_equal(
		json_object_set(dot ? json_object_get(config, "text_config") : config, dot ? dot + 1 : path, value), 0);
}

static char *config_of(json_t *family, json_t *chosen)
{
	json_t *config = json_deep_copy(json_object_get(family, "config"));
	size_t i;
	json_t *number;
	char *text;

	json_array_foreach(chosen, i, number)
	{
		json_t *change = json_array_get(json_object_get(family, "values"), (size_t)json_integer_value(number));

		set_key(config, json_string_value(json_array_get(change, 0)), json_array_get(change, 1));
	}
	text = json_dumps(config, JSON_COMPACT);
	json_decref(config);
	assert_non_null(text);
	return text;
}

/* A case is [values, outcome, loss or key]; refusals by transformers have no key and need no check. */
static unsigned check_case(void **state, struct xfp_team *team, json_t *family, json_t *one)
{
	json_t *expected = json_array_get(one, 2);
	const char *key = json_string_value(expected);
	struct xfp_error err = { 0 };
	char *config;
	double loss;
	bool right;

	if (key ? !*key : !json_is_number(expected))
		return 0;
	config = config_of(family, json_array_get(one, 0));
	loss = loss_of(state, team, config, &err);
	if (key)
		right = isnan(loss) && strstr(err.text, key);
	else
		right = fabs(loss - json_number_value(expected)) <= TOLERANCE * json_number_value(expected);
	if (!right)
		print_error("%s: loss %.9g, \"%s\"; expected %s %.9g\n", config, loss, err.text, key ? key : "",
			    json_number_value(expected));
	free(config);
	return !right;
}

static void keys_mean_what_they_mean_to_transformers(void **state)
{
	char path[4096];
	struct xfp_team *team = NULL;
	struct xfp_error err;
	unsigned wrong = 0, count = 0;
	json_t *all, *family, *one;
	const char *name;
	size_t i;

	snprintf(path, sizeof path, "%s/tests/unit/config_keys.json", getenv("srcdir"));
	assert_non_null(all = json_load_file(path, 0, NULL));
	assert_int_equal(xfp_team_start(1, &team, &err), XFP_OK);
	json_object_foreach (all, name, family) {
		json_array_foreach(json_object_get(family, "cases"), i, one)
		{
			wrong += check_case(state, team, family, one);
			count++;
		}
	}
	xfp_team_end(team);
	json_decref(all);
	assert_true(count > 1000);
	assert_int_equal(wrong, 0);
}

PROGRAM("test_config_keys")
{
	const struct CMUnitTest tests[] = {
		scratch_test(keys_mean_what_they_mean_to_transformers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
