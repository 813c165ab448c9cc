//! The draft of a pipeline, beside the revision that it began with.

import { untrack } from 'svelte';
import { definitionOf, sameText, type Definition, type Pipeline } from './definition';

/** A draft as it is kept while its page is not there. */
interface Work {
  base: Drafted['base'];
  draft: Definition;
}

export class Drafted {
  /** The saved pipeline, which others may have changed. */
  pipeline = $state.raw() as Pipeline;
  /** The revision that is edited. */
  base = $state.raw() as Definition & { revision: number };
  draft = $state() as Definition;
  /** Counts the drafts: fields that hold lines of their own begin again with each. */
  turn = $state(0);
  readonly isChanged = $derived.by(() => sameText(this.draft) !== sameText(this.#begin));
  readonly isOutdated = $derived.by(() => this.pipeline.revision !== this.base.revision);
  #begin = $state.raw() as Definition;

  /** `work` is what was kept of a draft of this pipeline. */
  constructor(pipeline: Pipeline, work?: Work) {
    this.#take(pipeline);
    if (!work) return;
    const { revision: _, ...begin } = work.base;
    [this.base, this.#begin, this.draft] = [work.base, begin, structuredClone(work.draft)];
  }

  /** The unsaved work; null if the draft equals the saved pipeline. */
  work(): Work | undefined {
    return this.isChanged ? { base: this.base, draft: $state.snapshot(this.draft) as Definition } : undefined;
  }

  /** A newer state of the pipeline: a draft that nobody has changed follows it. */
  seen(pipeline: Pipeline) {
    if (pipeline.revision !== this.base.revision && !this.isChanged) this.#take(pipeline);
    else this.pipeline = pipeline;
  }

  discard = () => this.#take(this.pipeline);
  replace = (draft: Definition) => {
    this.draft = draft;
  };

  /** The body of the request. `enabled` stays, unless the text has it. */
  body(): Definition {
    return { enabled: this.pipeline.enabled, ...($state.snapshot(this.draft) as Definition) };
  }

  #take(pipeline: Pipeline) {
    const definition = definitionOf(pipeline);
    this.pipeline = pipeline;
    this.#begin = definition;
    this.base = { ...definition, revision: pipeline.revision };
    this.draft = structuredClone(definition);
    this.turn = untrack(() => this.turn) + 1;
  }
}
