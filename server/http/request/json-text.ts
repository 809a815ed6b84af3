import { randomUUID } from 'node:crypto'
import type { LargeResult } from '../../../core/store/store.ts'

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

/**
 * A large piece of JSON in an answer. The text has a placeholder that no client can have sent. The bytes replace it
 * piece by piece when the answer is sent, so that they never block the event loop.
 */
export class Embedded {
  readonly source: LargeResult | (() => Promise<Uint8Array> | AsyncIterable<Uint8Array>)
  readonly name = `embedded ${randomUUID()}`

  /**
   * A large result, or a function that returns the bytes when they are needed: whole, or in pieces. Pieces are sent
   * unchanged and cannot be used with `asMembers`.
   */
  constructor(source: Embedded['source']) {
    this.source = source
  }

  toJSON(): string {
    return this.name
  }

  /** Inserts the members of a large object into another object; of two with one name the later one counts. */
  asMembers(): object {
    return { [this.name]: 0 }
  }
}

/** Reads a result as text, for results that are known to be small enough. Throws Failure `output_expired`. */
export const readResult = (result: string | LargeResult): Promise<string> | string =>
  typeof result === 'string' ? result : result.text()
