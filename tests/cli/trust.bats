#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Damage outside artifacts and bundles (rows of the manifest, stamps, events, parameters): damaged data decides
# nothing, and is restored from its source.

load helpers

setup() {
	setup_folder
	export PYTHONPATH=$srcdir/tests PYTHONDONTWRITEBYTECODE=1
	make_model m
}

# Run SQL on the manifest, changing its file without xfp.
change() { # SQL
	"$PYTHON" -c 'import sqlite3, sys
db = sqlite3.connect("xfp-cache/manifest.sqlite")
db.create_function("flip", 2, lambda value, bit: flip(value, bit))
import struct
def flip(value, bit):
    return struct.unpack("<d", struct.pack("<Q", struct.unpack("<Q", struct.pack("<d", value))[0] ^ 1 << bit))[0]
assert db.execute(sys.argv[1]).rowcount > 0
db.commit()' "$1"
}

# The bundle of a conversion in a cache of its own.
fresh() { # OPTION...
	XFP_CACHE=$PWD/other-cache converted m "fresh.xfp" "$@"
}

@test "one flipped bit of a cosine in the manifest: another floor still gives the right bundle" {
	unset XFP_MODE
	high=$(fresh --min-cos-strict 0.997)
	low=$(fresh)
	[ "$high" != "$low" ]
	[ "$(converted m out.xfp)" = "$low" ]
	before=$(artifacts | wc -l)
	for bit in 62 55 52 51 44; do
		change "UPDATE candidates SET cos_median = flip(cos_median, $bit)"
		[ "$(converted m out.xfp --min-cos-strict 0.997)" = "$high" ]
		change "UPDATE candidates SET cos_median = flip(cos_median, $bit)"
		[ "$(converted m out.xfp)" = "$low" ]
	done
	# Restored rows are used again: only choices and packs of the other floor were made.
	xfp convert m -o out.xfp --json | grep -q '"unchanged": true'
	[ "$(query "SELECT count(*) FROM artifacts WHERE kind IN ('survey', 'fit') AND seal IS NULL")" = 0 ]
	[ "$(artifacts | wc -l)" -gt "$before" ]
}

@test "missing candidates, or another fit's: read from the artifacts again, and the rows repaired" {
	want=$(fresh --min-cos-strict 0.997)
	rows="SELECT count(*), total(cos_median), total(bytes) FROM candidates"
	xfp convert m -o out.xfp -q
	right=$(query "$rows")
	change "DELETE FROM candidates WHERE number = 1"
	[ "$(converted m out.xfp --min-cos-strict 0.997)" = "$want" ]
	xfp convert m -o out.xfp -q
	[ "$(query "SELECT count(*) FROM candidates JOIN artifacts ON key = fit_key")" = "${right%%|*}" ]
	first=$(query "SELECT min(fit_key) FROM candidates") last=$(query "SELECT max(fit_key) FROM candidates")
	change "UPDATE candidates SET fit_key = CASE fit_key WHEN '$first' THEN 'x' ELSE fit_key END"
	change "UPDATE candidates SET fit_key = CASE fit_key WHEN '$last' THEN '$first' ELSE fit_key END"
	change "UPDATE candidates SET fit_key = CASE fit_key WHEN 'x' THEN '$last' ELSE fit_key END"
	[ "$(converted m out.xfp --min-cos-strict 0.997)" = "$want" ]
	[ "$(query "$rows")" = "$right" ]
}

@test "xfp cache check reports seals that do not match, and rebuild repairs the rows" {
	xfp convert m -o out.xfp -q
	xfp cache check >/dev/null
	fit=$(query "SELECT min(fit_key) FROM candidates")
	change "UPDATE candidates SET bytes = bytes + 1 WHERE fit_key = '$fit' AND number = 0"
	run -3 xfp cache check
	[[ $output == *"manifest.sqlite"*"the candidates of $fit do not match their seal"* ]]
	xfp cache rebuild >/dev/null
	xfp cache check >/dev/null
	change "UPDATE source_files SET mtime_ns = mtime_ns + 1"
	run -3 xfp cache check
	[[ $output == *"the recorded digest of $PWD/m/model.safetensors does not match its seal"* ]]
	[ "$(converted m out.xfp)" = "$(fresh)" ]
	xfp cache check >/dev/null
}

@test "a damaged digest of a source is read again" {
	want=$(fresh --min-cos-strict 0.997)
	xfp convert m -o out.xfp -q
	change "UPDATE sources SET digest = zeroblob(16)"
	[ "$(converted m out.xfp --min-cos-strict 0.997 2>err)" = "$want" ]
	[ ! -s err ]
	[ "$(query "SELECT count(*) FROM sources WHERE digest = zeroblob(16)")" = 0 ]
}

@test "a wrong but sealed digest of a source is reported and corrected, and the run continues" {
	want=$(fresh --min-cos-strict 0.997)
	xfp convert m -o out.xfp -q
	"$PYTHON" - <<-'EOF'
	import os, seal, sqlite3
	db = sqlite3.connect("xfp-cache/manifest.sqlite")
	os.remove("out.xfp.work/events") # which would be taken in once more, and so mend it before it matters
	for id, path, *identity in db.execute("SELECT * FROM source_files").fetchall():
	    rows = db.execute("SELECT region, digest, seal FROM sources WHERE file = ?", (id,)).fetchall()
	    for region, digest, sealed in rows:
	        assert seal.source(path, identity, region, digest) == sealed
	        wrong = bytes(16)
	        db.execute("UPDATE sources SET digest = ?, seal = ? WHERE file = ? AND region = ?",
	                   (wrong, seal.source(path, identity, region, wrong), id, region))
	db.commit()
	EOF
	[ "$(converted m out.xfp --min-cos-strict 0.997 2>err)" = "$want" ]
	grep -q "model.safetensors: tensor model.layers.0.* has other weights than .*xfp-cache recorded" err
	run ! grep -i "damaged" err
	[ "$(query "SELECT count(*) FROM sources WHERE digest = zeroblob(16)")" = 0 ]
	xfp convert m -o out.xfp --min-cos-strict 0.997 --json 2>err | grep -q '"unchanged": true'
	run ! grep -v "has no tokenizer.json" err
}

@test "an event of another unit has no effect, damaged or not" {
	unset XFP_MODE
	want=$(fresh --min-cos-strict 0.997)
	for line in plain sealed; do
		xfp convert m -o out.xfp -q
		"$PYTHON" - "$line" <<-'EOF'
		import seal, sys
		path = "out.xfp.work/events"
		lines = open(path).read().splitlines(keepends=True)
		changed = [line.replace("u000004\tsurvey\tmade", "u000003\tsurvey\tmade") for line in lines]
		assert changed != lines or sys.argv[1] == "sealed"
		if sys.argv[1] == "sealed":
		    ended = [line for line in lines if "\tsurvey\t" in line and "\tstarted" not in line]
		    fields = [line.rstrip("\n").split("\t")[:-1] for line in ended]
		    changed += [seal.event(f"u{(int(f[0][1:]) + 1) % 8:06}", *f[1:]) for f in fields]
		open(path, "w").writelines(changed)
		EOF
		xfp convert m -o out.xfp -q
		[ "$(converted m out.xfp --min-cos-strict 0.997)" = "$want" ]
		digests="SELECT count(*), count(DISTINCT digest) FROM sources"
		[ "$(query "$digests")" = "$(query "$digests" other-cache)" ]
		rm -r out.xfp.work out.xfp xfp-cache
	done
}

@test "torn or missing lines of events lose nothing but themselves" {
	want=$(fresh)
	replace_stage xfp-outlier-extract '"$real" "$@"; status=$?
		sed -i "s/outlier-extract/outlier-extracT/" "$XFP_WORK/events"; exit $status'
	PATH=$PWD/bin:$PATH
	[ "$(converted m out.xfp 2>err)" = "$want" ]
	grep -q "out.xfp.work/events: lines are damaged" err
	rm -r out.xfp.work out.xfp xfp-cache
	sed -i 's/sed -i .*; exit/: >"$XFP_WORK\/events"; exit/' bin/xfp-outlier-extract
	[ "$(converted m out.xfp)" = "$want" ]
}

@test "damaged or exchanged stamps" {
	want=$(fresh --min-cos-strict 0.997)
	for stamp in outliers fit choice packed; do
		xfp convert m -o out.xfp -q
		cp "out.xfp.work/u000002-$stamp" kept
		cp "out.xfp.work/u000003-$stamp" "out.xfp.work/u000002-$stamp"
		cp kept "out.xfp.work/u000003-$stamp"
		xfp convert m -o out.xfp -q
		[ "$(cat "out.xfp.work/u000002-$stamp")" = "$(cat kept)" ]
		printf 0 | dd of="out.xfp.work/u000002-$stamp" bs=1 seek=40 conv=notrunc status=none
		printf 1 | dd of="out.xfp.work/u000003-$stamp" bs=1 seek=4 conv=notrunc status=none
		: >"out.xfp.work/u000004-$stamp"
		[ "$(converted m out.xfp --min-cos-strict 0.997)" = "$want" ]
	done
}

@test "parameters damaged during a run" {
	want=$(fresh)
	replace_stage xfp-pack '[ -e "$top/done" ] || sed -i "s/0.99/0.95/" "$XFP_WORK/parameters.json"
		: >"$top/done"; exec "$real" "$@"'
	PATH=$PWD/bin:$PATH
	[ "$(converted m out.xfp 2>err)" = "$want" ]
	grep -q "a file of the work folder, was damaged; making the missing artifacts again" err
}

@test "a link that leads elsewhere during a run, and back: no bundle has the other file's weights" {
	make_model other --seed 7
	mkdir linked
	cp m/*.json linked/
	ln -s "$PWD/m/model.safetensors" linked/model.safetensors
	want=$(fresh)
	swap='ln -sfn "$top/other/model.safetensors" "$top/linked/model.safetensors"; "$real" "$@"; status=$?
		ln -sfn "$top/m/model.safetensors" "$top/linked/model.safetensors"; exit $status'
	data=$XFP_DATADIR
	for stage in outlier-extract lloyd-fit pack bundle; do
		export XFP_DATADIR=$data
		replace_stage "xfp-$stage" "$swap"
		PATH=$PWD/bin:$PATH run -1 xfp convert linked -o out.xfp -q
		[[ $output == *"model.safetensors: changed while it was being converted; run again"* ]]
		no_output out.xfp
		[ "$(converted linked out.xfp)" = "$want" ]
		rm -r bin share out.xfp out.xfp.work xfp-cache
	done
}

@test "a small file that differs while the bundle is written, and is restored: not in any bundle" {
	mkdir linked
	cp m/* linked/
	mv linked/config.json config.a
	sed 's/}$/ }/' config.a >config.b
	run -1 cmp -s config.a config.b
	ln -s "$PWD/config.a" linked/config.json
	want=$(fresh)
	replace_stage xfp-bundle 'ln -sfn "$top/config.b" "$top/linked/config.json"; "$real" "$@"; status=$?
		ln -sfn "$top/config.a" "$top/linked/config.json"; exit $status'
	PATH=$PWD/bin:$PATH run -1 xfp convert linked -o out.xfp -q
	[[ $output == *"small file of the checkpoint was modified"* ]]
	no_output out.xfp
	[ "$(converted linked out.xfp)" = "$want" ]
}
