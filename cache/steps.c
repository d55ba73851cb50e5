/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cache/store.h"

#define PAUSE_US 5000
#define TESTS 3
#define SHARE_TRIES 20

/* Open the lock. Only a folder that a conversion has locked gets one: the locks of work folders and of caches have the
 * same name. */
static int open_steps(const char *folder)
{
	char *path = xfp_path(folder, XFP_STEPS_FILE), *lock = xfp_path(folder, XFP_STORE_LOCK);
	int fd = -1;

	if (path && lock && !access(lock, F_OK) && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	free(lock);
	return fd;
}

int xfp_steps_share(const char *folder)
{
	int fd = open_steps(folder), failed = 0;

	/* Others hold the lock exclusively for a moment only: xfp_steps_are_running. NFS repeats a request that waits
	 * after a second, so first do not wait. */
	for (int tries = 0; fd >= 0; tries++) {
		failed = flock(fd, tries < SHARE_TRIES ? LOCK_SH | LOCK_NB : LOCK_SH);
		if (!failed || (errno != EINTR && errno != EWOULDBLOCK))
			break;
		usleep(PAUSE_US);
	}
	if (failed) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Whether others hold the lock, not only for the moment of such a test. */
static bool is_held(int fd)
{
	bool held = true;

	for (int test = 0; held && test < TESTS; test++) {
		if (test)
			usleep(PAUSE_US * test);
		held = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
	}
	return held;
}

bool xfp_steps_are_running(const char *folder)
{
	char *path = xfp_path(folder, XFP_STEPS_FILE);
	/* Over NFS an exclusive lock requires a descriptor for writing. */
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	bool running;

	if (path && fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	running = fd >= 0 && is_held(fd);
	if (fd >= 0) {
		/* A child that was just forked may still have the descriptor, so closing it does not unlock. */
		flock(fd, LOCK_UN);
		close(fd);
	}
	free(path);
	return running;
}
