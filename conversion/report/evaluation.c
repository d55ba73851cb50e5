/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/report/inputs.h"
#include "conversion/report/json_input.h"
#include "runtime/digest.h"

#define COMMAND "xfp eval OUT.xfp --source MODEL --text FILE --json"
#define MAX_LAYERS 100000

static void read_layers(struct xfp_json_input *input, struct xfp_report_evaluation *e)
{
	json_t *list = xfp_json_input_list(input, input->root, "layers"), *layer;
	size_t i, count = json_array_size(list);

	if (count > MAX_LAYERS)
		xfp_json_input_fault(input, "layers", "a list of layers");
	if (input->status)
		return;
	e->layers = calloc(count + 1, sizeof *e->layers);
	if (!e->layers) {
		input->status = xfp_no_memory(input->err);
		return;
	}
	json_array_foreach(list, i, layer)
	{
		if (xfp_json_input_count(input, layer, "layer") != i)
			xfp_json_input_fault(input, "layer", "the next number");
		e->layers[i].stream = xfp_json_input_number_or_null(input, layer, "stream");
		e->layers[i].alone = xfp_json_input_number_or_null(input, layer, "alone");
	}
	e->layer_count = (uint32_t)count;
}

static void read_compared(struct xfp_json_input *input, struct xfp_report_evaluation *e)
{
	const json_t *source = xfp_json_input_object(input, input->root, "source");
	const json_t *kl = xfp_json_input_object(input, input->root, "kl");
	const json_t *embedding = xfp_json_input_object(input, input->root, "embedding");

	e->compared = true;
	e->source_loss = xfp_json_input_number_or_null(input, source, "loss");
	e->source_perplexity = xfp_json_input_number_or_null(input, source, "perplexity");
	e->divergence = xfp_json_input_number_or_null(input, kl, "mean");
	e->divergence_99 = xfp_json_input_number_or_null(input, kl, "p99");
	e->divergence_most = xfp_json_input_number_or_null(input, kl, "largest");
	e->agreement = xfp_json_input_number_or_null(input, input->root, "top1_agreement");
	e->embedding = xfp_json_input_number_or_null(input, embedding, "stream");
	read_layers(input, e);
}

/* Refuse an evaluation of another bundle of the same family, or of a checkpoint. Older files do not say what it was. */
static void check_bundle(struct xfp_json_input *input, const struct xfp_report *report)
{
	const json_t *digest = json_object_get(input->root, "index_sha256");
	char own[65];

	xfp_bundle_index_digest(report->bundle, own);
	if (input->status || !digest || (json_is_string(digest) && !strcmp(json_string_value(digest), own)))
		return;
	input->status =
		xfp_fail(input->err, XFP_BAD_INPUT,
			 "%s: of %s, not of this bundle (\"index_sha256\" is not %s); make it with %s", input->path,
			 json_is_null(digest) ? "a checkpoint" : "another bundle", own, input->command);
}

enum xfp_status xfp_report_read_evaluation(const char *path, const struct xfp_report *report,
					   struct xfp_report_evaluation *e, struct xfp_error *err)
{
	struct xfp_json_input input;

	*e = (struct xfp_report_evaluation){ .loss = 0 };
	if (!xfp_json_input_open(&input, path, COMMAND, err)) {
		xfp_json_input_family(&input, report->info.family);
		check_bundle(&input, report);
		e->sequences = xfp_json_input_count(&input, input.root, "sequences");
		e->length = xfp_json_input_count(&input, input.root, "length");
		e->predicted = xfp_json_input_count(&input, input.root, "predicted");
		e->loss = xfp_json_input_number_or_null(&input, input.root, "loss");
		e->perplexity = xfp_json_input_number_or_null(&input, input.root, "perplexity");
		if (!input.status && json_object_get(input.root, "source"))
			read_compared(&input, e);
	}
	json_decref(input.root);
	if (input.status)
		xfp_report_evaluation_free(e);
	return input.status;
}

void xfp_report_evaluation_free(struct xfp_report_evaluation *e)
{
	free(e->layers);
	*e = (struct xfp_report_evaluation){ .loss = 0 };
}
