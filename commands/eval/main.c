/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/commands.h"

int main(int argc, char **argv)
{
	return xfp_command_program(argc, argv, "xfp-eval", xfp_main_eval);
}
