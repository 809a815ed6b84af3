import { open, readFile, stat } from 'node:fs/promises'
import { type LargeResult, type OpenResult, resultExpired } from '../large-result.ts'

/** A large result in a file of the data directory. */
export class ResultFile implements LargeResult {
  readonly bytes: number
  readonly #path: string

  constructor(path: string, bytes: number) {
    this.#path = path
    this.bytes = bytes
  }

  async check(): Promise<void> {
    const { size } = await stat(this.#path).catch(expire)
    if (size !== this.bytes) throw new Error(`${this.#path} has ${size} bytes instead of ${this.bytes}`)
  }

  text(): Promise<string> {
    return readFile(this.#path, 'utf8').catch(expire)
  }

  open(): Promise<OpenResult> {
    return open(this.#path).catch(expire)
  }

  async localFile(): Promise<AsyncDisposable & { path: string }> {
    return { path: this.#path, async [Symbol.asyncDispose]() {} }
  }
}

function expire(cause: NodeJS.ErrnoException): never {
  throw cause.code === 'ENOENT' ? resultExpired() : cause
}
