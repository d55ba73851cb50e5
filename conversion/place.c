/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/temporary.h"
#include "base/text/screen.h"
#include "base/text/utc.h"
#include "cache/drop.h"
#include "cache/lock.h"
#include "cache/steps.h"
#include "checkpoints/checkpoint.h"
#include "conversion/drop_cache.h"
#include "conversion/launch/launch.h"
#include "conversion/state/layers.h"
#include "schemas/layout/bundle_layout.h"
#include "stages/work/crash.h"
#include "stages/work/stages.h"

/* Stages of a killed run take a moment to notice it; those on other hosts, until they look for their step file. */
#define LOCK_PATIENCE_S 5
#define STAGES_PATIENCE_S 15
#define LOCK_SILENCE_S .5

/* ---- folders ---------------------------------------------------------------------------------- */

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static enum xfp_status check_output(const char *out, struct xfp_error *err)
{
	char *folder = folder_of(out);
	enum xfp_status status = XFP_OK;
	struct stat st;

	if (!folder)
		return xfp_no_memory(err);
	if (stat(folder, &st) && (errno == ENOENT || errno == ENOTDIR))
		status = xfp_fail(err, XFP_FAILED, "%s: the output folder does not exist; create it with mkdir -p",
				  folder);
	else if (stat(folder, &st))
		status = xfp_fail_errno(err, errno, "%s: the output folder cannot be examined", folder);
	else if (!S_ISDIR(st.st_mode))
		status = xfp_fail(err, XFP_FAILED, "%s: not a folder, so the output cannot be written there", folder);
	else if (access(folder, W_OK | X_OK))
		status = xfp_fail_errno(err, errno, "%s: the output folder cannot be written", folder);
	else if (!stat(out, &st) && S_ISDIR(st.st_mode))
		status = xfp_fail(err, XFP_FAILED, "%s: is a folder; name the bundle, as in %s/model.xfp", out, out);
	else if (!stat(out, &st) && !S_ISREG(st.st_mode))
		status = xfp_fail(err, XFP_FAILED, "%s: exists and is not a file; choose another output", out);
	free(folder);
	return status;
}

/* Name of the first tar member of a bundle, including its NUL. */
static bool begins_like_a_bundle(const char *path)
{
	char start[sizeof XFP_MEMBER_JSON] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool like = fd >= 0 && read(fd, start, sizeof start) == (ssize_t)sizeof start &&
		    !memcmp(start, XFP_MEMBER_JSON, sizeof start);

	if (fd >= 0)
		close(fd);
	return like;
}

/* The output path may contain an older bundle or an empty file; refuse to replace anything else. */
static enum xfp_status check_replaced(const struct xfp_request *o, struct xfp_error *err)
{
	char *folder = NULL;
	enum xfp_status status = XFP_OK;
	struct stat out, model, parent;
	bool ours;

	if (stat(o->out, &out) || !S_ISREG(out.st_mode) || begins_like_a_bundle(o->out))
		return XFP_OK;
	if (!(folder = folder_of(o->out)))
		return xfp_no_memory(err);
	ours = !stat(o->model, &model) && !stat(folder, &parent) &&
	       ((model.st_dev == out.st_dev && model.st_ino == out.st_ino) ||
		(model.st_dev == parent.st_dev && model.st_ino == parent.st_ino));
	if (ours)
		status = xfp_fail(err, XFP_USAGE, "--output %s: is a file of the checkpoint; choose another output",
				  o->out);
	else if (out.st_size)
		status = xfp_fail(err, XFP_USAGE,
				  "--output %s: exists and is not an .xfp bundle; remove it or choose another output",
				  o->out);
	free(folder);
	return status;
}

static enum xfp_status check_cache(const char *cache, struct xfp_error *err)
{
	struct stat st;

	if (!stat(cache, &st) && !S_ISDIR(st.st_mode))
		return xfp_fail(err, XFP_FAILED, "--cache %s: is not a folder; choose another one", cache);
	return XFP_OK;
}

/* Take the lock, without waiting: 0 or an errno value, EWOULDBLOCK if another conversion has it or a stage of one still
 * runs. make and the stages inherit the lock: the folder is in use until all of them exit. Stages of a launcher share a
 * lock of their own (cache/steps.h). If their conversion is gone, cancel them and set *orphans. */
static int try_lock(const struct xfp_conversion *c, bool *orphans)
{
	*orphans = false;
	if (flock(c->place.lock, LOCK_EX | LOCK_NB))
		return errno == EINTR ? EWOULDBLOCK : errno;
	if (!xfp_steps_are_running(c->request->work))
		return 0;
	*orphans = true;
	xfp_launch_sweep(c->request->work);
	return EWOULDBLOCK;
}

static enum xfp_status acquire_lock(struct xfp_conversion *c, struct xfp_error *err)
{
	const double start = xfp_now();
	char *path = xfp_path(c->request->work, XFP_LOCK_FILE);
	enum xfp_status status = XFP_OK;
	bool said = false, orphans;
	int failed;

	if (!path)
		return xfp_no_memory(err);
	c->place.lock = open(path, O_RDWR | O_CREAT, 0666);
	if (c->place.lock < 0)
		status = xfp_fail_errno(err, errno, "%s: the work folder cannot be written", path);
	while (!status && (failed = try_lock(c, &orphans))) {
		if (failed != EWOULDBLOCK)
			status = xfp_fail_errno(err, failed, "%s: cannot lock", path);
		else if (xfp_now() > start + (orphans ? STAGES_PATIENCE_S : LOCK_PATIENCE_S))
			status = xfp_fail(err, XFP_FAILED,
					  "%s: %s using this folder; wait for %s, or choose another output or --work "
					  "folder",
					  c->request->work,
					  orphans ? "stages of an earlier conversion are" : "another conversion is",
					  orphans ? "them" : "it");
		else if (!said && xfp_now() > start + LOCK_SILENCE_S) {
			XFP_NOTIFY(c, .kind = XFP_NOTICE_WAITING);
			said = true;
		} else if (c->signals ? xfp_signals_wait(c->signals, 50) : usleep(50000))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
	}
	/* The work folder belongs to another run; do not write to it. */
	if (status && c->place.lock >= 0) {
		close(c->place.lock);
		c->place.lock = -1;
	}
	free(path);
	return status;
}

static enum xfp_status open_log(struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->request->work, XFP_LOG_FILE), date[32];
	enum xfp_status status = XFP_OK;

	if (!path)
		return xfp_no_memory(err);
	c->place.log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (c->place.log < 0)
		status = xfp_fail_errno(err, errno, "%s: the log cannot be written", path);
	else
		dprintf(c->place.log, "==== %s xfp %s: %s -> %s\n", xfp_utc(time(NULL), date), PACKAGE_VERSION,
			c->request->model, c->request->out);
	free(path);
	return status;
}

/* Open the log and write the initial run record. */
static enum xfp_status begin_record(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_run_record *r = &c->place.record;
	enum xfp_status status = open_log(c, err);

	if (status)
		return status;
	r->pid = getpid();
	r->started = xfp_wall_ms();
	r->model = strdup(c->request->model);
	r->out = strdup(c->request->out);
	r->cache = strdup(c->request->cache);
	snprintf(r->state, sizeof r->state, "running");
	xfp_conversion_phase(c, "inspecting");
	return XFP_OK;
}

/* The length of the longest leading part of an absolute path that exists. */
static size_t existing_length(const char *path)
{
	size_t length = strlen(path);
	char *part = strdup(path);

	while (part && length && access(part, F_OK)) {
		while (length && part[length - 1] != '/')
			length--;
		while (length && part[length - 1] == '/')
			length--;
		part[length] = '\0';
	}
	free(part);
	return length;
}

enum xfp_status xfp_conversion_open(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	c->place.lock = c->place.log = c->place.cache_lock = c->place.cache_guard = -1;
	if ((!c->request->out_guessed && (status = check_replaced(c->request, err))) ||
	    (status = check_cache(c->request->cache, err)) ||
	    (!c->request->planning && (status = check_output(c->request->out, err))) || c->request->dry_run)
		return status;
	c->place.created_work = access(c->request->work, F_OK) != 0;
	c->place.found_path = existing_length(c->request->work);
	if ((status = xfp_mkdirs(c->request->work, err)) || (status = acquire_lock(c, err)))
		return status;
	xfp_conversion_sweep(c->request);
	return begin_record(c, err);
}

void xfp_conversion_phase(struct xfp_conversion *c, const char *phase)
{
	if (c->place.lock < 0)
		return;
	snprintf(c->place.record.phase, sizeof c->place.record.phase, "%s", phase);
	if (!c->place.record.working && !strcmp(phase, "converting"))
		c->place.record.working = xfp_wall_ms();
	if (!xfp_run_record_write(c->request->work, &c->place.record, NULL) && !c->place.record.ended)
		xfp_crash_watch(c->request->program, c->request->work, &c->place.record);
}

void xfp_conversion_ended(struct xfp_conversion *c, const char *state, int status, const char *message)
{
	int arrived = c->signals ? c->signals->interrupted : 0;

	if (c->place.lock < 0)
		return;
	snprintf(c->place.record.state, sizeof c->place.record.state, "%s",
		 arrived                                     ? "interrupted"
		 : status > XFP_FAILED && !c->units.prepared ? XFP_RUN_REFUSED
		 : status                                    ? "failed"
							     : state);
	c->place.record.status = arrived ? 128 + arrived : status;
	c->place.record.ended = xfp_wall_ms();
	xfp_crash_unwatch();
	if (!arrived && status && *message) {
		free(c->place.record.message);
		c->place.record.message = strdup(message);
	} else if (arrived || !status) {
		free(c->place.record.message);
		c->place.record.message = NULL;
	}
	xfp_conversion_phase(c, "");
}

void xfp_conversion_sweep(const struct xfp_request *request)
{
	char *folder = folder_of(request->out);

	xfp_sweep_pending(request->work);
	xfp_launch_sweep(request->work);
	if (folder)
		xfp_sweep_pending(folder);
	free(folder);
}

/* Remove the empty parents of a removed folder, down to the first `found` bytes of its path. */
static void remove_empty_parents(const char *folder, size_t found)
{
	char *path = strdup(folder), *slash;

	if (path && access(path, F_OK))
		while ((slash = strrchr(path, '/')) && (size_t)(slash - path) > found) {
			*slash = '\0';
			if (rmdir(path))
				break;
		}
	free(path);
}

static bool is_refused(const struct xfp_conversion *c)
{
	return c->place.refused || !strcmp(c->place.record.state, XFP_RUN_REFUSED);
}

static void remove_cache(struct xfp_conversion *c)
{
	if (c->place.crcs_kept || !xfp_lock_try_upgrade(&c->place.store, c->place.cache_lock, &c->place.cache_guard))
		return;
	if (!c->place.manifest || !xfp_manifest_has_other_runs(c->place.manifest, c->place.run)) {
		xfp_manifest_close(c->place.manifest);
		c->place.manifest = NULL;
		xfp_store_dismantle(&c->place.store);
		remove_empty_parents(c->request->cache, c->place.found_cache_path);
	}
	xfp_lock_downgrade(&c->place.store, c->place.cache_lock, c->place.cache_guard, NULL);
}

/* Remove the work folder of a refused run, or its log, record and lock if no ledger was written. The log's contents
 * were already shown. */
static void remove_work(const struct xfp_conversion *c)
{
	static const char *const names[] = { XFP_LOG_FILE, XFP_RUN_FILE, XFP_STEPS_FILE, XFP_LOCK_FILE };
	char *ledger = xfp_path(c->request->work, XFP_LEDGER_FILE);

	if (is_refused(c))
		xfp_temporary_remove(strdup(c->request->work));
	else if (ledger && access(ledger, F_OK)) {
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
			char *path = xfp_path(c->request->work, names[i]);

			if (path)
				unlink(path);
			free(path);
		}
		rmdir(c->request->work);
	}
	free(ledger);
	remove_empty_parents(c->request->work, c->place.found_path);
}

/* Remove the folders that a refused run created. A cache that another process uses, or that holds artifacts, other runs
 * or results of the CRC-32 check, stays. */
static void remove_created_folders(struct xfp_conversion *c)
{
	if (c->place.created_cache && is_refused(c))
		remove_cache(c);
	if (c->place.created_work && c->place.lock >= 0)
		remove_work(c);
}

void xfp_conversion_close(struct xfp_conversion *c)
{
	remove_created_folders(c);
	xfp_drop_units_end(c);
	for (uint32_t i = 0; c->units.state && i < c->units.ledger->unit_count; i++)
		free(c->units.state[i].source);
	free(c->units.state);
	xfp_layers_free(c);
	xfp_events_reader_free(&c->events.reader);
	xfp_ledger_free(c->units.ledger);
	xfp_manifest_close(c->place.manifest);
	if (c->place.store.folder)
		xfp_store_close(&c->place.store);
	xfp_lock_release(c->place.cache_lock);
	if (c->place.log >= 0)
		close(c->place.log);
	if (c->place.lock >= 0)
		close(c->place.lock);
	xfp_run_record_free(&c->place.record);
	xfp_conversion_unassign(c);
	xfp_temporary_remove(c->place.scratch);
}

/* Take the shared cache lock, which blocks xfp cache gc and rebuild until xfp and its stages exit. */
static enum xfp_status share_cache(struct xfp_conversion *c, struct xfp_error *err)
{
	char *what = xfp_formatted("xfp convert -o %s", c->request->out);
	enum xfp_status status =
		what ? xfp_lock_shared(&c->place.store, what, &c->place.cache_lock, err) : xfp_no_memory(err);

	free(what);
	return status;
}

static bool is_interrupted(void *signals)
{
	return xfp_signals_arrived(signals);
}

static struct xfp_wait wait_of(const struct xfp_conversion *c)
{
	return (struct xfp_wait){ c->signals ? is_interrupted : NULL, c->signals };
}

/* Open the store. Create it again if --drop-cache of another run removed it while we waited for the lock. */
static enum xfp_status open_store(struct xfp_conversion *c, struct xfp_error *err)
{
	for (;;) {
		enum xfp_status status;

		c->place.created_cache = access(c->request->cache, F_OK) != 0;
		c->place.found_cache_path = existing_length(c->request->cache);
		status = xfp_store_open(c->request->cache, &c->place.store, err);
		c->place.store.wait = wait_of(c);
		if (!status)
			status = share_cache(c, err);
		if (status || xfp_lock_is_of(&c->place.store, c->place.cache_lock))
			return status;
		xfp_lock_release(c->place.cache_lock);
		xfp_store_close(&c->place.store);
		c->place.cache_lock = -1;
	}
}

enum xfp_status xfp_conversion_open_cache(struct xfp_conversion *c, struct xfp_error *err)
{
	int64_t rebuilt;
	enum xfp_status status;

	if (c->place.manifest || (c->request->dry_run && access(c->request->cache, F_OK)))
		return XFP_OK;
	if (c->request->dry_run) {
		/* A dry run changes nothing: it does not upgrade the manifest or remove damaged artifacts. */
		c->place.store = (struct xfp_store){ .folder = strdup(c->request->cache),
						     .read_only = true,
						     .wait = wait_of(c) };
		status = c->place.store.folder ? XFP_OK : xfp_no_memory(err);
	} else {
		status = open_store(c, err);
	}
	if (status || (status = xfp_manifest_open(&c->place.store, &c->place.manifest, &rebuilt, err)))
		return status;
	if (rebuilt >= 0)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_MANIFEST_REBUILT, .count = (uint64_t)rebuilt);
	return XFP_OK;
}

/* ---- log -------------------------------------------------------------------------------------- */

off_t xfp_log_size(const struct xfp_conversion_place *place)
{
	struct stat st;

	return place->log >= 0 && !fstat(place->log, &st) ? st.st_size : 0;
}

/* The log after `offset`, allocated; NULL if it cannot be read. */
static char *read_log(const struct xfp_conversion_place *place, off_t offset)
{
	off_t size = xfp_log_size(place) - offset;
	char *text = size > 0 ? calloc(1, (size_t)size + 1) : NULL;

	if (text && pread(place->log, text, (size_t)size, offset) < 0) {
		free(text);
		text = NULL;
	}
	return text;
}

/* The message in a log line of xfp-inspect or xfp-calibrate, which report on behalf of their caller; NULL for other
 * lines. */
static const char *message_of(const char *line)
{
	const char *message = xfp_after_prefix(line, XFP_INSPECT_PROGRAM ": ");

	return message ? message : xfp_after_prefix(line, XFP_CALIBRATE_PROGRAM ": ");
}

void xfp_log_show(const struct xfp_conversion *c, off_t offset)
{
	char *text = read_log(&c->place, offset), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		const char *message = message_of(line);

		if (message && (!c->request->planning || !xfp_after_prefix(message, "note: " XFP_NOT_CARRIED)))
			XFP_NOTIFY(c, .kind = XFP_NOTICE_MESSAGE, .text = message);
		else if (!message && xfp_after_prefix(line, "xfp"))
			XFP_NOTIFY(c, .kind = XFP_NOTICE_TOOL, .text = line);
	}
	free(text);
}

void xfp_log_keep(struct xfp_conversion_place *place, off_t offset)
{
	char *text = read_log(place, offset), *rest = text, *line;
	const char *last = NULL;

	while ((line = strsep(&rest, "\n")))
		if (xfp_after_prefix(line, "xfp"))
			last = message_of(line) ? message_of(line) : line;
	if (last) {
		free(place->record.message);
		place->record.message = strdup(last);
	}
	free(text);
}
