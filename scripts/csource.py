"""C text for the check scripts: what is code in it, and where its functions are."""
import re

# One alternative each: comment, line comment, string, character constant.
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def blank(match):
    """As many lines, nothing on them."""
    return re.sub(r"[^\n]", " ", match.group())


def code(text):
    """The text with comments, strings and characters blanked out; lines and columns stay."""
    return NOT_CODE.sub(blank, text)


def signature_name(head):
    """The name before the last parentheses of what stands between two top-level items; None when it is no function."""
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S).rstrip()
    if not head.endswith(")"):
        return None
    depth, at = 0, len(head)
    while at and (depth or at == len(head)):
        at -= 1
        depth += {")": 1, "(": -1}.get(head[at], 0)
    name = re.search(r"([A-Za-z_]\w*)\s*$", head[:at])
    return name.group(1) if name else None


def functions(text):
    """(name, first line, last line) of every function: from its signature to its closing brace."""
    plain = DIRECTIVE.sub(blank, code(text))
    found, depth, begin, name, first = [], 0, 0, None, 0
    for at, char in enumerate(plain):
        if char == "{":
            if depth == 0:
                head = plain[begin:at]
                name = signature_name(head)
                first = plain.count("\n", 0, begin + len(head) - len(head.lstrip())) + 1
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                if name:
                    found.append((name, first, plain.count("\n", 0, at) + 1))
                begin = at + 1
        elif char == ";" and depth == 0:
            begin = at + 1
    return found
