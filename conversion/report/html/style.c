/* SPDX-License-Identifier: Apache-2.0 */
/*
 * style.c - the style sheet of a report: system fonts, one accent color, light and dark, phone and print.
 */
#include "conversion/report/html/html.h"

#define LIGHT                                                                    \
	"--paper: #ffffff; --ink: #1c2127; --faint: #57606a; --line: #dfe3e8;\n" \
	"  --edge: #b6bec8; --panel: #f5f7f9; --accent: #1f6feb; --bad: #b42318;"

void xfp_html_style(FILE *out)
{
	fputs("<style>\n"
	      ":root { color-scheme: light dark; " LIGHT " }\n"
	      "@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --faint: #9aa4b0;\n"
	      "  --line: #2a313a; --edge: #4b5563; --panel: #161c24; --accent: #6cb0ff; --bad: #ff7b72; } }\n"
	      "* { box-sizing: border-box; }\n"
	      "body { margin: 0 auto; max-width: 64rem; padding: 1.25rem 1rem 4rem; background: var(--paper);\n"
	      "  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }\n"
	      "h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }\n"
	      "h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem; padding-top: 1rem;\n"
	      "  border-top: 1px solid var(--line); }\n"
	      "h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }\n"
	      "p, ul { margin: .25rem 0 .75rem; max-width: 46rem; } ul { padding-left: 1.25rem; }\n"
	      ".lead, caption, .f, .none { color: var(--faint); }\n"
	      "a { color: var(--accent); } .bad { color: var(--bad); }\n"
	      "nav { margin: .75rem 0 1rem; display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .9rem; }\n"
	      "nav a { padding: .3rem 0; }\n"
	      "code, pre { font: .85em/1.5 ui-monospace, monospace; unicode-bidi: isolate; }\n"
	      "pre { background: var(--panel); padding: .6rem .8rem; border-radius: .3rem; white-space: pre-wrap; }\n"
	      ".tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .75rem;\n"
	      "  margin: 1rem 0; }\n"
	      ".tiles div { background: var(--panel); border-radius: .3rem; padding: .6rem .8rem; }\n"
	      ".tiles dt { color: var(--faint); font-size: .8rem; } .tiles dd { margin: 0; font-size: 1.25rem; }\n"
	      ".tiles small { display: block; color: var(--faint); font-size: .8rem; }\n"
	      /* A shaded edge where more is to the side; at the end a cover that scrolls along hides it. */
	      ".scroll { overflow-x: auto; margin: .5rem 0 1rem; background:\n"
	      "  linear-gradient(90deg, var(--paper) 40%, transparent) local 0 / 2rem 100% no-repeat,\n"
	      "  linear-gradient(270deg, var(--paper) 40%, transparent) local 100% / 2rem 100% no-repeat,\n"
	      "  linear-gradient(90deg, var(--edge), transparent) 0 / .7rem 100% no-repeat,\n"
	      "  linear-gradient(270deg, var(--edge), transparent) 100% / .7rem 100% no-repeat; }\n"
	      "table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }\n"
	      "caption { text-align: left; padding: .25rem 0; }\n"
	      "caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2rem); }\n"
	      "th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);\n"
	      "  white-space: nowrap; }\n"
	      "th { color: var(--faint); font-weight: 500; vertical-align: bottom; white-space: normal;\n"
	      "  overflow-wrap: normal; }\n"
	      "th:first-child, td:first-child { padding-left: 0; }\n"
	      ".w { text-align: left; } td code { white-space: nowrap; }\n"
	      "td .option { display: block; min-width: 18rem; white-space: normal; } tr.sum { font-weight: 600; }\n"
	      "summary { cursor: pointer; padding: .4rem 0; color: var(--accent); }\n"
	      "svg { display: block; font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; }\n"
	      "svg text { fill: var(--ink); } svg text.f { fill: var(--faint); font-size: 11px; }\n"
	      "svg .m { text-anchor: middle; } svg .e { text-anchor: end; } svg .b { font-weight: 600; }\n"
	      "svg .h { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }\n"
	      ".grid { stroke: var(--line); } .a { fill: var(--accent); } .c { fill: var(--accent); }\n"
	      ".line { fill: none; stroke: var(--accent); stroke-width: 1.5; }\n"
	      ".tick { stroke: var(--accent); stroke-width: 1.5; stroke-opacity: .55; fill: none; }\n"
	      ".floor { stroke: var(--ink); stroke-width: 2; } .miss { stroke: var(--bad); stroke-width: 2; }\n"
	      ".best { fill: none; stroke: var(--accent); stroke-width: 2; } .step { fill: var(--ink); }\n"
	      ".band { fill: var(--faint); fill-opacity: .14; }\n"
	      ".ring { fill: none; stroke: var(--faint); stroke-width: 1.5; } .other { fill: var(--faint); }\n"
	      ".o0 { fill-opacity: .06; } .o1 { fill-opacity: .12; } .o2 { fill-opacity: .18; }\n"
	      ".o3 { fill-opacity: .24; } .o4 { fill-opacity: .3; } .o5 { fill-opacity: .36; }\n"
	      ".o6 { fill-opacity: .42; } .o7 { fill-opacity: .48; } .o8 { fill-opacity: .54; }\n"
	      ".o9 { fill-opacity: .6; }\n"
	      "@media (max-width: 30rem) { h1 { font-size: 1.25rem; } .tiles { grid-template-columns: 1fr 1fr; } }\n"
	      /* Dark text on white, also from a dark screen; tables as narrow as the paper. */
	      "@media print { :root { color-scheme: light; " LIGHT " }\n"
	      "  body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }\n"
	      "  .scroll { overflow: visible; background: none; } table { font-size: 8pt; }\n"
	      "  th, td { padding: .2rem .45rem; }\n"
	      "  td code { display: inline-block; min-width: 9rem; white-space: normal; }\n"
	      "  figure, table, tr, li, .tiles { break-inside: avoid; }\n"
	      "  h2, h3, .lead { break-after: avoid; } svg { max-width: 100%; height: auto; } }\n"
	      "</style>\n",
	      out);
}
