/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - several programs in one executable, which runs the one whose name it is called by, through a link.
 *
 * They share the code that takes longest to link.
 */
#ifndef XFP_TEST_PROGRAM_H
#define XFP_TEST_PROGRAM_H

struct program {
	const char *name;
	int (*run)(int argc, char **argv);
	struct program *next;
};
void program_add(struct program *program);

/* In place of `int main(int argc, char **argv)`; once in a file. */
#define PROGRAM(name)                                                     \
	static int run_program(int argc, char **argv);                    \
	__attribute__((constructor)) static void add_program(void)        \
	{                                                                 \
		static struct program program = { name, run_program, 0 }; \
                                                                          \
		program_add(&program);                                    \
	}                                                                 \
	static int run_program(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

#endif
