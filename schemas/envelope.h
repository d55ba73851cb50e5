/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envelope.h - the block in front of an HDF5 file that says whether it is whole (artifact.h has its
 * layout). libhdf5 does not survive every damaged file, so it is shown none. Private to schemas/.
 */
#ifndef XFP_ENVELOPE_H
#define XFP_ENVELOPE_H

#include "schemas/artifact.h"

#define XFP_ENVELOPE_BYTES 512u

/* Fill in the envelope of a finished file. */
enum xfp_status xfp_envelope_seal(const char *path, struct xfp_error *err);
/* Check a->path, which need not be open: size and header, and with `digest` every byte. Damage is
 * reported as a->remedy says; a file that cannot be opened or read is XFP_FAILED with the system's reason,
 * which says nothing against it. */
enum xfp_status xfp_envelope_check(const struct xfp_artifact *a, bool digest, struct xfp_error *err);

#endif
