import type { z } from 'zod'
import type { Failure } from '../failure.ts'
import type { ChatResponse } from '../schemas/chat.ts'

/** One event of a streamed chat completion, as the route `/std/v1/chat/completions` sends it with `include_usage`. */
export interface ChatChunk {
  id: string
  created: number
  model: string
  choices: {
    index: number
    delta: {
      role?: string
      content?: string | null
      reasoning_content?: string | null
      refusal?: string | null
      tool_calls?: { index: number; id?: string; type?: 'function'; function?: { name?: string; arguments?: string } }[]
    }
    logprobs?: unknown
    finish_reason: string | null
  }[]
  /** Only in the last event, which has no choices. */
  usage?: ChatResponse['usage'] | null
}

/** What an answer in another form says besides the completion. */
export interface ChatAnswerFacts {
  /** Epoch milliseconds when the request arrived. */
  createdAt: number
  /** Milliseconds that the request waited for a slot. */
  queuedMs: number
}

/** What the translation of a request says besides its body. */
export interface FormNotes {
  /** Paths of what is left out of the request: what does not exist here, and the client does not need to go on. */
  ignored: string[]
  /** The path in the request of the schema of each tool of the body. */
  schemas: string[]
}

/**
 * The form that another API gives a conversation, such as OpenAI's responses or Anthropic's messages. Every such request
 * becomes the body of a chat completion, and every answer is made of one: nothing else here knows the task. Pure.
 */
export interface ChatForm<Request, Context = void, Remembered = Request> {
  /** The schema of its requests. */
  schema: z.ZodType<Request>
  /** Whether the request asks for a stream. */
  isStream(request: Request): boolean
  /** Returns the body of the chat completion, without `stream` and `stream_options`. Throws Failure whose `param` names a field of `request`. */
  chatBody(request: Request, context: Context, notes: FormNotes): Record<string, unknown>
  /**
   * Returns what `answer` and `stream` need of a request, without large members, because it may change threads. Absent if
   * they need all of it.
   */
  remembered?(request: Request, context: Context): Remembered
  /** Returns the whole answer, as JSON. */
  answer(request: Remembered, completion: ChatResponse, facts: ChatAnswerFacts): object
  /** Begins the translation of a streamed answer. */
  stream(request: Remembered, facts: ChatAnswerFacts): ChatStreamForm
}

/** The translation of one streamed answer. Each method returns the text to send, which may be empty. */
export interface ChatStreamForm {
  readonly contentType: 'text/event-stream; charset=utf-8' | 'application/x-ndjson'
  chunk(chunk: ChatChunk): string
  /** Called once after the last chunk of an answer that was completed. */
  end(): string
  /** Called once instead of `end` if the answer fails after its first byte. */
  failure(failure: Failure, requestId: string): string
  /** The whole answer, where the form keeps answers; undefined before the end. */
  readonly ended?: object | undefined
}
