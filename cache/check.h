/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - whether a cache is what it should be.
 *
 * Damage is an artifact that a conversion would have to make again, or a manifest that SQLite finds fault
 * with. A manifest that is behind what the folder holds is none: it is an index, and is brought up to
 * date as things are wanted.
 */
#ifndef XFP_CHECK_H
#define XFP_CHECK_H

#include "cache/census.h"

enum xfp_finding_what {
	XFP_FINDING_DAMAGED,    /* an artifact: its envelope, and where it is read, its digest, label and key */
	XFP_FINDING_UNREADABLE, /* an artifact that this user, or this disk, cannot read */
	XFP_FINDING_MANIFEST,   /* the manifest: integrity_check, and its seals */
	XFP_FINDING_OTHER,      /* a sound artifact of another version of xfp: of no use to this one */
	XFP_FINDING_GONE,       /* a row without an artifact */
	XFP_FINDING_UNKNOWN,    /* an artifact without a row */
	XFP_FINDING_DIFFERS,    /* an artifact that its row does not describe */
	XFP_FINDING_STRAY,      /* a file that xfp did not make */
	XFP_FINDING_DEBRIS      /* a temporary file of a dead process, or a superseded manifest */
};
#define XFP_FINDINGS (XFP_FINDING_DEBRIS + 1)

struct xfp_finding {
	enum xfp_finding_what what;
	const char *key;         /* of an artifact, otherwise "" */
	const char *path;        /* of the file */
	const char *kind, *unit; /* "" where they are not known */
	const char *message;     /* what is wrong, without the path */
};

struct xfp_check_rules {
	bool read;         /* the data, too, */
	uint32_t part, of; /* of the part-th of `of` parts, by key; of 0: all, */
	double percent;    /* or of so many percent of the artifacts, drawn at random; 0: all */
};

struct xfp_check_result {
	uint64_t artifacts, bytes; /* looked at */
	uint64_t read, read_bytes; /* read whole */
	uint64_t found[XFP_FINDINGS];
};

struct xfp_check_hooks {
	enum xfp_status (*found)(const struct xfp_finding *finding, void *context, struct xfp_error *err);
	void (*progress)(uint64_t done, uint64_t total, void *context); /* bytes to read, or artifacts */
	void *context;
};

/* `known`: the census was taken with a manifest, which is to agree. Findings are not a failure: they are
 * told to hooks->found, whose status ends the check when it is not XFP_OK. */
enum xfp_status xfp_check_cache(const struct xfp_store *store, const struct xfp_census *census, bool known,
				const struct xfp_check_rules *rules, const struct xfp_check_hooks *hooks,
				struct xfp_check_result *result, struct xfp_error *err);

/* What SQLite says against the manifest, and where that is nothing, which of its seals do not fit: a line each, or
 * NULL: nothing. The caller frees. */
enum xfp_status xfp_check_manifest(struct xfp_manifest *manifest, char **complaints, struct xfp_error *err);

#endif
