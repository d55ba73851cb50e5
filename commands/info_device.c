/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/info_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/printable.h"
#include "base/text/size.h"
#include "base/text/suggestion.h"
#include "base/text/table.h"
#include "runtime/cuda/plan.h"
#include "schemas/json_print.h"
#include "schemas/layout/classes.h"

/* ---- the device -------------------------------------------------------------------------------- */

enum xfp_status xfp_info_device(const char *name, const struct xfp_cuda_device **device, struct xfp_error *err)
{
	const char *names[64];
	char meant[XFP_DID_YOU_MEAN], list[600];
	size_t used = 0;

	if ((*device = xfp_cuda_device(name)))
		return XFP_OK;
	for (size_t i = 0; i < xfp_cuda_device_count; i++) {
		names[i] = xfp_cuda_devices[i].name;
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
	}
	return xfp_fail(err, XFP_USAGE, "--device %s: unknown device%s (known: %s)", xfp_printable(name).text,
			xfp_did_you_mean("", name, names, xfp_cuda_device_count, meant), list);
}

/* Whether kernels can run: they need only enough shared memory. */
static bool fits(const struct xfp_cuda_plan *plan, enum xfp_cuda_form form, const struct xfp_cuda_device *device)
{
	return xfp_cuda_shared_bytes(plan->method, plan->k, plan->codebooks, form) <= device->shared_bytes;
}

/* ---- text -------------------------------------------------------------------------------------- */

enum column { C_KERNEL, C_MATRICES, C_ROWS, C_COLS, C_TILES, C_PARTS, C_ONE, C_SOME, C_MANY, C_MEMORY };

static const struct xfp_table_column layout[] = {
	[C_KERNEL] = { "kernel", .left = 1 },
	[C_MATRICES] = { "matrices", .gap = 2 },
	[C_ROWS] = { "rows", .gap = 1 },
	[C_COLS] = { "cols", .gap = 1 },
	[C_TILES] = { "tiles", .gap = 2 },
	[C_PARTS] = { "parts", .gap = 1 },
	[C_ONE] = { "shared", .gap = 2 },
	[C_SOME] = { "of some", .gap = 2 },
	[C_MANY] = { "of many", .gap = 2 },
	[C_MEMORY] = { "memory", .gap = 2 },
	{ 0 },
};

/* "v2c32_k4"; "v2_k3-4" if matrices differ in k. */
static void path_of(const struct xfp_cuda_plan *plan, char text[XFP_TABLE_CELL])
{
	static const char prefix[] = "xfp_multiply_";
	unsigned min = plan->k;
	char name[XFP_CUDA_KERNEL_NAME], *form;

	for (uint32_t e = 0; e < plan->experts; e++)
		min = plan->expert[e].k < min ? plan->expert[e].k : min;
	xfp_cuda_kernel_name(plan->method, min, XFP_CUDA_LIST, name);
	if ((form = strrchr(name, '_')))
		*form = 0;
	if (min < plan->k)
		snprintf(text, XFP_TABLE_CELL, "%s-%u", name + sizeof prefix - 1, plan->k);
	else
		snprintf(text, XFP_TABLE_CELL, "%s", name + sizeof prefix - 1);
}

static void shared_cell(const struct xfp_cuda_plan *plan, enum xfp_cuda_form form, const struct xfp_cuda_device *device,
			char text[XFP_TABLE_CELL])
{
	uint32_t bytes = xfp_cuda_shared_bytes(plan->method, plan->k, plan->codebooks, form);

	if (!xfp_cuda_has_form(plan->method, plan->k, form) || !bytes)
		snprintf(text, XFP_TABLE_CELL, "-");
	else if (!fits(plan, form, device))
		snprintf(text, XFP_TABLE_CELL, "too much");
	else
		snprintf(text, XFP_TABLE_CELL, "%" PRIu32, bytes);
}

/* The kernel for a small batch that needs the most shared memory: the integer one, if it fits. */
static enum xfp_cuda_form form_of_some(const struct xfp_cuda_plan *plan, const struct xfp_cuda_device *device)
{
	unsigned vectors = 0;

	if (plan->expert[0].integers)
		vectors = xfp_cuda_integer_vectors(plan->method, plan->k, device->shared_bytes);
	return vectors == 4 ? XFP_CUDA_I4 : vectors == 2 ? XFP_CUDA_I2 : XFP_CUDA_M4;
}

static void add_row(struct xfp_table *table, const struct xfp_cuda_plan *plan, const char *role,
		    const struct xfp_cuda_device *device)
{
	char(*row)[XFP_TABLE_CELL] = xfp_table_row(table, "");

	path_of(plan, row[C_KERNEL]);
	snprintf(row[C_MATRICES], sizeof row[0], "%" PRIu32, plan->experts);
	snprintf(row[C_ROWS], sizeof row[0], "%" PRIu32, plan->rows);
	snprintf(row[C_COLS], sizeof row[0], "%" PRIu32, plan->cols);
	snprintf(row[C_TILES], sizeof row[0], "%" PRIu32, xfp_cuda_tiles(plan->rows));
	snprintf(row[C_PARTS], sizeof row[0], "%" PRIu32, xfp_cuda_parts_of_one(plan, plan->k));
	shared_cell(plan, XFP_CUDA_LIST, device, row[C_ONE]); /* one vector needs no more */
	shared_cell(plan, form_of_some(plan, device), device, row[C_SOME]);
	shared_cell(plan, XFP_CUDA_WIDE, device, row[C_MANY]);
	xfp_human((double)plan->bytes, "B", row[C_MEMORY]);
	xfp_table_text(table, "%s%s%s%s", xfp_printable(plan->name).text, *role ? " (" : "", xfp_printable(role).text,
		       *role ? ")" : "");
}

/* A kept tensor that can be multiplied. */
static bool is_kept_matrix(const struct xfp_tensor_info *tensor)
{
	return tensor->data && tensor->rank == 2 && tensor->elements && xfp_dtype_is_weight(tensor->dtype);
}

enum xfp_status xfp_info_device_print(const struct xfp_bundle *bundle, const struct xfp_cuda_device *device,
				      struct xfp_error *err)
{
	struct xfp_table table = { .column = layout, .text = "unit, or kept tensor" };
	struct xfp_tensor_info tensor;
	struct xfp_unit_info unit;
	struct xfp_cuda_plan plan;
	enum xfp_status status;
	char memory[32], shared[32];
	double all = 0;

	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
		if ((status = xfp_cuda_plan_unit(bundle, u, NULL, &plan, err)))
			return status;
		add_row(&table, &plan, unit.role, device);
		all += (double)plan.bytes;
		xfp_cuda_plan_free(&plan);
	}
	for (uint32_t t = 0; xfp_bundle_tensor(bundle, t, &tensor); t++) {
		if (!is_kept_matrix(&tensor))
			continue;
		if ((status = xfp_cuda_plan_tensor(bundle, t, NULL, &plan, err)))
			return status;
		add_row(&table, &plan, "", device);
		all += (double)plan.bytes;
		xfp_cuda_plan_free(&plan);
	}
	printf("%s: compute capability %u.%u, %u multiprocessors, %s of shared memory a block\n", device->name,
	       device->capability / 10, device->capability % 10, device->processors,
	       xfp_human(device->shared_bytes, "B", shared));
	xfp_table_print(stdout, &table);
	printf("total device memory: %s\n", xfp_human(all, "B", memory));
	return XFP_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

json_t *xfp_info_device_json(const struct xfp_bundle *bundle, const struct xfp_cuda_device *device)
{
	char capability[16];
	struct xfp_unit_info unit;
	struct xfp_cuda_plan plan;
	double all = 0;

	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++)
		if (!xfp_cuda_plan_unit(bundle, u, NULL, &plan, NULL)) {
			all += (double)plan.bytes;
			xfp_cuda_plan_free(&plan);
		}
	snprintf(capability, sizeof capability, "%u.%u", device->capability / 10, device->capability % 10);
	return XFP_JSON({ "name", json_string(device->name) }, { "compute_capability", json_string(capability) },
			{ "processors", xfp_json_count(device->processors) },
			{ "shared_bytes", xfp_json_count(device->shared_bytes) },
			{ "unit_bytes", xfp_json_count((uint64_t)all) });
}

json_t *xfp_info_device_unit_json(const struct xfp_bundle *bundle, uint32_t unit)
{
	json_t *kernels = json_array(), *shared = json_array(), *json;
	struct xfp_cuda_plan plan;
	char name[XFP_CUDA_KERNEL_NAME];

	if (xfp_cuda_plan_unit(bundle, unit, NULL, &plan, NULL)) {
		json_decref(kernels);
		json_decref(shared);
		return json_null();
	}
	for (enum xfp_cuda_form form = XFP_CUDA_M1; form < XFP_CUDA_FORMS; form++) {
		if (!xfp_cuda_has_form(plan.method, plan.k, form))
			continue;
		xfp_cuda_kernel_name(plan.method, plan.k, form, name);
		xfp_json_add(&kernels, json_string(name));
		xfp_json_add(&shared, xfp_json_count(xfp_cuda_shared_bytes(plan.method, plan.k, plan.codebooks, form)));
	}
	json = XFP_JSON({ "kernels", kernels }, { "shared_bytes", shared },
			{ "tiles", xfp_json_count(xfp_cuda_tiles(plan.rows)) },
			{ "parts", xfp_json_count(xfp_cuda_parts_of_one(&plan, plan.k)) },
			{ "bytes", xfp_json_count(plan.bytes) });
	xfp_cuda_plan_free(&plan);
	return json;
}
