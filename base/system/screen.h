/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h - how wide what people read may be.
 */
#ifndef XFP_SCREEN_H
#define XFP_SCREEN_H

#define XFP_SCREEN_LEAST 80u

/* Characters of a line on standard output: what COLUMNS says, else the terminal that it is, and never fewer than
 * XFP_SCREEN_LEAST, which is also what a pipe or a file gets. */
unsigned xfp_screen_width(void);

#endif
