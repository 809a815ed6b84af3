import { move, transferableSymbol, valueSymbol } from 'piscina'
import { Failure, type FailureCode, type FailureMore } from '../failure.ts'
import type { JsonBounds } from '../json.ts'
import type { Catalog } from '../tasks/catalog.ts'
import { prepare, shape } from '../tasks/prepare.ts'
import type { Prepared, Shaped, Want } from '../tasks/prepared.ts'
import type { TextTask } from '../tasks/tasks.ts'

/** What the pool is asked, and what it answers: values or a failure's parts, because errors lose their class on the way. */
export type CpuRequest =
  | { do: 'prepare'; task: TextTask; body: Uint8Array; catalog: Catalog; bounds: JsonBounds }
  | { do: 'shape'; answers: Uint8Array[]; want: Want }
export type CpuAnswer<T> = { value: T } | { failure: { code: FailureCode; message: string; more: FailureMore } }

const bytes = (text: string | Uint8Array): Uint8Array =>
  typeof text === 'string' ? new TextEncoder().encode(text) : text

function work(request: CpuRequest): Prepared | Shaped {
  if (request.do === 'shape') {
    const shaped = shape(request.answers, request.want)
    return { ...shaped, body: bytes(shaped.body) }
  }
  const { buffer, byteOffset, byteLength } = request.body
  const prepared = prepare(request.task, Buffer.from(buffer, byteOffset, byteLength), request.catalog, request.bounds)
  return { ...prepared, bodies: prepared.bodies.map(bytes) }
}

/** The bytes are given to the main thread instead of being copied there. */
function handOver(value: Prepared | Shaped): CpuAnswer<Prepared | Shaped> {
  const texts = 'bodies' in value ? value.bodies : [value.body]
  const buffers = texts.filter(text => typeof text !== 'string').map(text => text.buffer as ArrayBuffer)
  const answer = { value }
  return move({ [transferableSymbol]: buffers, [valueSymbol]: answer }) as unknown as typeof answer
}

/** Entry of the pool's threads. */
export default function run(request: CpuRequest): CpuAnswer<Prepared | Shaped> {
  try {
    return handOver(work(request))
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
