/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - standard output, and how a program that prints to it ends.
 *
 * What is printed sits in a buffer, and a full disk shows when the buffer is written: at any later printf, whose
 * result nobody looks at, or at the end. stdio then drops the buffer, so that fclose alone would seem to
 * succeed. Each program therefore returns from main() through xfp_output_finish, which asks for both.
 */
#ifndef XFP_OUTPUT_H
#define XFP_OUTPUT_H

#include <stdbool.h>

/* Write what was printed so far, so that a message on stderr comes after it. False when not everything that was
 * printed got there; a caller that has nothing to undo need not look, since xfp_output_finish reports it. */
bool xfp_output_flush(void);

/* Write the rest and close standard output. Where anything that was ever printed did not get there, says so on
 * stderr, "PROGRAM: standard output: cannot write: REASON", and makes a success a failure. Returns the
 * exit status. */
int xfp_output_finish(const char *program, int status);

#endif
