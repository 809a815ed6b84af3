import type { z } from 'zod'
import type { Bucket } from '../../../core/accounts/plan.ts'
import type { TextOptions } from '../../../core/cpu/body-work.ts'
import type { Failure, FailureCode } from '../../../core/failure.ts'
import type { Scope } from '../../../core/store/store.ts'
import type { EventSchemaName } from '../../docs/event-schemas.ts'
import type { Embedded } from '../answer/embedded.ts'
import type { Call } from './call.ts'

/**
 * Who may call a route: a token with one of the four scopes, `public` (no token), or `loopback` (a connection from this
 * machine that no proxy forwarded, or else the scope admin:read).
 */
export type Access = Scope | 'public' | 'loopback'

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

type In<S> = S extends z.ZodType ? z.output<S> : undefined

interface RouteFacts<P, Q, B, R> {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS'
  /** In h3's syntax: `/api/jobs/:id`, `/std/v1/models/**:id`. */
  path: `/${string}`
  /**
   * Further paths that reach the same route. Routes below `/std/v1` get those below `/v1` and `/std/openai/v1` by
   * themselves.
   */
  aliases?: readonly `/${string}`[]
  scope: Access
  /** The rate limit that it counts against: `jobs` if it starts work. Default of GET, PATCH and DELETE: `api`. */
  bucket?: Bucket
  /** One of the headings of the reference. */
  tag: string
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
  /** The body may hold files as `data:` addresses; those of a large one are in `call.inline`. */
  largeBody?: boolean
  /** Every request opens an event stream. Openings with a known token are paced, so that thousands block nobody. */
  eventStream?: boolean
  /** Maximum number of members of the body, if more than the configured limit. */
  members?: number
  /** Members of a large body that are passed as JSON text in `call.texts`. */
  bodyTexts?: TextOptions
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
  /** Error codes besides those that follow from the scope and the schemas (`server/http/request/route-errors.ts`). */
  errorCodes?: readonly FailureCode[]
  /** Renders failures, if the clients of the route read another form than the common error format. */
  errors?: RouteErrors
}

/** Renders a failure in another form than the common error format. `headers`: names and values, flat. */
export type RouteErrors = (
  failure: Failure,
  request: Pick<Call, 'id'>,
) => { status: number; body: object; headers?: readonly string[] }

/**
 * An answer that is JSON text already: for values that would block the event loop if they were parsed and serialized
 * again, or for a status other than that of the route.
 */
export class JsonText {
  readonly text: string
  readonly status: number | undefined
  /** Parts for which the text has only a placeholder. */
  readonly embedded: readonly Embedded[]
  constructor(text: string, status?: number, embedded: readonly Embedded[] = []) {
    this.text = text
    this.status = status
    this.embedded = embedded
  }
}

/** A route whose input is read and validated before `handle`, and whose value is sent as JSON. */
export interface ValueRoute<P = unknown, Q = unknown, B = unknown, R extends z.ZodType = z.ZodType>
  extends RouteFacts<P, Q, B, R> {
  handle(
    input: { params: In<P>; query: In<Q>; body: In<B> },
    call: Call,
  ): z.input<R> | JsonText | Promise<z.input<R> | JsonText>
}

/** A route that reads the request and writes the response itself; its body schema is for the reference only. */
export interface RawRoute<P = unknown, Q = unknown, B = unknown, R extends z.ZodType = z.ZodType>
  extends RouteFacts<P, Q, B, R> {
  answer(call: Call): void | Promise<void>
}

// A list of routes cannot keep the types of their schemas; `route` has checked each handler.
// oxlint-disable-next-line no-explicit-any
export type Route = (ValueRoute<any, any, any, any> | RawRoute<any, any, any, any>) & { bucket: Bucket }

/** Types a route by its schemas. Throws if it has no scope, and for a POST or PUT without a rate limit bucket. */
export function route<
  R extends z.ZodType,
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
>(facts: ValueRoute<P, Q, B, R> | RawRoute<P, Q, B, R>): Route {
  if (!facts.scope) throw new Error(`The route ${facts.method} ${facts.path} has no scope, so it cannot be registered.`)
  if (!facts.bucket && (facts.method === 'POST' || facts.method === 'PUT'))
    throw new Error(`The route ${facts.method} ${facts.path} has no bucket, so it cannot be registered.`)
  const aliases = [...openAiAliases(facts.path), ...(facts.aliases ?? [])]
  return { bucket: 'api', ...facts, ...(aliases.length > 0 ? { aliases } : {}) } as Route
}

/** Other paths of OpenAI's API that clients use; Groq's append `/openai/v1` to the base URL. */
const openAiAliases = (path: `/${string}`): `/${string}`[] =>
  path.startsWith('/std/v1/') ? [`/v1/${path.slice(8)}`, `/std/openai/v1/${path.slice(8)}`] : []
