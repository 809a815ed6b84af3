import type { ChatFormName } from '../dialects/chat-forms.ts'
import type { Usage } from '../store/store.ts'
import type { ChatAnswerFormat } from './chat/chat-completion.ts'
import type { Droppable } from './chat/truncation.ts'
import type { CompletionAnswerFormat } from './completion/completion.ts'
import type { EmbeddingsAnswerFormat } from './embeddings/embeddings.ts'
import type { Estimate } from './metering.ts'
import type { ModerationAnswerFormat } from './moderation/moderation.ts'
import type { RerankAnswerFormat } from './rerank/rerank.ts'
import type { ScoreAnswerFormat } from './score/score.ts'
import type { TranscriptionAnswerFormat } from './transcription/transcription.ts'

/** An image of a request, or a stored file that it names by its id. */
export interface ImageReference {
  /** `text`: a stored file, whose text replaces the mark. `audio`: one whose base64 does. Default: an image. */
  kind?: 'text' | 'audio'
  /** Placeholder in the body. */
  mark: string
  param: string
  /** An http(s) URL, the id of a file, or the content of a data: URL. */
  value: string | Uint8Array<ArrayBuffer>
}

/** A request that was checked and translated for the engine. */
export interface PreparedRequest {
  modelId: string
  /** Path of the engine's route. */
  path: string
  /** JSON bodies for the engine; several for prompts or pairs that the engine must get one by one. */
  bodies: (string | Uint8Array)[]
  stream: boolean
  /**
   * Members, as JSON text, that turn the body of a whole answer into that of a stream, so that the engine reports usage
   * during generation. Absent if the engine does not, or if the stream could have another content.
   */
  asStream?: string
  /** What is left out of the body if the prompt is too long for the model; absent if it must be refused then. */
  droppable?: Droppable
  /** Images that must still be put into the bodies; absent without any. */
  images?: ImageReference[]
  /** Paths of what was left out of the request, because it does not exist here and is not needed; absent without any. */
  ignored?: string[]
  /** The most that the request can use; absent if it was prepared to be run at once. */
  estimate?: Estimate
  /** Whether the client has asked that nothing of it is kept: `store: false`. Absent otherwise. */
  unstored?: true
  /** Whether it wants several answers of one prompt. Absent otherwise. */
  several?: true
  /** Hash of the original body, if requested. */
  bodyHash?: string
  /** The form of the request and of its answer, if it is not that of the task. */
  form?: FormedRequest
  /** What `shape` needs to translate the answer for the caller. */
  answerFormat: AnswerFormat
}

/** A request in another form: what its answer needs of it. */
export interface FormedRequest {
  name: ChatFormName
  request: unknown
  /** The path in the request of the schema of each tool that the engine gets; absent or empty if it is the same. */
  schemas?: readonly string[]
}

export type AnswerFormat =
  | ChatAnswerFormat
  | CompletionAnswerFormat
  | EmbeddingsAnswerFormat
  | RerankAnswerFormat
  | ScoreAnswerFormat
  | ModerationAnswerFormat
  | TranscriptionAnswerFormat

/** An answer for the caller: JSON, and its usage. */
export interface CallerAnswer {
  body: string | Uint8Array
  usage: Usage
}
