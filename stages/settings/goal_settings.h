/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal_settings.h - the settings of a size goal: the size, the memory reserved per GPU, the weights of errors.
 *
 * Each is set like any other setting with xfp_setting_set; a layer's goal is checked as a whole when the layer ends.
 */
#ifndef XFP_GOAL_SETTINGS_H
#define XFP_GOAL_SETTINGS_H

#include "stages/settings/settings.h"

enum xfp_status xfp_set_target_size(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_target_bpw(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_envelope(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_reserve(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);
enum xfp_status xfp_set_weight(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err);

/* XFP_USAGE: a reserve without an envelope, or one that leaves no memory. */
enum xfp_status xfp_finish_goal(struct xfp_settings *s, struct xfp_error *err);

#endif
