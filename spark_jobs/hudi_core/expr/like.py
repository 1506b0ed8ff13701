"""LIKE patterns: read in any dialect's spelling, written with the backslash as escape character."""

from __future__ import annotations

from hudi_core.errors import ConfigError


def like_tokens(pattern: str, escape: str = "\\") -> list[tuple[str, bool]]:
    """The characters of a pattern, each with whether it is literal.

    `escape` is one character, or empty for none. Raises ConfigError when an escape character ends the pattern.
    """
    tokens: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ConfigError(
                    f"the LIKE pattern {pattern!r} ends in its escape character",
                    remedy="write the escape character twice",
                )
            tokens.append((escaped, True))
        else:
            tokens.append((character, character not in "%_"))
    return tokens


def like_pattern(tokens: list[tuple[str, bool]]) -> str:
    """The pattern of `tokens`, with the backslash as escape character."""
    return "".join(f"\\{token}" if literal and token in "%_\\" else token for token, literal in tokens)
