//! Choices that the service lists in its description: the console repeats none of them.

import { problemIn, problemOf } from './problem';

interface Description {
  components: { schemas: Record<string, { properties?: Record<string, Record<string, unknown>> }> };
}

let asked: Promise<Description> | undefined;

async function read(): Promise<Description> {
  try {
    const response = await fetch('/openapi.json');
    if (!response.ok) throw problemIn(response, undefined);
    return (await response.json()) as Description;
  } catch (error) {
    throw problemOf(error);
  }
}

/** The words that `extension` of a member of a schema lists. Reads the description once; after a failure, anew. */
export async function choices(schema: string, member: string, extension: string): Promise<string[]> {
  asked ??= read().catch((error: unknown) => {
    asked = undefined;
    throw error;
  });
  const words = (await asked).components.schemas[schema]?.properties?.[member]?.[extension];
  return Array.isArray(words) ? words.map(String) : [];
}

/** The words with the chosen one, which another version of the service may have known. */
export const withChosen = (words: string[], chosen: string): string[] => (words.includes(chosen) || !chosen ? words : [chosen, ...words]);
