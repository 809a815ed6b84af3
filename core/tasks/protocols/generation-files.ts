import { stat } from 'node:fs/promises'
import { extname } from 'node:path'
import { Readable } from 'node:stream'
import type { StreamedBody } from '../../models/engine-call.ts'
import { AnswerFiles } from './answer-files.ts'
import { type BytesAfter, EngineFault } from './engine-messages.ts'
import { bytesOf } from './form-body.ts'
import { type EngineFile, type FilesCall, filesType, type GenerationCall, type SentFile } from './generation-call.ts'

/** Bytes of all files of one answer. The output limit of the server applies later; this one protects the disk. */
const maxAnswerBytes = 4 * 2 ** 30

/** Bytes of files that are sent in a millisecond at least: a connection to another machine may be slow. */
const leastBytesPerMs = 1_000

/** Returns the request of a call to an engine that shares no folder with infer. The files are read while it is sent. */
export async function callWithFiles(
  call: GenerationCall,
): Promise<{ contentType: string; body: StreamedBody; patienceMs: number }> {
  const { folder: _, inputs: given, ...rest } = call
  const files = new Map<string, SentFile>()
  const inputs = { ...given }
  const send = async (path: string): Promise<string> => {
    const { size } = await stat(path)
    const file = files.get(path) ?? { name: `input-${files.size}${extname(path)}`, bytes: size }
    files.set(path, file)
    return file.name
  }
  for (const kind of ['image', 'mask', 'video', 'audio'] as const) {
    const path = inputs[kind]
    if (path !== null) inputs[kind] = await send(path)
  }
  if (given.images) inputs.images = await Promise.all(given.images.map(send))
  const head = Buffer.from(`${JSON.stringify({ ...rest, inputs, files: [...files.values()] } satisfies FilesCall)}\n`)
  async function* pieces() {
    yield head
    for (const [path, { bytes }] of files) yield* bytesOf({ path, bytes })
  }
  const bytes = [...files.values()].reduce((sum, file) => sum + file.bytes, head.length)
  return {
    contentType: filesType,
    body: { bytes, open: () => Readable.from(pieces(), { objectMode: false, highWaterMark: 1 }) },
    patienceMs: bytes / leastBytesPerMs,
  }
}

/** Writes the files that follow the message `completed` of an engine into a folder, under names of our own. */
export class ReceivedFiles implements BytesAfter {
  /** The files, with their names in the folder. */
  readonly files: EngineFile[]
  readonly #written: AnswerFiles
  /** Bytes that are missing of the current file and of those after it. */
  readonly #missing: number[]

  /** Throws EngineFault for files without a size or of more than the engine may send. */
  constructor(folder: string, files: readonly EngineFile[]) {
    const unknown = files.find(({ bytes }) => bytes === undefined)
    if (unknown)
      throw new EngineFault(`named the file '${unknown.name}' without its size, and shares no folder with this server`)
    this.#missing = files.map(({ bytes }) => bytes!)
    if (this.#missing.reduce((sum, bytes) => sum + bytes, 0) > maxAnswerBytes)
      throw new EngineFault(`made files of more than ${maxAnswerBytes} bytes`)
    this.files = files.map(({ kind }, at) => ({ name: `received-${at}`, kind }))
    this.#written = new AnswerFiles(folder)
    this.#written.begin(this.files[0]!.name)
  }

  /** Called when everything is written that was fed so far. */
  set drained(listener: () => void) {
    this.#written.drained = listener
  }

  feed(bytes: Uint8Array): boolean {
    let from = 0
    while (from < bytes.length) {
      const missing = this.#missing[0]
      if (missing === undefined) throw new EngineFault('went on after the last byte of its files')
      const piece = bytes.subarray(from, from + missing)
      this.#written.add(piece)
      from += piece.length
      this.#missing[0] = missing - piece.length
      if (this.#missing[0] === 0) this.#next()
    }
    return this.#written.hasRoom
  }

  #next(): void {
    this.#written.end()
    this.#missing.shift()
    const next = this.files[this.files.length - this.#missing.length]
    if (next) this.#written.begin(next.name)
  }

  /** Resolves when all files are written. Rejects with EngineFault if bytes are missing, and with Failure. */
  async end(): Promise<void> {
    const missing = this.#missing.reduce((sum, bytes) => sum + bytes, 0)
    if (missing > 0) throw new EngineFault(`ended its answer ${missing} bytes before the end of its files`)
    await this.#written.written()
  }

  /** Stops writing. The files that are there are removed with their folder. */
  abandon(): void {
    this.#written.abandon()
  }
}
