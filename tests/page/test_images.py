"""The images that the page shows by itself: no image of a server keeps the browser busy."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.page.browser import Browser

pytestmark = pytest.mark.slow("A browser goes through many pages.")

FILES = Path(__file__).parents[2] / "src" / "funcmcp" / "_page" / "files"
NAMES = ("elements.js", "markdown.js", "fields.js", "images.js")
SCRIPT = "\n".join((FILES / name).read_text(encoding="utf-8") for name in NAMES)

START = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"'
LAUGHS = "".join(f'<g id="a{level + 1}">' + f'<use href="#a{level}"/>' * 10 + "</g>" for level in range(12))
BOMB = f'{START}><g id="a0"><circle r="9"/></g>{LAUGHS}</svg>'
PLAIN = [
    f'{START}><path d="M8 1l3 14-10-8h14L5 15z"/></svg>',
    f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- a - b -->\n<!DOCTYPE svg PUBLIC "-//W3C" "x.dtd">\n{START}/>',
    f'{START} fill="none" stroke="currentColor" class="icon" aria-hidden="true"><circle r="10"></circle></svg>',
    f'{START}><g clip-path="url(#a)"><rect width="9"/></g><clipPath id="a"><path d="M0 0h9"/></clipPath></svg>',
    f'{START}><linearGradient id="b"><stop offset="1"/></linearGradient><rect fill="url(#b)"/></svg>',
    f"{START} style='fill-rule:evenodd; fill: rgb(1, 2, 3);'><title>A &amp; B</title><text x='1'>B</text></svg>\n",
]
COSTLY = [
    *("", "text", "<html></html>", f"{START}", f"{START}><g></svg></g>", BOMB),
    *(
        f"{START}><{name}/></svg>"
        for name in ("image", "pattern", "filter", "mask", "marker", "animate", "foreignObject")
    ),
    *(f"{START}><{name}>x</{name}></svg>" for name in ("style", "script", "a:use", "Path", "set")),
    *(
        f'{START}><path {member}="1"/></svg>'
        for member in ("filter", "mask", "stroke-dasharray", "href", "xlink:href", "onload")
    ),
    f'{START}><path style="fill:red;filter:blur(9px)"/></svg>',
    f'{START}><path fill="u\\72l(#a)"/></svg>',
    f'{START}><path fill="url(https://a.example/x)"/></svg>',
    f'{START}><path fill="&#117;rl(#a)"/></svg>',
    f'{START}><clipPath id="a"><path clip-path="url(#b)"/></clipPath></svg>',
    f'{START}><clipPath id="a">' + "<path/>" * 20 + "</clipPath>" + '<g clip-path="url(#a)"/>' * 20 + "</svg>",
    f"{START}>{'<g>' * 30}{'</g>' * 30}</svg>",
    f"{START}>{'<path/>' * 301}</svg>",
    f"{START}><path d='{'M0 0' * 5001}'/></svg>",
    f'<!DOCTYPE svg [<!ENTITY a "b">]>{START}>&a;</svg>',
    "<!-- - -->" * 1999 + "<sv",
    f"{START} {' ' * 19_000}<",
    f"{START}><path " + 'a="b" ' * 3000 + "=</svg>",
]


def png_of(width: int, height: int) -> str:
    """Return a white PNG as a `data:` URL."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes((width + 7) // 8 + 1) * height))
    data = b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


PLAY = """
await page.setContent('<main></main><div id="announcement"></div>');
return await page.evaluate(async ({ source, svgs, urls }) => {
    const { plainSvg, picture } = new Function(`${source}; return { plainSvg, picture };`)();
    const pictures = urls.map((url) => picture(url, "A picture"));
    document.querySelector("main").append(...pictures);
    while (pictures.some((node) => !node.firstChild)) await new Promise((resolve) => setTimeout(resolve, 20));
    return { plain: svgs.map((text) => plainSvg(text) !== null),
        pictures: pictures.map((node) => node.textContent || node.firstChild.src.slice(0, 15)) };
}, args);
"""


def test_only_small_images_of_plain_shapes_are_shown_by_themselves(browser: Browser) -> None:
    urls = [
        png_of(10, 10),
        png_of(8000, 8000),
        f"data:image/svg+xml;base64,{base64.b64encode(PLAIN[0].encode()).decode()}",
        f"data:image/svg+xml;base64,{base64.b64encode(BOMB.encode()).decode()}",
        "data:image/png;base64,AAAA",
    ]
    seen = browser.play(PLAY, {"source": SCRIPT, "svgs": PLAIN + COSTLY, "urls": urls})
    assert seen["plain"] == [True] * len(PLAIN) + [False] * len(COSTLY)
    small, many_pixels, drawing, bomb, broken = seen["pictures"]
    assert (small, drawing) == ("data:image/png;", "data:image/svg+")
    assert many_pixels.startswith("The image has 8,000 × 8,000 pixels, so it is not shown by itself.")
    assert bomb.startswith("This drawing (SVG) has parts that can keep a browser busy, so it is not shown by itself.")
    assert broken.startswith("The image can't be shown.")
