/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_check.h - checks that another host has the same work folder and cache as the conversion, and sees its locks.
 *
 * The conversion asks: it writes a random token into both folders. The other host answers: it compares the tokens,
 * finds the conversion's locks taken, and writes the token and its name into both folders, where the conversion reads
 * them. All files appear by a rename, and have names of pending files (base/system/file.h), so that those of a killed
 * conversion are removed by the next one.
 */
#ifndef XFP_HOST_CHECK_H
#define XFP_HOST_CHECK_H

#include "base/xfp_error.h"

#define XFP_HOST_CHECK_NAME 64

struct xfp_host_check {
	const char *work, *cache;
	char name[XFP_HOST_CHECK_NAME]; /* random */
};

/* On the conversion's host: choose a name and write the questions. Requires the lock of the work folder and of the
 * cache, the latter shared. */
enum xfp_status xfp_host_check_ask(struct xfp_host_check *check, struct xfp_error *err);

/* On the other host, with the same name. XFP_FAILED: the message names this host, what is not shared, and the remedy.
 * XFP_USAGE: this is not the name of a check. */
enum xfp_status xfp_host_check_answer(const struct xfp_host_check *check, struct xfp_error *err);

/* On the conversion's host: read the answers. XFP_FAILED: one is not seen. */
enum xfp_status xfp_host_check_conclude(const struct xfp_host_check *check, struct xfp_error *err);

/* Remove all files of the check. */
void xfp_host_check_remove(const struct xfp_host_check *check);

#endif
