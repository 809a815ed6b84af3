import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import { Failure, invalid } from '../../core/failure.ts'
import { parseBoundedJson } from '../../core/json.ts'
import { SentFile } from '../../core/tasks/protocols/generation-call.ts'
import { parsedCall } from './parsed-call.ts'

/** Bytes of the line before the files, and of all files. */
const maxLine = 1 << 20
const maxFiles = 4 * 2 ** 30
const lineFeed = 0x0a

const Head = z.looseObject({
  inputs: z.record(z.string(), z.unknown()),
  files: z
    .array(SentFile)
    .max(64)
    .refine(files => new Set(files.map(({ name }) => name)).size === files.length, 'two files have the same name'),
})
/** The inputs that may name files. */
const media = ['image', 'images', 'mask', 'video', 'audio']

/** A call that came with its files. They are in a folder of their own until it is disposed of. */
export class ReceivedCall implements AsyncDisposable {
  /** The call as an engine gets it that shares a folder with infer: paths as inputs, and an empty `folder`. */
  readonly call: object
  readonly #parent: string

  constructor(call: object, parent: string) {
    this.call = call
    this.#parent = parent
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#parent, { recursive: true, force: true })
  }
}

/** Reads a call with files, as `filesType` describes it, into a new folder within `parent`. Rejects with Failure. */
export async function receiveCall(
  request: IncomingMessage,
  parent: string,
  signal: AbortSignal,
): Promise<ReceivedCall> {
  const pieces = (request as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  const next = async (): Promise<Buffer> => {
    const { value, done } = await pieces.next().catch((cause: unknown) => {
      signal.throwIfAborted()
      throw new Failure('cancelled', 'The request body ended early.', { cause })
    })
    if (done) throw invalid('files', 'The request body ended before the last byte of its files.')
    return value
  }
  const { head, rest } = await readHead(next)
  const own = await mkdtemp(join(parent, 'call-'))
  try {
    const [inputs, folder] = [join(own, 'in'), join(own, 'out')]
    await mkdir(inputs)
    await mkdir(folder)
    await writeFiles(head.files, inputs, rest, next)
    return new ReceivedCall({ ...head, inputs: locatedInputs(head, inputs), folder }, own)
  } catch (thrown) {
    await rm(own, { recursive: true, force: true })
    throw thrown
  }
}

/** The inputs with the paths of their files in a folder. Throws Failure `invalid_value` for one that has not come. */
function locatedInputs({ inputs, files }: z.infer<typeof Head>, folder: string): object {
  const names = new Set(files.map(({ name }) => name))
  const located = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(located)
    if (value === null) return null
    if (typeof value === 'string' && names.has(value)) return join(folder, value)
    throw invalid('inputs', `The file ${JSON.stringify(value)} of the inputs is not in 'files'.`)
  }
  const given = media.filter(name => name in inputs)
  return { ...inputs, ...Object.fromEntries(given.map(name => [name, located(inputs[name])])) }
}

async function readHead(next: () => Promise<Buffer>) {
  let line = Buffer.alloc(0)
  for (;;) {
    line = Buffer.concat([line, await next()])
    const end = line.indexOf(lineFeed)
    if (end > maxLine || (end < 0 && line.length > maxLine))
      throw new Failure('payload_too_large', `The line before the files has more than ${maxLine} bytes.`)
    if (end < 0) continue
    const value = parseBoundedJson(line.subarray(0, end), { depth: 64, keys: 200_000 })
    const head = parsedCall(Head, value)
    if (head.files.reduce((sum, { bytes }) => sum + bytes, 0) > maxFiles)
      throw new Failure('payload_too_large', `The files have more than ${maxFiles} bytes.`)
    return { head, rest: line.subarray(end + 1) }
  }
}

/** Writes the files one after another. `rest`: what has come of them with the line before. */
async function writeFiles(
  files: readonly SentFile[],
  folder: string,
  rest: Buffer,
  next: () => Promise<Buffer>,
): Promise<void> {
  for (const { name, bytes } of files) {
    await using file = await open(join(folder, name), 'wx', 0o600)
    for (let missing = bytes; missing > 0; ) {
      if (rest.length === 0) rest = await next()
      const { bytesWritten } = await file.write(rest, 0, Math.min(missing, rest.length))
      missing -= bytesWritten
      rest = rest.subarray(bytesWritten)
    }
  }
}
