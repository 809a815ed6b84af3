import { Failure } from '../failure.ts'

/** A result of more bytes than this is large. Source: the API contract, 2.8. */
export const largeResultBytes = 256_000

/**
 * A result that is too large to be read in one go: JSON text in UTF-8 that never changes. It is a handle: only the
 * store knows where the bytes are, and may keep them in files, in rows or on another machine. If its job is deleted
 * meanwhile, an open result can be read to its end; otherwise reading throws Failure `output_expired`.
 */
export interface LargeResult {
  readonly bytes: number
  /** Resolves if it is still there, whole. Throws Failure `output_expired` if it is no longer kept. */
  check(): Promise<void>
  /** The whole text, for a caller that knows it to be small enough. Throws Failure `output_expired`. */
  text(): Promise<string>
  /** Opens it for reading parts. Throws Failure `output_expired`. */
  open(): Promise<OpenResult>
  /**
   * A file on this machine with the bytes, for a thread that reads all of them: always the same path for the same
   * result. The file may be removed once disposed. If the result is no longer kept, there is no file at the path.
   */
  localFile(): Promise<AsyncDisposable & { readonly path: string }>
}

/** A large result that is open for reading in parts. */
export interface OpenResult extends AsyncDisposable {
  /** Fills the buffer from this position on, in bytes. Resolves with the number of bytes read: 0 at the end. */
  read(into: { buffer: Buffer; position: number }): Promise<{ bytesRead: number }>
}

/** The error for a large result that is no longer kept. */
export const resultExpired = (): Failure =>
  new Failure('output_expired', 'The result is no longer kept: its job was deleted, or it has expired.')
