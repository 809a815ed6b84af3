import { Failure } from '../failure.ts'
import type { JsonBounds } from '../json.ts'
import type { Catalog } from '../models/catalog.ts'
import type { Task, TextTask } from '../schemas/task.ts'
import { prepare, shape } from '../tasks/prepare.ts'
import type { Prepared, Shaped, Want } from '../tasks/prepared.ts'
import { showsCompression } from '../tasks/transcription/transcription.ts'
import { type BodyWish, type ReadBody, readBodyValue } from './body-work.ts'
import type { ImageFacts, ImageRules, ImageSource, RedrawAs, Redrawn } from './image-work.ts'
import { Mp3Stream } from './mp3.ts'
import { openPools, type PoolsWish } from './pools.ts'
import type { FarReference, Referred } from './result-work.ts'
import type { DecodedSound, SoundBounds } from './sound-work.ts'
import type { CpuAnswer, CpuRequest } from './worker.ts'

/**
 * Work that needs the processor for longer than the event loop can spare. Bodies up to 32 KiB take well under a
 * millisecond and stay on the loop; larger ones go to a thread that starts with the first of them.
 */
const inlineBytes = 32 << 10

/** Up to here it takes the loop longer to be given a value of many parts by a thread than to parse it, and the thread comes on top. */
const parsedBytes = 256 << 10

/** Bodies of many small values take far longer to check than their size says: 10,000 empty messages are 30 KB. */
const inlineValues = 1_000
const fewValues = (body: Buffer): boolean => body.length <= 2 * inlineValues || !hasMore(body, 0x2c, inlineValues)

/** Each segment of a transcription is compressed for a figure of its own, which takes a hundred times what it takes to read it. */
const inlineSegments = 32
const fewSegments = (answers: readonly Buffer[], want: Want): boolean =>
  !('words' in want && showsCompression(want)) || !answers.some(answer => hasMore(answer, 0x7b, inlineSegments))

/** Whether a byte is there more often than so many times. */
function hasMore(body: Buffer, byte: number, most: number): boolean {
  let count = 0
  for (let at = body.indexOf(byte); at >= 0; at = body.indexOf(byte, at + 1)) if (++count > most) return true
  return false
}

/** Whether a buffer can be given away: small ones share Node's pool with others, and would take those along. */
const ownsItsBytes = (bytes: Buffer): bytes is Buffer<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength

/** Of files that engines make; larger ones are what a model is not known to draw. */
const thumbnailRules: ImageRules = {
  formats: ['jpeg', 'png', 'webp'],
  maxBytes: 512 << 20,
  maxPixels: 64_000_000,
  maxSide: 16_384,
}

export function openCpu({ threads = 2, maxQueue = 256 }: Partial<PoolsWish> = {}) {
  const pools = openPools({ threads, maxQueue })

  async function ask<T>(
    kind: Parameters<typeof pools.run>[0],
    request: CpuRequest,
    given: readonly Buffer[] = [],
    signal?: AbortSignal,
  ): Promise<T> {
    const whole = given.filter(ownsItsBytes).map(({ buffer }) => buffer)
    const answer = (await pools.run(kind, request, whole, signal)) as CpuAnswer<T>
    if ('value' in answer) return answer.value
    const { code, message, more } = answer.failure
    throw new Failure(code, message, more)
  }

  return {
    /**
     * `prepare` of core/tasks, here or in a thread; a value where it is cheap, a promise where it is not. With `hash`
     * the body's hash is found as well.
     */
    prepare(
      task: TextTask,
      body: Buffer,
      catalog: Catalog,
      bounds: JsonBounds,
      hash = false,
    ): Prepared | Promise<Prepared> {
      return body.length <= inlineBytes && fewValues(body)
        ? prepare(task, body, catalog, bounds, hash)
        : ask<Prepared>('requests', { do: 'prepare', task, body, catalog, bounds, hash }, [body])
    },
    /** `readBodyValue`, likewise. What is wanted as text comes so only where that saves the loop anything. */
    readBody(body: Buffer, bounds: JsonBounds, wish: BodyWish): ReadBody | Promise<ReadBody> {
      const onlyParsed = body.length <= parsedBytes && !wish.hash && !wish.files && !wish.asText
      return onlyParsed || (body.length <= inlineBytes && fewValues(body))
        ? readBodyValue(body, bounds, { ...wish, asText: undefined })
        : ask<ReadBody>('requests', { do: 'read', body, bounds, wish }, [body])
    },
    /** `shape` of core/tasks, likewise. */
    shape(answers: Buffer[], want: Want): Shaped | Promise<Shaped> {
      const size = answers.reduce((sum, answer) => sum + answer.length, 0)
      return size <= inlineBytes && fewSegments(answers, want)
        ? shape(answers, want)
        : ask<Shaped>('requests', { do: 'shape', answers, want }, answers)
    },
    /** Decodes a picture to its last pixel and says what it is. Throws Failure `invalid_image`. */
    image: (image: ImageSource, rules: ImageRules) => ask<ImageFacts>('images', { do: 'check', image, rules }),
    /** The same picture made anew: upright, in sRGB, without metadata. With `give` its bytes are given away. Throws Failure `invalid_image`. */
    redraw: (image: Buffer | string, rules: ImageRules, as: RedrawAs, { give = false } = {}) =>
      ask<Redrawn>('images', { do: 'redraw', image, rules, as }, give && typeof image !== 'string' ? [image] : []),
    /** A small WebP of a picture. Throws Failure `invalid_image`. */
    thumbnail: (image: ImageSource, longestSide = 320) =>
      ask<Uint8Array>('images', { do: 'thumbnail', image, rules: thumbnailRules, longestSide }),
    /** `decodeSound`: from one file into another. Throws Failure `invalid_audio`, `disk_full`, or the signal's reason. */
    sound: (from: string, into: string, bounds: SoundBounds, signal?: AbortSignal) =>
      ask<DecodedSound>('sounds', { do: 'sound', from, into, bounds }, [], signal),
    /**
     * MP3 of samples as they come: mono, 16 bits, `rate` of them a second. Its end breaks off with Failure
     * `no_capacity` where too many are made at once.
     */
    mp3: (rate: number): Mp3Stream =>
      new Mp3Stream(async port => void (await pools.run('encoders', { do: 'mp3', rate, port }, [port]))),
    /** `referredIn`, always in a thread: what crosses to the loop is what is referred to. */
    referred: (path: string, nodeId: string, references: readonly FarReference[], task: Task) =>
      ask<Referred>('results', { do: 'refer', path, nodeId, references, task }),
    /** `prunedResult`, likewise. */
    pruned: (path: string, outputs: readonly string[], what: 'kept' | 'result') =>
      ask<Uint8Array>('results', { do: 'prune', path, outputs, what }),
    close: () => pools.close(),
  }
}
export type Cpu = ReturnType<typeof openCpu>
