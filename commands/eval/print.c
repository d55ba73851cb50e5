/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/eval/print.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text/table.h"
#include "schemas/json_print.h"

enum { LAYER, STREAM, ALONE, COLUMNS };

static const struct xfp_table_column layout[COLUMNS + 1] = {
	[LAYER] = { "layer", 1, 0, 0 },
	[STREAM] = { "error of the stream", 0, 2, 0 },
	[ALONE] = { "of the layer alone", 0, 2, 0 },
};

static json_t *layers_json(const struct xfp_evaluation *e)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < e->evaluated.model.description->layers; i++)
		xfp_json_add(&list,
			     XFP_JSON({ "layer", json_integer(i) }, { "stream", xfp_json_number(e->layers[i].stream) },
				      { "alone", xfp_json_number(e->layers[i].alone) }));
	return list;
}

static json_t *compared_json(const struct xfp_evaluation *e)
{
	const struct xfp_loss *loss = &e->loss;
	json_t *source = XFP_JSON({ "model", xfp_json_text(e->source.model.name) },
				  { "loss", xfp_json_number(loss->source_mean) },
				  { "perplexity", xfp_json_number(loss->source_perplexity) });
	json_t *divergence =
		XFP_JSON({ "mean", xfp_json_number(loss->divergence) }, { "p99", xfp_json_number(loss->divergence_99) },
			 { "largest", xfp_json_number(loss->divergence_most) });

	return XFP_JSON({ "source", source }, { "kl", divergence },
			{ "top1_agreement", xfp_json_number(loss->agreement) },
			{ "embedding", XFP_JSON({ "stream", xfp_json_number(e->embedding_error) }) },
			{ "layers", layers_json(e) });
}

/* What was evaluated. */
static json_t *model_json(const struct xfp_model *model)
{
	char digest[65];

	xfp_weights_index_digest(model->weights, digest);
	return XFP_JSON({ "model", xfp_json_text(model->name) },
			{ "index_sha256", xfp_json_text_or_null(*digest ? digest : NULL) },
			{ "family", xfp_json_text(model->description->family) });
}

static json_t *embeddings_json(const struct xfp_evaluation *e)
{
	const struct xfp_embeddings *embeddings = &e->embeddings;
	json_t *root = model_json(&e->evaluated.model), *distance;

	xfp_json_join(&root, XFP_JSON({ "texts", xfp_json_count(e->texts.count) },
				      { "tokens", xfp_json_count(e->texts.first[e->texts.count]) },
				      { "longest", xfp_json_count(e->tokens.length) },
				      { "pooling", xfp_json_text(embeddings->pooling.title) },
				      { "normalized", json_boolean(embeddings->pooling.normalize) },
				      { "width", json_integer(e->evaluated.model.description->hidden) }));
	if (!e->source.model.name)
		return root;
	distance = XFP_JSON({ "mean", xfp_json_number(embeddings->mean) },
			    { "p95", xfp_json_number(embeddings->distance_95) },
			    { "largest", xfp_json_number(embeddings->worst) },
			    { "largest_text", xfp_json_count(embeddings->worst_text + 1) });

	xfp_json_join(&root, XFP_JSON({ "source", XFP_JSON({ "model", xfp_json_text(e->source.model.name) }) },
				      { "one_minus_cosine", distance },
				      { "embedding", XFP_JSON({ "stream", xfp_json_number(e->embedding_error) }) },
				      { "layers", layers_json(e) }));
	return root;
}

static json_t *perplexity_json(const struct xfp_evaluation *e)
{
	json_t *root = model_json(&e->evaluated.model);

	xfp_json_join(&root, XFP_JSON({ "sequences", xfp_json_count(e->tokens.sequences) },
				      { "length", xfp_json_count(e->tokens.length) },
				      { "left_out", xfp_json_count(e->tokens.left_out) },
				      { "predicted", xfp_json_count(e->loss.predicted) },
				      { "loss", xfp_json_number(e->loss.mean) },
				      { "perplexity", xfp_json_number(e->loss.perplexity) }));
	if (e->source.model.name)
		xfp_json_join(&root, compared_json(e));
	return root;
}

enum xfp_status xfp_eval_print_json(const struct xfp_evaluation *e, struct xfp_error *err)
{
	return xfp_json_print(xfp_evaluation_is_encoder(e) ? embeddings_json(e) : perplexity_json(e), err);
}

static void print_layers(const struct xfp_evaluation *e)
{
	struct xfp_table table = { .column = layout };
	char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, "embedding");

	snprintf(row[STREAM], sizeof row[STREAM], "%.3g", e->embedding_error);
	for (uint32_t i = 0; i < e->evaluated.model.description->layers; i++) {
		char name[16];

		snprintf(name, sizeof name, "%" PRIu32, i);
		row = xfp_table_row(&table, name);
		snprintf(row[STREAM], sizeof row[STREAM], "%.3g", e->layers[i].stream);
		snprintf(row[ALONE], sizeof row[ALONE], "%.3g", e->layers[i].alone);
	}
	putchar('\n');
	xfp_table_print(stdout, &table);
}

static void print_embeddings(const struct xfp_evaluation *e)
{
	const struct xfp_embeddings *embeddings = &e->embeddings;

	printf("%zu %s of %zu tokens, the longest of %zu; pooling: %s%s\n", e->texts.count,
	       e->texts.count == 1 ? "text" : "texts", e->texts.first[e->texts.count], e->tokens.length,
	       embeddings->pooling.title, embeddings->pooling.normalize ? ", normalized" : "");
	if (!e->source.model.name)
		return;
	printf("1 - cosine of the source's embeddings: mean %.4g, 95 %% within %.4g, largest %.4g (text %zu)\n",
	       embeddings->mean, embeddings->distance_95, embeddings->worst, embeddings->worst_text + 1);
	print_layers(e);
}

void xfp_eval_print(const struct xfp_evaluation *e)
{
	const struct xfp_loss *loss = &e->loss;

	if (xfp_evaluation_is_encoder(e)) {
		print_embeddings(e);
		return;
	}
	printf("%zu %s of %zu tokens, %" PRIu64 " of them predicted", e->tokens.sequences,
	       e->tokens.sequences == 1 ? "sequence" : "sequences", e->tokens.length, loss->predicted);
	if (e->tokens.left_out)
		printf("; the last %zu tokens of the text do not fill a sequence", e->tokens.left_out);
	putchar('\n');
	printf("perplexity %.6g (%.6g nats per token)\n", loss->perplexity, loss->mean);
	if (!e->source.model.name)
		return;
	printf("perplexity of the source %.6g (%.6g nats per token)\n", loss->source_perplexity, loss->source_mean);
	printf("KL divergence from the source, in nats per token: mean %.4g, 99 %% within %.4g, largest %.4g\n",
	       loss->divergence, loss->divergence_99, loss->divergence_most);
	printf("top-1 agreement with the source: %.2f %%\n", 100 * loss->agreement);
	print_layers(e);
}
