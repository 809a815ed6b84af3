import type { cohereVectorTypes } from '../../schemas/cohere-embed.ts'
import type { VectorType } from '../../schemas/vectors.ts'

/** What an answer in Cohere's form depends on. */
export interface CohereFormat {
  types: (typeof cohereVectorTypes)[number][]
  texts: string[]
  /** Whether `embeddings` is a list of vectors, as in the first version of Cohere's API. */
  floats: boolean
}

/** A request in any dialect, as far as the engine and the answer depend on it. */
export interface WantedVectors {
  model: string
  input: string | number[] | (string | number[])[]
  encoding?: 'float' | 'base64'
  type?: VectorType
  normalized?: boolean
  dimensions?: number | null | undefined
  /** Tokens to which each input is cut; -1 for the context length. */
  cutTokens?: number | null | undefined
  priority?: number | null | undefined
  /** What the inputs are, such as `search_query`. */
  kind?: string | null | undefined
  cohere?: CohereFormat
}
