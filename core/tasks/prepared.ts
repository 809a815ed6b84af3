import type { Usage } from '../store/store.ts'
import type { ChatAnswerFormat } from './chat/chat-completion.ts'
import type { CompletionAnswerFormat } from './completion/completion.ts'
import type { EmbeddingsAnswerFormat } from './embeddings/embeddings.ts'
import type { RerankAnswerFormat } from './rerank/rerank.ts'
import type { ScoreAnswerFormat } from './score/score.ts'
import type { TranscriptionAnswerFormat } from './transcription/transcription.ts'

/** A picture that a request names by its address. */
export interface ImageReference {
  /** What stands in its place in the body. */
  mark: string
  param: string
  value: string
}

/** A request that has been checked and put into the engine's words. */
export interface Prepared {
  modelId: string
  /** Where the engine answers it. */
  path: string
  /** JSON bodies for the engine; more than one only where a score is had from several rerank calls. */
  bodies: (string | Uint8Array)[]
  stream: boolean
  /**
   * Members, as JSON text, that make of the body one for a stream, for a caller who wants a whole answer: then the engine
   * says what it used as it goes. Absent where it would not, or where a stream may say something else.
   */
  asStream?: string
  /** Pictures that are still to be put into the bodies; absent where there are none. */
  images?: ImageReference[]
  /** Of the body as it came, where it was asked for. */
  bodyHash?: string
  /** What `shape` must know to put the answer into the caller's words. */
  answerFormat: AnswerFormat
}

export type AnswerFormat =
  | ChatAnswerFormat
  | CompletionAnswerFormat
  | EmbeddingsAnswerFormat
  | RerankAnswerFormat
  | ScoreAnswerFormat
  | TranscriptionAnswerFormat

/** An answer in the caller's words: JSON, and what it used. */
export interface Shaped {
  body: string | Uint8Array
  usage: Usage
}
