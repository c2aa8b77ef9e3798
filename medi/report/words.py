"""A part and its whole -> the share as the report tells it: 0%, <0.1%, 0.4%, 7%, >99%, 100%.

The page's script has a twin of it, for what the page counts itself.
"""


def percent(part: float, whole: float) -> str:
    """Return a share: only none reads as 0% and only all as 100%; "–" of nothing."""
    if not whole:
        return "–"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "<0.1%"
    if 99.5 <= share < 100:
        return ">99%"
    return f"{share:.1f}%" if 0 < share < 0.95 else f"{share:.0f}%"
