import type { z } from 'zod'
import type { Access } from '../access/auth.ts'
import type { AnyEndpoint, EndpointFacts, Method, Path, SharedFacts } from './endpoint.ts'
import type { ClientExchange } from './exchange.ts'
import type { JsonText } from './json-text.ts'

type In<S> = S extends z.ZodType ? z.output<S> : undefined

/** A route whose input is read and validated before `handle`, and whose value is sent as JSON. */
interface ValueFacts<P, Q, B, R extends z.ZodType> extends EndpointFacts<P, Q, B, R> {
  handle(
    input: { params: In<P>; query: In<Q>; body: In<B> },
    exchange: ClientExchange,
  ): z.input<R> | JsonText | Promise<z.input<R> | JsonText>
}

/** A route that reads the request and writes the response itself; its body schema is for the reference only. */
interface RawFacts<P, Q, B, R> extends EndpointFacts<P, Q, B, R> {
  answer(exchange: ClientExchange): void | Promise<void>
}

// A list of routes cannot keep the types of their schemas; `routeOf` has checked each handler.
// oxlint-disable-next-line no-explicit-any
export type Route = AnyEndpoint & (ValueFacts<any, any, any, any> | RawFacts<any, any, any, any>)

/**
 * Returns the function that makes routes with these facts, typed by their schemas: `route('GET /api/jobs/:id',
 * 'user:read', …)`. It throws for a route without a scope, and for a POST or PUT without a rate limit bucket.
 */
export const routeOf =
  (shared: SharedFacts) =>
  <
    R extends z.ZodType,
    P extends z.ZodType | undefined = undefined,
    Q extends z.ZodType | undefined = undefined,
    B extends z.ZodType | undefined = undefined,
  >(
    line: `${Method} ${Path}`,
    scope: Access,
    facts: ValueFacts<P, Q, B, R> | RawFacts<P, Q, B, R>,
  ): Route => {
    const [method, path] = line.split(' ') as [Method, Path]
    if (!scope) throw new Error(`The route ${line} has no scope, so it cannot be registered.`)
    if (!facts.bucket && (method === 'POST' || method === 'PUT'))
      throw new Error(`The route ${line} has no bucket, so it cannot be registered.`)
    const own = { method, path, scope, ...shared, ...facts }
    return { bucket: 'api', ...openAiFacts(own), ...own, ...aliasesOf(own) } as Route
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
