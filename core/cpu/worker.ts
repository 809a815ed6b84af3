import type { MessagePort } from 'node:worker_threads'
import { move, transferableSymbol, valueSymbol } from 'piscina'
import { Failure, type FailureCode, type FailureMore } from '../failure.ts'
import type { JsonBounds } from '../json.ts'
import type { Catalog } from '../models/catalog.ts'
import type { Task, TextTask } from '../schemas/task.ts'
import { prepare, shape } from '../tasks/prepare.ts'
import type { Prepared, Shaped, Want } from '../tasks/prepared.ts'
import { type BodyWish, type ReadBody, readBodyValue } from './body-work.ts'
import {
  checkImage,
  type ImageFacts,
  type ImageRules,
  type ImageSource,
  type RedrawAs,
  type Redrawn,
  redrawImage,
  thumbnailOf,
} from './image-work.ts'
import { encodeMp3 } from './mp3-work.ts'
import { type FarReference, prunedResult, type Referred, referredIn } from './result-work.ts'
import { type DecodedSound, decodeSound, type SoundBounds } from './sound-work.ts'

/** What the pool is asked, and what it answers: values or a failure's parts, because errors lose their class on the way. */
export type CpuRequest =
  | { do: 'prepare'; task: TextTask; body: Uint8Array; catalog: Catalog; bounds: JsonBounds; hash: boolean }
  | { do: 'read'; body: Uint8Array; bounds: JsonBounds; wish: BodyWish }
  | { do: 'shape'; answers: Uint8Array[]; want: Want }
  | { do: 'check'; image: ImageSource; rules: ImageRules }
  | { do: 'redraw'; image: ImageSource; rules: ImageRules; as: RedrawAs }
  | { do: 'thumbnail'; image: ImageSource; rules: ImageRules; longestSide: number }
  | { do: 'sound'; from: string; into: string; bounds: SoundBounds }
  | { do: 'mp3'; rate: number; port: MessagePort }
  | { do: 'refer'; path: string; nodeId: string; references: readonly FarReference[]; task: Task }
  | { do: 'prune'; path: string; outputs: readonly string[]; what: 'kept' | 'result' }
export type CpuAnswer<T> = { value: T } | { failure: { code: FailureCode; message: string; more: FailureMore } }

const bytes = (text: string | Uint8Array): Uint8Array =>
  typeof text === 'string' ? new TextEncoder().encode(text) : text

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

type Done = DecodedSound | Prepared | Shaped | ReadBody | ImageFacts | Redrawn | Referred | Uint8Array

function work(request: CpuRequest): Done | Promise<Done> {
  switch (request.do) {
    case 'shape': {
      const shaped = shape(request.answers, request.want)
      return { ...shaped, body: bytes(shaped.body) }
    }
    case 'prepare': {
      const prepared = prepare(request.task, bufferOf(request.body), request.catalog, request.bounds, request.hash)
      return { ...prepared, bodies: prepared.bodies.map(bytes) }
    }
    case 'read':
      return readBodyValue(bufferOf(request.body), request.bounds, request.wish)
    case 'check':
      return checkImage(request.image, request.rules)
    case 'redraw':
      return redrawImage(request.image, request.rules, request.as)
    case 'thumbnail':
      return thumbnailOf(request.image, request.rules, request.longestSide)
    case 'sound':
      return decodeSound(request.from, request.into, request.bounds)
    case 'mp3':
      return encodeMp3(request.rate, request.port).then(() => new Uint8Array(0))
    case 'refer':
      return referredIn(request.path, request.nodeId, request.references, request.task)
    case 'prune':
      return prunedResult(request.path, request.outputs, request.what)
  }
}

function bytesIn(value: Done): (string | Uint8Array)[] {
  if (value instanceof Uint8Array) return [value]
  if ('inline' in value) return [...value.inline.values()]
  if ('bodies' in value) return value.bodies
  if ('body' in value) return [value.body]
  return 'bytes' in value && value.bytes instanceof Uint8Array ? [value.bytes] : []
}

/** The bytes are given to the main thread instead of being copied there. */
function handOver(value: Done): CpuAnswer<Done> {
  const buffers = bytesIn(value)
    .filter(text => typeof text !== 'string')
    .map(text => text.buffer as ArrayBuffer)
  const answer = { value }
  return move({ [transferableSymbol]: buffers, [valueSymbol]: answer }) as unknown as typeof answer
}

/** Entry of the pool's threads. */
export default async function run(request: CpuRequest): Promise<CpuAnswer<Done>> {
  try {
    return handOver(await work(request))
  } catch (thrown) {
    const failure = Failure.from(thrown)
    const { code, message, param, details, facts, retryAfterMs, cause } = failure
    return {
      failure: {
        code,
        message,
        more: { param, details, facts, retryAfterMs, cause: cause instanceof Error ? cause.stack : cause },
      },
    }
  }
}
