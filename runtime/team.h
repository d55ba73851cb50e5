/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h - threads that process the items of a task, and the memory that they use. Private to runtime/.
 */
#ifndef XFP_TEAM_H
#define XFP_TEAM_H

#include "runtime/xfp.h"

/* Acquire the team, and memory aligned to 64 bytes: `shared` bytes for all, `own` bytes per thread. Both belong to the
 * caller until xfp_team_leave; other calls wait. */
enum xfp_status xfp_team_enter(struct xfp_team *team, size_t shared, size_t own, struct xfp_error *err);
void xfp_team_leave(struct xfp_team *team);

void *xfp_team_shared(const struct xfp_team *team);
void *xfp_team_own(const struct xfp_team *team, unsigned thread);
unsigned xfp_team_threads(const struct xfp_team *team);

/* Call `item(context, thread, i)` once for every i < items, on any free thread. Call only between enter and leave. */
void xfp_team_run(struct xfp_team *team, size_t items, void (*item)(void *context, unsigned thread, size_t i),
		  void *context);

#endif
