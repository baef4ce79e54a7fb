// Images of the server. A few bytes can keep a browser busy for minutes: an SVG whose parts repeat each other, or a PNG with
// billions of pixels. So an SVG is shown by itself only if it consists of a few plain shapes, and any image only if it does not
// have too many pixels. What is left can be shown on request.

const IMAGES = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const SVG = "image/svg+xml";
const MAX_PIXELS = 40_000_000;
const MAX_SVG = 20_000;
const MAX_SVG_PARTS = 300;
const MAX_SVG_DEPTH = 20;
const MAX_SVG_CLIPS = 300; // the parts in clipPath, times the parts that they clip

// Nothing here refers to another part, except paints to gradients and clip-path to clipPath, which has no clip-path inside.
// Patterns, masks, markers, filters, `use`, animations, styles and dashes are left out: their cost has no bound.
const SVG_PARTS = new Set(["svg", "g", "defs", "title", "desc", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon",
  "text", "tspan", "linearGradient", "radialGradient", "stop", "clipPath"]);
const SVG_ATTRIBUTES = new Set(["xml:space", "enable-background", "version", "id", "class", "role", "focusable", "width", "height",
  "viewBox", "preserveAspectRatio", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "fx", "fy", "dx", "dy", "d", "points",
  "transform", "fill", "fill-rule", "fill-opacity", "clip-rule", "clip-path", "color", "stroke", "stroke-width", "stroke-linecap",
  "stroke-linejoin", "stroke-miterlimit", "stroke-opacity", "opacity", "offset", "stop-color", "stop-opacity", "gradientUnits",
  "gradientTransform", "spreadMethod", "clipPathUnits", "font-family", "font-size", "font-weight", "font-style", "text-anchor",
  "dominant-baseline"]);
const SVG_START = /^\ufeff?(?:\s|<\?xml[^?>]*\?>|<!--(?:[^-]|-(?!->))*-->|<!DOCTYPE[^[>]*>)*(?=<svg[\s>])/i;
const SVG_TOKEN = /<!--(?:[^-]|-(?!->))*-->|[^<]+|<(\/?)([A-Za-z]+)((?:\s+[A-Za-z_][\w:.-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y;
const SVG_ATTRIBUTE = /([A-Za-z_][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

/** Returns an SVG without its declarations, if it consists of a few plain shapes; null otherwise. */
function plainSvg(text) {
  if (text.length > MAX_SVG) return null;
  const start = SVG_START.exec(text);
  if (start === null) return null;
  const open = [];
  let [parts, clipParts, clipped] = [0, 0, 0];
  SVG_TOKEN.lastIndex = start[0].length;
  while (SVG_TOKEN.lastIndex < text.length) {
    const token = SVG_TOKEN.exec(text);
    if (token === null) return null;
    const [, isEnd, name, attributes, isEmpty] = token;
    if (name === undefined) continue;
    if (isEnd) {
      if (open.pop() !== name) return null;
      continue;
    }
    parts += 1;
    if (parts > MAX_SVG_PARTS || open.length > MAX_SVG_DEPTH || !SVG_PARTS.has(name)) return null;
    const isInClip = name === "clipPath" || open.includes("clipPath");
    const members = membersOf(attributes);
    if (!members.every(([key, value]) => isPlainAttribute(key, value, isInClip))) return null;
    clipParts += isInClip ? 1 : 0;
    clipped += members.some(([key]) => key === "clip-path") ? 1 : 0;
    if (clipParts * clipped > MAX_SVG_CLIPS) return null;
    if (!isEmpty) open.push(name);
  }
  return text.slice(start[0].length);
}

/** Returns the attributes of a tag, those in `style` among them. */
function membersOf(attributes) {
  const members = [...attributes.matchAll(SVG_ATTRIBUTE)].map(([, name, double, single]) => [name, double ?? single]);
  return members.flatMap(([name, value]) => (name === "style"
    ? value.split(";").filter((declaration) => declaration.trim()).map((declaration) => declaration.split(":", 2).map((part) => part.trim()))
    : [[name, value]]));
}

function isPlainAttribute(name, value = "", isInClip) {
  if (/^(?:aria-|data-|xmlns(?=:|$))/.test(name)) return true;
  if (!SVG_ATTRIBUTES.has(name) || (name === "clip-path" && isInClip)) return false;
  const isReference = /^\s*url\(#[\w.-]+\)[^(&\\]*$/.test(value);
  if (name === "clip-path") return isReference;
  return isReference || !/url\s*\(|[&\\]/i.test(value);
}

/** Returns the text of an SVG in a `data:` URL; null if it can't be read. */
function svgOf(url) {
  const comma = url.indexOf(",");
  try {
    const text = decodeURIComponent(url.slice(comma + 1));
    return /;\s*base64\s*$/i.test(url.slice(0, comma)) ? new TextDecoder().decode(bytesOf(text)) : text;
  } catch {
    return null;
  }
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** Returns a `data:` URL that is safe to show, as far as its kind says; null if it is not. The SVG in it is what was examined. */
function plainImage(url) {
  if (!url.toLowerCase().startsWith(`data:${SVG}`)) return url;
  const text = url.length > 4 * MAX_SVG ? null : svgOf(url);
  const svg = text === null ? null : plainSvg(text);
  return svg === null ? null : `data:${SVG};base64,${base64Of(new TextEncoder().encode(svg))}`;
}

/** Returns an image once its size is known. Browsers do not decode the pixels before it is in the document. */
function loadedImage(src, alt, maxPixels) {
  const { promise, resolve, reject } = Promise.withResolvers();
  const image = element("img", { alt, src, load: () => {
    const { naturalWidth: width, naturalHeight: height } = image;
    if (width * height <= maxPixels) resolve(image);
    else reject(new Error(`The image has ${width.toLocaleString()} × ${height.toLocaleString()} pixels, so it is not shown by itself.`));
  }, error: () => reject(new Error("The image can't be shown.")) });
  return promise;
}

/** Returns an image with its alternative text; a sentence and a button that shows it, if it may keep the browser busy. */
function picture(url, alt) {
  const node = element("div", {});
  const plain = plainImage(url);
  const onRequest = (sentence) => node.replaceChildren(
    element("p", { class: "quiet" }, sentence, " ",
      element("button", { type: "button", class: "small", click: () => node.replaceChildren(element("img", { src: url, alt })) }, "Show the image")));
  if (plain === null) onRequest("This drawing (SVG) has parts that can keep a browser busy, so it is not shown by itself.");
  else loadedImage(plain, alt, MAX_PIXELS).then((image) => node.replaceChildren(image), (error) => onRequest(error.message));
  return node;
}
