// The card texts that the server replaces. Separate from the page's own texts, since they are loaded with the first card.
import { type Words as CardWords, WORDS as CARD_WORDS } from "@farhand/react";
import { useMemo } from "react";
import { useAbout } from "./about.ts";

export function useCardWords(): Partial<CardWords> {
  const given = useAbout()?.words;
  return useMemo(() => cardWordsOf(given), [given]);
}

const OF_CARDS = "cards.";

/** The texts whose names begin with `cards.`. Those with parameters use the placeholders `{1}`, `{2}` and so on. */
export function cardWordsOf(given: Readonly<Record<string, unknown>> | null | undefined): Partial<CardWords> {
  const own = Object.entries(given ?? {}).flatMap(([name, word]): [string, unknown][] => {
    const key = name.startsWith(OF_CARDS) ? name.slice(OF_CARDS.length) : "";
    const ours: unknown = Object.hasOwn(CARD_WORDS, key) ? CARD_WORDS[key as keyof CardWords] : undefined;
    if (typeof word !== "string" || ours === undefined) {
      return [];
    }
    return [[key, typeof ours === "string" ? word : (...values: unknown[]) => word.replace(/\{(\d)\}/g, (_, place: string) => String(values[Number(place) - 1] ?? ""))]];
  });
  return Object.fromEntries(own) as Partial<CardWords>;
}
