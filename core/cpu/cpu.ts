import type { Transferable } from 'node:worker_threads'
import { bytesOfBase64, bytesOfUsualBase64 } from '../data-url.ts'
import { Failure } from '../failure.ts'
import type { JsonBounds } from '../json.ts'
import type { AudioLimits } from './audio-work.ts'
import { type BodyOptions, type ReadBody, readBodyValue } from './body-work.ts'
import type { cpuWork } from './cpu-work.ts'
import type { Encoding, ImageRules, ImageSource, ReencodeAs } from './image-work.ts'
import { Mp3Stream } from './mp3.ts'
import { openPools, type PoolName, type PoolsOptions } from './pools.ts'
import type { WorkAnswer } from './serve-work.ts'
import { isSmallBody, poolOfBody } from './small-body.ts'
import type { ThreadWork } from './thread-work.ts'

/** Bodies up to this size are parsed in the event loop: receiving a value of many parts from a thread takes it longer. */
const parsedBytes = 256 << 10

/** Characters of base64 in any form that are decoded in the event loop. */
const decodedCharacters = 128 << 10

/** Whether a buffer can be transferred. Small buffers share memory of Node's pool with others and cannot. */
const ownsItsBytes = (bytes: Buffer): bytes is Buffer<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength

/** Limits of stored images, which were checked before; no known model writes larger ones. */
const storedRules: ImageRules = {
  formats: ['jpeg', 'png', 'webp'],
  maxBytes: 512 << 20,
  maxPixels: 64_000_000,
  maxSide: 16_384,
}

/** Options of one call of a thread. */
export interface ThreadCallOptions {
  /** Buffers of the request to transfer instead of copying, where that is possible; unusable afterwards. */
  give?: readonly Buffer[]
  /** Message ports of the request, which are always transferred. */
  ports?: readonly Transferable[]
  /** Aborts the work. If it is running, its thread ends. */
  signal?: AbortSignal | undefined
}

/**
 * Calls a function of a record of thread work in a pool. Rejects with the function's Failure, with Failure `no_capacity`
 * if too many calls wait, or with the reason of the signal.
 */
export type CallThread<Work extends ThreadWork> = <Name extends keyof Work & string>(
  pool: PoolName,
  name: Name,
  request: Parameters<Work[Name]>[0],
  options?: ThreadCallOptions,
) => Promise<Awaited<ReturnType<Work[Name]>>['value']>

/** Opens the thread pools for work that would block the event loop for too long. */
export function openCpu({ threads = 2, maxQueue = 256 }: Partial<PoolsOptions> = {}) {
  const pools = openPools({ threads, maxQueue })

  async function call(
    pool: PoolName,
    work: string,
    request: unknown,
    options: ThreadCallOptions = {},
  ): Promise<unknown> {
    const { give = [], ports = [], signal } = options
    const transfers = [...give.filter(ownsItsBytes).map(({ buffer }) => buffer), ...ports]
    const answer = (await pools.run(pool, { work, request }, transfers, signal)) as WorkAnswer<unknown>
    if ('value' in answer) return answer.value
    const { code, message, more } = answer.failure
    throw new Failure(code, message, more)
  }
  const calling = <Work extends ThreadWork>() => call as CallThread<Work>
  const own = calling<typeof cpuWork>()

  return {
    /** Returns `call` with the types of a record of thread work. The entry point of the threads must contain the record. */
    calling,
    /**
     * Runs `readBodyValue` in the event loop, which returns a value, or in a thread, which returns a promise. `asText` has
     * an effect only in a thread, where it saves time of the event loop.
     */
    readBody(body: Buffer, bounds: JsonBounds, options: BodyOptions): ReadBody | Promise<ReadBody> {
      const onlyParsed = body.length <= parsedBytes && !options.hash && !options.files && !options.asText
      return onlyParsed || isSmallBody(body)
        ? readBodyValue(body, bounds, { ...options, asText: undefined })
        : own(poolOfBody(body), 'readBody', [body, bounds, options], { give: [body] })
    },
    /**
     * Runs `bytesOfBase64` in the event loop or, for a long text of an unusual form, in a thread, which returns a promise.
     */
    bytesOfBase64(text: string): ReturnType<typeof bytesOfBase64> | Promise<ReturnType<typeof bytesOfBase64>> {
      if (text.length <= decodedCharacters) return bytesOfBase64(text)
      const usual = bytesOfUsualBase64(text)
      if (usual) return usual
      // Bytes are transferred; a text would be copied twice.
      const bytes = Buffer.from(text)
      return own('requests', 'bytesOfBase64', [bytes], { give: [bytes] })
    },
    /** Decodes an image to its last pixel and returns its format and size. Throws Failure `invalid_image`. */
    image: (image: ImageSource, rules: ImageRules) => own('images', 'checkImage', [image, rules]),
    /** Re-encodes an image: upright, sRGB, no metadata. With `give` its bytes are transferred. Throws Failure `invalid_image`. */
    reencode: (image: Buffer | string, rules: ImageRules, as: ReencodeAs, { give = false } = {}) =>
      own('images', 'reencodeImage', [image, rules, as], give && typeof image !== 'string' ? { give: [image] } : {}),
    /** Re-encodes an image, whose bytes are transferred, as an ASCII data: URL. Throws Failure `invalid_image`. */
    imageDataUrl: (image: Buffer, rules: ImageRules) =>
      own('images', 'imageDataUrl', [image, rules], { give: [image] }),
    /** Turns a mask with white areas into one with transparent areas, of the size of `image`. Throws Failure `invalid_image`. */
    alphaMask: (mask: ImageSource, image: ImageSource) => own('images', 'alphaMask', [mask, image, storedRules]),
    /** Writes an image in another format and quality. Throws Failure `invalid_image`. */
    encode: (image: ImageSource, rules: ImageRules, encoding: Encoding) =>
      own('images', 'encodeImage', [image, rules, encoding]),
    /** Makes a small WebP of an image. Throws Failure `invalid_image`. */
    thumbnail: (image: ImageSource, longestSide = 320) => own('images', 'thumbnail', [image, storedRules, longestSide]),
    /** Reads the header of a GGUF file, as `readGgufHeader`: skipping its vocabulary takes tens of milliseconds. */
    ggufHeader: (path: string) => own('bodies', 'ggufHeader', [path]),
    /** Decodes one audio file into another. Rejects with Failure `invalid_audio`, `disk_full`, or the signal's reason. */
    decodeAudio: (from: string, into: string, bounds: AudioLimits, signal?: AbortSignal) =>
      own('audio', 'decodeAudio', [from, into, bounds], { signal }),
    /**
     * Encodes a stream of samples as MP3: mono, 16 bits, `rate` samples a second. The stream fails with Failure
     * `no_capacity` if too many streams are encoded at once.
     */
    mp3: (rate: number): Mp3Stream =>
      new Mp3Stream(port => own('encoders', 'encodeMp3', [rate, port], { ports: [port] })),
    close: () => pools.close(),
  }
}
export type Cpu = ReturnType<typeof openCpu>
