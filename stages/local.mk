# SPDX-License-Identifier: Apache-2.0
#
# stages/: one file per stage executable; subfolders for code that they share with the commands.

if CONVERTER
noinst_LIBRARIES += stages/libstages.a stages/calibrate/libcalibrate.a
endif
stages_libstages_a_SOURCES = \
	stages/feedback/outputs.c \
	stages/feedback/outputs.h \
	stages/feedback/pace.c \
	stages/feedback/pace.h \
	stages/feedback/second_moments.c \
	stages/feedback/second_moments.h \
	stages/feedback/training.h \
	stages/fit_unit.c \
	stages/fit_unit.h \
	stages/inspect/classify.c \
	stages/inspect/classify.h \
	stages/inspect/family.c \
	stages/inspect/family.h \
	stages/inspect/family_choose.c \
	stages/inspect/family_choose.h \
	stages/inspect/model_config.c \
	stages/inspect/model_config.h \
	stages/inspect/name_groups.c \
	stages/inspect/name_groups.h \
	stages/inspect/notes.c \
	stages/inspect/notes.h \
	stages/inspect/projection.c \
	stages/inspect/projection.h \
	stages/inspect/refuse.c \
	stages/inspect/refuse.h \
	stages/inspect/rule.c \
	stages/inspect/rule.h \
	stages/inspect/units.c \
	stages/inspect/units.h \
	stages/layer_inputs.c \
	stages/layer_inputs.h \
	stages/pack/chosen.c \
	stages/pack/chosen.h \
	stages/pack/fitted.c \
	stages/pack/fitted.h \
	stages/pack/groups.c \
	stages/pack/pack.h \
	stages/pack/parts.c \
	stages/pack/v2.c \
	stages/quantize/target.c \
	stages/quantize/target.h \
	stages/quantize/candidates.c \
	stages/quantize/candidates.h \
	stages/quantize/decide.c \
	stages/quantize/decide.h \
	stages/quantize/distribution.c \
	stages/quantize/distribution.h \
	stages/quantize/feedback_rows.c \
	stages/quantize/feedback_rows.h \
	stages/quantize/fit_codebooks.c \
	stages/quantize/fit_feedback.c \
	stages/quantize/fit_fp8.c \
	stages/quantize/fit_libraries.c \
	stages/quantize/fit_rows.c \
	stages/quantize/fit_rows.h \
	stages/quantize/group_row.c \
	stages/quantize/group_row.h \
	stages/quantize/library_feedback.c \
	stages/quantize/library_feedback.h \
	stages/quantize/library_fit.h \
	stages/quantize/library_train.c \
	stages/quantize/library_train.h \
	stages/quantize/marks.c \
	stages/quantize/marks.h \
	stages/quantize/measure.c \
	stages/quantize/measure.h \
	stages/quantize/variants.c \
	stages/quantize/variants.h \
	stages/quantize/output_scale.c \
	stages/quantize/rows.c \
	stages/quantize/rows.h \
	stages/quantize/sample.c \
	stages/quantize/sample.h \
	stages/quantize/scan.c \
	stages/quantize/scan.h \
	stages/quantize/select.c \
	stages/quantize/select.h \
	stages/quantize/solve.c \
	stages/quantize/solve.h \
	stages/quantize/survey.c \
	stages/quantize/survey.h \
	stages/quantize/tensor_digest.c \
	stages/quantize/tensor_digest.h \
	stages/quantize/threads.h \
	stages/settings/data.c \
	stages/settings/data.h \
	stages/settings/goal_settings.c \
	stages/settings/goal_settings.h \
	stages/settings/like.c \
	stages/settings/like.h \
	stages/settings/profile.c \
	stages/settings/profile.h \
	stages/settings/recorded.c \
	stages/settings/recorded.h \
	stages/settings/settings.c \
	stages/settings/settings.h \
	stages/stage.c \
	stages/stage.h \
	stages/work/assigned.c \
	stages/work/assigned.h \
	stages/work/bundle_stamp.c \
	stages/work/bundle_stamp.h \
	stages/work/crash.c \
	stages/work/crash.h \
	stages/work/decided.c \
	stages/work/decided.h \
	stages/work/describe.c \
	stages/work/describe.h \
	stages/work/events.c \
	stages/work/events.h \
	stages/work/fits.c \
	stages/work/fits.h \
	stages/work/fit_note.c \
	stages/work/fit_note.h \
	stages/work/host_check.c \
	stages/work/host_check.h \
	stages/work/hosts.c \
	stages/work/hosts.h \
	stages/work/moving.c \
	stages/work/moving.h \
	stages/work/produce.c \
	stages/work/produce.h \
	stages/work/stage_progress.c \
	stages/work/stage_progress.h \
	stages/work/receipts.c \
	stages/work/receipts.h \
	stages/work/run_record.c \
	stages/work/run_record.h \
	stages/work/stages.c \
	stages/work/stages.h \
	stages/work/unit_state.h \
	stages/work/verified.c \
	stages/work/verified.h \
	stages/work/work.c \
	stages/work/work.h

stages_calibrate_libcalibrate_a_SOURCES = \
	stages/calibrate/begin.c \
	stages/calibrate/begin.h \
	stages/calibrate/capture.c \
	stages/calibrate/capture.h \
	stages/calibrate/layer.c \
	stages/calibrate/layer.h \
	stages/calibrate/options.h \
	stages/calibrate/pace.c \
	stages/calibrate/pace.h \
	stages/calibrate/self.c \
	stages/calibrate/self.h \
	stages/calibrate/windows.c \
	stages/calibrate/windows.h

if CONVERTER
bin_PROGRAMS += \
	xfp-autoselect \
	xfp-bundle \
	xfp-calibrate \
	xfp-libfit \
	xfp-lloyd-fit \
	xfp-outlier-extract \
	xfp-pack \
	xfp-survey
endif

xfp_autoselect_SOURCES = stages/autoselect.c stages/no_plugins.c
xfp_autoselect_LDFLAGS = $(unit_ldflags)
xfp_autoselect_LDADD = $(unit_libs)
xfp_bundle_SOURCES = stages/bundle.c
xfp_bundle_LDADD = $(TOOL_LIBS)
# The only stage that computes the model.
xfp_calibrate_SOURCES = stages/calibrate/calibrate.c
xfp_calibrate_LDADD = $(MODEL_TOOL_LIBS)
xfp_libfit_SOURCES = stages/libfit.c stages/no_plugins.c
xfp_libfit_LDFLAGS = $(unit_ldflags)
xfp_libfit_LDADD = $(unit_libs)
xfp_lloyd_fit_SOURCES = stages/lloyd_fit.c stages/no_plugins.c
xfp_lloyd_fit_LDFLAGS = $(unit_ldflags)
xfp_lloyd_fit_LDADD = $(unit_libs)
xfp_outlier_extract_SOURCES = stages/outlier_extract.c stages/no_plugins.c
xfp_outlier_extract_LDFLAGS = $(unit_ldflags)
xfp_outlier_extract_LDADD = $(unit_libs)
xfp_pack_SOURCES = stages/pack/pack.c stages/no_plugins.c
xfp_pack_LDFLAGS = $(unit_ldflags)
xfp_pack_LDADD = $(unit_libs)
xfp_survey_SOURCES = stages/survey_unit.c stages/no_plugins.c
xfp_survey_LDFLAGS = $(unit_ldflags)
xfp_survey_LDADD = $(unit_libs)
