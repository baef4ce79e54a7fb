"use strict";
// The switch between the versions of the documentation. scripts/documentation_versions.py puts the versions and their pages
// before this text: VERSIONS has the paths of the pages by version.

const site = new URL(".", document.currentScript.src);

/** Return the version and the path of a page of the site. */
function placeOf(address) {
  const [version, ...path] = new URL(address).pathname.slice(site.pathname.length).split("/");
  return { version, page: path.join("/") || "index.html" };
}

/** Return the address of a page in another version, or of its first page if it does not have this one. */
function addressIn(version, page) {
  return new URL(`${version}/${VERSIONS[version].includes(page) ? page : "index.html"}`, site);
}

function showSwitch() {
  const { version, page } = placeOf(document.location.href);
  const select = document.createElement("select");
  select.setAttribute("aria-label", "Version of the documentation");
  select.style.cssText = "margin: 0 var(--sidebar-item-spacing-horizontal); font: inherit;";
  for (const each of Object.keys(VERSIONS)) select.add(new Option(each, each, each === version, each === version));
  select.addEventListener("change", () => document.location.assign(addressIn(select.value, page)));
  document.querySelector(".sidebar-brand").after(select);
}

addEventListener("DOMContentLoaded", showSwitch);
