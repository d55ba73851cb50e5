# SPDX-License-Identifier: Apache-2.0
#
# commands/: the front end, a folder for each large command. Each is a library: names of files may come twice.

if CONVERTER
noinst_LIBRARIES += \
	commands/libcommands.a \
	commands/cache/libcache.a \
	commands/compare/libcompare.a \
	commands/convert/libconvert.a \
	commands/eval/libeval.a \
	commands/generate/libgenerate.a \
	commands/inspect/libinspect.a \
	commands/plan/libplan.a \
	commands/report/libreport.a \
	commands/status/libstatus.a \
	commands/ui/libui.a \
	commands/unpack/libunpack.a \
	commands/verify/libverify.a \
	commands/walk/libwalk.a

bin_PROGRAMS += \
	xfp \
	xfp-eval \
	xfp-generate \
	xfp-inspect \
	xfp-launch \
	xfp-verify
endif
COMMAND_LIBS = \
	commands/libcommands.a \
	commands/cache/libcache.a \
	commands/compare/libcompare.a \
	commands/inspect/libinspect.a \
	commands/status/libstatus.a \
	commands/plan/libplan.a \
	commands/report/libreport.a \
	commands/unpack/libunpack.a \
	commands/verify/libverify.a \
	commands/walk/libwalk.a \
	commands/convert/libconvert.a \
	commands/ui/libui.a
MODEL_COMMAND_LIBS = commands/eval/libeval.a commands/generate/libgenerate.a

xfp_SOURCES = commands/xfp.c
xfp_LDADD = $(TOOL_LIBS)
xfp_eval_SOURCES = commands/eval/main.c
xfp_eval_LDADD = $(MODEL_TOOL_LIBS)
xfp_generate_SOURCES = commands/generate/main.c
xfp_generate_LDADD = $(MODEL_TOOL_LIBS)
xfp_inspect_SOURCES = commands/inspect/main.c
xfp_inspect_LDADD = $(TOOL_LIBS)
xfp_launch_SOURCES = commands/launch/main.c
xfp_launch_LDADD = $(TOOL_LIBS)
xfp_verify_SOURCES = commands/verify/main.c
xfp_verify_LDADD = $(TOOL_LIBS)

commands_libcommands_a_SOURCES = \
	commands/info.c \
	commands/info_device.c \
	commands/info_device.h
commands_cache_libcache_a_SOURCES = \
	commands/cache/cache.c \
	commands/cache/cache.h \
	commands/cache/check.c \
	commands/cache/common.c \
	commands/cache/explain.c \
	commands/cache/gc.c \
	commands/cache/ls.c \
	commands/cache/rebuild.c \
	commands/cache/stats.c \
	commands/cache/surveys.c
commands_compare_libcompare_a_SOURCES = \
	commands/compare/answer.c \
	commands/compare/by_peers.c \
	commands/compare/compare.c \
	commands/compare/compare.h \
	commands/compare/data.c \
	commands/compare/measure.c \
	commands/compare/options.c \
	commands/compare/plot.c \
	commands/compare/sum.c \
	commands/compare/table.c
commands_eval_libeval_a_SOURCES = \
	commands/eval/eval.c \
	commands/eval/interrupted.c \
	commands/eval/interrupted.h \
	commands/eval/print.c \
	commands/eval/print.h \
	commands/eval/progress.c \
	commands/eval/progress.h
commands_convert_libconvert_a_SOURCES = \
	commands/convert/convert.c \
	commands/convert/convert.h \
	commands/convert/user_settings.c \
	commands/convert/user_settings.h \
	commands/convert/goal_print.c \
	commands/convert/goal_print.h \
	commands/convert/notices.c \
	commands/convert/options.c \
	commands/convert/options.h \
	commands/convert/prepare_print.c \
	commands/convert/prepare_print.h \
	commands/convert/progress.c \
	commands/convert/progress.h \
	commands/convert/summary.c \
	commands/convert/summary.h
commands_generate_libgenerate_a_SOURCES = \
	commands/generate/generate.c \
	commands/generate/report.c \
	commands/generate/report.h
commands_inspect_libinspect_a_SOURCES = \
	commands/inspect/csv.c \
	commands/inspect/inspect.c \
	commands/inspect/json.c \
	commands/inspect/list.c \
	commands/inspect/list.h \
	commands/inspect/inspection.c \
	commands/inspect/inspection.h \
	commands/inspect/synthesized.c \
	commands/inspect/synthesized.h \
	commands/inspect/measure.c \
	commands/inspect/measure.h \
	commands/inspect/report.c \
	commands/inspect/report.h \
	commands/inspect/tables.c
commands_plan_libplan_a_SOURCES = \
	commands/plan/curve_print.c \
	commands/plan/json.c \
	commands/plan/nodes_print.c \
	commands/plan/plan.c \
	commands/plan/print.h \
	commands/plan/report.c
commands_report_libreport_a_SOURCES = commands/report/report.c
commands_status_libstatus_a_SOURCES = \
	commands/status/print.c \
	commands/status/print.h \
	commands/status/status.c
commands_ui_libui_a_SOURCES = \
	commands/ui/commands.h \
	commands/ui/faults.c \
	commands/ui/faults.h \
	commands/ui/meter.c \
	commands/ui/meter.h \
	commands/ui/pace.c \
	commands/ui/pace.h \
	commands/ui/plot.c \
	commands/ui/plot.h \
	commands/ui/program.c \
	commands/ui/record.c \
	commands/ui/record.h \
	commands/ui/report.c \
	commands/ui/report.h \
	commands/ui/tokenizer_note.c \
	commands/ui/tokenizer_note.h \
	commands/ui/when.c \
	commands/ui/when.h \
	commands/ui/composition_print.c \
	commands/ui/composition_print.h
commands_unpack_libunpack_a_SOURCES = \
	commands/unpack/config.c \
	commands/unpack/config.h \
	commands/unpack/safetensors_write.c \
	commands/unpack/safetensors_write.h \
	commands/unpack/tensor.c \
	commands/unpack/unpack.c \
	commands/unpack/unpack.h
commands_verify_libverify_a_SOURCES = \
	commands/verify/tensors.c \
	commands/verify/unit.c \
	commands/verify/verify.c \
	commands/verify/verify.h
commands_walk_libwalk_a_SOURCES = \
	commands/walk/plot.c \
	commands/walk/points.c \
	commands/walk/print.c \
	commands/walk/walk.c \
	commands/walk/walk.h

# Completion for shells, for xfp and every stage.
completions = commands/completions
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_bashcompletion_DATA = $(completions)/xfp
nodist_zshcompletion_DATA = $(completions)/_xfp
CLEANFILES += $(completions)/xfp $(completions)/_xfp
EXTRA_DIST += commands/completions/xfp.bash commands/completions/xfp.zsh
$(completions)/xfp: $(completions)/xfp.bash
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $< $@
$(completions)/_xfp: $(completions)/xfp.zsh
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $< $@

# bash looks for a file with the command's name.
#: install-completion-links  make completions of xfp work for the stages, as part of install
.PHONY: install-completion-links
install-completion-links:
	cd '$(DESTDIR)$(bashcompletiondir)' && for tool in $(bin_PROGRAMS); do \
		test $$tool = xfp || ln -sf xfp $$tool || exit; done
uninstall-hook:
	cd '$(DESTDIR)$(bashcompletiondir)' && rm -f $(bin_PROGRAMS)
