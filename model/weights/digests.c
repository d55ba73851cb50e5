/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weights/digests.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "model/weights/pages.h"
#include "runtime/team.h"

#define PIECE ((uint64_t)1 << 20)
#define PREFETCHED ((uint64_t)256 << 20) /* bytes of the next unit, at most */

struct xfp_digests {
	const struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	uint32_t members;
	bool *sound;         /* [members] */
	uint32_t *next;      /* [members]: another member of the same unit, tensor or file; XFP_NOT_FOUND: none */
	uint32_t *of_unit;   /* [units]: the first member, or XFP_NOT_FOUND */
	uint32_t *of_tensor; /* [tensors] */
	uint32_t *of_file;   /* [files] */
};

static uint32_t *none(uint32_t count)
{
	uint32_t *numbers = malloc(((size_t)count + 1) * sizeof *numbers);

	for (uint32_t i = 0; numbers && i < count; i++)
		numbers[i] = XFP_NOT_FOUND;
	return numbers;
}

static void enlist(struct xfp_digests *d, uint32_t member)
{
	struct xfp_member_info info;
	uint32_t *first;

	if (!xfp_bundle_member(d->bundle, member, &info))
		return;
	first = info.unit != XFP_NOT_FOUND     ? &d->of_unit[info.unit]
		: info.tensor != XFP_NOT_FOUND ? &d->of_tensor[info.tensor]
					       : &d->of_file[info.file];
	d->next[member] = *first;
	*first = member;
}

enum xfp_status xfp_digests_open(const struct xfp_bundle *bundle, struct xfp_digests **out, struct xfp_error *err)
{
	struct xfp_digests *d = calloc(1, sizeof *d);

	*out = NULL;
	if (!d)
		return xfp_no_memory(err);
	d->bundle = bundle;
	d->members = xfp_bundle_members(bundle);
	xfp_bundle_describe(bundle, &d->info);
	d->sound = calloc((size_t)d->members + 1, sizeof *d->sound);
	d->next = none(d->members);
	d->of_unit = none(d->info.units);
	d->of_tensor = none(d->info.tensors);
	d->of_file = none(d->info.files);
	if (!d->sound || !d->next || !d->of_unit || !d->of_tensor || !d->of_file) {
		xfp_digests_close(d);
		return xfp_no_memory(err);
	}
	for (uint32_t member = 0; member < d->members; member++)
		enlist(d, member);
	*out = d;
	return XFP_OK;
}

void xfp_digests_close(struct xfp_digests *d)
{
	if (!d)
		return;
	free(d->sound);
	free(d->next);
	free(d->of_unit);
	free(d->of_tensor);
	free(d->of_file);
	free(d);
}

/* Whether the digest matches; false also if `watch` ended it. */
static bool hash(const struct xfp_member_info *info, const struct xfp_digest_reading *reading, bool *ended)
{
	struct xfp_sha256 sha;
	uint8_t digest[32];

	xfp_sha256_init(&sha);
	for (uint64_t at = 0, some; at < info->bytes; at += some) {
		const uint8_t *piece = (const uint8_t *)info->data + at;

		if (reading->watch && !reading->watch(reading->context, 0)) {
			*ended = true;
			return false;
		}
		some = info->bytes - at < PIECE ? info->bytes - at : PIECE;
		xfp_sha256_update(&sha, piece, some);
		if (reading->releases_pages)
			xfp_pages_release(piece, some);
	}
	xfp_sha256_final(&sha, digest);
	return !memcmp(digest, info->sha256, sizeof digest);
}

/* Damage gives the same digest every time; libxfp reports it. */
static enum xfp_status confirm(const struct xfp_digests *d, uint32_t member, struct xfp_error *err)
{
	enum xfp_status status = xfp_bundle_check_member(d->bundle, member, err);

	if (!status)
		status = xfp_fail(err, XFP_FAILED,
				  "%s: a member failed its SHA-256, but not when it was read again; check the disk and "
				  "memory of this machine",
				  d->info.path);
	return status;
}

static enum xfp_status check(struct xfp_digests *d, uint32_t member, const struct xfp_digest_reading *reading,
			     struct xfp_error *err)
{
	struct xfp_member_info info;
	bool ended = false;

	if (d->sound[member] || !xfp_bundle_member(d->bundle, member, &info))
		return XFP_OK;
	if ((d->sound[member] = hash(&info, reading, &ended)))
		return XFP_OK;
	return ended ? xfp_fail(err, XFP_FAILED, "%s: reading was interrupted", d->info.path) : confirm(d, member, err);
}

static enum xfp_status check_chain(struct xfp_digests *d, uint32_t first, const struct xfp_digest_reading *reading,
				   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t member = first; !status && member != XFP_NOT_FOUND; member = d->next[member])
		status = check(d, member, reading, err);
	return status;
}

static void prefetch_members(const struct xfp_digests *d, uint32_t unit)
{
	struct xfp_member_info info;
	uint64_t left = PREFETCHED;

	for (uint32_t member = d->of_unit[unit]; member != XFP_NOT_FOUND && left; member = d->next[member]) {
		if (d->sound[member] || !xfp_bundle_member(d->bundle, member, &info))
			continue;
		if (info.bytes > left)
			info.bytes = left;
		xfp_pages_prefetch(info.data, info.bytes);
		left -= info.bytes;
	}
}

enum xfp_status xfp_digests_check_unit(struct xfp_digests *d, uint32_t unit, const struct xfp_digest_reading *reading,
				       struct xfp_error *err)
{
	uint32_t first = d->of_unit[unit];
	bool is_new = first != XFP_NOT_FOUND && !d->sound[first];
	enum xfp_status status = check_chain(d, first, reading, err);

	if (!status && is_new && reading->releases_pages && unit + 1 < d->info.units)
		prefetch_members(d, unit + 1);
	return status;
}

enum xfp_status xfp_digests_check_tensor(struct xfp_digests *d, uint32_t tensor,
					 const struct xfp_digest_reading *reading, struct xfp_error *err)
{
	return check_chain(d, d->of_tensor[tensor], reading, err);
}

enum xfp_status xfp_digests_check_file(struct xfp_digests *d, uint32_t file, struct xfp_error *err)
{
	const struct xfp_digest_reading plain = { 0 };

	return check_chain(d, d->of_file[file], &plain, err);
}

/* ---- all members at once ----------------------------------------------------------------------- */

struct check_all {
	struct xfp_digests *digests;
	const struct xfp_digest_reading *reading;
	bool *wrong; /* [members] */
	atomic_bool ended;
};

/* Only the calling thread asks `watch`; the others see its answer. */
static bool not_ended(void *context, uint64_t numbers)
{
	struct check_all *all = context;

	(void)numbers;
	return !atomic_load(&all->ended);
}

static bool ask(void *context, uint64_t numbers)
{
	struct check_all *all = context;
	const struct xfp_digest_reading *reading = all->reading;

	if (not_ended(all, numbers) && reading->watch && !reading->watch(reading->context, numbers))
		atomic_store(&all->ended, true);
	return not_ended(all, numbers);
}

static void check_one(void *context, unsigned thread, size_t member)
{
	struct check_all *all = context;
	struct xfp_digests *d = all->digests;
	struct xfp_digest_reading reading = { all->reading->releases_pages, thread ? not_ended : ask, all };
	struct xfp_member_info info;
	bool ended = false;

	if (d->sound[member] || !xfp_bundle_member(d->bundle, (uint32_t)member, &info))
		return;
	d->sound[member] = hash(&info, &reading, &ended);
	all->wrong[member] = !d->sound[member] && !ended;
}

enum xfp_status xfp_digests_check_all(struct xfp_digests *d, struct xfp_team *team,
				      const struct xfp_digest_reading *reading, struct xfp_error *err)
{
	struct check_all all = { .digests = d, .reading = reading };
	enum xfp_status status = XFP_OK;

	if (!(all.wrong = calloc((size_t)d->members + 1, sizeof *all.wrong)))
		return xfp_no_memory_for(err, d->info.path);
	if (!(status = xfp_team_enter(team, 0, 1, err))) {
		xfp_team_run(team, d->members, check_one, &all);
		xfp_team_leave(team);
	}
	/* The first in the order of the file, whichever thread found it. */
	for (uint32_t member = 0; !status && member < d->members; member++) {
		if (all.wrong[member])
			status = confirm(d, member, err);
	}
	if (!status && atomic_load(&all.ended))
		status = xfp_fail(err, XFP_FAILED, "%s: reading was interrupted", d->info.path);
	free(all.wrong);
	return status;
}
