/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - standard output, and how a program that prints to it exits.
 *
 * Output is buffered, and a full disk is detected when the buffer is written: at any later printf, whose result is not
 * checked, or at exit. stdio then drops the buffer, so that fclose alone would seem to succeed. Each program therefore
 * returns from main() through xfp_output_finish, which checks both.
 */
#ifndef XFP_OUTPUT_H
#define XFP_OUTPUT_H

#include <stdbool.h>

/* Flush the output printed so far, so that a message on stderr comes after it. Returns false if any output was lost; a
 * caller with nothing to undo may ignore that, since xfp_output_finish reports it. */
bool xfp_output_flush(void);

/* Write the rest and close standard output. If any output was lost, print "PROGRAM: standard output: cannot write:
 * REASON" to stderr, and turn success into failure. Returns the exit status. */
int xfp_output_finish(const char *program, int status);

#endif
