/** Facts about an engine for the folders below `gpu`. */
export interface EngineFacts {
  /** The form of its source, if only one is possible: a GGUF file, or a whole repository. */
  reads?: 'gguf' | 'repository'
  /** It is part of infer, so its source is always a path. */
  isBuiltIn?: true
  /** How it divides a model among cards: by layers, which may be uneven, or in equal parts. */
  spansCards?: 'layers' | 'equally'
  /** It reads images by a further file that its option `--mmproj` names. */
  takesProjector?: true
  /** Its options name the encoders and the VAE that a diffusion model needs beside it. */
  takesCompanions?: true
  /** It reserves the memory of its cache when it starts, and does not start without that of one full request. */
  pagesCache?: true
  /** It reserves one place for adapters more than there are at once, for requests without any. */
  placesBase?: true
  /** It is a server that infer does not start. */
  isElsewhere?: true
  /** It is another infer. */
  isInfer?: true
  /** When it loads LoRA adapters: all of them when it starts, or each while it runs. Absent: it has none. */
  loadsAdapters?: 'start' | 'running'
  /** It may be any program, which may read its source in any way. */
  isAny?: true
}

const facts: Readonly<Record<string, EngineFacts>> = {
  gguf: { reads: 'gguf', isBuiltIn: true, spansCards: 'layers', loadsAdapters: 'start' },
  'llama-server': { reads: 'gguf', takesProjector: true, spansCards: 'layers', loadsAdapters: 'start' },
  vllm: { reads: 'repository', spansCards: 'equally', pagesCache: true, loadsAdapters: 'running' },
  sglang: { spansCards: 'equally', pagesCache: true, loadsAdapters: 'running', placesBase: true },
  'sd-server': { takesCompanions: true },
  remote: { isElsewhere: true },
  infer: { isElsewhere: true, isInfer: true },
  custom: { isAny: true },
}
/** The engines with such facts. A test checks that each is a preset, and which run elsewhere. */
export const enginesWithFacts = Object.keys(facts)

/** Returns the facts about an engine; none for an engine without one or for no engine. */
export const engineFacts = (engine: string | null | undefined): EngineFacts =>
  engine != null && Object.hasOwn(facts, engine) ? facts[engine]! : {}
