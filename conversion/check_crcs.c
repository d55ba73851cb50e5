/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/check_crcs.h"

#include "base/bytes.h"
#include "base/system/clock.h"
#include "base/system/read_through.h"
#include "checkpoints/crcs.h"
#include "conversion/place.h"

#define REGION "CRC-32" /* region name in the manifest, for all members of a file */
#define STEP ((uint64_t)64 << 20)

struct crc_reading {
	struct xfp_crcs *crcs;
	const struct xfp_conversion *c;
	const char *name;
	uint64_t bytes, done, size; /* total of all files; position and size in the current file */
	struct xfp_crc_counts counts;
};

static void take(void *context, const void *data, size_t size)
{
	struct crc_reading *r = context;

	if (r->done % STEP == 0 && r->size)
		XFP_NOTIFY(r->c, .kind = XFP_NOTICE_CRC_READING, .name = r->name,
			   .share = (double)r->done / (double)r->size);
	xfp_crcs_update(r->crcs, data, size);
	r->done += size;
}

/* Manifest entry of a file: the number of compared members, and of members without a CRC-32. */
static void remember(struct xfp_conversion *c, const struct xfp_source_file *file, const struct xfp_crc_counts *counts)
{
	uint8_t bytes[16];

	xfp_store64(bytes, counts->checked);
	xfp_store64(bytes + 8, counts->absent);
	/* If the manifest cannot be written, the next run reads the file again. */
	if (!xfp_manifest_put_source(c->place.manifest, file->path, &file->identity, REGION, bytes, NULL))
		c->place.crcs_kept = true;
}

static enum xfp_status check_file(struct xfp_conversion *c, const struct xfp_source_file *file, struct crc_reading *r,
				  struct xfp_error *err)
{
	struct xfp_crc_counts counts;
	enum xfp_status status;
	uint8_t known[16];

	if (!c->request->rehash && c->place.manifest &&
	    xfp_manifest_get_source(c->place.manifest, file->path, &file->identity, REGION, known))
		return XFP_OK;
	if ((status = xfp_crcs_open(file->path, &r->crcs, err)) || !r->crcs)
		return status;
	r->name = file->name;
	r->size = file->identity.size;
	r->done = 0;
	/* A changed file is not damaged. */
	if (!(status = xfp_read_through(file->path, 0, XFP_TO_THE_END, c->signals, take, r, err)) &&
	    !(status = xfp_ledger_check_files(c->units.ledger, err)) &&
	    !(status = xfp_crcs_end(r->crcs, &counts, err)) && c->place.manifest)
		remember(c, file, &counts);
	xfp_crcs_close(r->crcs);
	r->crcs = NULL;
	if (!status) {
		r->counts.checked += counts.checked;
		r->counts.absent += counts.absent;
		r->bytes += r->done;
	}
	return status;
}

enum xfp_status xfp_check_crcs(struct xfp_conversion *c, struct xfp_error *err)
{
	struct crc_reading r = { .c = c };
	enum xfp_status status = XFP_OK;
	double started = xfp_now();

	if (c->request->dry_run || !xfp_crcs_in(c->units.ledger->format))
		return XFP_OK;
	xfp_conversion_phase(c, "checking CRCs");
	for (uint32_t f = 0; !status && f < c->units.ledger->file_count; f++)
		status = check_file(c, &c->units.ledger->files[f], &r, err);
	XFP_NOTIFY(c, .kind = XFP_NOTICE_CRC_CHECKED, .count = r.counts.checked, .absent = r.counts.absent,
		   .bytes = r.bytes, .seconds = xfp_now() - started);
	return status;
}
