/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crcs.h - check the members of a zip archive, such as torch.save files, against the CRC-32 in the archive's directory.
 * Opening a checkpoint reads headers only, so it does not check them.
 *
 * The caller reads the file once, from its first byte to its last:
 *
 *     xfp_crcs_open(path, &crcs, err)
 *     xfp_crcs_update(crcs, block, size)     for each block
 *     xfp_crcs_end(crcs, &counts, err)
 *     xfp_crcs_close(crcs)
 */
#ifndef XFP_CRCS_H
#define XFP_CRCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_crcs;

struct xfp_crc_counts {
	uint64_t checked; /* members that match the CRC-32 of the directory */
	uint64_t absent;  /* members without one: torch.save writes 0 if it does not compute one */
};

/* Return whether checkpoints of this format (`format` of struct xfp_checkpoint, or of the ledger) are archives. */
bool xfp_crcs_in(const char *format);

/* Read the directory of the archive, and those of torch.save archives stored in it. Compressed members are skipped: no
 * tensor is read from one. *out is NULL if the file is not an archive. XFP_BAD_INPUT if a directory is damaged. */
enum xfp_status xfp_crcs_open(const char *path, struct xfp_crcs **out, struct xfp_error *err);
void xfp_crcs_update(struct xfp_crcs *crcs, const void *data, size_t size);
/* XFP_BAD_INPUT names the first member, in file order, whose bytes are wrong. */
enum xfp_status xfp_crcs_end(const struct xfp_crcs *crcs, struct xfp_crc_counts *counts, struct xfp_error *err);
void xfp_crcs_close(struct xfp_crcs *crcs); /* NULL is fine */

#endif
