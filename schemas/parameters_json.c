/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/parameters.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define EMBEDDINGS_UNITS "units" /* value of "embeddings", in bundles that have the member */

/* ---- writing ----------------------------------------------------------------------------------- */

static void put_integer(json_t *object, const char *name, uint32_t value, bool *failed)
{
	*failed |= json_object_set_new(object, name, json_integer(value)) != 0;
}

static void put_text(json_t *object, const char *name, const char *text, bool *failed)
{
	if (json_object_set_new(object, name, json_string(text)))
		*failed = true;
}

static void put_decimal(json_t *object, const char *name, uint32_t value, uint32_t scale, bool *failed)
{
	char text[24];

	put_text(object, name, xfp_decimal_format(value, scale, text), failed);
}

/* Write the formats that are not default, if any. */
static void put_formats(json_t *object, const struct xfp_parameters *p, bool *failed)
{
	json_t *formats = json_object();
	char text[24];

	for (unsigned i = 0; i < XFP_CLASSES; i++)
		if (p->format[i].form != XFP_FORM_AUTO)
			put_text(formats, xfp_class_name(i), xfp_format_text(p->format[i], text), failed);
	if (!formats || (json_object_size(formats) && json_object_set(object, "formats", formats)))
		*failed = true;
	json_decref(formats);
}

static void put_overrides(json_t *object, const struct xfp_parameters *p, bool *failed)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->override_count; i++) {
		char *text = xfp_override_text(&p->overrides[i]);

		if (!text || json_array_append_new(list, json_string(text)))
			*failed = true;
		free(text);
	}
	if (!list || (json_array_size(list) && json_object_set(object, "overrides", list)))
		*failed = true;
	json_decref(list);
}

static void put_assigned(json_t *object, const struct xfp_parameters *p, bool *failed)
{
	char *text;

	if (!p->assigned_count)
		return;
	if ((text = xfp_assignments_text(p->assigned, p->assigned_count)))
		put_text(object, "assigned", text, failed);
	else
		*failed = true;
	free(text);
}

char *xfp_parameters_to_json(const struct xfp_parameters *p)
{
	json_t *object = json_object(), *floors = json_object();
	bool failed = !object || !floors;
	char bits[24], sample[24], sigma[24], *text = NULL;

	if (failed)
		goto done;
	for (unsigned i = 0; i < XFP_CLASSES; i++)
		put_decimal(floors, xfp_class_name(i), p->floor[i], XFP_NANO, &failed);
	put_text(object, "mode", xfp_modes_name(p->modes), &failed);
	put_text(object, "bits", xfp_bits_format(p->bits, bits), &failed);
	failed |= json_object_set(object, "floors", floors) != 0;
	put_formats(object, p, &failed);
	put_overrides(object, p, &failed);
	put_text(object, "outlier_sigma", xfp_sigma_text(p->outlier_sigma, sigma), &failed);
	put_decimal(object, "outlier_cap", p->outlier_cap, XFP_NANO, &failed);
	put_decimal(object, "balance", p->balance, XFP_NANO, &failed);
	put_integer(object, "lloyd_iterations", p->lloyd_iterations, &failed);
	put_text(object, "start", xfp_start_name(p->start), &failed);
	put_text(object, "lm_head", xfp_lm_head_name(p->lm_head), &failed);
	if (!p->keep_embeddings)
		put_text(object, "embeddings", EMBEDDINGS_UNITS, &failed);
	put_text(object, "on_miss", xfp_on_miss_name(p->on_miss), &failed);
	put_text(object, "on_nonfinite", xfp_on_nonfinite_name(p->on_nonfinite), &failed);
	if (p->moe_sample.experts)
		put_text(object, "moe_sample", xfp_moe_sample_text(p->moe_sample, sample), &failed);
	if (p->group_size)
		put_integer(object, "group_size", p->group_size, &failed);
	if (p->library_size)
		put_integer(object, "library_size", p->library_size, &failed);
	if (p->fit != XFP_FIT_LLOYD)
		put_text(object, "fit", xfp_fit_method_name(p->fit), &failed);
	if (p->libfit != XFP_LIBFIT_REFINED)
		put_text(object, "libfit", xfp_libfit_name(p->libfit), &failed);
	if (p->moe_lloyd_iterations)
		put_integer(object, "moe_lloyd_iterations", p->moe_lloyd_iterations, &failed);
	put_assigned(object, p, &failed);
	if (!failed)
		text = json_dumps(object, JSON_INDENT(2));
done:
	json_decref(floors);
	json_decref(object);
	return text;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* A JSON object whose members are removed as they are read; those left at the end are unknown. The first error is
 * kept. */
struct parameter_reader {
	json_t *object;
	const char *where;
	enum xfp_status status;
	struct xfp_error *err;
};

static void complain(struct parameter_reader *r, const char *name, const char *what)
{
	if (!r->status)
		r->status = xfp_fail(r->err, XFP_BAD_INPUT, "%s: \"%s\" %s", r->where, name, what);
}

/* A text member, valid until the next call with its name. NULL after an error. */
static const char *get_text(struct parameter_reader *r, const char *name)
{
	json_t *value = json_object_get(r->object, name);

	if (!value)
		complain(r, name, "is missing");
	else if (!json_is_string(value))
		complain(r, name, "is not text");
	return json_string_value(value);
}

static void taken(struct parameter_reader *r, const char *name, bool good)
{
	if (!good)
		complain(r, name, "has an impossible value");
	json_object_del(r->object, name);
}

static void get_decimal(struct parameter_reader *r, const char *name, uint32_t scale, uint32_t most, uint32_t *value)
{
	const char *text = get_text(r, name);

	taken(r, name, text && xfp_decimal_parse(text, scale, value) && *value <= most);
}

#define GET_NAME(r, name, parse, value)                    \
	do {                                               \
		const char *text = get_text(r, name);      \
		taken(r, name, text &&parse(text, value)); \
	} while (0)

static void check_empty(struct parameter_reader *r)
{
	const char *left = json_object_iter_key(json_object_iter(r->object));

	if (left)
		complain(r, left, "is unknown");
}

static void get_floors(struct parameter_reader *r, uint32_t floor[XFP_CLASSES])
{
	struct parameter_reader floors = { json_object_get(r->object, "floors"), r->where, XFP_OK, r->err };

	if (!json_is_object(floors.object)) {
		complain(r, "floors", floors.object ? "is not an object" : "is missing");
		return;
	}
	if (r->status)
		return;
	for (unsigned i = 0; i < XFP_CLASSES; i++)
		get_decimal(&floors, xfp_class_name(i), XFP_NANO, XFP_NANO, &floor[i]);
	check_empty(&floors);
	r->status = floors.status;
	json_object_del(r->object, "floors");
}

/* The member is absent if all formats are default. */
static void get_formats(struct parameter_reader *r, struct xfp_format format[XFP_CLASSES])
{
	struct parameter_reader formats = { json_object_get(r->object, "formats"), r->where, XFP_OK, r->err };

	if (!formats.object || r->status)
		return;
	if (!json_is_object(formats.object)) {
		complain(r, "formats", "is not an object");
		return;
	}
	for (unsigned i = 0; i < XFP_CLASSES; i++)
		if (json_object_get(formats.object, xfp_class_name(i)))
			GET_NAME(&formats, xfp_class_name(i), xfp_format_parse, &format[i]);
	check_empty(&formats);
	r->status = formats.status;
	json_object_del(r->object, "formats");
}

static void get_overrides(struct parameter_reader *r, struct xfp_parameters *p)
{
	json_t *list = json_object_get(r->object, "overrides"), *item;
	struct xfp_override override;
	size_t i;

	if (!list || r->status)
		return;
	if (!json_is_array(list))
		complain(r, "overrides", "is not a list");
	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);

		if (!text || xfp_override_parse(text, &override, NULL)) {
			complain(r, "overrides", "has an impossible value");
		} else if (!xfp_parameters_add_override(p, &override)) {
			free(override.pattern);
			r->status = xfp_no_memory(r->err);
		}
		if (r->status)
			return;
	}
	json_object_del(r->object, "overrides");
}

static void get_integer(struct parameter_reader *r, const char *name, uint32_t *value)
{
	json_t *number = json_object_get(r->object, name);
	json_int_t integer = json_integer_value(number);

	if (!number)
		complain(r, name, "is missing");
	taken(r, name, json_is_integer(number) && integer >= 0 && integer <= UINT32_MAX);
	*value = (uint32_t)integer;
}

static void get_embeddings(struct parameter_reader *r, struct xfp_parameters *p)
{
	const char *text;

	p->keep_embeddings = !json_object_get(r->object, "embeddings");
	if (p->keep_embeddings)
		return;
	text = get_text(r, "embeddings");
	taken(r, "embeddings", text && !strcmp(text, EMBEDDINGS_UNITS));
}

static void get_library(struct parameter_reader *r, struct xfp_parameters *p)
{
	if (json_object_get(r->object, "group_size"))
		get_integer(r, "group_size", &p->group_size);
	if (json_object_get(r->object, "library_size"))
		get_integer(r, "library_size", &p->library_size);
	if (json_object_get(r->object, "fit"))
		GET_NAME(r, "fit", xfp_fit_method_parse, &p->fit);
	if (json_object_get(r->object, "libfit"))
		GET_NAME(r, "libfit", xfp_libfit_parse, &p->libfit);
	if (!r->status && !xfp_group_size_fits(p->group_size, p->modes))
		complain(r, "group_size", "has an impossible value");
	if (!r->status && !xfp_library_size_fits(p->library_size))
		complain(r, "library_size", "has an impossible value");
}

enum xfp_status xfp_parameters_from_json(const char *text, const char *where, uint32_t units,
					 struct xfp_parameters *out, struct xfp_error *err)
{
	struct parameter_reader r = { .where = where, .err = err };
	struct xfp_parameters p = { 0 };
	json_error_t problem;

	errno = 0;
	/* When memory runs out, jansson reports a syntax error. */
	if (!(r.object = json_loads(text, JSON_REJECT_DUPLICATES, &problem)))
		return errno == ENOMEM ? xfp_no_memory_for(err, where)
				       : xfp_fail(err, XFP_BAD_INPUT, "%s: not JSON (line %d: %s)", where, problem.line,
						  problem.text);
	if (!json_is_object(r.object)) {
		json_decref(r.object);
		return xfp_fail(err, XFP_BAD_INPUT, "%s: not a JSON object", where);
	}
	GET_NAME(&r, "mode", xfp_modes_parse, &p.modes);
	GET_NAME(&r, "bits", xfp_bits_parse, &p.bits);
	get_floors(&r, p.floor);
	get_formats(&r, p.format);
	get_overrides(&r, &p);
	GET_NAME(&r, "outlier_sigma", xfp_sigma_parse, &p.outlier_sigma);
	get_decimal(&r, "outlier_cap", XFP_NANO, XFP_NANO, &p.outlier_cap);
	get_decimal(&r, "balance", XFP_NANO, XFP_NANO, &p.balance);
	get_integer(&r, "lloyd_iterations", &p.lloyd_iterations);
	GET_NAME(&r, "start", xfp_start_parse, &p.start);
	GET_NAME(&r, "lm_head", xfp_lm_head_parse, &p.lm_head);
	get_embeddings(&r, &p);
	GET_NAME(&r, "on_miss", xfp_on_miss_parse, &p.on_miss);
	GET_NAME(&r, "on_nonfinite", xfp_on_nonfinite_parse, &p.on_nonfinite);
	if (json_object_get(r.object, "moe_sample"))
		GET_NAME(&r, "moe_sample", xfp_moe_sample_parse, &p.moe_sample);
	get_library(&r, &p);
	if (json_object_get(r.object, "moe_lloyd_iterations"))
		get_integer(&r, "moe_lloyd_iterations", &p.moe_lloyd_iterations);
	if (json_object_get(r.object, "assigned")) {
		const char *assigned = get_text(&r, "assigned");

		taken(&r, "assigned",
		      assigned && xfp_assignments_parse(assigned, units, &p.assigned, &p.assigned_count));
	}
	check_empty(&r);
	json_decref(r.object);
	if (!r.status)
		*out = p;
	else
		xfp_parameters_free(&p);
	return r.status;
}
