"""Letters that got their other case after Unicode 6.2, which Java 8 has: Java 11, 17 and 21 and each Python map them by releases of their own.

From the Unicode Character Database, DerivedAge.txt and UnicodeData.txt of 7.0 to 16.0. Classes of regular expressions as RE2 writes them.
"""

from __future__ import annotations

from typing import Final

_BOTH: Final = (
    r"\x{0528}-\x{052F}\x{2C2F}\x{2C5F}\x{A698}-\x{A69B}\x{A796}-\x{A79F}\x{A7AB}-\x{A7F7}\x{104B0}-\x{104FF}\x{10570}-\x{105BF}"
    r"\x{10C80}-\x{10CFF}\x{10D50}-\x{10D8F}\x{118A0}-\x{118DF}\x{16E40}-\x{16E7F}\x{1C89}\x{1C8A}\x{1E900}-\x{1E943}"
)
"""Blocks and ranges in which both cases are new."""
NEW_CAPITALS: Final = rf"[\x{{037F}}\x{{13A0}}-\x{{13F5}}\x{{1C90}}-\x{{1CBF}}{_BOTH}]"
"""Those that a lower case came to or that came themselves: Yot, Cherokee, Mtavruli."""
NEW_SMALL: Final = (
    r"[\x{019B}\x{025C}\x{0261}\x{0264}\x{026A}\x{026C}\x{0282}\x{0287}\x{029D}\x{029E}\x{03F3}\x{10D0}-\x{10FF}\x{13F8}-\x{13FD}"
    rf"\x{{1C80}}-\x{{1C88}}\x{{1D8E}}\x{{A794}}\x{{AB53}}\x{{AB70}}-\x{{ABBF}}{_BOTH}]"
)
"""Those that an upper case came to or that came themselves: Georgian, Cherokee, letters of phonetic alphabets."""
