// The states of the other servers whose features this one has. The server sends them to a developer at its own machine only.

const MAX_UPSTREAMS = 200;

/** Returns a section with the states of upstreams, which is empty until they have come, and if there are none. */
function upstreamsSection() {
  const section = element("section", { class: "card", hidden: true });
  if (document.body.dataset.tracebacks !== undefined) showUpstreams(section);
  return section;
}

async function showUpstreams(section) {
  try {
    const response = await fetch(`${location.pathname}?upstreams`, { headers: { accept: "application/json" } });
    const upstreams = response.ok ? listOf(get(await response.json(), "upstreams")) : [];
    if (upstreams.length === 0) return;
    section.replaceChildren(element("h3", {}, "Other servers"),
      element("dl", { class: "facts" }, upstreams.slice(0, MAX_UPSTREAMS).map((upstream) => fact(asText(get(upstream, "name")), stateOf(upstream)))));
    section.hidden = false;
  } catch {
    // The page works without them.
  }
}

function stateOf(upstream) {
  const parts = [asText(get(upstream, "state"))];
  const since = get(upstream, "away_since");
  if (typeof since === "number") parts.push(`since ${new Date(since * 1000).toLocaleTimeString()}`);
  const reason = get(upstream, "last_error") ?? get(upstream, "list_error");
  if (typeof since === "number" && typeof reason === "string") parts.push(brief(reason, 300));
  const changed = listOf(get(upstream, "changed")).map(asText);
  if (changed.length) parts.push(`hidden, because they differ from the pinned ones: ${brief(changed.join(", "), 300)}`);
  return parts.join(", ");
}
