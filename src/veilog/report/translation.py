"""What a release states of itself, in the language that is spoken."""

from __future__ import annotations

from veilog._language import gettext
from veilog.messages import Message, OwnerMessage


def stated(text: str | Message | OwnerMessage) -> str:
    """Return the sentence of a message, or a marked text, in the language that is spoken; any other text as it is."""
    return gettext(text) if isinstance(text, str) else str(text)
