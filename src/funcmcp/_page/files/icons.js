// Icons of the server and its features: `data:` URLs, and files of the server's own origin, which are fetched without
// credentials. Everything else has its first letter, also an SVG that does not consist of plain shapes (images.js).

const MAX_ICON = 65_536;
const MAX_ICON_PIXELS = 1024 * 1024;
const MAX_ICONS = 10; // of one definition
const MAX_ICON_FILES = 50;
const iconFiles = new Map();

/** Returns the icon of a definition, or the first letter of its title. */
function iconOf(definition, title) {
  const [letter = "?"] = title.trim();
  const node = element("span", { class: "icon", "aria-hidden": "true" }, letter.toUpperCase());
  const source = iconSources(definition)[0];
  if (source === undefined) return node;
  const show = async () => {
    const url = source.startsWith("data:") ? source : await fetchIcon(source);
    node.replaceChildren(await loadedImage(url, "", MAX_ICON_PIXELS));
  };
  show().catch(() => null);
  return node;
}

/** Returns the URLs of the icons that the page may show, best first. */
function iconSources(definition) {
  const icons = listOf(get(definition, "icons")).slice(0, MAX_ICONS).filter((icon) => typeof get(icon, "src") === "string");
  const rank = (icon) => [theme(), undefined].indexOf(get(icon, "theme"));
  const usable = icons.filter((icon) => rank(icon) >= 0).toSorted((first, second) => rank(first) - rank(second));
  return usable.map((icon) => ownImage(icon.src)).filter((source) => source !== null);
}

/** Returns the URL of an icon, if the page may show it; null otherwise. */
function ownImage(source) {
  const type = /^data:([a-z+/-]+)[;,]/.exec(source.slice(0, 40))?.[1];
  if (type !== undefined) return IMAGES.test(type) && source.length <= 2 * MAX_ICON ? plainImage(source) : null;
  try {
    const url = new URL(source, location.href);
    return url.origin === location.origin && externalUrl(url.href) ? url.href : null;
  } catch {
    return null;
  }
}

function fetchIcon(url) {
  if (!iconFiles.has(url)) {
    if (iconFiles.size >= MAX_ICON_FILES) return Promise.reject(new Error("There are too many icons."));
    iconFiles.set(url, readIcon(url));
  }
  return iconFiles.get(url);
}

async function readIcon(url) {
  const response = await fetch(url, { credentials: "omit", redirect: "error", headers: { Accept: "image/*" } });
  const type = (response.headers.get("Content-Type") ?? "").split(";")[0].trim().toLowerCase();
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!response.ok || !IMAGES.test(type) || bytes.length > MAX_ICON) throw new Error("This is not an icon.");
  const source = plainImage(`data:${type};base64,${base64Of(bytes)}`);
  if (source === null) throw new Error("This icon may keep the browser busy.");
  return source;
}
