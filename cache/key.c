/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/key.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/text/text.h"
#include "cache/seal.h"
#include "schemas/fit.h"
#include "schemas/inputs.h"
#include "schemas/outliers.h"
#include "schemas/packed.h"
#include "schemas/receipt.h"
#include "schemas/setting.h"
#include "schemas/surveyed.h"

/* A key text lists up to this many digests of matrices; beyond, it has one digest over all of them, so that it always
 * fits an attribute of the artifact. */
#define LISTED_MATRICES 16

#define FEEDBACK "feedback"
#define OUTPUTS "outputs"

const struct xfp_algorithm xfp_algorithms[XFP_ALGORITHMS] = {
	{ XFP_OUTLIERS_KIND, XFP_ALGORITHM_OUTLIERS },
	{ XFP_FIT_KIND, XFP_ALGORITHM_FIT },
	{ XFP_CHOICE_KIND, XFP_ALGORITHM_CHOICE },
	{ XFP_PACKED_KIND, XFP_ALGORITHM_PACKED },
	{ "fp8", XFP_ALGORITHM_FP8 },
	{ "library", XFP_ALGORITHM_LIBRARY },
	{ XFP_SURVEY_KIND, XFP_ALGORITHM_SURVEY },
	{ XFP_INPUTS_KIND, XFP_ALGORITHM_INPUTS },
	{ FEEDBACK, XFP_ALGORITHM_FEEDBACK },
	{ OUTPUTS, XFP_ALGORITHM_OUTPUTS },
	{ XFP_SCALES_KIND, XFP_ALGORITHM_SCALES },
};

const struct xfp_algorithm xfp_makers[XFP_MAKERS] = {
	{ "gguf", XFP_ALGORITHM_GGUF },
	{ "pytorch", XFP_ALGORITHM_PYTORCH },
};

bool xfp_algorithm_decides(const struct xfp_algorithm *algorithm, const struct xfp_parameters *parameters)
{
	if (!strcmp(algorithm->name, XFP_SURVEY_KIND))
		return parameters->outlier_sigma == XFP_SIGMA_AUTO && !parameters->assigned_count;
	if (!strcmp(algorithm->name, XFP_SCALES_KIND))
		return *parameters->calibration.sha256 && parameters->outlier_sigma == XFP_SIGMA_AUTO &&
		       !parameters->assigned_count;
	if (!strcmp(algorithm->name, XFP_INPUTS_KIND) || !strcmp(algorithm->name, FEEDBACK) ||
	    !strcmp(algorithm->name, OUTPUTS))
		return *parameters->calibration.sha256;
	return true;
}

static void hash(const void *data, size_t size, char hex[33])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
	xfp_hex(canonical.digest, 16, hex);
}

void xfp_key_of_text(const char *text, char hex[33])
{
	hash(text, strlen(text), hex);
}

/* ---- key texts --------------------------------------------------------------------------------- */

static struct xfp_text *text_begin(struct xfp_text *text, const char *kind, unsigned algorithm, unsigned layout)
{
	if (xfp_text_begin(text))
		fprintf(text->stream, "kind %s\nalgorithm %u\nlayout %u\n", kind, algorithm, layout);
	return text;
}

static void XFP_PRINTF(2, 3) add(struct xfp_text *text, const char *format, ...)
{
	va_list args;

	if (!text->stream)
		return;
	va_start(args, format);
	vfprintf(text->stream, format, args);
	va_end(args);
}

static enum xfp_status text_end(struct xfp_text *text, struct xfp_key *key, struct xfp_error *err)
{
	if (!xfp_text_end(text))
		return xfp_fail(err, XFP_FAILED, "out of memory for a key");
	hash(text->bytes, text->size, key->hex);
	key->text = text->bytes;
	return XFP_OK;
}

static void add_source(struct xfp_text *text, const struct xfp_key_source *source)
{
	char hex[33];

	add(text, "dtype %s\nmatrices %" PRIu32 "\nrows %" PRIu64 "\ncols %" PRIu64 "\n", xfp_dtype_name(source->dtype),
	    source->matrices, source->rows, source->cols);
	if (source->matrices > LISTED_MATRICES) {
		hash(source->source, (size_t)source->matrices * 16, hex);
		add(text, "sources %s\n", hex);
		return;
	}
	for (uint32_t m = 0; m < source->matrices; m++) {
		xfp_hex(source->source[m], 16, hex);
		add(text, "source %s\n", hex);
	}
}

struct xfp_key_source xfp_key_source_of(const struct xfp_ledger_unit *unit, uint8_t (*source)[16])
{
	return (struct xfp_key_source){ unit->dtype, unit->experts, unit->rows, unit->cols,
					(const uint8_t(*)[16])source };
}

enum xfp_status xfp_key_is_of(const char *text, const struct xfp_key_source *source, bool *is, struct xfp_error *err)
{
	struct xfp_text lines;

	xfp_text_begin(&lines);
	add_source(&lines, source);
	if (!xfp_text_end(&lines))
		return xfp_no_memory(err);
	*is = strstr(text, lines.bytes);
	free(lines.bytes);
	return XFP_OK;
}

/* Add the parameters that affect codebooks of rows. */
static void add_codebooks(struct xfp_text *text, const struct xfp_parameters *p)
{
	if (p->fit == XFP_FIT_OPTIMAL)
		add(text, "fit %s\n", xfp_setting_name(XFP_SETTING_FIT, p->fit));
	else
		add(text, "start %s\niterations %" PRIu32 "\n", xfp_setting_name(XFP_SETTING_START, p->start),
		    p->lloyd_iterations);
}

static void add_modes(struct xfp_text *text, uint32_t modes)
{
	add(text, "modes");
	for (int mode = XFP_MODE_V2; mode < XFP_MODES; mode++)
		if (modes >> mode & 1)
			add(text, " %s", xfp_mode_name((enum xfp_mode)mode));
	add(text, "\n");
}

/* Add the parameters that affect libraries of units. */
static void add_libraries(struct xfp_text *text, const struct xfp_parameters *p)
{
	if (p->group_size)
		add(text, "group %" PRIu32 "\n", p->group_size);
	if (p->library_size && p->modes >> XFP_MODE_V2A & 1)
		add(text, "library %" PRIu32 "\n", p->library_size);
	if (p->libfit == XFP_LIBFIT_PUBLISHED && p->modes >> XFP_MODE_V2A & 1)
		add(text, "libfit %s\niterations %" PRIu32 "\n", xfp_setting_name(XFP_SETTING_LIBFIT, p->libfit),
		    p->lloyd_iterations);
}

enum xfp_status xfp_key_survey(const struct xfp_key_source *source, const struct xfp_parameters *p, struct xfp_key *key,
			       struct xfp_error *err)
{
	struct xfp_text text;
	char set[24];

	add_source(text_begin(&text, XFP_SURVEY_KIND, XFP_ALGORITHM_SURVEY, XFP_SURVEY_VERSION), source);
	/* With an automatic threshold, the survey tries all of them. */
	if (p->outlier_sigma != XFP_SIGMA_AUTO)
		add(&text, "sigma_milli %" PRIu32 "\n", p->outlier_sigma);
	add(&text, "cap_nano %" PRIu32 "\nbalance_nano %" PRIu32 "\n", p->outlier_cap, p->balance);
	add_modes(&text, p->modes);
	add(&text, "bits %s\n", xfp_bits_format(p->bits, set));
	add_codebooks(&text, p);
	add_libraries(&text, p);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_scales(const char *survey, const char *inputs, struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_text text;

	add(text_begin(&text, XFP_SCALES_KIND, XFP_ALGORITHM_SCALES, XFP_SCALES_VERSION),
	    "survey %s\ninputs %s\nfeedback %u\n", survey, inputs, XFP_ALGORITHM_FEEDBACK);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_outliers(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
				 struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_text text;

	add_source(text_begin(&text, XFP_OUTLIERS_KIND, XFP_ALGORITHM_OUTLIERS, XFP_OUTLIERS_VERSION), source);
	add(&text, "sigma_milli %" PRIu32 "\n", parameters->outlier_sigma);
	if (parameters->outlier_sigma) /* the cap only matters if there are outliers */
		add(&text, "cap_nano %" PRIu32 "\n", parameters->outlier_cap);
	add(&text, "balance_nano %" PRIu32 "\n", parameters->balance);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_fit(const char *outliers, const struct xfp_parameters *parameters, uint32_t bits,
			    struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_text text;
	char set[24];

	add(text_begin(&text, XFP_FIT_KIND, XFP_ALGORITHM_FIT, XFP_FIT_VERSION), "outliers %s\nbits %s\n", outliers,
	    xfp_bits_format(bits, set));
	add_codebooks(&text, parameters);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_library(const char *outliers, const char *inputs, const struct xfp_parameters *p, uint32_t bits,
				struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_text text;
	char set[24];

	add(text_begin(&text, XFP_FIT_KIND, XFP_ALGORITHM_LIBRARY, XFP_FIT_VERSION), "outliers %s\n", outliers);
	if (*inputs)
		add(&text, "inputs %s\nfeedback %u\n", inputs, XFP_ALGORITHM_FEEDBACK);
	add_modes(&text, p->modes & XFP_LIBRARY_MODES);
	add(&text, "bits %s\n", xfp_bits_format(bits, set));
	add_libraries(&text, p);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_fit_kind(enum xfp_fit_kind kind, const char *outliers, const char *inputs,
				 const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err)
{
	uint32_t bits = xfp_fit_bits(parameters, kind);

	return kind == XFP_FIT_BASE || kind == XFP_FIT_EXTENDED
		       ? xfp_key_fit(outliers, parameters, bits, key, err)
		       : xfp_key_library(outliers, inputs, parameters, bits, key, err);
}

enum xfp_status xfp_key_choice(const struct xfp_fit_set fits[XFP_FIT_KINDS], const char *survey, const char *scales,
			       const struct xfp_policy *policy, enum xfp_dtype dtype, uint32_t experts,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err)
{
	static const char *const names[XFP_FIT_KINDS] = { "fit", "library", "extended", "extended-library" };
	struct xfp_text text;
	uint8_t seal[16];
	char buf[24], hex[33], form[XFP_ASSIGNMENT_TEXT];
	bool calibrated = false;

	text_begin(&text, XFP_CHOICE_KIND, XFP_ALGORITHM_CHOICE, XFP_CHOICE_VERSION);
	for (int i = 0; i < XFP_FIT_KINDS; i++) {
		if (!fits[i].key || !*fits[i].key)
			continue;
		xfp_seal_candidates(&fits[i], seal);
		xfp_hex(seal, 16, hex);
		add(&text, "%s %s\ncandidates %s\n", names[i], fits[i].key, hex);
		calibrated |= xfp_fit_set_is_calibrated(&fits[i]);
	}
	if (calibrated)
		add(&text, "outputs %u\n", XFP_ALGORITHM_OUTPUTS);
	if (survey && *survey)
		add(&text, "survey %s\n", survey);
	if (scales && *scales)
		add(&text, "scales %s\n", scales);
	add(&text, "floor_nano %" PRIu32 "\nmode %s\nbits %s\n", policy->floor, xfp_modes_name(parameters->modes),
	    xfp_bits_format(policy->format.bits, buf));
	if (policy->assigned)
		add(&text, "assigned %s\n", xfp_assignment_text(policy->assigned, form));
	else if (policy->fixed)
		add(&text, "fixed 1\n");
	else
		add(&text, "on_miss %s\n", xfp_setting_name(XFP_SETTING_ON_MISS, parameters->on_miss));
	add(&text, "on_nonfinite %s\ndtype %s\n", xfp_setting_name(XFP_SETTING_ON_NONFINITE, parameters->on_nonfinite),
	    xfp_dtype_name(dtype));
	if (!policy->fixed && !policy->assigned && xfp_sample_experts(&parameters->moe_sample, experts))
		add(&text, "sample %s\n", xfp_moe_sample_text(parameters->moe_sample, buf));
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_packed(const struct xfp_choice *choice, const struct xfp_key_source *source,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err)
{
	const struct xfp_candidate *c = &choice->candidate;
	struct xfp_text text;

	if (c->mode == XFP_MODE_FP8)
		return xfp_key_fp8(source, parameters, key, err);
	text_begin(&text, XFP_PACKED_KIND, XFP_ALGORITHM_PACKED, XFP_PACKED_VERSION);
	add(&text, "mode %s\n", xfp_mode_name(c->mode));
	if (c->mode == XFP_MODE_KEEP)
		add_source(&text, source); /* for KEEP, the candidates tried before do not matter */
	else
		add(&text, "k %" PRIu32 "\nsigma_milli %" PRIu32 "\nfit %s\n", c->k, c->sigma_milli, choice->fit);
	if (c->group)
		add(&text, "group %u\n", c->group);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_fp8(const struct xfp_key_source *source, const struct xfp_parameters *parameters,
			    struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_text text;

	add(text_begin(&text, XFP_PACKED_KIND, XFP_ALGORITHM_FP8, XFP_PACKED_VERSION), "mode fp8\non_nonfinite %s\n",
	    xfp_setting_name(XFP_SETTING_ON_NONFINITE, parameters->on_nonfinite));
	add_source(&text, source);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_direct(enum xfp_plan plan, const struct xfp_key_source *source,
			       const struct xfp_parameters *parameters, struct xfp_key *key, struct xfp_error *err)
{
	const struct xfp_choice keep = { .candidate = { .mode = XFP_MODE_KEEP } };

	return plan == XFP_PLAN_FP8 ? xfp_key_fp8(source, parameters, key, err)
				    : xfp_key_packed(&keep, source, parameters, key, err);
}

enum xfp_status xfp_key_inputs(const struct xfp_key_layer *layer, struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_text text;
	char hex[33];

	text_begin(&text, XFP_INPUTS_KIND, XFP_ALGORITHM_INPUTS, XFP_INPUTS_VERSION);
	if (layer->previous)
		add(&text, "inputs %s\n", layer->previous);
	else
		add(&text, "tokens %s\n", layer->tokens);
	xfp_hex(layer->digest, 16, hex);
	add(&text, "description %s\nlayer %" PRIu32 "\ndigest %s\n", layer->description, layer->layer, hex);
	return text_end(&text, key, err);
}

enum xfp_status xfp_key_receipt(const struct xfp_key_source *source, enum xfp_plan plan, const char *inputs,
				const struct xfp_policy *policy, const struct xfp_parameters *parameters,
				struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_parameters own = *parameters;
	struct xfp_text text;
	char *json, hex[33], bits[24], measured[24], format[24], form[XFP_ASSIGNMENT_TEXT];

	/* Classes and overrides affect the unit only through its policy. */
	own.overrides = NULL;
	own.override_count = 0;
	own.assigned = NULL;
	own.assigned_count = 0;
	memset(own.floor, 0, sizeof own.floor);
	memset(own.format, 0, sizeof own.format);
	if (!(json = xfp_parameters_to_json(&own)))
		return xfp_no_memory(err);
	hash(json, strlen(json), hex);
	free(json);
	text_begin(&text, XFP_RECEIPT_KIND, 1, XFP_RECEIPT_VERSION);
	add(&text, "choice_layout %u\npacked_layout %u\n", XFP_CHOICE_VERSION, XFP_PACKED_VERSION);
	for (int i = 0; i < XFP_ALGORITHMS; i++)
		if (xfp_algorithm_decides(&xfp_algorithms[i], parameters))
			add(&text, "algorithm_%s %u\n", xfp_algorithms[i].name, xfp_algorithms[i].version);
	add(&text, "plan %d\nparameters %s\nformat %s\nbits %s\nmeasured %s\nfixed %d\nfloor_nano %" PRIu32 "\n", plan,
	    hex, xfp_format_text(policy->format, format), xfp_bits_format(policy->format.bits, bits),
	    xfp_bits_format(policy->measured, measured), policy->fixed, policy->floor);
	if (policy->assigned)
		add(&text, "assigned %s\n", xfp_assignment_text(policy->assigned, form));
	if (inputs)
		add(&text, "inputs %s\n", inputs);
	add_source(&text, source);
	return text_end(&text, key, err);
}

void xfp_key_free(struct xfp_key *key)
{
	free(key->text);
	*key = (struct xfp_key){ 0 };
}

/* ---- digests ----------------------------------------------------------------------------------- */
