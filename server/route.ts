import type { z } from 'zod'
import type { Bucket } from '../core/accounts/plan.ts'
import type { TextOptions } from '../core/cpu/body-work.ts'
import type { Failure, FailureCode } from '../core/failure.ts'
import type { Scope } from '../core/store/store.ts'
import type { Call } from './call.ts'
import type { EventSchemaName } from './docs/event-schemas.ts'
import type { Embedded } from './embedded.ts'

/**
 * Who may come in: one of the four scopes, `public` (no token), or `loopback` (a connection from this machine that no
 * proxy forwarded, or else the scope admin:read).
 */
export type Access = Scope | 'public' | 'loopback'

/** An answer in the reference: JSON, server-sent events, files, or several of them where the request decides. */
export interface RouteAnswer {
  /** The description of `response` where it is absent. */
  description?: string
  response?: z.ZodType | undefined
  /** The shape of the `data` of each event. */
  events?: EventSchemaName | undefined
  /** Media types of answers that are no JSON. */
  media?: readonly string[] | undefined
}

type In<S> = S extends z.ZodType ? z.output<S> : undefined

interface RouteFacts<P, Q, B, R> {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS'
  /** As h3 writes it: `/api/jobs/:id`, `/std/v1/models/**:id`. */
  path: `/${string}`
  /** Further paths that reach the same route. Those below `/std/v1` are reached below `/v1` and `/std/openai/v1` anyway. */
  aliases?: readonly `/${string}`[]
  scope: Access
  /** Which rate limit it counts against: `jobs` where work is begun. `api` where a GET, PATCH or DELETE leaves it out. */
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
  /** A body that works, for the reference: what a newcomer sends first. A test sends it. */
  example?: B extends z.ZodType ? z.input<B> : undefined
  /** The body as a form (`multipart/form-data`), for routes that read one; beside `body` where both are taken. */
  form?: z.ZodType
  /** The media type of a body that is neither JSON nor a form: the bytes of a file. */
  rawBody?: string
  /** The body may hold files as `data:` addresses; those of a large one are in `call.inline`. */
  largeBody?: boolean
  /** Every request opens an event stream. It waits for its turn before authentication: thousands at once leave time for others. */
  eventStream?: boolean
  /** How many members a body may have where it needs more than others. */
  members?: number
  /** Members of the body that come in `call.texts` where it is large. */
  bodyTexts?: TextOptions
  /** Absent where the answer is not JSON. */
  response?: R
  /** The shape of server-sent events, where the request can have them or nothing else. */
  events?: EventSchemaName
  /** Media types of the answer where it is no JSON, or not always. */
  media?: readonly string[]
  /** Of success; 200 by default. */
  status?: number
  /** Further answers of the reference by their status. */
  otherAnswers?: Readonly<Record<number, RouteAnswer>>
  /** Error codes besides those that follow from the scope and the schemas (`server/docs/route-errors.ts`). */
  errorCodes?: readonly FailureCode[]
  /** How what goes wrong is told where clients read more than the one shape of errors. */
  errors?: (failure: Failure, call: Call) => { status: number; body: object; headers?: readonly string[] }
}

/**
 * An answer that is JSON text already, for what would take the loop too long to parse and write again, or whose status
 * is not always that of the route.
 */
export class JsonText {
  readonly text: string
  readonly status: number | undefined
  /** What stands in the text by its name only. */
  readonly embedded: readonly Embedded[]
  constructor(text: string, status?: number, embedded: readonly Embedded[] = []) {
    this.text = text
    this.status = status
    this.embedded = embedded
  }
}

/** A route whose body is read and checked for it and whose value is written as JSON. */
export interface ValueRoute<P = unknown, Q = unknown, B = unknown, R extends z.ZodType = z.ZodType>
  extends RouteFacts<P, Q, B, R> {
  handle(
    input: { params: In<P>; query: In<Q>; body: In<B> },
    call: Call,
  ): z.input<R> | JsonText | Promise<z.input<R> | JsonText>
}

/** A route that reads the request and writes the response itself; its body schema serves the reference only. */
export interface RawRoute<P = unknown, Q = unknown, B = unknown, R extends z.ZodType = z.ZodType>
  extends RouteFacts<P, Q, B, R> {
  answer(call: Call): void | Promise<void>
}

// A list of routes has lost its schemas' types; each handler was checked where it was written.
// oxlint-disable-next-line no-explicit-any
export type Route = (ValueRoute<any, any, any, any> | RawRoute<any, any, any, any>) & { bucket: Bucket }

/** Types a route from its schemas. Refuses one without a scope, and a POST or PUT that does not say its rate limit. */
export function route<
  R extends z.ZodType,
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
>(facts: ValueRoute<P, Q, B, R> | RawRoute<P, Q, B, R>): Route {
  if (!facts.scope) throw new Error(`The route ${facts.method} ${facts.path} has no scope, so it cannot be registered.`)
  if (!facts.bucket && (facts.method === 'POST' || facts.method === 'PUT'))
    throw new Error(`The route ${facts.method} ${facts.path} says no bucket, so it cannot be registered.`)
  const aliases = [...sameBelow(facts.path), ...(facts.aliases ?? [])]
  return { bucket: 'api', ...facts, ...(aliases.length > 0 ? { aliases } : {}) } as Route
}

/** Clients write the path of OpenAI's API in these ways; Groq's put `/openai/v1` behind the address that they are given. */
const sameBelow = (path: `/${string}`): `/${string}`[] =>
  path.startsWith('/std/v1/') ? [`/v1/${path.slice(8)}`, `/std/openai/v1/${path.slice(8)}`] : []
