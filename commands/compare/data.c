/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - xfp compare: results as CSV and JSON.
 */
#include <math.h>

#include "commands/compare/compare.h"
#include "commands/ui/record.h"
#include "schemas/json_print.h"
#include "schemas/setting.h"

static const char *format_of(const struct xfp_compared *c)
{
	return c->peer ? c->peer->name : xfp_mode_name((enum xfp_mode)c->candidate.mode);
}

static const char *libfit_of(const struct xfp_compared *c)
{
	return xfp_setting_name(XFP_SETTING_LIBFIT, c->published ? XFP_LIBFIT_PUBLISHED : XFP_LIBFIT_REFINED);
}

static json_t *way_json(const struct xfp_compared_unit *unit, const struct xfp_compared *one)
{
	const struct xfp_candidate *c = &one->candidate;
	bool good = c->cos_median >= 0;

	return XFP_JSON({ "format", xfp_json_text(format_of(one)) }, { "k", xfp_json_count_or_null(c->k) },
			{ "group_size", xfp_json_count_or_null(c->group) },
			{ "library_size", xfp_json_count_or_null(c->library) },
			{ "libfit", c->mode == XFP_MODE_V2A ? json_string(libfit_of(one)) : json_null() },
			{ "outlier_sigma", c->sigma_milli ? json_real(c->sigma_milli / 1000.) : json_null() },
			{ "bytes", xfp_json_count(c->bytes) }, { "shared_bytes", xfp_json_count(one->shared) },
			{ "true_bits", json_real(xfp_compared_bits(unit, one)) },
			{ "outliers", xfp_json_count(c->outliers) },
			{ "cos_median", xfp_json_number(good ? c->cos_median : NAN) },
			{ "cos_p5", xfp_json_number(good ? c->cos_p5 : NAN) },
			{ "error", xfp_json_number(good ? c->error : NAN) });
}

/* ---- CSV --------------------------------------------------------------------------------------- */

static enum xfp_status print_rows(const struct xfp_record_columns *columns, const struct xfp_compared_unit *unit,
				  struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < unit->count; i++) {
		const struct xfp_compared *one = &unit->list[i];
		uint32_t threshold = one->candidate.sigma_milli;
		json_t *record = way_json(unit, one);
		char sigma[24];

		if (unit->unit)
			xfp_json_put(&record, "unit", xfp_json_text(unit->unit->name));
		xfp_json_put(&record, "weights", xfp_json_count(unit->weights));
		if (!one->peer)
			xfp_json_put(&record, "outlier_sigma",
				     json_string(threshold ? xfp_sigma_text(threshold, sigma) : "none"));
		status = xfp_csv_row(columns, record, err);
	}
	return status;
}

enum xfp_status xfp_compare_print_csv(const struct xfp_comparison *comparison, struct xfp_error *err)
{
	const struct xfp_record_columns columns = xfp_csv_header(
		"unit%q,format,k,group_size,library_size,libfit,outlier_sigma,weights,bytes,shared_bytes,true_bits%.9g,"
		"outliers,cos_median,cos_p5,error%.9g");
	enum xfp_status status = print_rows(&columns, &comparison->all, err);

	for (uint32_t u = 0; !status && comparison->request.per_unit && u < comparison->count; u++)
		status = print_rows(&columns, &comparison->units[u], err);
	return status;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *way_or_null(const struct xfp_compared_unit *unit, const struct xfp_compared *one)
{
	return one ? way_json(unit, one) : json_null();
}

static json_t *claim_json(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit,
			  const struct xfp_claim_on *claim)
{
	json_t *object = XFP_JSON({ "format", way_json(unit, claim->peer) }, { "xfp", way_or_null(unit, claim->ours) },
				  { "shared_allowed", json_boolean(claim->allowed) },
				  { "ratio", xfp_json_number(claim->ours ? claim->ratio : NAN) });
	bool measured = comparison && claim->each >= 0;

	if (comparison) {
		xfp_json_put(&object, "unit_by_unit", xfp_json_number(measured ? claim->each : NAN));
		xfp_json_put(&object, "worst", xfp_json_number(measured ? claim->worst : NAN));
		xfp_json_put(&object, "worst_unit",
			     measured ? json_string(comparison->units[claim->worst_unit].unit->name) : json_null());
	}
	return object;
}

static json_t *answers_json(const struct xfp_compared_unit *unit)
{
	struct xfp_compare_answer answers[XFP_ANSWERS];
	json_t *list = json_array();

	xfp_compare_answers(unit, answers);
	for (unsigned i = 0; i < XFP_ANSWERS; i++)
		xfp_json_add(&list, XFP_JSON({ "bits", json_real(answers[i].bits) },
					     { "xfp", way_or_null(unit, answers[i].ours) },
					     { "replaces", way_or_null(unit, answers[i].replaces) },
					     { "cheapest", way_or_null(unit, answers[i].cheapest) }));
	return list;
}

/* `comparison` NULL: one unit alone. */
static json_t *unit_json(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit)
{
	struct xfp_claim_on claims[XFP_MAX_CLAIMS];
	json_t *formats = json_array(), *won = json_array(), *object;
	uint32_t count = xfp_compare_claims(comparison, unit, claims);

	for (uint32_t i = 0; i < unit->count; i++)
		xfp_json_add(&formats, way_json(unit, &unit->list[i]));
	for (uint32_t i = 0; i < count; i++)
		xfp_json_add(&won, claim_json(comparison, unit, &claims[i]));
	object = XFP_JSON({ "weights", xfp_json_count(unit->weights) }, { "rows", xfp_json_count(unit->rows) },
			  { "rows_measured", xfp_json_count(unit->sampled) }, { "ways", formats }, { "claims", won });
	if (unit->unit) {
		const struct xfp_ledger_unit *u = unit->unit;
		json_t *named = XFP_JSON({ "name", xfp_json_text(u->name) },
					 { "class", xfp_json_text(xfp_class_name(u->class_)) },
					 { "role", xfp_json_text(u->role) }, { "experts", xfp_json_count(u->experts) },
					 { "cols", xfp_json_count(u->cols) });

		xfp_json_join(&named, object);
		object = named;
	}
	return object;
}

enum xfp_status xfp_compare_print_json(const struct xfp_comparison *c, struct xfp_error *err)
{
	json_t *units = json_array();

	for (uint32_t u = 0; c->request.per_unit && u < c->count; u++)
		xfp_json_add(&units, unit_json(NULL, &c->units[u]));
	return xfp_json_print(
		XFP_JSON({ "model", xfp_json_text(c->request.model) }, { "family", xfp_json_text(c->ledger->family) },
			 { "unit_count", xfp_json_count(c->count) }, { "left_out", xfp_json_count(c->left_out) },
			 { "answers", answers_json(&c->all) }, { "all", unit_json(c, &c->all) }, { "units", units }),
		err);
}
