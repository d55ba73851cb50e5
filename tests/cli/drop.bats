#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Disk space: free space is compared with the need before work starts; --drop-cache frees the space of the
# bundle's artifacts, and nothing else.

load helpers

setup() { setup_folder; }

@test "--drop-cache: the same bundle, and the cache that convert created is removed" {
	make_model m
	expected=$(converted m out.xfp --cache whole)
	rm -r out.xfp out.xfp.work whole
	xfp convert m -o out.xfp --drop-cache >stdout
	[ "$(sha out.xfp)" = "$expected" ]
	grep -Eq "^cache  dropped, [0-9.]+ kB freed$" stdout
	[ "$(ls -A)" = "m
out.xfp
out.xfp.work
stdout" ]
	[ -z "$(find out.xfp.work -name 'u0*')" ]
	xfp status out.xfp | grep -q "^units    8 of 8 done"
	xfp verify -q out.xfp --source m
}

@test "without its artifacts, a bundle is still up to date: rerun, dry run, with and without the option" {
	make_model m
	xfp convert m -o out.xfp -q --bits 2 --on-miss best --drop-cache
	before=$(stat -c '%i %Y %z' out.xfp)
	run -0 xfp convert m -o out.xfp --bits 2 --on-miss best --drop-cache
	[[ $output == *"out.xfp is up to date"*" 0 fitted, 0 packed now"*"are below their floor"* ]]
	[ ! -e xfp-cache ]
	run -0 --separate-stderr xfp convert m -o out.xfp --bits 2 --on-miss best --json
	"$PYTHON" -c 'import json, sys
summary = json.loads(sys.argv[1])
assert summary["unchanged"] and summary["below_floor"] == 7 and summary["dropped_bytes"] == 0, summary
assert summary["weights"] == sum(c["weights"] for c in summary["classes"])' "$output"
	run -0 xfp convert m -o out.xfp --bits 2 --on-miss best -n
	[[ $output == *"out.xfp is up to date" && $output != *"units to do"* ]]
	[ "$before" = "$(stat -c '%i %Y %z' out.xfp)" ]
	# everything that determines the bytes, and the bundle itself
	run -0 xfp convert m -o out.xfp --bits 2 -n
	[[ $output == *"would be written again" ]]
	expected=$(sha out.xfp)
	touch m/model.safetensors
	run -0 xfp convert m -o out.xfp --bits 2 --on-miss best --drop-cache
	[[ $output == *" 8 packed now"* ]]
	[ "$(sha out.xfp)" = "$expected" ]
	run -0 xfp convert m -o out.xfp --bits 2 --on-miss best --drop-cache --rehash
	[[ $output == *" 8 packed now"* ]]
	printf x | dd of=out.xfp bs=1 seek=5000 conv=notrunc status=none
	[ "$(converted m out.xfp --bits 2 --on-miss best --drop-cache)" = "$expected" ]
}

@test "artifacts that another output needs stay, until its cache is dropped too" {
	make_model m
	make_model n --seed 5
	xfp convert m -o a.xfp -q
	xfp convert m -o b.xfp -q --min-cos-lazy 0.9
	xfp convert n -o c.xfp -q
	artifacts >all
	xfp convert m -o a.xfp -q --drop-cache
	artifacts >left
	[ "$(wc -l <left)" -lt "$(wc -l <all)" ]
	run -0 xfp convert m -o b.xfp --min-cos-lazy 0.9
	[[ $output == *"is up to date"*" 0 packed now"* ]]
	rm b.xfp
	run -0 xfp convert m -o b.xfp --min-cos-lazy 0.9 --drop-cache
	[[ $output == *" 0 fitted, 0 packed now"* ]]
	run -0 xfp convert n -o c.xfp
	[[ $output == *"is up to date"* ]]
	# only n's are left, and their measurements are still listed
	[ "$(query "SELECT count(*) FROM artifacts")" = "$(artifacts | wc -l)" ]
	[ "$(query "SELECT DISTINCT output FROM latest_units WHERE packed_key IS NOT NULL")" = "$PWD/c.xfp" ]
	[ "$(query "SELECT count(cos_median) FROM latest_units WHERE output = '$PWD/a.xfp'")" = 7 ]
	xfp convert n -o c.xfp -q --drop-cache
	[ ! -e xfp-cache ]
}

@test "only files of xfp are removed, and a cache named by the user stays" {
	make_model m
	xfp convert m -o out.xfp -q
	echo mine >xfp-cache/notes
	mkdir xfp-cache/artifacts/mine
	echo mine >"xfp-cache/artifacts/$(ls xfp-cache/artifacts | head -n 1)/mine"
	xfp convert m -o out.xfp -q --drop-cache
	[ "$(cat xfp-cache/notes)" = mine ]
	[ -d xfp-cache/artifacts/mine ]
	[ "$(find xfp-cache/artifacts -type f | xargs cat)" = mine ]
	mkdir named
	xfp convert m -o two.xfp -q --cache named --drop-cache
	[ -e named/manifest.sqlite ]
	[ -z "$(artifacts named)" ]
	XFP_CACHE=$PWD/third xfp convert m -o three.xfp -q --drop-cache
	[ -e third/manifest.sqlite ] && [ -z "$(artifacts third)" ]
}

@test "while others use the cache nothing is removed, and the bundle is written" {
	make_model m
	mkdir xfp-cache
	exec 9>xfp-cache/lock
	flock -s 9
	xfp convert m -o out.xfp --drop-cache >stdout 2>stderr 9>&-
	grep -q "^xfp: the cache is not dropped: $PWD/xfp-cache: in use" stderr
	! grep -q "^cache " stdout || return 1
	[ "$(artifacts | wc -l)" -gt 8 ]
	exec 9>&-
	xfp convert m -o out.xfp --drop-cache >stdout
	grep -q "^cache  dropped, " stdout
	[ -z "$(artifacts)" ]
}

@test "a conversion that waits for a cache which is removed meanwhile creates a new one" {
	make_model m
	expected=$(converted m first.xfp)
	mv xfp-cache/lock was
	cp was xfp-cache/lock
	exec 9>xfp-cache/lock
	flock 9
	xfp convert m -o out.xfp -q 9>&- &
	pid=$!
	until grep -q "$(readlink -f xfp-cache/lock)" <(ls -l "/proc/$pid/fd"); do sleep 0.01; done
	rm -r xfp-cache
	exec 9>&-
	wait $pid
	[ "$(sha out.xfp)" = "$expected" ]
	[ "$(artifacts | wc -l)" -gt 8 ]
}

@test "a read-only cache is not dropped, and the run reports it" {
	needs_mounts
	make_model m
	xfp convert m -o out.xfp -q
	artifacts >before
	run -0 read_only xfp-cache xfp convert m -o out.xfp --drop-cache
	[[ $output == *"the cache is not dropped: $PWD/xfp-cache: the cache is read-only"* ]]
	artifacts | diff before -
}

@test "kill -9 at any moment, also while dropping: the same bundle, and the next run drops the rest" {
	make_model m
	expected=$(converted m whole.xfp --cache whole)
	start=$(date +%s%N)
	xfp convert m -o out.xfp -q --drop-cache
	took=$(($(date +%s%N) - start))
	for i in {0..11}; do
		rm -rf out.xfp out.xfp.work
		xfp convert m -o out.xfp -q --drop-cache 2>>errors &
		pid=$!
		if ((i < 6)); then # while it works
			moment=$((took * (i + 1) / 7 / 1000000))
			sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
		else # once the bundle is there
			until [ -e out.xfp ] || ! kill -0 $pid 2>/dev/null; do :; done
			sleep "0.00$((i - 6))"
		fi
		kill -9 $pid 2>/dev/null || true
		wait $pid || true
		[ ! -e out.xfp ] || [ "$(sha out.xfp)" = "$expected" ]
		[ "$(converted m out.xfp --drop-cache)" = "$expected" ]
		[ ! -e xfp-cache ] || { find xfp-cache; return 1; }
	done
}

# ---- disk space -----------------------------------------------------------------------------------

@test "too little space on one file system: its name, needed and free space, and the purpose" {
	needs_mounts
	make_model m --vocab 4000
	mkdir disk
	run -1 on_small_disk 128k disk xfp convert m -o disk/out.xfp --cache cache --work work
	[[ $output =~ "$PWD/disk: about "[0-9]+" kB needed, "[0-9]+" kB free, for the bundle ("[0-9]+" kB); free some space, choose another location with -o, or try anyway with --force"$ ]]
	on_small_disk 128k disk xfp plan m -o disk/out.xfp --cache cache --work work >plan
	grep -A9 '^disk ' plan | tr -s ' \n' ' ' | grep -q "too little; convert would not start: $PWD/disk: about [0-9]* kB needed"
	on_small_disk 128k disk xfp plan m -o disk/out.xfp --cache cache --work work --force >plan
	grep -q 'too little, but convert would start (--force):$' plan
	on_small_disk 128k disk xfp plan m -o disk/out.xfp --cache cache --work work --json | grep -q '"shortage": ".*--force"'
	xfp plan m -o disk/out.xfp --json | grep -q '"shortage": null'
	run -1 on_small_disk 200k disk xfp convert m -o out.xfp --cache disk
	[[ $output =~ "$PWD/disk: about ".*" needed, ".*" free, for the cache (".*"); free some space, choose another location with --cache, or try anyway with --force"$ ]]
	run -1 on_small_disk 128k disk xfp convert m -o out.xfp --cache cache --work disk
	[[ $output =~ "$PWD/disk: about ".*", for the work folder (".*"); free some space, choose another location with --work, or" ]]
	# all three on one file system: their sum, reported once
	run -1 on_small_disk 500k disk xfp convert m -o disk/out.xfp
	[[ $output == *", for the bundle ("*"), the cache ("*"), the work folder ("*"with -o or --cache or --work, or"* ]]
	# no work was started
	[ -z "$(find . -name 'u0*-*')" ]
	no_output out.xfp
}

@test "enough space for the least possible size, but not the expected one: refused at once, --force starts" {
	needs_mounts
	make_model m --layers 4
	mkdir disk
	need=$(xfp plan m -o out.xfp --json | "$PYTHON" -c 'import json, sys; p = json.load(sys.stdin); print(p["bundle"]["expected"] // 1024)')
	# enough for the bundle and its packed units, but not for the artifacts that they are made from
	run -1 on_small_disk $((need + 400))k disk xfp convert m -o disk/out.xfp
	[[ $output == *"about "*" needed"* ]]
	[ -z "$(find . -name 'u0*-*')" ]
	run on_small_disk $((need + 400))k disk sh -c '
		xfp convert m -o disk/out.xfp --force -q; echo "status $?"; find disk -name "*.h5" | wc -l'
	[[ $output != *" needed"* ]]
	[ "${lines[-1]}" -gt 5 ]
}

@test "existing files need no space: a rerun, a removed bundle" {
	needs_mounts
	make_model m --vocab 4000
	expected=$(converted m out.xfp)
	mkdir disk
	cp -r xfp-cache whole
	# 1 MB of cache on a nearly full disk: no unit is left to pack
	size=$(($(du -sk xfp-cache | cut -f1) + 160))
	run -0 on_small_disk ${size}k disk sh -c '
		cp -r whole/. disk && xfp convert m -o again.xfp --cache disk -q && sha256sum <again.xfp'
	[[ $output == "$expected"* ]]
}
