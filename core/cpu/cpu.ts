import { Piscina } from 'piscina'
import { workerPath } from '../assets.ts'
import { Failure } from '../failure.ts'
import type { JsonBounds } from '../json.ts'
import type { Catalog } from '../tasks/catalog.ts'
import { prepare, shape } from '../tasks/prepare.ts'
import type { Prepared, Shaped, Want } from '../tasks/prepared.ts'
import type { TextTask } from '../tasks/tasks.ts'
import type { CpuAnswer, CpuRequest } from './worker.ts'

/**
 * Work that needs the processor for longer than the event loop can spare. Bodies up to 32 KiB take well under a
 * millisecond and stay on the loop; larger ones go to a thread that starts with the first of them.
 */
const inlineBytes = 32 << 10

/** Bodies of many small values take far longer to check than their size says: 10,000 empty messages are 30 KB. */
const inlineValues = 1_000
function fewValues(body: Buffer): boolean {
  if (body.length <= 2 * inlineValues) return true
  let commas = 0
  for (let at = body.indexOf(0x2c); at >= 0; at = body.indexOf(0x2c, at + 1)) if (++commas > inlineValues) return false
  return true
}

/** Whether a buffer can be given away: small ones share Node's pool with others, and would take those along. */
const ownsItsBytes = (bytes: Buffer): bytes is Buffer<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength

export function openCpu({ threads = 2, maxQueue = 256 }: { threads?: number; maxQueue?: number } = {}) {
  let pool: Piscina | undefined

  async function ask<T>(request: CpuRequest, bytes: Buffer[]): Promise<T> {
    pool ??= new Piscina({
      filename: workerPath('cpu-worker'),
      minThreads: 1,
      maxThreads: threads,
      maxQueue,
      idleTimeout: 30_000,
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    })
    if (pool.queueSize >= maxQueue)
      throw new Failure('no_capacity', 'Too many large requests are being read at once. Try again in a moment.', {
        retryAfterMs: 1_000,
      })
    const answer = (await pool.run(request, {
      transferList: bytes.filter(ownsItsBytes).map(whole => whole.buffer),
    })) as CpuAnswer<T>
    if ('value' in answer) return answer.value
    const { code, message, more } = answer.failure
    throw new Failure(code, message, more)
  }

  return {
    /** `prepare` of core/tasks, here or in a thread; a value where it is cheap, a promise where it is not. */
    prepare(task: TextTask, body: Buffer, catalog: Catalog, bounds: JsonBounds): Prepared | Promise<Prepared> {
      return body.length <= inlineBytes && fewValues(body)
        ? prepare(task, body, catalog, bounds)
        : ask<Prepared>({ do: 'prepare', task, body, catalog, bounds }, [body])
    },
    /** `shape` of core/tasks, likewise. */
    shape(answers: Buffer[], want: Want): Shaped | Promise<Shaped> {
      const size = answers.reduce((sum, answer) => sum + answer.length, 0)
      return size <= inlineBytes ? shape(answers, want) : ask<Shaped>({ do: 'shape', answers, want }, answers)
    },
    async close(): Promise<void> {
      await pool?.destroy()
    },
  }
}
export type Cpu = ReturnType<typeof openCpu>
