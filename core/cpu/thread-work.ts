/** The result of work in a thread, and the bytes of it that are transferred to the main thread instead of copied. */
export interface Done<T> {
  value: T
  give?: readonly (string | Uint8Array)[]
}

/**
 * Functions that run in a thread, by name. Each takes one argument and returns a value that the structured clone
 * algorithm can copy. Each layer of core has one such record; the entry point of the threads combines them.
 */
export type ThreadWork = Readonly<Record<string, (request: never) => Done<unknown> | Promise<Done<unknown>>>>

/** One call: the name of a function and its argument. */
export interface ThreadRequest {
  work: string
  request: unknown
}

/** Returns a `Buffer` over bytes from the main thread. A `Buffer` arrives as a plain Uint8Array. */
export const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
