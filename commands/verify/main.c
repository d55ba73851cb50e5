/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/output.h"
#include "base/system/standard_files.h"
#include "commands/ui/commands.h"

int main(int argc, char **argv)
{
	xfp_standard_files();
	argv[0] = (char *)"xfp-verify"; /* the name in messages */
	return xfp_output_finish("xfp-verify", xfp_main_verify(argc, argv));
}
