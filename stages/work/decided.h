/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decided.h - what xfp decided on, in one digest.
 *
 * xfp-bundle goes by small files, parameters and stamps in a work folder and what is carried along of the checkpoint.
 * So xfp names the digest of what it put there (--expect), and xfp-bundle that of what it found: the parameters as
 * JSON, each small file that is carried along, by its identity, then each unit's choice and packed artifact, by their
 * keys, in the order of the units.
 */
#ifndef XFP_DECIDED_H
#define XFP_DECIDED_H

#include "cache/key.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"

struct xfp_digest *xfp_decided_begin(const struct xfp_parameters *parameters); /* NULL when out of memory */
/* Who the ledger's small files are now: [extra_count] identities, which the caller frees; those that are not there
 * have one that no file has. NULL when out of memory. */
struct xfp_identity *xfp_decided_files(const struct xfp_ledger *ledger);
void xfp_decided_file(struct xfp_digest *decided, const char *name, const struct xfp_identity *identity);
/* The next unit; `choice` is "" of one that has none. */
void xfp_decided_unit(struct xfp_digest *decided, const char *choice, const char *packed);
/* Its 32 hex digits; frees it. */
void xfp_decided_end(struct xfp_digest *decided, char hex[33]);

#endif
