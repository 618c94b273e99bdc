"""Match globs against the paths of files, and recognise the names of files that are not data."""

from __future__ import annotations

import re

EVERYTHING = "**"
"""The glob of all files of a folder and its subfolders."""
_SPECIAL = "*?["
# Files and folders beside the data in a folder that was downloaded, or that Spark or Beam wrote.
_NOT_DATA = re.compile(
    r"[._].*|lost\+found|(readme|license|licence|changelog|citation)([._-].*)?"
    r"|.*\.(md|rst|crc|md5|sha256)",
    re.IGNORECASE,
)
# A `]` directly after `[` or `[!` is a character of the set, and does not end the set.
_SET = re.compile(r"\[(!?)(\][^\]/]*|[^\]/]+)\]")


def is_data(relative: str) -> bool:
    """Return whether a file or folder counts as data, by its path relative to the input folder."""
    return not any(_NOT_DATA.fullmatch(part) for part in relative.split("/") if part)


def literal_prefix(glob: str) -> str:
    """Return the part of a glob before its first special character."""
    return re.split(r"[*?\[]", glob, maxsplit=1)[0]


def is_literal(glob: str) -> bool:
    """Return whether a glob has no special character and therefore matches a single name."""
    return not any(character in glob for character in _SPECIAL)


def compile_glob(glob: str) -> re.Pattern[str]:
    """Compile a glob into a pattern for `fullmatch` on a relative path with `/` in it.

    `?` matches one character, and `*` any number of characters within a folder. `[abc]` and
    `[!abc]` match one character; a `[` without a `]` matches itself. `**` matches any number of
    characters across folders, and `**/` any number of folders, including none.
    """
    parts, at = [], 0
    while at < len(glob):
        starts_name = at == 0 or glob[at - 1] == "/"
        if starts_name and glob.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif glob.startswith("**", at):
            parts.append(".*")
            at += 2
        elif glob[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            parts.append("[^/]")
            at += 1
        elif found := _SET.match(glob, at):
            parts.append(_one_of(found[2], negated=bool(found[1])))
            at = found.end()
        else:
            parts.append(re.escape(glob[at]))
            at += 1
    return re.compile("".join(parts), re.DOTALL)


def _one_of(characters: str, negated: bool) -> str:
    choices = ""
    for first, last, single in re.findall(r"(.)-(.)|(.)", characters, re.DOTALL):
        if single:
            choices += re.escape(single)
        elif first <= last:
            choices += f"{re.escape(first)}-{re.escape(last)}"
    if negated:
        return f"[^/{choices}]"
    return f"(?!/)[{choices}]" if choices else "(?!)"
