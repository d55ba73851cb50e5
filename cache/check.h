/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - verify a cache.
 *
 * Damage is an artifact that a conversion would have to make again, or a manifest in which SQLite finds errors. A
 * manifest that lacks rows for artifacts is not damaged: it is an index, and is updated on demand.
 */
#ifndef XFP_CHECK_H
#define XFP_CHECK_H

#include "cache/census.h"

enum xfp_finding_kind {
	XFP_FINDING_DAMAGED,    /* an artifact: its envelope and, if it is read, its digest, label and key */
	XFP_FINDING_UNREADABLE, /* an artifact that cannot be read because of permissions or a disk error */
	XFP_FINDING_MANIFEST,   /* the manifest: integrity_check, and its seals */
	XFP_FINDING_OTHER,      /* a sound artifact of another version of xfp, which this version cannot use */
	XFP_FINDING_MISSING,    /* a row without an artifact */
	XFP_FINDING_UNKNOWN,    /* an artifact without a row */
	XFP_FINDING_DIFFERS,    /* an artifact that does not match its row */
	XFP_FINDING_STRAY,      /* a file not created by xfp */
	XFP_FINDING_DEBRIS      /* a temporary file of a dead process, or an old manifest */
};
#define XFP_FINDINGS (XFP_FINDING_DEBRIS + 1)

struct xfp_finding {
	enum xfp_finding_kind what;
	const char *key;         /* key of an artifact, otherwise "" */
	const char *path;        /* path of the file */
	const char *kind, *unit; /* "" if unknown */
	const char *message;     /* what is wrong, without the path */
};

struct xfp_check_rules {
	bool read;         /* also read and check the data */
	uint32_t part, of; /* only the part-th of `of` parts, by key; of = 0: all */
	double percent;    /* or only this percentage of the artifacts, drawn at random; 0: all */
};

struct xfp_check_result {
	uint64_t artifacts, bytes; /* examined */
	uint64_t read, read_bytes; /* read completely */
	uint64_t found[XFP_FINDINGS];
};

struct xfp_check_hooks {
	enum xfp_status (*found)(const struct xfp_finding *finding, void *context, struct xfp_error *err);
	void (*progress)(uint64_t done, uint64_t total, void *context); /* counted in bytes to read, or in artifacts */
	void *context;
};

/* Verify the cache. `known`: the census was taken with a manifest, which must match the folder. Findings are not
 * failures: they are reported to hooks->found, and a status other than XFP_OK from it ends the check. */
enum xfp_status xfp_check_cache(const struct xfp_store *store, const struct xfp_census *census, bool known,
				const struct xfp_check_rules *rules, const struct xfp_check_hooks *hooks,
				struct xfp_check_result *result, struct xfp_error *err);

/* List the errors that SQLite finds in the manifest or, if there are none, the rows whose seal does not match: one a
 * line; NULL: none. The caller frees *complaints. */
enum xfp_status xfp_check_manifest(struct xfp_manifest *manifest, char **complaints, struct xfp_error *err);

#endif
