# SPDX-License-Identifier: Apache-2.0
#
# conversion/: the logic of a conversion; commands/ parses, calls and prints.

noinst_LIBRARIES += conversion/libconversion.a
conversion_libconversion_a_SOURCES = \
	conversion/check_crcs.c \
	conversion/check_crcs.h \
	conversion/disk_space.c \
	conversion/disk_space.h \
	conversion/drop_cache.c \
	conversion/drop_cache.h \
	conversion/estimate/disk.c \
	conversion/estimate/estimate.c \
	conversion/estimate/estimate.h \
	conversion/estimate/footprint.c \
	conversion/estimate/footprint.h \
	conversion/estimate/gpu.c \
	conversion/estimate/gpu.h \
	conversion/estimate/groups.c \
	conversion/estimate/groups.h \
	conversion/finish.c \
	conversion/finish.h \
	conversion/goal/goal.c \
	conversion/goal/goal.h \
	conversion/goal/rounds.c \
	conversion/goal/rounds.h \
	conversion/goal/allocation.c \
	conversion/goal/allocation.h \
	conversion/ingest.c \
	conversion/ingest.h \
	conversion/kept.c \
	conversion/kept.h \
	conversion/like_compare.c \
	conversion/like_compare.h \
	conversion/low_floors.c \
	conversion/low_floors.h \
	conversion/make_log.c \
	conversion/make_log.h \
	conversion/place.c \
	conversion/place.h \
	conversion/plan/count.c \
	conversion/plan/curve.c \
	conversion/plan/plan.c \
	conversion/plan/plan.h \
	conversion/plan/probe.c \
	conversion/plan/probe.h \
	conversion/plan/time.c \
	conversion/prepare.c \
	conversion/prepare.h \
	conversion/progress.c \
	conversion/progress.h \
	conversion/resume.c \
	conversion/resume.h \
	conversion/run.c \
	conversion/run.h \
	conversion/run_inspect.c \
	conversion/run_inspect.h \
	conversion/run_make.c \
	conversion/run_make.h \
	conversion/run_state.c \
	conversion/run_state.h \
	conversion/state/conversion.h \
	conversion/state/notice.h \
	conversion/state/prepare_unit.c \
	conversion/state/prepare_unit.h \
	conversion/state/receipts.c \
	conversion/state/receipts.h \
	conversion/state/request.c \
	conversion/state/request.h \
	conversion/state/sources.c \
	conversion/state/sources.h \
	conversion/stray_names.c \
	conversion/stray_names.h \
	conversion/unchanged.c \
	conversion/unchanged.h \
	conversion/composition.c \
	conversion/composition.h
