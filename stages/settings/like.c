/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/like.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/system/path.h"
#include "schemas/layout/bundle_layout.h"
#include "stages/settings/recorded.h"

#define LARGEST_FILE ((size_t)1 << 30)

/* ---- checks before the checkpoint is opened ---------------------------------------------------- */

static enum xfp_status check_algorithms(const char *like, const struct xfp_recorded *recorded, struct xfp_error *err)
{
	if (recorded->unknown)
		return xfp_fail(err, XFP_UNMET,
				"%s: " XFP_MEMBER_JSON " differs: it was made with algorithm %s, which this xfp does "
				"not have; use a newer one",
				like, xfp_printable(recorded->unknown).text);
	for (int i = 0; i < XFP_MAKERS; i++)
		if (recorded->made[i] && recorded->made[i] != xfp_makers[i].version)
			return xfp_fail(
				err, XFP_UNMET,
				"%s: " XFP_MEMBER_JSON " differs: its config and tokenizer were made by version %u "
				"of algorithm %s, but this xfp has version %u, which may make others; use an xfp "
				"whose bundles say \"%s\": %u",
				like, recorded->made[i], xfp_makers[i].name, xfp_makers[i].version, xfp_makers[i].name,
				recorded->made[i]);
	for (int i = 0; i < XFP_ALGORITHMS; i++) {
		const struct xfp_algorithm *ours = &xfp_algorithms[i];

		if (xfp_algorithm_decides(ours, &recorded->parameters) && recorded->version[i] != ours->version)
			return xfp_fail(
				err, XFP_UNMET,
				"%s: " XFP_MEMBER_JSON " differs: it was made by version %u of algorithm %s, but "
				"this xfp has version %u, which gives other bytes; use an xfp whose bundles say "
				"\"%s\": %u",
				like, recorded->version[i], ours->name, ours->version, ours->name,
				recorded->version[i]);
	}
	return XFP_OK;
}

/* Whether a family given as a name or a file has this name. */
static bool is_family_named(const char *given, const char *name)
{
	const char *base = xfp_base_name(given), *dot = strchr(base, '.');
	size_t length = dot ? (size_t)(dot - base) : strlen(base);

	return strlen(name) == length && !strncmp(base, name, length);
}

static enum xfp_status choose_family(const char *like, const struct xfp_recorded *recorded, char **family,
				     struct xfp_error *err)
{
	if (*family && !is_family_named(*family, recorded->family))
		return xfp_fail(err, XFP_USAGE, "--family '%s': contradicts --like %s, which is of family %s", *family,
				like, recorded->family);
	if (!*family && !(*family = strdup(recorded->family)))
		return xfp_no_memory(err);
	return XFP_OK;
}

enum xfp_status xfp_like_settings(const char *like, struct xfp_parameters *parameters, char **family,
				  struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	struct xfp_recorded recorded = { .family = NULL };
	enum xfp_status status = xfp_bundle_open(like, &bundle, err);

	if (!status)
		status = xfp_recorded_read(bundle, like, &recorded, err);
	if (!status)
		status = check_algorithms(like, &recorded, err);
	if (!status)
		status = choose_family(like, &recorded, family, err);
	if (!status) {
		*parameters = recorded.parameters;
		recorded.parameters.overrides = NULL;
		recorded.parameters.override_count = 0;
		recorded.parameters.assigned = NULL;
		recorded.parameters.assigned_count = 0;
	}
	xfp_recorded_free(&recorded);
	xfp_bundle_close(bundle);
	return status;
}

/* ---- checks before weights are read ------------------------------------------------------------ */

struct check {
	const char *like;
	const struct xfp_bundle *bundle;
	const struct xfp_ledger *ledger;
	struct xfp_error *err;
};

static enum xfp_status differs(const struct check *check, const char *member, const char *kind, const char *name,
			       const char *how)
{
	return xfp_fail(check->err, XFP_UNMET, "%s: %s differs: %s %s %s", check->like, member, kind,
			xfp_printable(name).text, how);
}

/* Report tensors with other names or shapes: another model, not an edited file of the same one. */
static enum xfp_status report_other_model(const struct check *check, const char *member, const char *name,
					  const char *how)
{
	return xfp_fail(check->err, XFP_UNMET, "%s: another model: %s differs: tensor %s %s", check->like, member,
			xfp_printable(name).text, how);
}

/* The member of a kept tensor that has its own; else the index, which lists all tensors. */
static const char *tensor_member(uint32_t number, bool kept, char member[24])
{
	if (!kept)
		return XFP_MEMBER_IDX;
	xfp_part_member(number, XFP_PARTS, member);
	return member;
}

static enum xfp_status check_tensor(const struct check *check, uint32_t t)
{
	const struct xfp_ledger_tensor *ours = &check->ledger->tensors[t];
	struct xfp_tensor_info theirs;
	const char *member;
	char buf[24];

	if (!xfp_bundle_tensor(check->bundle, t, &theirs))
		return report_other_model(check, XFP_MEMBER_IDX, ours->name, "is not in the bundle");
	if (strcmp(ours->name, theirs.name)) {
		if (xfp_bundle_find_tensor(check->bundle, ours->name) == XFP_NOT_FOUND)
			return report_other_model(check, XFP_MEMBER_IDX, ours->name, "is not in the bundle");
		return report_other_model(check, XFP_MEMBER_IDX, theirs.name, "is not in the checkpoint");
	}
	member = tensor_member(t, theirs.data, buf);
	if (ours->rank != theirs.rank || memcmp(ours->shape, theirs.shape, ours->rank * sizeof *ours->shape))
		return report_other_model(check, member, ours->name, "has another shape in the checkpoint");
	if (ours->dtype != theirs.dtype)
		return differs(check, member, "tensor", ours->name, "has another dtype in the checkpoint");
	if (ours->class_ != theirs.class_)
		return differs(check, XFP_MEMBER_IDX, "tensor", ours->name,
			       "has another class: the family rules differ");
	return XFP_OK;
}

static enum xfp_status check_unit(const struct check *check, uint32_t u)
{
	const struct xfp_ledger_unit *ours = &check->ledger->units[u];
	struct xfp_unit_info theirs;

	if (!xfp_bundle_unit(check->bundle, u, &theirs) || strcmp(ours->name, theirs.name) ||
	    strcmp(ours->role, theirs.role) || ours->rows != theirs.rows || ours->cols != theirs.cols ||
	    ours->experts != theirs.experts)
		return differs(check, XFP_MEMBER_IDX, "unit", ours->name,
			       "is not in its place in the bundle: the family rules differ");
	return XFP_OK;
}

static enum xfp_status check_file(const struct check *check, uint32_t f)
{
	const char *name = check->ledger->extras[f];
	char *path = xfp_ledger_extra_path(check->ledger, f), *text = NULL, member[XFP_FILE_MEMBER_BYTES];
	struct xfp_file_info theirs;
	enum xfp_status status;
	size_t size;

	if (!path)
		return xfp_no_memory(check->err);
	xfp_file_member(f, name, member);
	if (!xfp_bundle_file(check->bundle, f, &theirs) ||
	    (strcmp(name, theirs.name) && xfp_bundle_find_file(check->bundle, name) == XFP_NOT_FOUND))
		status = differs(check, member, "file", name, "is not in the bundle");
	else if (strcmp(name, theirs.name))
		status = differs(check, member, "file", theirs.name, "is not in the checkpoint");
	else if (!(status = xfp_slurp(path, LARGEST_FILE, &text, &size, check->err)) &&
		 (size != theirs.bytes || memcmp(text, theirs.data, size)))
		status = differs(check, member, "file", name, "has different content in the checkpoint");
	free(text);
	free(path);
	return status;
}

/* Check for contents of the bundle that the checkpoint lacks. */
static enum xfp_status check_rest(const struct check *check)
{
	const struct xfp_ledger *ledger = check->ledger;
	struct xfp_unit_info unit;
	struct xfp_file_info file;
	char member[XFP_FILE_MEMBER_BYTES];

	if (xfp_bundle_file(check->bundle, ledger->extra_count, &file)) {
		xfp_file_member(ledger->extra_count, file.name, member);
		return differs(check, member, "file", file.name, "is not in the checkpoint");
	}
	if (xfp_bundle_unit(check->bundle, ledger->unit_count, &unit))
		return differs(check, XFP_MEMBER_IDX, "unit", unit.name,
			       "does not exist here: the family rules differ");
	return XFP_OK;
}

enum xfp_status xfp_like_check(const char *like, const struct xfp_ledger *ledger, struct xfp_error *err)
{
	struct check check = { .like = like, .ledger = ledger, .err = err };
	struct xfp_bundle *bundle = NULL;
	struct xfp_tensor_info tensor;
	enum xfp_status status = xfp_bundle_open(like, &bundle, err);

	if (status)
		return status;
	check.bundle = bundle;
	for (uint32_t t = 0; !status && t < ledger->tensor_count; t++)
		status = check_tensor(&check, t);
	if (!status && xfp_bundle_tensor(bundle, ledger->tensor_count, &tensor))
		status = report_other_model(&check, XFP_MEMBER_IDX, tensor.name, "is not in the checkpoint");
	for (uint32_t f = 0; !status && f < ledger->extra_count; f++)
		status = check_file(&check, f);
	for (uint32_t u = 0; !status && u < ledger->unit_count; u++)
		status = check_unit(&check, u);
	if (!status)
		status = check_rest(&check);
	xfp_bundle_close(bundle);
	return status;
}
