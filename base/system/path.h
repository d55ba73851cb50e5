/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_PATH_H
#define XFP_PATH_H

/* Shorten a path in place without changing its meaning: no "//", "/./" or "./" at the start, no "/" at the end, and no
 * "folder/.." if that is a folder and not a symbolic link. Links are not resolved. A path that would begin with "-"
 * keeps its "./". */
void xfp_path_clean(char *path);

/* Return the last component of a path. */
const char *xfp_base_name(const char *path);

#endif
