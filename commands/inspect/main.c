/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "commands/ui/commands.h"

int main(int argc, char **argv)
{
	xfp_standard_files();
	argv[0] = (char *)"xfp-inspect"; /* the name in messages */
	return xfp_output_finish("xfp-inspect", xfp_main_inspect(argc, argv));
}
