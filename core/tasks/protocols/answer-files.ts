import { createWriteStream, type WriteStream } from 'node:fs'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { Failure } from '../../failure.ts'
import { diskFailure } from '../../files/write.ts'

/** Bytes that may wait for the disk. */
const maxUnwritten = 1 << 20

/** Files that are written one after another into a folder while the answer of an engine arrives. */
export class AnswerFiles {
  /** Called when everything is written that was added so far. */
  drained = () => {}
  readonly #folder: string
  readonly #files: { stream: WriteStream; done: Promise<unknown> }[] = []
  #unwritten = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  /** False if the caller should wait for `drained` before it adds more. */
  get hasRoom(): boolean {
    return this.#unwritten < maxUnwritten
  }

  /** Begins a new file, which must not exist. */
  begin(name: string): void {
    const stream = createWriteStream(join(this.#folder, name), { flags: 'wx', mode: 0o600 })
    const done = finished(stream)
    // `written` reports it; without a handler an early error would end the process.
    done.catch(() => {})
    this.#files.push({ stream, done })
  }

  /** Adds bytes to the file that was begun last. */
  add(bytes: Uint8Array): void {
    this.#unwritten += bytes.length
    // Not the event `drain`, which a stream that was ended does not emit.
    this.#files.at(-1)!.stream.write(bytes, () => {
      this.#unwritten -= bytes.length
      if (this.#unwritten === 0) this.drained()
    })
  }

  /** Ends the file that was begun last. */
  end(): void {
    this.#files.at(-1)!.stream.end()
  }

  /** Resolves when all files are written; all must have ended. Rejects with Failure. */
  async written(): Promise<void> {
    await Promise.all(this.#files.map(({ done }) => done)).catch((cause: unknown) => {
      throw Failure.from(diskFailure(cause))
    })
  }

  /** Stops writing. The files that are there belong to the folder and are removed with it. */
  abandon(): void {
    for (const { stream } of this.#files) stream.destroy()
  }
}
