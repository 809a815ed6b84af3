"""Errors that a caller of the engine sees."""


class EngineError(Exception):
    """An answer other than 2xx. `code` is one of the error codes of infer that has this status, or None."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code

    def body(self) -> dict:
        return {'error': {'message': self.message, **({'code': self.code} if self.code else {})}}


class Cancelled(Exception):
    """The caller has disconnected. Nothing is answered."""


def invalid(message: str, code: str = 'invalid_value') -> EngineError:
    """The request is invalid or can never run on this engine; it is not retried."""
    return EngineError(400, message, code)
