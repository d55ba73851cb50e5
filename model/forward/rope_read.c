/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoPE parameters from config.json.
 */
#include "model/forward/rope_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/forward/numbers.h"

static double *factors_of(struct xfp_fields *f, json_t *object, const char *key, size_t count)
{
	json_t *list = xfp_field(object, key);
	double *factors;

	if (json_array_size(list) != count) {
		xfp_field_wrong(f, key, "does not have a number for each rotated pair of a head");
		return NULL;
	}
	if (!(factors = calloc(count, sizeof *factors))) {
		f->status = xfp_no_memory_for(f->err, f->where);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		factors[i] = json_number_value(json_array_get(list, i));
		if (!(factors[i] > 0 && factors[i] < 1e30))
			xfp_field_wrong(f, key, "has a number that cannot be a factor");
	}
	return factors;
}

/* 0.1 m log(factor) + 1: yarn's attention temperature for longer contexts. */
static double yarn_scale(double factor, double m)
{
	return factor <= 1 ? 1 : 0.1 * m * xfp_log(factor) + 1;
}

static void read_yarn(struct xfp_fields *f, json_t *object, struct xfp_rope *rope)
{
	double scale = xfp_field_any_number(f, object, "mscale");
	double all = xfp_field_any_number(f, object, "mscale_all_dim");
	json_t *truncate = xfp_field(object, "truncate");

	rope->beta_fast = xfp_field_number(f, object, "beta_fast", 32);
	rope->beta_slow = xfp_field_number(f, object, "beta_slow", 1);
	rope->truncate = !json_is_false(truncate);
	if (scale != 0 && all != 0)
		rope->attention = yarn_scale(rope->factor, scale) / yarn_scale(rope->factor, all);
	else
		rope->attention = yarn_scale(rope->factor, 1);
}

static void read_longrope(struct xfp_fields *f, json_t *object, struct xfp_rope *rope)
{
	rope->longer = factors_of(f, object, "long_factor", rope->dim / 2);
	rope->shorter = factors_of(f, object, "short_factor", rope->dim / 2);
	if (rope->factor > 1)
		rope->attention = sqrt(1 + xfp_log(rope->factor) / xfp_log(rope->original_context));
}

static const char *type_of(json_t *object)
{
	const char *type = json_string_value(xfp_field(object, "rope_type"));

	return type ? type : json_string_value(xfp_field(object, "type"));
}

static enum xfp_rope_scaling scaling_of(struct xfp_fields *f, const struct xfp_model_family *family, json_t *object)
{
	static const struct {
		const char *name;
		enum xfp_rope_scaling scaling;
	} types[] = {
		{ "default", XFP_ROPE_DEFAULT },
		{ "longrope", XFP_ROPE_LONGROPE },
		{ "linear", XFP_ROPE_LINEAR },
		{ "llama3", XFP_ROPE_LLAMA3 },
		{ "yarn", XFP_ROPE_YARN },
		{ "dynamic", XFP_ROPE_DEFAULT }, /* scales only positions beyond the context */
	};
	size_t known = family->only_longrope ? 2 : sizeof types / sizeof *types;
	const char *type = type_of(object);

	if (!type)
		return XFP_ROPE_DEFAULT;
	if (family->only_longrope && (!strcmp(type, "su") || !strcmp(type, "yarn")))
		return XFP_ROPE_LONGROPE;
	for (size_t i = 0; i < known; i++) {
		if (!strcmp(type, types[i].name))
			return types[i].scaling;
	}
	xfp_field_wrong(
		f, "rope_type",
		family->only_longrope
			? "is neither default nor longrope, the types that this family has"
			: "is none of default, dynamic, linear, llama3, yarn and longrope, which can be computed here");
	return XFP_ROPE_DEFAULT;
}

/* Rotated elements of a head, which come first, by the partial rotary factor. In families without one, transformers
 * ignores partial_rotary_factor unless positions are scaled, and fails then. */
static uint32_t dim_of(struct xfp_fields *f, const struct xfp_model_family *family, json_t *object, uint32_t head_dim,
		       bool scaled)
{
	const char *key = "partial_rotary_factor";
	json_t *holder = xfp_field(object, key) ? object : f->root;
	double part = 1;
	uint32_t dim;

	if (holder == f->root && json_is_null(json_object_get(holder, key)))
		part = 1; /* null disables the family's default, and rotary_dim */
	else if (family->rotary_dim && !xfp_field(holder, key) && xfp_field(f->root, "rotary_dim"))
		part = xfp_field_count(f, key = "rotary_dim", 0) / (double)head_dim;
	else if (family->partial_rotary > 0 || scaled)
		part = xfp_field_number(f, holder, key, family->partial_rotary > 0 ? family->partial_rotary : 1);
	if (family->partial_rotary <= 0 && part != 1)
		xfp_field_wrong(f, key, "is not 1; with scaled positions this family rotates whole heads");
	dim = part <= 1 ? (uint32_t)(head_dim * part) : 0;
	if (!dim || dim % 2) {
		xfp_field_wrong(f, part == 1 ? "head_dim" : key, "does not give an even number of rotated elements");
		return 2;
	}
	return dim;
}

/* A member of the config takes precedence over one of rope_parameters, unless these differ by kind of layer. */
static double original_context(struct xfp_fields *f, const struct xfp_model_family *family, json_t *object,
			       uint32_t context)
{
	const char *key = "original_max_position_embeddings";

	if (family->local_theta <= 0 && xfp_field(f->root, key))
		return xfp_field_number(f, f->root, key, 0);
	if (family->original_context > 0)
		return family->original_context;
	return xfp_field_number(f, object, key, context);
}

/* Sizes and order of rotated elements. */
static void read_rotated(struct xfp_fields *f, const struct xfp_model_family *family, const struct xfp_description *d,
			 json_t *object, struct xfp_rope *rope)
{
	if (!family->latent) {
		rope->dim = dim_of(f, family, object, d->head_dim, rope->scaling != XFP_ROPE_DEFAULT);
		rope->interleaved = family->interleaved;
		return;
	}
	if (xfp_field(object, "partial_rotary_factor") || xfp_field(f->root, "partial_rotary_factor"))
		xfp_field_wrong(f, "partial_rotary_factor",
				"is not supported; qk_rope_head_dim gives the rotated part");
	rope->first = d->latent.nope_dim;
	rope->dim = d->head_dim - rope->first;
	rope->interleaved = family->interleaved || xfp_field_flag(f, "rope_interleave", true);
	if (rope->dim % 2)
		xfp_field_wrong(f, "qk_rope_head_dim", "is odd");
}

/* yarn's temperature of latent attention, for each of query and key. */
static void scale_scores(struct xfp_fields *f, json_t *object, struct xfp_description *d)
{
	double m = xfp_field_any_number(f, object, "mscale_all_dim");
	const char *type = type_of(object);

	if (!type || !strcmp(type, "default") || m == 0)
		return;
	m = yarn_scale(xfp_field_number(f, object, "factor", 0), m);
	d->score_scale *= m * m;
}

static void read_rope(struct xfp_fields *f, const struct xfp_model_family *family, const struct xfp_description *d,
		      json_t *object, const char *theta_key, double theta, struct xfp_rope *rope)
{
	bool own_theta = xfp_field(object, "rope_theta");

	rope->scaling = scaling_of(f, family, object);
	read_rotated(f, family, d, object, rope);
	rope->attention = 1;
	rope->theta = xfp_field_number(f, own_theta ? object : f->root, own_theta ? "rope_theta" : theta_key, theta);
	if (rope->scaling == XFP_ROPE_DEFAULT)
		return;
	rope->original_context = original_context(f, family, object, d->context);
	rope->factor = xfp_field_number(f, object, "factor",
					rope->scaling < XFP_ROPE_YARN ? 0 : d->context / rope->original_context);
	if (rope->scaling == XFP_ROPE_LLAMA3) {
		rope->low_frequency = xfp_field_number(f, object, "low_freq_factor", 0);
		rope->high_frequency = xfp_field_number(f, object, "high_freq_factor", 0);
		if (rope->high_frequency <= rope->low_frequency)
			xfp_field_wrong(f, "high_freq_factor", "is not above low_freq_factor");
	}
	if (rope->scaling == XFP_ROPE_YARN)
		read_yarn(f, object, rope);
	if (rope->scaling == XFP_ROPE_LONGROPE)
		read_longrope(f, object, rope);
	if (rope->scaling >= XFP_ROPE_YARN && xfp_field(object, "attention_factor"))
		rope->attention = xfp_field_number(f, object, "attention_factor", 0);
}

/* NULL if the member is missing, null or empty. */
static json_t *object_of(struct xfp_fields *f, json_t *holder, const char *key)
{
	json_t *object = xfp_field(holder, key);

	if (object && !json_is_object(object))
		xfp_field_wrong(f, key, "is not an object");
	return json_object_size(object) ? object : NULL;
}

/* RoPE of layers with full attention, and of layers with a window. */
static void read_both(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d,
		      json_t *parameters, json_t *scaling)
{
	json_t *full = object_of(f, parameters, "full_attention");
	json_t *local = object_of(f, parameters, "sliding_attention");

	/* transformers merges them into an object whose rope_type is default, so that it ignores an old type. */
	if (!full && xfp_field(scaling, "type") && !xfp_field(scaling, "rope_type"))
		xfp_field_wrong(f, "rope_scaling", "has type, which this family ignores; use rope_type");
	if (full && scaling && json_object_update(full, scaling))
		f->status = xfp_no_memory_for(f->err, f->where);
	read_rope(f, family, d, full ? full : scaling, "rope_theta", family->theta, &d->rope[0]);
	read_rope(f, family, d, local, "rope_local_base_freq", family->local_theta, &d->rope[1]);
	d->ropes = 2;
}

void xfp_ropes_read(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	json_t *parameters = object_of(f, f->root, "rope_parameters"), *scaling = object_of(f, f->root, "rope_scaling");
	json_t *all = scaling ? scaling : parameters;

	if (family->needs_rope && !all)
		xfp_field_wrong(f, "rope_scaling", "is missing; use the config that belongs to the model");
	if (family->local_theta > 0) {
		read_both(f, family, d, parameters, scaling);
		return;
	}
	if (json_is_object(xfp_field(all, "full_attention")) || json_is_object(xfp_field(all, "sliding_attention")))
		xfp_field_wrong(f, scaling ? "rope_scaling" : "rope_parameters",
				"differs by kind of layer, which it does not in this family");
	read_rope(f, family, d, all, "rope_theta", family->theta, &d->rope[0]);
	d->ropes = family->no_rope ? 2 : 1; /* the second has no rotated elements */
	if (family->latent)
		scale_scores(f, all, d);
}
