/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal_settings.h - the settings that make up a goal: its size, what is reserved of a GPU, how much errors count.
 *
 * Each is set as xfp_setting_set sets any; a layer's goal is checked as a whole when the layer ends.
 */
#ifndef XFP_GOAL_SETTINGS_H
#define XFP_GOAL_SETTINGS_H

#include "stages/settings/settings.h"

enum xfp_status xfp_set_target_size(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_target_bpw(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_envelope(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_reserve(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_weight(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);

/* XFP_USAGE where a reserve is of no envelope, or leaves nothing of one. */
enum xfp_status xfp_finish_goal(struct xfp_settings *s, struct xfp_error *err);

#endif
