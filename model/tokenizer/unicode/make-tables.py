#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make-tables.py FOLDER - write the Unicode tables of the tokenizer: category_table.h, property_table.h,
script_table.h, fold_table.h, lower_table.h, normal_table.h, compatible_table.h, compatible_text.h and stable_table.h.

The tables reproduce the Python package `tokenizers`, version 0.23, whose parts use different Unicode versions. Each table is
therefore derived from the package's results for every code point. Only a developer needs the package."""

import sys
import textwrap

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
EVERYTHING = "".join(map(chr, CODES))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cs Cn".split()
LONG = """uppercase_letter lowercase_letter titlecase_letter modifier_letter other_letter nonspacing_mark spacing_mark
    enclosing_mark decimal_number letter_number other_number connector_punctuation dash_punctuation open_punctuation
    close_punctuation initial_punctuation final_punctuation other_punctuation math_symbol currency_symbol modifier_symbol
    other_symbol space_separator line_separator paragraph_separator control format private_use surrogate
    unassigned""".split()
PROPERTIES = """L=letter LC=cased_letter M=mark=combining_mark N=number P=punctuation S=symbol Z=separator C=other any assigned
    ascii alphabetic=alpha uppercase=upper lowercase=lower white_space=space=blank_ alnum digit punct xdigit graph print
    blank cntrl emoji emoji_presentation extended_pictographic""".replace("=blank_", "").split()
SCRIPTS = """
    Adlam=Adlm Caucasian_Albanian=Aghb Ahom=Ahom Arabic=Arab Imperial_Aramaic=Armi Armenian=Armn Avestan=Avst
    Balinese=Bali Bamum=Bamu Bassa_Vah=Bass Batak=Batk Bengali=Beng Bhaiksuki=Bhks Bopomofo=Bopo Brahmi=Brah
    Braille=Brai Buginese=Bugi Buhid=Buhd Chakma=Cakm Canadian_Aboriginal=Cans Carian=Cari Cham=Cham Cherokee=Cher
    Chorasmian=Chrs Coptic=Copt=Qaac Cypro_Minoan=Cpmn Cypriot=Cprt Cyrillic=Cyrl Devanagari=Deva Dives_Akuru=Diak
    Dogra=Dogr Deseret=Dsrt Duployan=Dupl Egyptian_Hieroglyphs=Egyp Elbasan=Elba Elymaic=Elym Ethiopic=Ethi
    Garay=Gara Georgian=Geor Glagolitic=Glag Gunjala_Gondi=Gong Masaram_Gondi=Gonm Gothic=Goth Grantha=Gran
    Greek=Grek Gujarati=Gujr Gurung_Khema=Gukh Gurmukhi=Guru Hangul=Hang Han=Hani Hanunoo=Hano Hatran=Hatr
    Hebrew=Hebr Hiragana=Hira Anatolian_Hieroglyphs=Hluw Pahawh_Hmong=Hmng Nyiakeng_Puachue_Hmong=Hmnp
    Old_Hungarian=Hung Old_Italic=Ital Javanese=Java Kayah_Li=Kali Katakana=Kana Kawi=Kawi Kharoshthi=Khar
    Khmer=Khmr Khojki=Khoj Khitan_Small_Script=Kits Kannada=Knda Kirat_Rai=Krai Kaithi=Kthi Tai_Tham=Lana Lao=Laoo
    Latin=Latn Lepcha=Lepc Limbu=Limb Linear_A=Lina Linear_B=Linb Lisu=Lisu Lycian=Lyci Lydian=Lydi Mahajani=Mahj
    Makasar=Maka Mandaic=Mand Manichaean=Mani Marchen=Marc Medefaidrin=Medf Mende_Kikakui=Mend
    Meroitic_Cursive=Merc Meroitic_Hieroglyphs=Mero Malayalam=Mlym Modi=Modi Mongolian=Mong Mro=Mroo
    Meetei_Mayek=Mtei Multani=Mult Myanmar=Mymr Nag_Mundari=Nagm Nandinagari=Nand Old_North_Arabian=Narb
    Nabataean=Nbat Newa=Newa Nko=Nkoo Nushu=Nshu Ogham=Ogam Ol_Chiki=Olck Ol_Onal=Onao Old_Turkic=Orkh Oriya=Orya
    Osage=Osge Osmanya=Osma Old_Uyghur=Ougr Palmyrene=Palm Pau_Cin_Hau=Pauc Old_Permic=Perm Phags_Pa=Phag
    Inscriptional_Pahlavi=Phli Psalter_Pahlavi=Phlp Phoenician=Phnx Miao=Plrd Inscriptional_Parthian=Prti
    Rejang=Rjng Hanifi_Rohingya=Rohg Runic=Runr Samaritan=Samr Old_South_Arabian=Sarb Saurashtra=Saur
    SignWriting=Sgnw Shavian=Shaw Sharada=Shrd Siddham=Sidd Khudawadi=Sind Sinhala=Sinh Sogdian=Sogd
    Old_Sogdian=Sogo Sora_Sompeng=Sora Soyombo=Soyo Sundanese=Sund Sunuwar=Sunu Syloti_Nagri=Sylo Syriac=Syrc
    Tagbanwa=Tagb Takri=Takr Tai_Le=Tale New_Tai_Lue=Talu Tamil=Taml Tangut=Tang Tai_Viet=Tavt Telugu=Telu
    Tifinagh=Tfng Tagalog=Tglg Thaana=Thaa Thai=Thai Tibetan=Tibt Tirhuta=Tirh Tangsa=Tnsa Todhri=Todr Toto=Toto
    Tulu_Tigalari=Tutg Ugaritic=Ugar Vai=Vaii Vithkuqi=Vith Warang_Citi=Wara Wancho=Wcho Old_Persian=Xpeo
    Cuneiform=Xsux Yezidi=Yezi Yi=Yiii Zanabazar_Square=Zanb Inherited=Zinh=Qaai Common=Zyyy Unknown=Zzzz""".split()


def matched(expression, text=EVERYTHING):
    """The code points of a text that a one-character expression matches."""
    parts = pre_tokenizers.Split(Regex(expression), "removed", True).pre_tokenize_str(text)
    return {ord(c) for part, _ in parts for c in part}


def known(name):
    try:
        matched(f"\\p{{{name}}}", "a")
        return True
    except Exception:
        return False


def runs(codes):
    """The boundaries of runs: the first code point of a run, the first one after it, and so on."""
    codes, bounds = sorted(codes), []
    for c in codes:
        if bounds and (bounds[-1] == c or (bounds[-1] == 0xD800 and c == 0xE000)):
            bounds[-1] = c + 1
        else:
            bounds += [c, c + 1]
    return bounds


def changes(value_of):
    """The code points where a value changes, each with the value."""
    rows, before = [], None
    for c in CODES:
        if value_of[c] != before:
            before = value_of[c]
            rows.append((c, before))
    return rows


def array(kind, name, values):
    body = textwrap.fill(", ".join(hex(v) for v in values), 110, initial_indent="\t", subsequent_indent="\t")
    return f"static const {kind} {name}[] = {{\n{body}\n}};\n"


def plain(names):
    return names.replace("_", "").replace("\\", "\\\\").lower()


def write(folder, name, comment, *parts):
    with open(f"{folder}/{name}", "w", encoding="ascii") as out:
        comment = textwrap.fill(comment, 112, initial_indent=" * ", subsequent_indent=" * ")
        out.write("/* SPDX-License-Identifier: Apache-2.0 */\n/*\n" + comment + "\n * Written by make-tables.py.\n */\n")
        out.write("\n#include <stdint.h>\n\n/* clang-format off */\n" + "\n".join(parts))


def categories(folder):
    of = dict.fromkeys(CODES, len(CATEGORIES) - 1)
    for number, name in enumerate(CATEGORIES):
        for c in matched(f"\\p{{{name}}}") if name not in ("Cs", "Cn") else ():
            of[c] = number
    write(folder, "category_table.h", "General categories of regular expressions: code point * 32 + category, at each "
          "change of the category.", array("uint32_t", "category_change", [c << 5 | v for c, v in changes(of)]))
    return of


def numeric():
    text = "a" + "".join(chr(c) + "a" for c in CODES)
    return {ord(t) for t, _ in pre_tokenizers.Digits(True).pre_tokenize_str(text) if len(t) == 1} - {ord("a")}


def single_word():
    """The characters that prevent a match of an adjacent single_word token."""
    t = Tokenizer(models.BPE(vocab={}, merges=[]))
    t.add_tokens([AddedToken("++", single_word=True, normalized=False)])
    return {c for c in CODES if not t.encode(chr(c) + "++").ids}


def bert(**options):
    """A BertNormalizer with these options only."""
    every = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
    return normalizers.BertNormalizer(**{**every, **options}).normalize_str


def bert_properties():
    """The characters that BERT's tokenizer removes as controls or accents, surrounds by blanks, or splits at."""
    clean, chinese, accents = bert(clean_text=True), bert(handle_chinese_chars=True), bert(strip_accents=True)
    punctuation = pre_tokenizers.Punctuation("isolated").pre_tokenize_str
    nfd = normalizers.NFD().normalize_str
    between = {c: f"a{chr(c)}a" for c in CODES}
    return ({c for c in CODES if clean(between[c]) == "aa"},
            {ord(m) for c in CODES for m in nfd(chr(c)) if m not in accents(chr(c))},
            {c for c in CODES if " " in chinese(between[c]) and c != ord(" ")},
            {c for c in CODES if len(punctuation(between[c])) == 3})


def properties(folder, category):
    sizes = [0] * len(CATEGORIES)
    for c in CODES:
        sizes[category[c]] += 1
    rows, toggles = [], []

    def add(names, codes, by_category=True):
        inside = [0] * len(CATEGORIES)
        for c in codes:
            inside[category[c]] += 1
        mask = sum(1 << i for i, n in enumerate(inside) if by_category and 2 * n > sizes[i])
        bounds = runs({c for c in CODES if (c in codes) != (mask >> category[c] & 1)})
        rows.append(f'\t{{ "{plain(names)}", {mask:#x}, {len(toggles)}, {len(bounds)} }},\n')
        toggles.extend(bounds)

    for short, long in zip(CATEGORIES, LONG):
        add(f"{short}={long}", {c for c in CODES if CATEGORIES[category[c]] == short})
    for names in PROPERTIES:
        add(names, matched(f"\\p{{{names.split('=')[0]}}}"))
    for names in "\\d", "\\s", "word=\\w", "[word]":  # in a set, \w is another class
        add(names, matched("[\\w]" if names == "[word]" else "\\" + names[-1]))
    add("\\numeric", numeric())
    add("\\word", single_word())
    for name, codes in zip(("control", "accent", "chinese", "punctuation"), bert_properties()):
        add("\\" + name, codes, name != "chinese")
    write(folder, "property_table.h", "Properties of characters. Names with a backslash: escapes of regular "
          "expressions ([word] is \\w in a set), digits of the pre-tokenizer Digits, word characters next to single_word tokens, "
          "and what BERT's tokenizer removes, isolates or splits at.",
          "/* Names, a bit mask of the categories that have the property, and the range of exception_change with the exceptions. */\n"
          "static const struct {\n\tconst char *names;\n\tuint32_t categories;\n\tuint16_t first, count;\n"
          "} property[] = {\n" + "".join(rows) + "};\n",
          f"enum {{\n\tNUMERIC_PROPERTY = {len(rows) - 6},\n\tWORD_PROPERTY,\n\tCONTROL_PROPERTY,\n\tACCENT_PROPERTY,\n"
          "\tCHINESE_PROPERTY,\n\tPUNCTUATION_PROPERTY\n};\n",
          array("uint32_t", "exception_change", toggles))


def scripts(folder, assigned):
    of, rows = dict.fromkeys(CODES, 0), ['\t"unknown=zzzz",\n']
    for names in SCRIPTS:
        number = len(rows)
        for name in names.split("="):
            if not known(name):
                sys.exit(f"make-tables.py: {name}: not a script")
        if names == "Unknown=Zzzz":
            continue
        for c in matched(f"\\p{{{names.split('=')[0]}}}", assigned):
            of[c] = number
        rows.append(f'\t"{plain(names)}",\n')
    assert len(rows) <= 256
    write(folder, "script_table.h", "Scripts of regular expressions: code point * 256 + script, at each change.",
          "static const char *const script_names[] = {\n" +
          textwrap.fill(" ".join(row.strip() for row in rows), 110, initial_indent="\t", subsequent_indent="\t") + "\n};\n",
          array("uint32_t", "script_change", [c << 8 | v for c, v in changes(of)]))


def cased(category):
    """All characters with case: those of Python, and the letters of newer Unicode versions."""
    found = {c for c in CODES if CATEGORIES[category[c]] in ("Lu", "Ll", "Lt")}
    for c in CODES:
        for other in (chr(c).lower(), chr(c).upper(), chr(c).title(), chr(c).casefold()):
            if other != chr(c):
                found |= {c, *map(ord, other)}
    return "".join(map(chr, sorted(found)))


def mapping_runs(of):
    """A mapping of characters as runs: first, count, step, distance to the result."""
    rows = []
    for c, to in sorted(of.items()):
        if c == to:
            continue
        if rows:
            first, count, step, delta = rows[-1]
            last = first + (count - 1) * step
            if delta == to - c and (c - last == step or (count == 1 and c - last <= 2)):
                rows[-1] = (first, count + 1, c - last, delta)
                continue
        rows.append((c, 1, 1, to - c))
    return rows


def lower(folder):
    lowered = bert(lowercase=True)
    of = {c: lowered(chr(c)) for c in CODES}
    assert [c for c in CODES if len(of[c]) > 1] == [0x130] and of[0x130] == "i\u0307"
    rows = mapping_runs({c: ord(to) for c, to in of.items() if len(to) == 1})
    write(folder, "lower_table.h", "Lower case of characters, other than U+0130, which becomes i and U+0307.",
          "/* First of a run, count, step, and the result of the first; the others are as far away. */\n" +
          array("uint32_t", "lower_run", [v for f, n, s, d in rows for v in (f, n, s, f + d)]))


def folds(folder, category):
    text, of, several = "\0".join(cased(category)), {}, []
    for c in map(ord, text.replace("\0", "")):
        equal = matched(f"(?i:\\x{{{c:x}}})", text)
        lower = chr(min(equal)).lower()
        of[c] = ord(lower) if len(lower) == 1 and ord(lower) in equal else max(equal)
    rows = mapping_runs(of)
    for c in of:
        letters = chr(c).casefold()
        if len(letters) > 1 and pre_tokenizers.Split(
                Regex(f"(?i:\\x{{{c:x}}})"), "removed", True).pre_tokenize_str(letters) == [(letters, (0, len(letters)))]:
            several.append((c, of.get(ord(letters[0]), ord(letters[0])), of.get(ord(letters[1]), ord(letters[1]))))
    write(folder, "fold_table.h", "Case folding of regular expressions. Characters with the same result are equal "
          "without case.", "/* `count` characters from `first` on, `step` apart, fold to the characters `delta` away. */\n"
          "static const struct {\n\tuint32_t first;\n\tuint16_t count, step;\n\tint32_t delta;\n} fold_run[] = {\n" +
          textwrap.fill(" ".join(f"{{ {f:#x}, {n}, {s}, {d} }},".replace(" ", "~") for f, n, s, d in rows), 110,
                        initial_indent="\t", subsequent_indent="\t").replace("~", " ") +
          "\n};\n",
          "/* Characters that equal a sequence without case, each followed by the first two of the sequence, folded. */\n" +
          array("uint32_t", "several_fold", [v for row in sorted(several) for v in row]))


def combining_classes(form):
    """Found by which marks swap places with one mark of each class. Those marks come from Python, as classes are stable."""
    import unicodedata
    marks = {unicodedata.combining(chr(c)): chr(c) for c in reversed(CODES)
             if unicodedata.combining(chr(c)) == 240 or form("\u0345" + chr(c)) == chr(c) + "\u0345"}
    order, of = sorted(marks), dict.fromkeys(CODES, 0)
    for c in CODES:
        if form(chr(c)) != chr(c) or (form(chr(c) + marks[1]) == chr(c) + marks[1] and
                                      form(marks[240] + chr(c)) == marks[240] + chr(c) and chr(c) not in marks.values()):
            continue
        of[c] = next(v for v in order if form(chr(c) + marks[v]) == chr(c) + marks[v])
        assert form(marks[of[c]] + chr(c)) == marks[of[c]] + chr(c)
    return of


def normal_forms(folder):
    nfc, nfd = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str
    nfkc, nfkd = normalizers.NFKC().normalize_str, normalizers.NFKD().normalize_str
    class_of = combining_classes(nfd)
    singles, pairs, seconds, ones, several = [], [], set(), [], []
    for c in CODES:
        full = nfd(chr(c))
        if 0xAC00 <= c < 0xD7A4:
            continue
        if full != chr(c) and len(full) == 1:
            singles.append((c, ord(full)))
        elif full != chr(c):
            first = nfc(full[:-1])
            if len(first) > 1:  # composition exclusions
                first = next(chr(k) for k in CODES if nfd(chr(k)) == full[:-1])
            composes = nfc(full) == chr(c)
            pairs.append((c << 1 | composes, ord(first), ord(full[-1])))
            if composes:
                seconds.add(ord(full[-1]))
        elif nfkd(chr(c)) != chr(c):
            to = [ord(x) for x in nfkd(chr(c))]
            if len(to) > 1:
                several.append((c, to))
            elif ones and c - ones[-1][0] == to[0] - ones[-1][2] == ones[-1][1]:
                ones[-1][1] += 1
            else:
                ones.append([c, 1, to[0]])
    jamo = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    unstable = {c for c in CODES if class_of[c] or c in seconds or c in jamo or nfc(chr(c)) != chr(c)}
    composed = sorted((first, second, 3 * i) for i, (c, first, second) in enumerate(pairs) if c & 1)
    write(folder, "normal_table.h", "Canonical normal forms.",
          "/* Code point * 256 + combining class, at each change of the class. */\n" +
          array("uint32_t", "class_change", [c << 8 | v for c, v in changes(class_of)]),
          "/* Characters that decompose to one character, each followed by that character. */\n" + array("uint32_t", "single", [v for row in singles for v in row]),
          "/* Code point * 2 + (1 if the pair composes); first and second. */\n" +
          array("uint32_t", "pair", [v for row in pairs for v in row]),
          "/* Indices of the composing rows of `pair`, sorted by first and second. */\n" +
          array("uint16_t", "composition", [i for _, _, i in composed]))
    keys, pool = [], []
    for c, to in several:
        keys.append(c << 14 | len(pool))
        pool += to
    assert len(pool) < 1 << 14 and max(pool) < 1 << 16
    write(folder, "compatible_table.h", "Compatibility decompositions (NFKC).",
          "/* First of a run, count, and the decomposition of the first; the others follow in order. */\n" +
          array("uint32_t", "compatible_run", [v for row in ones for v in row]),
          "/* Code point * 16384 + index of its decomposition in compatible_text, which ends at the next row's index. */\n" +
          array("uint32_t", "compatible_key", keys + [len(pool)]))
    write(folder, "compatible_text.h", "The decompositions that compatible_key in compatible_table.h refers to.",
          array("uint16_t", "compatible_text", pool))
    write(folder, "stable_table.h", "Boundaries of runs of unstable characters, which some context changes in a normal form.",
          "/* NFC. */\n" + array("uint32_t", "unstable_change", runs(unstable)),
          "/* NFKC. */\n" + array("uint32_t", "compatible_unstable_change",
                                  runs(unstable | {c for c in CODES if nfkc(chr(c)) != chr(c)})))


def main(folder):
    category = categories(folder)
    assigned = "".join(chr(c) for c in CODES if CATEGORIES[category[c]] not in ("Cn", "Co"))
    properties(folder, category)
    scripts(folder, assigned)
    folds(folder, category)
    lower(folder)
    normal_forms(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
