/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/standard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/xfp_error.h"

void xfp_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* The lowest number that is free, which is this one. */
		if (open("/dev/null", O_RDWR) != fd)
			_exit(XFP_FAILED);
	}
}
