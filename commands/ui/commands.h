/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands of `xfp`. Each parses its own arguments and returns an exit status; argv[0] is the name in
 * messages ("xfp info").
 */
#ifndef XFP_COMMANDS_H
#define XFP_COMMANDS_H

int xfp_main_cache(int argc, char **argv);
int xfp_main_compare(int argc, char **argv);
int xfp_main_convert(int argc, char **argv);
int xfp_main_eval(int argc, char **argv);
int xfp_main_generate(int argc, char **argv);
int xfp_main_info(int argc, char **argv);
int xfp_main_inspect(int argc, char **argv);
int xfp_main_plan(int argc, char **argv);
int xfp_main_prepare(int argc, char **argv);
int xfp_main_report(int argc, char **argv);
int xfp_main_status(int argc, char **argv);
int xfp_main_unpack(int argc, char **argv);
int xfp_main_verify(int argc, char **argv);
int xfp_main_walk(int argc, char **argv);

/* The main function of `xfp`, and of a command that is a program of its own, xfp-NAME. Called by `xfp`, xfp-NAME keeps
 * the name that `xfp` gave it. */
int xfp_command_program(int argc, char **argv, const char *program, int (*command)(int argc, char **argv));

#endif
