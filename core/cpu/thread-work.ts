/** The result of work in a thread, and which bytes of it are transferred to the main thread instead of copied. */
export interface Done<T> {
  value: T
  give?: readonly (string | Uint8Array)[]
}

/**
 * Functions that run in a thread, by name. Each takes one argument and returns a value that the structured clone
 * algorithm can copy. A layer of core contributes one such record; the entry of the threads puts them together.
 */
export type ThreadWork = Readonly<Record<string, (request: never) => Done<unknown> | Promise<Done<unknown>>>>

/** One call: the name of a function and its argument. */
export interface WorkRequest {
  work: string
  request: unknown
}

/** A `Buffer` over bytes that came from the main thread, where they were a `Buffer` as well. */
export const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
