/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "commands/ui/commands.h"

int xfp_command_program(int argc, char **argv, const char *program, int (*command)(int argc, char **argv))
{
	bool by_xfp = argc > 0 && !strncmp(argv[0], "xfp ", 4);

	xfp_standard_files();
	/* Exceeding the file size limit is an error like a full disk, not a reason to die. */
	signal(SIGXFSZ, SIG_IGN);
	if (!by_xfp)
		argv[0] = (char *)(uintptr_t)program;
	return xfp_output_finish(by_xfp ? "xfp" : program, command(argc, argv));
}
