import type { IncomingMessage } from 'node:http'
import type { z } from 'zod'
import type { Accounts, Caller } from '../../../core/accounts/accounts.ts'
import type { RateBucket } from '../../../core/accounts/plans.ts'
import type { BodyTextOptions } from '../../../core/cpu/body-work.ts'
import type { Failure, FailureCode } from '../../../core/failure.ts'
import type { Config } from '../../../core/models/config.ts'
import type { Access } from '../access/auth.ts'

/** Shapes of the `data` of server-sent events (`server/docs/event-schemas.ts`). */
export type EventSchemaName =
  | 'ChatCompletionChunk'
  | 'CompletionChunk'
  | 'ResponseEvent'
  | 'AnthropicEvent'
  | 'CohereChatEvent'
  | 'SpeechEvent'
  | 'TranscriptionEvent'
  | 'ImageEvent'
  | 'JobEvent'
  | 'OrganizationEvent'
  | 'ExecutionEvent'
  | 'FalStatus'
  | 'FalRunEvent'
  | 'GenerationStatus'
  | 'LogLine'

/** An answer in the reference: JSON, server-sent events, files, or several of them if the request decides. */
export interface RouteAnswer {
  /** Default: the description of `response`. */
  description?: string
  response?: z.ZodType | undefined
  /** Schema of the `data` of each event. */
  events?: EventSchemaName | undefined
  /** Media types of answers that are not JSON. */
  media?: readonly string[] | undefined
}

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS'
/** In h3's syntax: `/api/jobs/:id`, `/std/v1/models/**:id`. */
export type Path = `/${string}`

/** What the routes of one topic, or of one vendor's API, have in common. */
export interface SharedFacts {
  /** One of the headings of the reference. */
  tag: string
  /** Renders failures, if the clients of the routes read another form than the common error format. */
  errors?: RouteErrors
  /** Read a body with the content type of a form as JSON, unless a web page sent it. */
  formIsJson?: boolean
  /**
   * Finds the caller of a request that comes without a token; undefined if the request has to have one. Throws Failure.
   */
  callerWithoutToken?: (
    request: { req: IncomingMessage; credential: string | undefined },
    owners: { accounts: Pick<Accounts, 'authenticateId'>; config: Pick<Config, 'ollama'> },
  ) => Caller | undefined
  /** Adds further headers of every answer, flat. */
  addAnswerHeaders?: (headers: string[], answer: { id: string; elapsedMs: number }) => void
}

/** What a route says about itself beyond its method, path and scope: all but its handler. */
export interface EndpointFacts<P, Q, B, R> extends Pick<SharedFacts, 'errors'> {
  /**
   * Further paths that reach the same route. Routes below `/std/v1` get those below `/v1` and `/std/openai/v1` by
   * themselves.
   */
  aliases?: readonly Path[]
  /** The rate limit that it counts against: `jobs` if it starts work. Default of GET, PATCH and DELETE: `api`. */
  bucket?: RateBucket
  /** An imperative verb and a noun: `Create workflow`. */
  summary: string
  /** What a caller has to know beyond the summary: conditions, effects, what to do next. */
  description?: string
  params?: P
  query?: Q
  body?: B
  /** A working body for the reference. A test sends it. */
  example?: B extends z.ZodType ? z.input<B> : undefined
  /** The body as a form (`multipart/form-data`), for routes that read one; besides `body` if both are accepted. */
  form?: z.ZodType
  /** The media type of a body that is neither JSON nor a form: the bytes of a file. */
  rawBody?: string
  /** The body may hold files as `data:` addresses; those of a large one are in `exchange.inline`. */
  largeBody?: boolean
  /** A sentence behind the one that the body is too large: what to do instead. */
  whenTooLarge?: string
  /** Every request opens an event stream. Openings with a known token are paced, so that thousands block nobody. */
  eventStream?: boolean
  /** Maximum number of members of the body, if more than the configured limit. */
  members?: number
  /** Members of a large body that are passed as JSON text in `exchange.texts`. */
  bodyTexts?: BodyTextOptions
  /** Absent if the answer is not JSON. */
  response?: R
  /** Schema of server-sent events, if the route always or sometimes answers with them. */
  events?: EventSchemaName
  /** Media types of answers that are not JSON. */
  media?: readonly string[]
  /** Status of success; 200 by default. */
  status?: number
  /** Further answers of the reference by their status. */
  otherAnswers?: Readonly<Record<number, RouteAnswer>>
  /** Error codes besides those that follow from the scope and the schemas (`server/docs/errors.ts`). */
  errorCodes?: readonly FailureCode[]
}

/** All that is known of a route but its handler. */
// oxlint-disable-next-line no-explicit-any -- a list of routes cannot keep the types of their schemas
export interface AnyEndpoint extends EndpointFacts<any, any, any, any>, SharedFacts {
  method: Method
  path: Path
  scope: Access
  bucket: RateBucket
}

/** Renders a failure in another form than the common error format. `headers`: names and values, flat. */
export type RouteErrors = (
  failure: Failure,
  request: { id: string },
) => { status: number; body: object; headers?: readonly string[] }

/**
 * Whether routes with this path refuse fields and query parameters that they do not declare. The APIs of other vendors take
 * any: their clients send undocumented ones.
 */
export const refusesUnknown = (path: string): boolean => path.startsWith('/api/') || path.startsWith('/slug/')
