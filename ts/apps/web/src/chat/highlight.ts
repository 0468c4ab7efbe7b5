// Syntax highlighting for the most common languages. Loaded when code appears.
import { common, createLowlight } from "lowlight";
import { createElement, type ReactNode } from "react";

const lowlight = createLowlight(common);

type Node = ReturnType<typeof lowlight.highlight>["children"][number];

/** Longer code is shown without colours: highlighting it would block the page. */
const LONGEST = 60_000;

export function highlight(language: string, code: string): ReactNode {
  const name = language.toLowerCase();
  return !lowlight.registered(name) || code.length > LONGEST ? code : lowlight.highlight(name, code).children.map(shown);
}

function shown(node: Node, index: number): ReactNode {
  if (node.type === "text") {
    return node.value;
  }
  if (node.type !== "element") {
    return null;
  }
  const names = node.properties["className"];
  return createElement("span", { key: index, className: Array.isArray(names) ? names.join(" ") : undefined }, ...(node.children as Node[]).map(shown));
}
