// A stand-in for a browser, as small as the page's script lets it be: run as
//   node page_dom.js SCRIPT < EVENTS
// It hands the script each event [type, data] of the stream, one on a line, and prints after each
// what the page says: whether it is stale, its banner, its link, and all of its text.
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");

class Node {
  constructor(tag) {
    Object.assign(this, {tag, children: [], dataset: {}, style: {}, text: "", className: "",
      hidden: false, listeners: {}, open: false, parentNode: null});
    const has = new Set();
    this.classList = {
      add: (c) => { this.className += " " + c; },
      toggle: (c, on) => { on ? has.add(c) : has.delete(c); },
      contains: (c) => has.has(c),
    };
  }
  get textContent() { return this.text + this.children.map((c) => c.textContent).join(" "); }
  set textContent(text) { this.text = text; this.children = []; }
  get firstChild() { return this.children[0] || null; }
  get nextSibling() {
    const all = this.parentNode.children;
    return all[all.indexOf(this) + 1] || null;
  }
  append(...nodes) { for (const node of nodes) this.insertBefore(node, null); }
  insertBefore(node, before) {
    node.remove();
    node.parentNode = this;
    this.children.splice(before ? this.children.indexOf(before) : this.children.length, 0, node);
  }
  replaceChildren(...nodes) { this.text = ""; this.children = []; this.append(...nodes); }
  remove() {
    if (this.parentNode) this.parentNode.children = this.parentNode.children.filter((c) => c !== this);
    this.parentNode = null;
  }
  addEventListener(name, heard) { this.listeners[name] = heard; }
  setAttribute() {}
  querySelector() { return null; }
}

const known = new Map();
let source;
const page = {
  document: {
    body: new Node("body"),
    getElementById: (id) => known.get(id) || known.set(id, new Node("div")).get(id),
    createElement: (tag) => new Node(tag),
    createElementNS: (space, tag) => new Node(tag),
    createTextNode: (text) => Object.assign(new Node("#text"), {text}),
  },
  EventSource: class { constructor() { this.heard = {}; source = this; }
    addEventListener(name, heard) { this.heard[name] = heard; } },
  setInterval: () => {}, setTimeout: () => {},
};
vm.runInNewContext(fs.readFileSync(process.argv[2], "utf-8"), page);
for (const line of fs.readFileSync(0, "utf-8").trim().split("\n")) {
  const [type, data] = JSON.parse(line);
  if (type === "message") source.onmessage({data});
  else if (type === "error") source.onerror();
  else source.heard[type]();
  const id = page.document.getElementById, lost = id("lost");
  console.log(JSON.stringify({
    stale: page.document.body.classList.contains("stale"),
    banner: lost.hidden ? "" : lost.textContent,
    link: id("link").textContent,
    text: [...known.values()].map((node) => node.textContent).join(" "),
  }));
}
