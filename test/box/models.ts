import { join } from 'node:path'
import type { Cards } from './cards.ts'

const loadMs = 1_500

interface BoxModel {
  id: string
  task: string
  gibibytes: number
  features?: string[]
}

/** No two of them fit on one card of 24 GB, and none beside a process that uses half of it. */
export const models = [
  { id: 'code/agent', task: 'std/chat-completion', gibibytes: 20, features: ['tools'] },
  { id: 'chat/assistant', task: 'std/chat-completion', gibibytes: 18 },
  { id: 'night/small', task: 'std/chat-completion', gibibytes: 16 },
  { id: 'write/story', task: 'std/chat-completion', gibibytes: 19 },
  { id: 'read/embed', task: 'std/embeddings', gibibytes: 13 },
  { id: 'paint/image', task: 'slug/text-to-image', gibibytes: 14 },
] as const satisfies BoxModel[]

const engine = join(import.meta.dirname, 'engine.ts')

/** Entries of infer.yaml: how to start each engine and what it needs, nothing about queues, order or limits. */
export const modelEntries = ({ shared }: Cards): object[] =>
  models.map(({ id, task, gibibytes, ...more }) => ({
    id,
    engine: 'custom',
    tasks: [task],
    memory: `${gibibytes}GiB`,
    ...more,
    command: [process.execPath, engine, '--socket', '{socket}', '--id', '{id}', '--driver', join(shared, 'socket')],
    args: ['--mebibytes', String(gibibytes * 1024), '--ready-after', String(loadMs)],
    sandbox_read: [join(import.meta.dirname, '../..')],
    sandbox_write: [shared],
  }))
