/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envelope.h - the header of an artifact. It is checked before libhdf5, which can crash on a damaged file, reads the
 * rest (layout in artifact.h). Private to schemas/.
 */
#ifndef XFP_ENVELOPE_H
#define XFP_ENVELOPE_H

#include "schemas/artifact.h"

#define XFP_ENVELOPE_BYTES 512u

/* Fill in the envelope of a finished file. */
enum xfp_status xfp_envelope_seal(const char *path, struct xfp_error *err);
/* Check a->path, which need not be open: size and header, and with `digest` every byte. Damage is reported according to
 * a->remedy. XFP_FAILED: the file cannot be opened or read, for the system's reason; it may be sound. */
enum xfp_status xfp_envelope_check(const struct xfp_artifact *a, bool digest, struct xfp_error *err);

#endif
