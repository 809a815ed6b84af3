"""Turns tokens into text as they arrive, and ends it at a stop sequence."""

from collections.abc import Callable, Sequence

# What a decoder writes for the bytes of an unfinished character.
UNFINISHED = '\ufffd'

# The most tokens of one character: its bytes.
LONGEST_CHARACTER = 4


class TextPieces:
    """Text of tokens, in pieces that never change later."""

    def __init__(self, decode: Callable[[Sequence[int]], str], stops: Sequence[str] = ()) -> None:
        self._decode = decode
        self._stops = stops
        self._tokens: list[int] = []
        # Decoders join tokens by what precedes them, so each decoding begins at tokens that were decoded before.
        self._context = 0
        self._decoded = 0
        self._held = ''
        self.stopped = False
        """Whether a stop sequence has been reached. What follows is dropped."""

    def add(self, token: int) -> str:
        """The text that is known now: without a part that may begin a stop sequence or a character."""
        self._tokens.append(token)
        text = self._new_text()
        if text.endswith(UNFINISHED) and len(self._tokens) - self._decoded < LONGEST_CHARACTER:
            return ''
        self._context, self._decoded = self._decoded, len(self._tokens)
        return self._release(text, last=False)

    def end(self) -> str:
        """The text that was held back until the end."""
        return self._release(self._new_text(), last=True)

    def _new_text(self) -> str:
        before = self._decode(self._tokens[self._context : self._decoded])
        text = self._decode(self._tokens[self._context :])
        # Bytes of different characters may join to another one; then the new tokens stand alone.
        return text[len(before) :] if text.startswith(before) else self._decode(self._tokens[self._decoded :])

    def _release(self, text: str, last: bool) -> str:
        if self.stopped:
            return ''
        self._held += text
        ends = [at for at in (self._held.find(stop) for stop in self._stops) if at >= 0]
        if ends:
            self.stopped = True
            return self._held[: min(ends)]
        keep = 0 if last else max((_begun(self._held, stop) for stop in self._stops), default=0)
        released, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return released


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of the text are the beginning of a stop sequence."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
