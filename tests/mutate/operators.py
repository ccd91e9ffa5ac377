"""What a mutant changes: source text to sites, a site to a changed line.

A site is a place in a line where an operator applies; sites lie outside of comments, strings and preprocessor lines.
"""

import re
from dataclasses import dataclass

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<="}
LOGIC = {"&&": "||", "||": "&&"}
STEPS = {"++": "--", "--": "++"}
NAMES = {"fmin": "fmax", "fmax": "fmin", "fminl": "fmaxl", "fmaxl": "fminl", "min": "max", "max": "min", "true": "false",
         "false": "true", "break": "continue", "continue": "break", "floor": "ceil", "ceil": "floor"}

# Whose arguments may change places: nothing could tell.
COMMUTE = {"ADD", "MUL", "MINIMUM", "MAXIMUM", "min", "max", "fmin", "fmax", "fminl", "fmaxl", "hypot", "hypotl",
           "common_divisor", "common_multiple", "OP_SAVE_ARGS"}

TOKEN = re.compile(
    r"(?P<number>(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+(?:[eE][-+]?\d+)?)[uUlLfFh]*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>&|^!=?:;,(){}\[\].~])")


@dataclass(frozen=True)
class Site:
    operator: str
    line: int  # counted from 0
    column: int
    after: str  # the whole changed line


def blank(text, strings=False):
    """The text with comments, strings, characters and preprocessor lines as spaces; every place stays where it is. With
    `strings` it is what stands in strings that is left."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*',
                         re.S | re.M)
    if strings:
        inside = {}
        for match in pattern.finditer(text):
            places = range(match.start() + 1, match.end() - 1) if match[0][0] == '"' else ()
            inside.update((at, text[at]) for at in places)
        return "".join(inside.get(at, "\n" if letter == "\n" else " ") for at, letter in enumerate(text))
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def tokens(line):
    return list(TOKEN.finditer(line))


def ends_operand(token):
    return token is not None and (token.lastgroup in ("number", "name") or token[0] in (")", "]"))


def replaced(line, token, text):
    return line[:token.start()] + text + line[token.end():]


def of_signs(source, code):
    found = tokens(code)
    for i, token in enumerate(found):
        text, before = token[0], found[i - 1] if i else None
        binary = ends_operand(before) and before[0] not in ("return", "case", "sizeof")
        if token.lastgroup != "sign":
            continue
        for operator, table in (("relation", RELATIONS), ("logic", LOGIC), ("assignment", ASSIGNMENTS), ("step", STEPS)):
            if text in table:
                yield operator, token.start(), replaced(source, token, table[text])
        # "int *p" and "const char *" are no products.
        spaced = code[token.end():token.end() + 1] == " " and code[token.start() - 1:token.start()] == " "
        if text in ARITHMETIC and binary and spaced:
            yield "arithmetic", token.start(), replaced(source, token, ARITHMETIC[text])
        if text in ("!", "-", "~") and not binary:
            yield "sign", token.start(), replaced(source, token, "")


def of_words(source, code):
    for token in tokens(code):
        if token.lastgroup == "name" and token[0] in NAMES:
            yield "name", token.start(), replaced(source, token, NAMES[token[0]])
        if token.lastgroup != "number":
            continue
        digits = re.match(r"0[xX][0-9a-fA-F]+|\d+(?![\d.eE])|[\d.]+(?:[eE][-+]?\d+)?", token[0])[0]
        suffix = token[0][len(digits):]
        if re.fullmatch(r"\d+", digits):
            steps = [str(int(digits) + 1)] + ([str(int(digits) - 1)] if int(digits) else [])
        elif digits.lower().startswith("0x"):
            steps = [hex(int(digits, 16) + 1), hex(int(digits, 16) - 1)]
        else:
            steps = [repr(float(digits) * 1.5), repr(float(digits) + 1.0)]
        for step in dict.fromkeys(steps):
            yield "constant", token.start(), replaced(source, token, step + suffix)


def closing(code, opening):
    """Where the bracket that opens there closes, on the same line; None: further down."""
    depth = 0
    for i in range(opening, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    return None


def split_arguments(code, opening, end):
    parts, depth, start = [], 0, opening + 1
    for i in range(opening + 1, end):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if code[i] == "," and depth == 0:
            parts.append((start, i))
            start = i + 1
    return parts + [(start, end)]


def of_calls(source, code):
    for match in re.finditer(r"\b(\w+)(?:(?<=if) |(?<=while) )?\(", code):
        opening, end = match.end() - 1, closing(code, match.end() - 1)
        if end is None:
            continue
        if match[1] in ("if", "while"):
            yield "condition", match.start(), f"{source[:opening + 1]}!({source[opening + 1:end]}){source[end:]}"
            continue
        if match[1] in ("for", "switch", "sizeof", "return") or match[1] in COMMUTE:
            continue
        parts = split_arguments(code, opening, end)
        for (a, b), (c, d) in zip(parts, parts[1:]):
            first, second = source[a:b].strip(), source[c:d].strip()
            is_definition = re.search(r"\b(const|struct|float|int|int64_t|void|bool)\b", code[a:d])
            if first and second and first != second and not is_definition:
                swapped = source[:a] + source[a:b].replace(first, second) + "," + source[c:d].replace(second, first)
                yield "arguments", a, swapped + source[d:]


STATEMENT = re.compile(r"^\s*(?:(?:if|while) \(.*\) |else )?"
                       r"(?P<body>(?!(?:if|while|for|else|return|goto|typedef|extern|static|const|case|default)\b)"
                       r"[*&(]*[A-Za-z_][^;{}]*(?:=|\(|\+\+|--)[^;{}]*;)\s*$")
DECLARATION = re.compile(r"^(?:const |unsigned |struct )*[A-Za-z_]\w*(?:\s+\*?|\s*\*+\s*)[A-Za-z_]\w*(?:\[[^\]]*\])*\s*(?:=|;|,|\()")


def of_statements(source, code):
    match = STATEMENT.match(code)
    balanced = match and match["body"].count("(") == match["body"].count(")")
    if balanced and not DECLARATION.match(match["body"]):
        yield "statement", match.start("body"), source[:match.start("body")] + ";" + source[match.end("body"):]


def sites(text, strings=False):
    """All sites of a text, in order; with `strings` those in its strings, which are code of another language."""
    found = []
    for number, (source, code) in enumerate(zip(text.split("\n"), blank(text, strings).split("\n"))):
        for operators in (of_signs, of_words, of_calls, of_statements):
            for operator, column, after in operators(source, code):
                if after != source:
                    found.append(Site(operator, number, column, after))
    return found
