import { move, transferableSymbol, valueSymbol } from 'piscina'
import { Failure, type FailureCode, type FailureMore } from '../failure.ts'
import type { Done, ThreadRequest, ThreadWork } from './thread-work.ts'

/** The answer of a thread: a value, or the parts of a failure, because errors lose their class between threads. */
export type WorkAnswer<T> = { value: T } | { failure: { code: FailureCode; message: string; more: FailureMore } }

/** Returns the function that a thread exports for the pool. Throws if two records have a function of the same name. */
export function serveWork(...records: readonly ThreadWork[]): (call: ThreadRequest) => Promise<WorkAnswer<unknown>> {
  const functions = new Map<string, (request: never) => Done<unknown> | Promise<Done<unknown>>>()
  for (const [name, run] of records.flatMap(record => Object.entries(record))) {
    if (functions.has(name)) throw new Error(`Two records of thread work have a function '${name}'.`)
    functions.set(name, run)
  }

  return async ({ work, request }) => {
    try {
      const run = functions.get(work)
      if (!run) throw new Error(`The entry point of the threads has no function '${work}'.`)
      return transferred(await run(request as never))
    } catch (thrown) {
      const { code, message, param, details, facts, retryAfterMs, cause } = Failure.from(thrown)
      const more = { param, details, facts, retryAfterMs, cause: cause instanceof Error ? cause.stack : cause }
      return { failure: { code, message, more } }
    }
  }
}

function transferred({ value, give = [] }: Done<unknown>): WorkAnswer<unknown> {
  const buffers = give.flatMap(bytes => (typeof bytes === 'string' ? [] : [bytes.buffer as ArrayBuffer]))
  const answer = { value }
  return move({ [transferableSymbol]: buffers, [valueSymbol]: answer }) as unknown as typeof answer
}
