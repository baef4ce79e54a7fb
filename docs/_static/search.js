"use strict";
// The search of the documentation. scripts/documentation_site.py writes the passages: [page, title, heading, anchor, text].
//
// How it works: a passage is the text under one heading. A page's score is that of its best passage plus that of the page as a
// whole, both by BM25, so that a page with all words near each other comes first, and a page that has them in several places
// comes before one that has a part of them. Words count more in a heading or a title. Pages for the developers of funcmcp and
// lists of signatures come after pages that explain.

const STOPWORDS = new Set(
  ("a an and are as at be by can do does for from how i if in into is it its my no not of on or that the then there these " +
    "they this to was what when where which why will with you your").split(" "),
);
const HEADING_WEIGHT = 3;
const TITLE_WEIGHT = 2;
const SATURATION = 1.2;
const LENGTH_NORM = 0.5;
const PAGE_WEIGHTS = [["development/", 0.5], ["reference/api/", 0.6]];

/** Return a word without the endings of English, so that `mounted` finds `mount`. */
function stem(word) {
  for (const ending of ["ing", "ed", "es", "s", "e"]) {
    if (word.endsWith(ending) && word.length - ending.length >= 4) return word.slice(0, -ending.length);
  }
  return word;
}

/** Return the words of a text. A word with dots, hyphens or slashes also counts as its parts. */
function wordsOf(text) {
  const words = [];
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}_]+(?:[.\-'][\p{L}\p{N}_]+)*/gu)) {
    const parts = word.split(/[.\-'_]/);
    for (const each of parts.length > 1 ? [word, ...parts] : parts) {
      if (each && !STOPWORDS.has(each)) words.push(stem(each));
    }
  }
  return words;
}

/** Return the number of times that each word occurs, weighted. */
function countsOf(fields) {
  const counts = new Map();
  for (const [text, weight] of fields) {
    for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + weight);
  }
  return counts;
}

/** Ranks texts, each of which is given as counts of its words. */
class Ranking {
  constructor(texts) {
    this.texts = texts;
    this.lengths = texts.map((counts) => [...counts.values()].reduce((sum, count) => sum + count, 0));
    this.meanLength = this.lengths.reduce((sum, length) => sum + length, 0) / texts.length;
    this.textsWith = new Map();
    for (const counts of texts) {
      for (const word of counts.keys()) this.textsWith.set(word, (this.textsWith.get(word) ?? 0) + 1);
    }
  }

  score(index, words) {
    let score = 0;
    for (const word of words) {
      const count = this.texts[index].get(word);
      if (count === undefined) continue;
      const having = this.textsWith.get(word);
      const rarity = Math.log(1 + (this.texts.length - having + 0.5) / (having + 0.5));
      const length = 1 - LENGTH_NORM + (LENGTH_NORM * this.lengths[index]) / this.meanLength;
      score += (rarity * count * (SATURATION + 1)) / (count + SATURATION * length);
    }
    return score;
  }
}

/** Return a function that takes what a reader types and returns `{page, title, heading, anchor, text}`, the best page first. */
function createSearch(passages) {
  const pages = [...new Set(passages.map(([page]) => page))];
  const ofPage = new Map(pages.map((page) => [page, []]));
  passages.forEach(([page], index) => ofPage.get(page).push(index));
  const passageRanking = new Ranking(
    passages.map(([, title, heading, , text]) =>
      countsOf([[text, 1], [heading, HEADING_WEIGHT], [title, TITLE_WEIGHT]])),
  );
  const pageRanking = new Ranking(
    pages.map((page) =>
      countsOf(ofPage.get(page).flatMap((index) => {
        const [, title, heading, anchor, text] = passages[index];
        return [[text, 1], [heading, HEADING_WEIGHT], [anchor ? "" : title, TITLE_WEIGHT]];
      }))),
  );

  return (query) => {
    const words = new Set(wordsOf(query));
    const results = [];
    pages.forEach((page, pageIndex) => {
      let best = { score: 0, index: -1 };
      for (const index of ofPage.get(page)) {
        const score = passageRanking.score(index, words);
        if (score > best.score) best = { score, index };
      }
      if (best.index < 0) return;
      const [, weight] = PAGE_WEIGHTS.find(([folder]) => page.startsWith(folder)) ?? ["", 1];
      const [, title, heading, anchor, text] = passages[best.index];
      results.push({
        page, title, heading, anchor, text, score: weight * (best.score + pageRanking.score(pageIndex, words)),
      });
    });
    return results.sort((a, b) => b.score - a.score);
  };
}

/** Return the part of a text that has most words of the query. */
function excerpt(text, words, size = 240) {
  const sentences = text.split(/(?<=[.:])\s+|\n+/);
  let best = { count: -1, start: 0 };
  sentences.forEach((sentence, start) => {
    const count = new Set(wordsOf(sentence).filter((word) => words.has(word))).size;
    if (count > best.count) best = { count, start };
  });
  const part = sentences.slice(best.start).join(" ");
  return part.length > size ? `${part.slice(0, part.lastIndexOf(" ", size))} …` : part;
}

/** Append a text to an element, with the words of the query marked. */
function appendMarked(element, text, words) {
  for (const part of text.split(/([\p{L}\p{N}_]+)/u)) {
    if (wordsOf(part).some((word) => words.has(word))) {
      element.appendChild(document.createElement("mark")).textContent = part;
    } else {
      element.append(part);
    }
  }
}

/** Show the results for the query in the address of the search page. */
function showResults(passages, list, summary) {
  const query = new URLSearchParams(window.location.search).get("q") ?? "";
  const words = new Set(wordsOf(query));
  for (const field of document.querySelectorAll("input[name=q]")) field.value = query;
  const results = createSearch(passages)(query).slice(0, 20);
  summary.textContent = words.size
    ? results.length ? `Pages about “${query}”, the best match first` : `No page has a word of “${query}”.`
    : "Type what you look for, such as the text of an error.";
  for (const result of results) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = `${result.page}.html${result.anchor ? `#${result.anchor}` : ""}`;
    link.textContent = result.heading && result.heading !== result.title
      ? `${result.title}: ${result.heading}` : result.title;
    appendMarked(item.appendChild(document.createElement("p")), excerpt(result.text, words), words);
  }
}

if (typeof document !== "undefined") {
  showResults(PASSAGES, document.getElementById("results"), document.getElementById("results-summary"));
} else {
  module.exports = { createSearch };
}
