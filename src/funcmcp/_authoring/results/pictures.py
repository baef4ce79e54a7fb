"""Figures of matplotlib, and images of Pillow, that functions return; images that are made smaller.

How it works: a class is recognized by the library and the name of one of its bases, and no library is imported. A
figure becomes a PNG. An image keeps its format if it was read from a JPEG, which is smaller; others become a PNG.

``plt.subplots()`` registers each figure in pyplot, which keeps it until it is closed: a server would lose memory with
each call. Therefore a figure that is returned is removed from pyplot. The figure itself can still be used.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALED_MODES = frozenset({"L", "LA", "RGB", "RGBA"})
"""The modes in which Pillow makes images smaller without loss of quality."""

_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"})
"""The modes of Pillow's images that a PNG can have."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a format that clients show.

    Attributes:
        data: The bytes of its file.
        media_type: Its media type.
    """

    data: bytes
    media_type: str


def is_picture_type(kind: Any) -> bool:
    """Return whether `picture_of` converts the objects of a class."""
    return _conversion_of(kind) is not None


def picture_of(value: Any) -> Picture | None:
    """Return the picture that a figure or an image of another library is; None for other values."""
    kind: Any = type(value)
    convert = _conversion_of(kind)
    return None if convert is None else convert(value)


def scaled(data: bytes, max_edge: int) -> Picture | None:
    """Return an image whose longer edge has so many pixels, in the same proportions; None if it has no more now.

    A JPEG remains one, and others become a PNG.

    Raises:
        ValueError: The number is not positive, Pillow is missing, or it can't read the image.
    """
    if isinstance(max_edge, bool) or not isinstance(max_edge, int) or max_edge < 1:
        raise ValueError(f"max_edge must be a number of pixels; got {max_edge!r:.60}.")
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 - few authors scale images
    except ImportError:
        raise ValueError("Image(max_edge=) needs Pillow: pip install pillow.") from None
    try:
        image: Any = Image.open(BytesIO(data))
    except UnidentifiedImageError:
        raise ValueError("Image(max_edge=): Pillow can't read the image.") from None
    with image:
        if max(image.size) <= max_edge:
            return None
        is_jpeg = image.format == "JPEG"
        image = ImageOps.exif_transpose(image)  # the scaled image has no EXIF data, and so no orientation
        if image.mode not in _SCALED_MODES:
            has_alpha = "a" in image.mode.lower() or "transparency" in image.info
            image = image.convert("RGBA" if has_alpha else "RGB")
        image.thumbnail((max_edge, max_edge))
        buffer = BytesIO()
        if is_jpeg:
            image.save(buffer, "JPEG", quality=90)
            return Picture(buffer.getvalue(), "image/jpeg")
        image.save(buffer, "PNG")
        return Picture(buffer.getvalue(), "image/png")


def drawn(value: Any) -> Any:
    """Return the picture that a value is, or the value. A plain function's figure is drawn in its worker thread."""
    picture = picture_of(value)
    return value if picture is None else picture


@lru_cache(maxsize=1024)
def _conversion_of(kind: type) -> Callable[[Any], Picture] | None:
    for base in kind.__mro__:
        convert = _CONVERSIONS.get(f"{base.__module__.partition('.')[0]}.{base.__name__}")
        if convert is not None:
            return convert
    return None


def _as_it_is(picture: Picture) -> Picture:
    return picture


def _figure(figure: Any) -> Picture:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
    return Picture(buffer.getvalue(), "image/png")


def _figure_around(part: Any) -> Picture:
    """Return the figure that axes, or a grid of seaborn, belong to. Axes may be in a part of the figure."""
    figure = part.figure
    while not hasattr(figure, "savefig"):
        figure = figure.figure
    return _figure(figure)


def _pillow_image(image: Any) -> Picture:
    buffer = BytesIO()
    if image.format == "JPEG":
        image.save(buffer, "JPEG", quality="keep")
        return Picture(buffer.getvalue(), "image/jpeg")
    if image.mode not in _PNG_MODES:
        image = image.convert("RGBA" if "a" in image.mode.lower() else "RGB")
    image.save(buffer, "PNG")
    return Picture(buffer.getvalue(), "image/png")


_CONVERSIONS: dict[str, Callable[[Any], Picture]] = {
    "PIL.Image": _pillow_image,
    "funcmcp.Picture": _as_it_is,
    "matplotlib.Axes": _figure_around,
    "matplotlib.Figure": _figure,
    "seaborn._BaseGrid": _figure_around,
}
"""The functions that convert objects of a class and of its subclasses, by the library and the name of the class."""
