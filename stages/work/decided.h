/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decided.h - one digest over all decisions of a conversion.
 *
 * xfp-bundle depends on small files, parameters and stamps in a work folder and on the checkpoint's small files. xfp
 * therefore passes the digest of what it wrote there (--expect), and xfp-bundle compares that of what it reads. It
 * covers the parameters as JSON, the identity of each small file carried along, then the keys of each unit's choice and
 * packed artifact, in the order of the units.
 */
#ifndef XFP_DECIDED_H
#define XFP_DECIDED_H

#include "cache/key.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"

struct xfp_digest *xfp_decided_begin(const struct xfp_parameters *parameters); /* NULL if memory runs out */
/* The current identities of the ledger's small files: [extra_count], owned by the caller; a missing file has an
 * identity that no file has. NULL if memory runs out. */
struct xfp_identity *xfp_decided_files(const struct xfp_ledger *ledger);
void xfp_decided_file(struct xfp_digest *decided, const char *name, const struct xfp_identity *identity);
/* Add the next unit; `choice` is "" if it has none. */
void xfp_decided_unit(struct xfp_digest *decided, const char *choice, const char *packed);
/* Write the 32 hex digits of the digest, and free it. */
void xfp_decided_end(struct xfp_digest *decided, char hex[33]);

#endif
