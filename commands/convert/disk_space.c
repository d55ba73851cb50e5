/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/disk_space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/filesystem.h"
#include "base/text/size.h"
#include "schemas/layout/bundle_layout.h"

#define STAMP_BYTES 33

/* No candidate of the unit takes less. */
static uint64_t least_unit_bytes(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters)
{
	uint32_t bits = xfp_policy_of_unit(parameters, unit).format.bits; /* 0: as it is */
	uint64_t rows = unit->experts * unit->rows, least = xfp_unit_source_bytes(unit), fp8;

	fp8 = rows * (unit->cols + sizeof(float));
	if ((unit->plan == XFP_PLAN_FP8 || bits & XFP_FP8_BIT) && fp8 < least)
		least = fp8;
	for (unsigned k = 2; k <= 6; k++) {
		uint64_t bytes = rows * (xfp_index_row_bytes(unit->cols, k) + ((uint64_t)2 << k));

		if (bits & 1u << k && bytes < least)
			least = bytes;
	}
	return least;
}

/* The same, of a unit whose choice may be made. */
static uint64_t unit_bytes(const struct xfp_conversion *c, uint32_t number)
{
	const struct xfp_ledger_unit *unit = &c->ledger->units[number];
	const struct xfp_unit_state *state = c->units ? &c->units[number] : NULL;

	if (!state || !state->decided)
		return least_unit_bytes(unit, &c->options.parameters);
	return state->choice.candidate.mode == XFP_MODE_KEEP ? xfp_unit_source_bytes(unit)
							     : state->choice.candidate.bytes;
}

/* What the bundle takes, at the least. */
static uint64_t least_bytes(const struct xfp_conversion *c)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		bytes += unit_bytes(c, i);
	for (uint32_t i = 0; i < c->ledger->tensor_count; i++)
		if (c->ledger->tensors[i].fate == XFP_FATE_KEPT)
			bytes += c->ledger->tensors[i].bytes;
	return bytes;
}

/* ---- against what is free ---------------------------------------------------------------------- */

struct disk_place {
	const char *folder, *what, *option;
	uint64_t need;
	dev_t device;
};

/* All that goes to the file system of place `first`: its places are joined in one sum. */
static enum xfp_status check_device(const struct disk_place *places, size_t count, size_t first, struct xfp_error *err)
{
	char what[256] = "", options[64] = "", needed[32], free_[32];
	uint64_t need = 0, disk_space;

	for (size_t i = 0; i < count; i++) {
		if (places[i].device != places[first].device || !places[i].need)
			continue;
		if (i < first)
			return XFP_OK; /* counted there */
		need += places[i].need;
		snprintf(what + strlen(what), sizeof what - strlen(what), "%s%s (%s)", *what ? ", " : "",
			 places[i].what, xfp_human((double)places[i].need, "B", needed));
		snprintf(options + strlen(options), sizeof options - strlen(options), "%s%s", *options ? " or " : "",
			 places[i].option);
	}
	if (!xfp_free_bytes(places[first].folder, &disk_space))
		return xfp_fail_errno(err, errno, "%s: cannot tell its free space", places[first].folder);
	if (disk_space >= need)
		return XFP_OK;
	return xfp_fail(err, XFP_FAILED,
			"%s: at least %s are needed there and %s are free: for %s; make room, or choose another place "
			"with %s",
			places[first].folder, xfp_human((double)need, "B", needed),
			xfp_human((double)disk_space, "B", free_), what, options);
}

enum xfp_status xfp_check_disk_space(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *folder = strndup(c->options.out, (size_t)(strrchr(c->options.out, '/') - c->options.out));
	struct disk_place places[] = {
		{ .folder = folder && *folder ? folder : "/", .what = "the bundle", .option = "-o" },
		{ .folder = c->store.folder, .what = "packed units", .option = "--cache" },
		{ .folder = c->options.work, .what = "the work folder", .option = "--work" },
	};
	const size_t count = sizeof places / sizeof places[0];
	enum xfp_status status = folder ? XFP_OK : xfp_no_memory(err);
	struct stat st;

	places[0].need = least_bytes(c);
	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		if (c->units[i].done)
			continue;
		places[1].need += unit_bytes(c, i);
		places[2].need += c->ledger->units[i].plan == XFP_PLAN_FIT ? 4 * STAMP_BYTES : STAMP_BYTES;
	}
	for (size_t i = 0; !status && i < count; i++) {
		if (stat(places[i].folder, &st))
			status = xfp_fail_errno(err, errno, "%s", places[i].folder);
		places[i].device = st.st_dev;
	}
	for (size_t i = 0; !status && i < count; i++)
		if (places[i].need)
			status = check_device(places, count, i, err);
	free(folder);
	return status;
}
