/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/program.h"

#include <stdio.h>
#include <string.h>

static struct program *programs;

void program_add(struct program *program)
{
	program->next = programs;
	programs = program;
}

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL, *name = slash ? slash + 1 : argc ? argv[0] : "";

	for (const struct program *program = programs; program; program = program->next)
		if (!strcmp(name, program->name))
			return program->run(argc, argv);
	fprintf(stderr, "%s: call this program by a link that has one of the names:", name);
	for (const struct program *program = programs; program; program = program->next)
		fprintf(stderr, " %s", program->name);
	fputc('\n', stderr);
	return 2;
}
