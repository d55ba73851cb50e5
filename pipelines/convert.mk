# SPDX-License-Identifier: Apache-2.0
#
# convert.mk - a makefile for one model: set MODEL, OUT and whatever else differs from the defaults,
# then include this (see qwen3-moe.mk and xfp-pipelines(7)). It is `xfp convert` with these settings:
# that brings the work folder up to date, runs graph.mk in it and writes the bundle.

MAKEFLAGS += --no-builtin-rules

# Each is an option of xfp convert; it reaches it, and nothing else, as XFP_NAME in the environment.
# The like of these in the user's own environment, without XFP_, is none of our business.
XFP_SETTINGS = MODEL OUT CACHE WORK PROFILE LIKE MODE MIN_COS_STRICT MIN_COS_LAZY FLOOR FORMAT OVERRIDE BITS \
	OUTLIER_SIGMA OUTLIER_CAP BALANCE LLOYD_ITERS MOE_LLOYD_ITERS GROUP_SIZE LIBRARY_SIZE LIBFIT FIT START LM_HEAD \
	ON_MISS ON_NONFINITE MOE_SAMPLE FAMILY TARGET_SIZE TARGET_BPW ENVELOPE RESERVE WEIGHT \
	CALIBRATE CALIBRATE_TEXT CALIBRATE_IDS CALIBRATE_TOKENS LAUNCHER
$(foreach name,$(XFP_SETTINGS),$(if $(filter file command override,$(origin $(name))),\
	$(eval export XFP_$(name) = $$($(name)))))

# A mistyped setting would silently have its default. xfp refuses unknown variables on the command line, and variables
# of a makefile that are similar to a setting. XFP_OTHERS lists variables of your own: set it before this is included.
xfp_strangers = $(strip $(foreach name,\
	$(filter-out $(XFP_SETTINGS) $(XFP_OTHERS) XFP_% xfp_% MAKE% .% -%,$(.VARIABLES)),\
	$(if $(filter $(1),$(origin $(name))),$(name))))
export XFP_MAKE_GIVEN := $(call xfp_strangers,command)
export XFP_MAKE_SET := $(call xfp_strangers,file override)

# The message of an interrupted conversion depends on it: the make command to run again.
export XFP_RUN_BY = make
export XFP_RUN_PID := $(shell echo $$PPID)

# This make's own -n and -k are passed on, and its jobserver is inherited; without -j it is one job, unless a launcher
# can start several elsewhere.
xfp_letters = $(filter-out --%,$(firstword -$(MAKEFLAGS)))
xfp_flags = $(if $(findstring n,$(xfp_letters)),--dry-run) $(if $(findstring k,$(xfp_letters)),--keep-going) \
	$(if $(findstring --jobserver,$(MAKEFLAGS))$(XFP_LAUNCHER),,--jobs=1)

.PHONY: convert
convert:
	+@xfp convert $(xfp_flags)

# Verify the bundle, made if it is not up to date, against its checkpoint. The outcome is recorded with the run that
# wrote it.
.PHONY: verify
verify: convert
	@xfp verify --source "$$XFP_MODEL" --work "$${XFP_WORK:-$$XFP_OUT.work}" -- "$$XFP_OUT"
