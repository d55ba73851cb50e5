/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - standard output, and how a program that prints to it ends.
 *
 * What is printed sits in a buffer, and a full disk shows when that is written: at any later printf, whose
 * result nobody looks at, or at the end. stdio drops the buffer then, so whoever only looks at fclose sees it
 * succeed. Each program therefore returns from main() through xfp_output_finish, which asks for both.
 */
#ifndef XFP_OUTPUT_H
#define XFP_OUTPUT_H

#include <stdbool.h>

/* Write what was printed so far, so that what a message on stderr says comes after it. False when not all that was
 * ever printed got there; who has nothing to undo then need not look, as xfp_output_finish tells it. */
bool xfp_output_flush(void);

/* Write the rest and close standard output. Where anything that was ever printed did not get there, says so on
 * stderr, "PROGRAM: standard output: cannot write: REASON", and makes a success a failure. Returns the
 * exit status. */
int xfp_output_finish(const char *program, int status);

#endif
