/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - the events of a work folder: a line per start or end of a step, appended atomically by the stages.
 *
 * "UNIT\tSTAGE\tOUTCOME\tKEY\tMICROSECONDS\tSTATUS\tMESSAGE\tTIME\tSEAL\n": fields contain no tab or newline, TIME is
 * in microseconds since 1970, and SEAL (cache/seal.h) covers everything before its tab. Lines of earlier versions have
 * no TIME. Each host appends to its own file (hosts.h). Events are for display and timing only. No result depends on
 * them: the inputs of a unit are read from its stamps and the artifacts that these name.
 */
#ifndef XFP_EVENTS_H
#define XFP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

#define XFP_EVENTS_FILE "events"

struct xfp_event {
	uint32_t unit;    /* or XFP_LAYER | n; XFP_NO_UNIT for a step of the whole run (the bundle) */
	char stage[32];   /* "outlier-extract", "lloyd-fit", "autoselect", "pack" ... */
	char outcome[16]; /* "started", then "made", "hit", "damaged" or "failed" */
	char key[33];     /* key of the artifact, or "-" */
	double seconds;
	int status;         /* enum xfp_status */
	char message[1024]; /* error; SHA-256 of a bundle that was made; of verify: see verified.h; or "" */
};

enum xfp_status xfp_event_append(const char *work, const struct xfp_event *event, struct xfp_error *err);

/* A position in the files of all hosts. Zeroed: at their start. A host's lines are read up to the first NUL, which
 * stands for bytes that the host has not yet sent to a shared file system. If `final` is set, nobody appends any more:
 * NULs are read as '?', so that their lines are damaged, and later lines are not lost. */
struct xfp_events_reader {
	struct xfp_events_file *files;
	size_t count;
	bool final;         /* set by the caller */
	bool restarted;     /* the last call found that files were replaced or removed, and read all from their start */
	int64_t written_ns; /* when the last event was written, 0: none */
};

/* Read the complete lines after the reader's position, and advance it: a text owned by the caller, NULL if there are
 * none. Lines of several hosts are ordered by time; the order of each host's own lines is kept. */
enum xfp_status xfp_events_read(const char *work, struct xfp_events_reader *reader, char **text, struct xfp_error *err);
void xfp_events_reader_free(struct xfp_events_reader *reader);

/* Whether any host has written events, and remove the events of all hosts, with their progress. */
bool xfp_events_exist(const char *work);
enum xfp_status xfp_events_remove(const char *work, struct xfp_error *err);

/* Parse one line (without its newline); false if it is torn or damaged. */
bool xfp_event_parse(const char *line, struct xfp_event *event);

#endif
