/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "commands.h"
#include "xfp_error.h"

int main(int argc, char **argv)
{
	int status;

	argv[0] = (char *)"xfp-verify"; /* as messages begin */
	status = xfp_main_verify(argc, argv);
	/* A full disk behind stdout must not pass for success. */
	if (fclose(stdout)) {
		perror("xfp-verify: standard output");
		return status ? status : XFP_FAILED;
	}
	return status;
}
