"""Reads and writes image files with Pillow."""

import base64
import io
from typing import Any

from .errors import invalid


def read_image(path: str, mode: str = 'RGB') -> Any:
    """The image upright, as Pillow's. Raises EngineError 400."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image).convert(mode)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise invalid('The image cannot be decoded.', 'invalid_image') from None


def fitted(path: str, width: int, height: int, mode: str = 'RGB') -> Any:
    """The image scaled to cover this size. Raises EngineError 400."""
    from PIL import Image, ImageOps

    return ImageOps.fit(read_image(path, mode), (width, height), Image.Resampling.LANCZOS)


def centre(image: Any, width: int, height: int) -> Any:
    """The middle of a Pillow image."""
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def encoded(image: Any) -> str:
    """PNG in base64."""
    file = io.BytesIO()
    image.save(file, 'PNG')
    return base64.b64encode(file.getvalue()).decode()
