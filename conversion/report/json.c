/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/report/json.h"

#include <stdlib.h>

#include "conversion/report/advice.h"
#include "conversion/report/command.h"
#include "conversion/report/inputs.h"
#include "schemas/json_print.h"

/* ---- the bundle -------------------------------------------------------------------------------- */

static json_t *sum_json(const struct xfp_report_sum *sum)
{
	double weights = (double)sum->weights;

	return XFP_JSON({ "units", json_integer(sum->units) }, { "below_floor", json_integer(sum->missed) },
			{ "with_floor", json_integer(sum->floors) }, { "calibrated", json_integer(sum->calibrated) },
			{ "weights", xfp_json_count(sum->weights) }, { "bytes", xfp_json_count(sum->bytes) },
			{ "outliers", xfp_json_count(sum->outliers) },
			{ "true_bits", json_real(xfp_bits_per_weight(sum->bytes, sum->weights)) },
			{ "paper_bits", json_real(weights > 0 ? sum->paper / weights : 0) },
			{ "least_k", xfp_json_count_or_null(sum->ranges.min_k) },
			{ "largest_k", xfp_json_count_or_null(sum->ranges.max_k) },
			{ "error", json_real(xfp_report_error(sum)) },
			{ "weight_error", json_real(xfp_report_weight_error(sum)) },
			{ "cos_median_least", sum->units ? json_real(sum->worst) : json_null() });
}

static json_t *with_sum(json_t *object, const struct xfp_report_sum *sum)
{
	xfp_json_join(&object, sum_json(sum));
	return object;
}

static json_t *layers_json(const struct xfp_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < report->layer_count; i++)
		xfp_json_add(&list, with_sum(XFP_JSON({ "layer", json_integer(report->layers[i].number) }),
					     &report->layers[i].sum));
	return list;
}

static json_t *parts_json(const struct xfp_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < report->part_count; i++) {
		const struct xfp_report_part *part = &report->parts[i];

		xfp_json_add(&list, with_sum(XFP_JSON({ "names", xfp_json_text(part->pattern) },
						      { "class", xfp_json_text(part->class_name) },
						      { "role", xfp_json_text(part->role) }),
					     &part->sum));
	}
	return list;
}

static json_t *classes_json(const struct xfp_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < report->class_count; i++) {
		const struct xfp_report_class *one = &report->classes[i];
		bool floors = one->max_floor > 0;

		xfp_json_add(
			&list,
			with_sum(XFP_JSON({ "class", json_string(one->name) }, { "cos_median", json_real(one->median) },
					  { "cos_p5", json_real(one->p5) },
					  { "least_floor", floors ? json_real(one->min_floor) : json_null() },
					  { "largest_floor", floors ? json_real(one->max_floor) : json_null() }),
				 &one->sum));
	}
	return list;
}

static json_t *units_json(const struct xfp_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < report->info.units; i++) {
		const struct xfp_report_unit *unit = &report->units[i];
		const struct xfp_unit_info *info = &unit->info;
		bool has_layer = unit->layer != XFP_REPORT_NO_LAYER;

		xfp_json_add(&list,
			     XFP_JSON({ "name", xfp_json_text(info->name) }, { "role", xfp_json_text(info->role) },
				      { "class", xfp_json_text(info->class_name) },
				      { "layer", has_layer ? json_integer(unit->layer) : json_null() },
				      { "mode", xfp_json_text(info->mode_name) }, { "k", xfp_json_count(info->k) },
				      { "weights", xfp_json_count(info->weights) },
				      { "bytes", xfp_json_count(info->bytes) }, { "true_bits", json_real(unit->bits) },
				      { "cos_median", json_real(unit->median) }, { "cos_p5", json_real(unit->p5) },
				      { "floor", json_real(info->floor) }, { "error", json_real(unit->error) },
				      { "weight_error", json_real(info->error) },
				      { "calibrated", json_boolean(unit->calibrated) },
				      { "missed", xfp_json_text_or_null(unit->missed) }));
	}
	return list;
}

static json_t *fates_json(const struct xfp_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < report->fate_count; i++) {
		const struct xfp_report_fate *fate = &report->fates[i];

		xfp_json_add(&list,
			     XFP_JSON({ "fate", xfp_json_text(fate->fate) }, { "reason", xfp_json_text(fate->reason) },
				      { "names", xfp_json_text(fate->pattern) },
				      { "class", xfp_json_text(fate->class_name) },
				      { "dtype", xfp_json_text(fate->dtype) },
				      { "tensors", json_integer(fate->tensors) },
				      { "elements", xfp_json_count(fate->elements) },
				      { "kept_bytes", xfp_json_count(fate->bytes) }));
	}
	return list;
}

static json_t *advice_json(const struct xfp_report *report)
{
	struct xfp_report_advice advice[XFP_REPORT_ADVICE];
	uint32_t count = xfp_report_advise(report, advice);
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++) {
		bool layer = advice[i].layer != XFP_REPORT_NO_LAYER;
		uint8_t class_ = layer ? advice[i].class_ : report->parts[advice[i].part].class_;

		xfp_json_add(&list,
			     XFP_JSON({ "names", xfp_json_text(advice[i].pattern) },
				      { "layer",
					layer ? json_integer(report->layers[advice[i].layer].number) : json_null() },
				      { "class", json_string(xfp_class_name((enum xfp_class)class_)) },
				      { "least_k", json_integer(advice[i].low) },
				      { "largest_k", json_integer(advice[i].high) },
				      { "k", json_integer(advice[i].bits) }, { "error", json_real(advice[i].error) },
				      { "share_of_loss", json_real(advice[i].share) },
				      { "more_bytes", json_real(advice[i].bytes) },
				      { "loss_afterwards", json_real(advice[i].remaining) }));
		free(advice[i].pattern);
	}
	return list;
}

/* ---- other files ------------------------------------------------------------------------------- */

static json_t *evaluation_json(const struct xfp_report_evaluation *e)
{
	json_t *object, *layers = json_array();

	if (!e) {
		json_decref(layers);
		return json_null();
	}
	for (uint32_t i = 0; i < e->layer_count; i++)
		xfp_json_add(&layers,
			     XFP_JSON({ "layer", json_integer(i) }, { "alone", xfp_json_number(e->layers[i].alone) },
				      { "stream", xfp_json_number(e->layers[i].stream) }));
	object = XFP_JSON({ "sequences", xfp_json_count(e->sequences) }, { "length", xfp_json_count(e->length) },
			  { "predicted", xfp_json_count(e->predicted) }, { "loss", xfp_json_number(e->loss) },
			  { "perplexity", xfp_json_number(e->perplexity) }, { "layers", layers });
	if (e->compared)
		xfp_json_join(&object, XFP_JSON({ "source_loss", xfp_json_number(e->source_loss) },
						{ "source_perplexity", xfp_json_number(e->source_perplexity) },
						{ "kl_mean", xfp_json_number(e->divergence) },
						{ "kl_p99", xfp_json_number(e->divergence_99) },
						{ "kl_largest", xfp_json_number(e->divergence_most) },
						{ "top1_agreement", xfp_json_number(e->agreement) },
						{ "embedding", xfp_json_number(e->embedding) }));
	return object;
}

static json_t *ways_json(const struct xfp_report_comparison *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->count; i++) {
		const struct xfp_report_way *way = &c->ways[i];

		xfp_json_add(&list,
			     XFP_JSON({ "format", xfp_json_text(way->format) }, { "k", xfp_json_count_or_null(way->k) },
				      { "group_size", xfp_json_count_or_null(way->group) },
				      { "outlier_sigma", way->sigma > 0 ? json_real(way->sigma) : json_null() },
				      { "true_bits", json_real(way->bits) }, { "cos_median", json_real(way->cosine) },
				      { "error", json_real(way->error) }));
	}
	return list;
}

static json_t *ablation_json(const struct xfp_report *report)
{
	const struct xfp_report_ablations *ablation = report->ablation;
	json_t *list;

	if (!ablation)
		return json_null();
	list = json_array();
	for (uint32_t i = 0; i < ablation->count; i++) {
		const struct xfp_report_ablation *one = &ablation->list[i];

		xfp_json_add(&list,
			     XFP_JSON({ "names", xfp_json_text(report->parts[one->part].pattern) },
				      { "role", xfp_json_text(report->parts[one->part].role) },
				      { "units", json_integer(one->units) }, { "cos_without", json_real(one->without) },
				      { "cos_with", json_real(one->with) }, { "gain_mean", json_real(one->mean_gain) },
				      { "gain_largest", json_real(one->max_gain) },
				      { "error_ratio_p50", json_real(one->ratio_50) },
				      { "error_ratio_p90", json_real(one->ratio_90) },
				      { "outlier_share", json_real(one->share) }));
	}
	return list;
}

static json_t *point_json(const struct xfp_report_walk *walk, const struct xfp_report_point *point)
{
	static const char *const verdicts[] = { [XFP_REPORT_NOT_PROBED] = NULL,
						[XFP_REPORT_PASSED] = "passed",
						[XFP_REPORT_GARBAGE] = "garbage",
						[XFP_REPORT_TOO_LARGE] = "too large" };

	return XFP_JSON(
		{ "point", xfp_json_text(point->name) }, { "options", xfp_json_text(point->options) },
		{ "bytes", xfp_json_count(point->bytes) },
		{ "gpu_bytes", walk->gpus ? xfp_json_count(point->gpu) : json_null() },
		{ "fits", walk->limit ? json_boolean(point->fits) : json_null() }, { "bits", json_real(point->bits) },
		{ "true_bits", json_real(point->unit_bits) }, { "error", json_real(point->error) },
		{ "unweighted_error", json_real(point->unweighted) },
		{ "verdict", xfp_json_text_or_null(verdicts[point->verdict]) },
		{ "kl", xfp_json_number(point->divergence) }, { "agreement", xfp_json_number(point->agreement) },
		{ "perplexity", xfp_json_number(point->perplexity) }, { "score", xfp_json_number(point->score) });
}

static json_t *number_json(uint32_t point)
{
	return point == XFP_REPORT_NO_POINT ? json_null() : json_integer(point);
}

static json_t *walk_json(const struct xfp_report_walk *walk)
{
	json_t *points;

	if (!walk)
		return json_null();
	points = json_array();
	for (uint32_t i = 0; i < walk->count; i++)
		xfp_json_add(&points, point_json(walk, &walk->points[i]));
	return XFP_JSON({ "limit", xfp_json_count_or_null(walk->limit) },
			{ "gpus", xfp_json_count_or_null(walk->gpus) }, { "points", points },
			{ "garbage", number_json(walk->garbage) }, { "passed", number_json(walk->passed) },
			{ "largest", number_json(walk->largest) }, { "recommended", number_json(walk->recommended) },
			{ "chosen", number_json(walk->chosen) });
}

static json_t *tails_json(const struct xfp_report_tails *tails)
{
	json_t *list;

	if (!tails)
		return json_null();
	list = json_array();
	for (uint32_t i = 0; i < tails->count; i++) {
		const struct xfp_report_tail *tail = &tails->list[i];

		xfp_json_add(&list, XFP_JSON({ "class", xfp_json_text(tail->class_name) },
					     { "roles", xfp_json_text(tail->roles) },
					     { "tensors", xfp_json_count(tail->tensors) },
					     { "weights", xfp_json_count(tail->weights) },
					     { "sigma", xfp_json_number(tail->sigma) },
					     { "kurtosis", xfp_json_number(tail->kurtosis) },
					     { "beyond_3_sigma", xfp_json_number(tail->beyond_3) },
					     { "beyond_4_sigma", xfp_json_number(tail->beyond_4) },
					     { "largest_in_sigma", xfp_json_number(tail->largest) },
					     { "largest", xfp_json_number(tail->max) }));
	}
	return list;
}

static json_t *samples_json(const struct xfp_report *report)
{
	const struct xfp_report_samples *samples = report->samples;
	json_t *list;

	if (!samples)
		return json_null();
	list = json_array();
	for (uint32_t i = 0; i < samples->count; i++) {
		const struct xfp_report_sampled *one = &samples->list[i];
		json_t *of[XFP_REPORT_SAMPLES];

		for (unsigned s = 0; s < XFP_REPORT_SAMPLES; s++)
			of[s] = !one->of[s].possible ? json_null()
						     : XFP_JSON({ "same", json_integer(one->of[s].same) },
								{ "too_few", json_integer(one->of[s].few) },
								{ "too_many", json_integer(one->of[s].many) });
		xfp_json_add(&list,
			     XFP_JSON({ "names", xfp_json_text(report->parts[one->part].pattern) },
				      { "role", xfp_json_text(report->parts[one->part].role) },
				      { "experts", json_integer(one->experts) }, { "stacks", json_integer(one->units) },
				      { "true_bits", json_real(xfp_bits_per_weight(one->bytes, one->weights)) },
				      { "by_4", of[0] }, { "by_16", of[1] }));
	}
	return list;
}

static json_t *times_json(const struct xfp_report_times *times)
{
	json_t *list;

	if (!times)
		return json_null();
	list = json_array();
	for (uint32_t i = 0; i < times->count; i++) {
		const struct xfp_report_stage *stage = &times->stages[i];

		xfp_json_add(&list,
			     XFP_JSON({ "stage", xfp_json_text(stage->name) }, { "made", json_integer(stage->made) },
				      { "cached", json_integer(stage->hits) }, { "seconds", json_real(stage->seconds) },
				      { "longest", json_real(stage->longest) }));
	}
	return list;
}

json_t *xfp_report_json(const struct xfp_report *report)
{
	const struct xfp_report_comparison *c = report->comparison;
	char *options = report->recorded ? xfp_report_options(&report->recorded->parameters) : NULL;
	json_t *json = XFP_JSON(
		{ "family", xfp_json_text(report->info.family) }, { "version", json_integer(report->info.version) },
		{ "sha256", json_string(report->sha256) }, { "source_checked", json_boolean(report->source != NULL) },
		{ "bytes", xfp_json_count(report->info.file_bytes) },
		{ "bits_per_weight", json_real(xfp_composition_bits(&report->composition)) },
		{ "options", xfp_json_text_or_null(options ? options + (*options == ' ') : NULL) },
		{ "all", sum_json(&report->all) }, { "advice", advice_json(report) }, { "layers", layers_json(report) },
		{ "components", parts_json(report) }, { "classes", classes_json(report) },
		{ "evaluation", evaluation_json(report->evaluation) }, { "formats", c ? ways_json(c) : json_null() },
		{ "walk", walk_json(report->walk) }, { "outlier_ablation", ablation_json(report) },
		{ "tails", tails_json(report->tails) }, { "samples", samples_json(report) },
		{ "times", times_json(report->times) }, { "ledger", fates_json(report) },
		{ "units", units_json(report) });

	free(options);
	return json;
}
