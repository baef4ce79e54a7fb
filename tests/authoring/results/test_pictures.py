"""Figures and images of other libraries, by stand-ins with the names of their classes."""

from __future__ import annotations

import sys
import threading
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import pytest

from funcmcp import MCPServer, content
from funcmcp._authoring.results.pictures import Picture, is_picture_type, picture_of
from funcmcp.testing import Client

threads: list[threading.Thread] = []
"""The threads in which figures were drawn."""


class Figure:
    """A figure of matplotlib."""

    def savefig(self, file: Any, **options: Any) -> None:
        assert options == {"format": "png", "bbox_inches": "tight"}
        threads.append(threading.current_thread())
        file.write(b"\x89PNG figure")


Figure.__module__ = "matplotlib.figure"


class SubFigure:
    """A part of a figure of matplotlib."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure


class Axes:
    """Axes of matplotlib, as ``DataFrame.plot`` of pandas returns them."""

    def __init__(self, figure: Figure | SubFigure) -> None:
        self.figure = figure


Axes.__module__ = "matplotlib.axes._axes"


class Image:
    """An image of Pillow."""

    def __init__(self, mode: str = "RGB", format: str | None = None) -> None:
        self.mode, self.format = mode, format

    def convert(self, mode: str) -> Image:
        return Image(mode)

    def save(self, file: Any, format: str, **options: Any) -> None:
        assert options == ({"quality": "keep"} if format == "JPEG" else {})
        file.write(f"{format} {self.mode}".encode())


Image.__module__ = "PIL.Image"


class PhotoFile(Image):
    """A subclass of another library."""


PNG = {"type": "image", "data": b64encode(b"\x89PNG figure").decode(), "mimeType": "image/png"}


@pytest.mark.parametrize("value", [Figure(), Axes(Figure()), Axes(SubFigure(Figure()))])
def test_a_figure_is_a_png(value: Any) -> None:
    assert picture_of(value) == Picture(b"\x89PNG figure", "image/png")


@pytest.mark.parametrize(
    ("image", "data", "media_type"),
    [
        (Image("RGBA"), b"PNG RGBA", "image/png"),
        (Image("CMYK"), b"PNG RGB", "image/png"),
        (Image("RGBa"), b"PNG RGBA", "image/png"),
        (PhotoFile("CMYK", "JPEG"), b"JPEG CMYK", "image/jpeg"),
        (Image("P", "GIF"), b"PNG P", "image/png"),
    ],
)
def test_an_image_keeps_its_format_if_it_is_a_jpeg(image: Image, data: bytes, media_type: str) -> None:
    assert picture_of(image) == Picture(data, media_type)


def test_other_values_are_not_pictures() -> None:
    assert picture_of("text") is None
    assert not is_picture_type(SimpleNamespace)


def test_a_returned_figure_is_removed_from_pyplot(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", SimpleNamespace(close=closed.append))
    figure = Figure()
    picture_of(Axes(figure))
    assert closed == [figure]


async def test_tools_resources_and_prompts_return_figures() -> None:
    mcp = MCPServer("charts")

    @mcp.tool
    def untyped():  # type: ignore[no-untyped-def]
        """Draw a chart."""
        return Figure()

    @mcp.tool
    def typed() -> Figure:
        """Draw a chart."""
        return Figure()

    @mcp.tool
    def listed() -> list[Any]:
        """Draw a chart."""
        return ["Sales doubled.", Figure()]

    @mcp.resource("charts://sales")
    def sales() -> Figure:
        return Figure()

    @mcp.prompt
    def explain() -> list[Any]:
        """Explain a chart."""
        return ["Explain it.", Figure()]

    async with Client(mcp) as client:
        threads.clear()
        for name in ("untyped", "typed"):
            result = await client.call_tool(name)
            assert result.content == [PNG]
            assert result.structured_content is None
        assert threading.main_thread() not in threads
        assert (await client.call_tool("listed")).content == [{"type": "text", "text": "Sales doubled."}, PNG]
        assert "outputSchema" not in (await client.list_tools())[1]
        [contents] = (await client.read_resource("charts://sales")).contents
        assert (contents["mimeType"], contents["blob"]) == ("image/png", PNG["data"])
        messages = (await client.get_prompt("explain")).messages
        assert messages[1].content == PNG


class OpenedImage(Image):
    """An image that a stand-in of Pillow has opened."""

    def __init__(self, mode: str, format: str | None, size: tuple[int, int]) -> None:
        super().__init__(mode, format)
        self.size = size
        self.info = {"transparency": 0} if mode == "P" else {}

    def __enter__(self) -> OpenedImage:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def convert(self, mode: str) -> OpenedImage:
        return OpenedImage(mode, None, self.size)

    def thumbnail(self, size: tuple[int, int]) -> None:
        assert size == (1920, 1920)

    def save(self, file: Any, format: str, **options: Any) -> None:
        assert options == ({"quality": 90} if format == "JPEG" else {})
        file.write(f"{format} {self.mode}".encode())


def use_pillow(monkeypatch: pytest.MonkeyPatch, image: OpenedImage | None) -> None:
    """Let a stand-in of Pillow open each file as one image; None: it can read none."""

    def open_image(file: Any) -> OpenedImage:
        if image is None:
            raise LookupError
        return image

    pillow = SimpleNamespace(
        Image=SimpleNamespace(open=open_image),
        ImageOps=SimpleNamespace(exif_transpose=lambda image: image),
        UnidentifiedImageError=LookupError,
    )
    monkeypatch.setitem(sys.modules, "PIL", pillow)


@pytest.mark.parametrize(
    ("mode", "format", "data", "media_type"),
    [
        ("RGB", "JPEG", b"JPEG RGB", "image/jpeg"),
        ("CMYK", "JPEG", b"JPEG RGB", "image/jpeg"),
        ("RGBA", "PNG", b"PNG RGBA", "image/png"),
        ("P", "GIF", b"PNG RGBA", "image/png"),
    ],
)
def test_a_large_image_is_scaled_if_the_author_asks(
    monkeypatch: pytest.MonkeyPatch, mode: str, format: str, data: bytes, media_type: str
) -> None:
    use_pillow(monkeypatch, OpenedImage(mode, format, (4880, 2560)))
    block = content.Image(b"large", format="webp", max_edge=1920).block
    assert block == {"type": "image", "data": b64encode(data).decode(), "mimeType": media_type}


def test_a_small_image_is_not_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    use_pillow(monkeypatch, OpenedImage("RGB", "PNG", (1080, 1920)))
    block = content.Image(b"small", format="webp", max_edge=1920).block
    assert block == {"type": "image", "data": b64encode(b"small").decode(), "mimeType": "image/webp"}


def test_what_can_not_be_scaled_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for max_edge in (0, True, "1920"):
        with pytest.raises(ValueError, match="max_edge must be a number of pixels"):
            content.Image(b"small", max_edge=max_edge)  # type: ignore[arg-type]
    use_pillow(monkeypatch, None)
    with pytest.raises(ValueError, match="Pillow can't read the image"):
        content.Image(b"text", max_edge=1920)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ValueError, match="needs Pillow"):
        content.Image(b"small", max_edge=1920)
