import type { z } from 'zod'
import type { RateBucket } from '../../../core/accounts/plans.ts'
import type { Call } from './call.ts'
import type { AnyEndpoint, Endpoint } from './endpoint.ts'
import type { JsonText } from './json-text.ts'

type In<S> = S extends z.ZodType ? z.output<S> : undefined

/** A route whose input is read and validated before `handle`, and whose value is sent as JSON. */
export interface ValueRoute<P = unknown, Q = unknown, B = unknown, R extends z.ZodType = z.ZodType>
  extends Endpoint<P, Q, B, R> {
  handle(
    input: { params: In<P>; query: In<Q>; body: In<B> },
    call: Call,
  ): z.input<R> | JsonText | Promise<z.input<R> | JsonText>
}

/** A route that reads the request and writes the response itself; its body schema is for the reference only. */
export interface RawRoute<P = unknown, Q = unknown, B = unknown, R extends z.ZodType = z.ZodType>
  extends Endpoint<P, Q, B, R> {
  answer(call: Call): void | Promise<void>
}

// A list of routes cannot keep the types of their schemas; `route` has checked each handler.
// oxlint-disable-next-line no-explicit-any
export type Route = (ValueRoute<any, any, any, any> | RawRoute<any, any, any, any>) & { bucket: RateBucket }

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
  return { bucket: 'api', ...openAiFacts(facts), ...facts, ...aliasesOf(facts) } as Route
}

/** OpenAI's clients read how long an answer took from this header. */
const addProcessingTime: AnyEndpoint['addAnswerHeaders'] = (headers, { elapsedMs }) => {
  headers.push('openai-processing-ms', String(Math.round(elapsedMs)))
}

/** Headers of all routes below `/std`. */
const openAiFacts = ({ path }: Pick<AnyEndpoint, 'path'>): Pick<AnyEndpoint, 'addAnswerHeaders'> =>
  path.startsWith('/std/') ? { addAnswerHeaders: addProcessingTime } : {}

/** Adds the other paths of OpenAI's API that clients use; Groq's client appends `/openai/v1` to the base URL. */
function aliasesOf({ path, aliases = [] }: Pick<AnyEndpoint, 'path' | 'aliases'>): Pick<AnyEndpoint, 'aliases'> {
  const ofOpenAi = path.startsWith('/std/v1/')
    ? ([`/v1/${path.slice(8)}`, `/std/openai/v1/${path.slice(8)}`] as const)
    : []
  return ofOpenAi.length + aliases.length > 0 ? { aliases: [...ofOpenAi, ...aliases] } : {}
}
