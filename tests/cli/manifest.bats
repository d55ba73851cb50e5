#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The manifest answers the queries of its man page, which are read from the page and run.

load helpers

setup() {
	setup_folder
	make_model m
}

page() { mandoc -T utf8 -O width=120 "$XFP_TEST_MAN/man5/xfp-manifest.5" | sed 's/.\x08//g'; }

# The queries of the page, one per line: the lines indented twice under EXAMPLES.
examples() { page | sed -n '/^EXAMPLES/,/^SEE ALSO/s/^           *\(.*\)/\1/p' | tr -s ' \n' ' ' | sed 's/; */;\n/g'; }

example() { # NUMBER [CACHE]
	query "$(examples | sed -n "$1p")" "${2:-xfp-cache}"
}

is() { # WANT, of standard input
	diff <(echo "$1") -
}

@test "the page names every table, every view and every column, and no other" {
	converted m out.xfp
	"$PYTHON" - <(page) <<-'EOF'
	import re, sqlite3, sys
	text = open(sys.argv[1]).read()
	part = {name: text[text.index("\n" + name):text.index("\n" + end)]
	        for name, end in (("VIEWS", "TABLES"), ("TABLES", "EXAMPLES"))}
	db = sqlite3.connect("xfp-cache/manifest.sqlite")
	for kind, where in ("view", "VIEWS"), ("table", "TABLES"):
	    names = {name for name, of in db.execute("SELECT name, type FROM sqlite_master")
	             if of == kind and "sqlite" not in name}
	    told = set(re.findall(r"^ {5}(\w+)(?:$|  )", part[where], re.M))
	    assert names == told, names ^ told
	    for name in names:
	        rest = re.split(r"^ {5}%s\b" % name, part[where], 1, re.M)[1]
	        entry = re.split(r"^ {5}\w", rest, 1, re.M)[0]
	        if name in ("unit_results", "run_units"):
	            entry += part["VIEWS"]
	        if name == "run_summaries":
	            entry += part["TABLES"]
	        if name == "choices":
	            entry += re.split(r"^ {5}candidates\b", part[where], 1, re.M)[1]
	        for _, column, *_ in db.execute('PRAGMA table_info("%s")' % name):
	            assert re.search(r"\b%s\b" % column, entry), "%s.%s" % (name, column)
	EOF
}

@test "every example of the page is a query that answers" {
	# floors that are met, one that no candidate meets, and lm_head, which has none
	converted m out.xfp --floor attention=0.99999
	[ "$(examples | wc -l)" -eq 7 ]
	for number in 1 2 3 4 5; do
		example "$number" >answer || { echo "example $number"; return 1; }
		[ -s answer ] || { echo "example $number: nothing"; return 1; }
	done
	[ "$(example 1 | wc -l)" -eq 8 ]
	example 1 | cut -d'|' -f1,2,6 | is "$(query "SELECT unit, mode, bytes FROM latest_units ORDER BY number")"
	[ "$(example 2 | wc -l)" -eq 8 ]
	# sizes are those of the files
	example 3 | cut -d'|' -f1,2 | sort |
		is "$(query "SELECT kind, count(*) FROM artifacts GROUP BY kind ORDER BY kind")"
	[ "$(example 3 | awk -F'|' '{ bytes += $3 } END { print bytes }')" -eq \
		"$(artifacts | xargs stat -c %s | awk '{ bytes += $1 } END { print bytes }')" ]
	[ "$(example 4 | cut -d'|' -f9 | sort -u)" = 0 ]
	example 5 | cut -d'|' -f3,4,5,7 | sort -u | is "attention|keep|0.99999|1"
	# all artifacts of the unit, and nothing else; as no floor was met, there are two fits
	[ "$(example 7 | cut -d'|' -f1 | paste -sd' ')" = "choice fit fit outliers packed" ]
	example 7 | cut -d'|' -f2 | sort | is "$(query "SELECT key FROM artifacts
		WHERE unit LIKE '%.layers.0.self_attn.q_proj.weight' ORDER BY key")"
	# surveys are of the default
	[ -z "$(example 6)" ]
	by_default
	converted m default.xfp --cache default
	[ "$(example 6 default | wc -l)" -eq $((7 * 15 + 1)) ] # fp8 has no thresholds
	example 7 default | cut -d'|' -f1 | grep -qx survey
	example 6 default | cut -d'|' -f5 | sort -nc
}

@test "the queries follow the last run: repacked units, and their choices" {
	converted m out.xfp
	[ "$(example 4 | awk -F'|' '$9' | cut -d'|' -f1,2)" = "$(query "SELECT mode, k FROM latest_units WHERE role = 'q'")" ]
	[ -z "$(example 5)" ]
	before=$(example 1)
	converted m out.xfp
	[ -z "$(example 2)" ]
	[ "$(example 1)" = "$before" ] # its cost too, though all was cached
	[ "$(query "SELECT sum(seconds) FROM latest_units")" = 0.0 ]
	[ "$(query "SELECT count(*) FROM latest_units WHERE made_seconds > 0")" = 8 ]
	converted m out.xfp --floor attention=0.5
	example 2 | cut -d'|' -f2 | is "$(query "SELECT unit FROM latest_units WHERE class = 'attention' AND repacked
		ORDER BY number")"
	[ -n "$(example 2)" ]
	converted m out.xfp --floor attention=1 --on-miss best
	example 5 | cut -d'|' -f3,5,7 | sort -u | is "attention|1.0|0"
}

@test "candidates are those of the run's own settings" {
	converted m other.xfp --lloyd-iters 5
	converted m out.xfp
	for output in other out; do
		[ -z "$(query "SELECT number, mode, k FROM latest_candidates WHERE output LIKE '%/$output.xfp'
			GROUP BY number, mode, k HAVING count(*) > 1")" ] || { echo "$output"; return 1; }
		query "SELECT count(DISTINCT number), sum(chosen) FROM latest_candidates
			WHERE output LIKE '%/$output.xfp'" | is "7|7"
	done
	# measurements with different settings are separate
	[ "$(query "SELECT count(*) FROM latest_candidates AS a JOIN latest_candidates AS b USING (number, mode, k)
		WHERE a.output < b.output AND a.error <> b.error")" -gt 0 ]
}

@test "outputs that share a cache are kept apart, and a failed run is not the last one of an output" {
	make_model n --seed 7
	converted m m.xfp
	converted n n.xfp
	units="SELECT count(*), min(run), max(run) FROM latest_units WHERE output LIKE"
	query "$units '%/m.xfp'" | is "8|1|1"
	query "$units '%/n.xfp'" | is "8|2|2"
	run -4 xfp convert m -o m.xfp -q --floor attention=1 --on-miss fail
	query "$units '%/m.xfp'" | is "8|1|1"
	query "SELECT status FROM run_summaries WHERE run = 3" | is 4
	converted m m.xfp
	query "$units '%/m.xfp'" | is "8|4|4"
	query "SELECT units, fitted, repacked, cached FROM run_summaries WHERE run = 4" | is "8|0|0|8"
}
