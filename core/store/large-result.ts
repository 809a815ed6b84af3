import { Failure } from '../failure.ts'

/** A result of more bytes than this is large. Source: the API contract, 2.8. */
export const largeResultBytes = 256_000

/**
 * A result that is too large to be read in one go: JSON text in UTF-8 that never changes. It is a handle: where the
 * bytes are is known to the store alone, which may keep them in files, in rows or on another machine. A result whose
 * job is deleted meanwhile is read to its end where it is open, and elsewhere Failure `output_expired`.
 */
export interface LargeResult {
  readonly bytes: number
  /** Resolves when it is still there, whole. Throws Failure `output_expired` when it is not kept any more. */
  check(): Promise<void>
  /** The whole text, for what is known to be small enough after all. Throws Failure `output_expired`. */
  text(): Promise<string>
  /** Opens it for reading parts. Throws Failure `output_expired`. */
  open(): Promise<OpenResult>
  /**
   * A file on this machine with the bytes, for a thread that reads all of them: of one result always the same path. It
   * may be removed when it is disposed of. Where the result is not kept any more, there is no file at the path.
   */
  localFile(): Promise<AsyncDisposable & { readonly path: string }>
}

/** A large result that is read in parts. */
export interface OpenResult extends AsyncDisposable {
  /** Fills the buffer from this position on, in bytes. Resolves with how many bytes there were: 0 at the end. */
  read(into: { buffer: Buffer; position: number }): Promise<{ bytesRead: number }>
}

/** Why a large result cannot be read. */
export const resultExpired = (): Failure =>
  new Failure('output_expired', 'The result is no longer kept: its job was deleted, or its time was over.')
