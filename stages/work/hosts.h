/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.h - the hosts whose stages work in one work folder.
 *
 * Appending to a file is not atomic over NFS, so each host has its own files of events and progress: the host of the
 * run WORK/events and WORK/pulses, any other host those in WORK/hosts/TAG/ (base/system/host.h). The run passes its tag
 * to its stages as XFP_RUN_HOST; without it, a process is taken to run on the run's host.
 */
#ifndef XFP_HOSTS_H
#define XFP_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/system/host.h"
#include "base/xfp_error.h"

#define XFP_HOSTS_FOLDER "hosts"
#define XFP_RUN_HOST "XFP_RUN_HOST"
#define XFP_RUN_VERSION "XFP_RUN_VERSION"

/* Whether this process runs on another host than the conversion that started it. */
bool xfp_is_remote(void);

/* The folder of this host's events and progress, in a new string, or NULL. xfp_host_folder_make creates it: the work
 * folder must exist. */
char *xfp_host_folder(const char *work);
bool xfp_host_folder_make(const char *work);

/* The folders of all hosts, each in a new string: `work` itself, then the others ordered by name. */
struct xfp_host_folders {
	char **path;
	size_t count;
};
enum xfp_status xfp_host_folders_list(const char *work, struct xfp_host_folders *folders, struct xfp_error *err);
void xfp_host_folders_free(struct xfp_host_folders *folders);

/* Remove the folders of other hosts. A file in use may stay, but not under WORK/hosts. XFP_FAILED: that cannot be
 * moved. */
enum xfp_status xfp_host_folders_remove(const char *work, struct xfp_error *err);

/* Ask the server of a shared file system for the current state of all folders in which other hosts create and remove
 * files. Otherwise NFS clients remember for up to a minute which files exist and which do not. */
void xfp_shared_folders_refresh(const char *work, const char *cache);

/* Share the locks of stages in the work folder and in the cache (cache/steps.h), until they are released. */
struct xfp_stage_locks {
	int work, cache; /* -1: not locked */
};
struct xfp_stage_locks xfp_stage_locks_share(const char *work, const char *cache);
void xfp_stage_locks_release(const struct xfp_stage_locks *locks);

/* Refuse to run if the conversion was started by another version of xfp (XFP_RUN_VERSION): its keys and files may
 * differ. XFP_FAILED: the message names both versions. */
enum xfp_status xfp_run_version_check(struct xfp_error *err);

#endif
