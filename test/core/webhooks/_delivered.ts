import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { checkDatabase } from '../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../core/store/sqlite/database.ts'
import { openFailingReceiver } from './_failing-receiver.ts'

const program = join(import.meta.dirname, '..', '..', 'fixtures', 'webhooks-process.ts')

/** A reproducible generator of numbers from 0 to 1. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** What came of the messages about so many jobs, two each, to a receiver that fails half the time. */
export interface Delivered {
  /** Inconsistencies of the database, as sentences. */
  findings: string[]
  seconds: number
  messages: number
  requests: number
  /** Messages that were accepted more than once. */
  acceptedTwice: number
  /** Messages that were sent again although their success was recorded at a kill. */
  repeated: string[]
  /** Messages that were recorded as delivered at some kill. */
  recorded: number
  /** Event types of each object in the order in which they were accepted. */
  orders: string[]
  stored: { deliveries: number; events: number; unfinished: number }
}

/** Sends the messages in a process that is killed and started again so many times, and then to their end. */
export async function deliverAll(options: {
  dataDir: string
  jobs: number
  kills: number
  random: () => number
}): Promise<Delivered> {
  const { dataDir, jobs, kills, random } = options
  await using receiver = await openFailingReceiver(random)
  const began = performance.now()
  const start = (): ChildProcess => fork(program, [dataDir, receiver.url, String(jobs)], { stdio: 'inherit' })
  const database = <T>(sql: string): T[] => {
    const connection = openDatabase(join(dataDir, 'infer.db'), { readonly: true })
    const rows = connection.prepare<[], T>(sql).all()
    connection.close()
    return rows
  }

  const recorded = new Map<string, number>()
  for (let kill = 0; kill < kills; kill++) {
    const child = start()
    const died = once(child, 'exit')
    await once(child, 'message')
    // In the middle of its work, or when there is none left.
    await Promise.race([receiver.furtherRequests(1 + Math.floor((random() * jobs) / 4)), once(child, 'message')])
    child.kill('SIGKILL')
    await died
    for (const { id } of database<{ id: string }>(`SELECT id FROM webhook_deliveries WHERE status = 'delivered'`))
      if (!recorded.has(id)) recorded.set(id, receiver.messages.get(id)!.attempts)
  }
  const last = start()
  await new Promise<void>(resolve =>
    last.on('message', (message: { idle?: true }) => {
      if (message.idle && receiver.accepted.size >= jobs) resolve()
    }),
  )
  const seconds = (performance.now() - began) / 1000
  last.kill('SIGKILL')
  await once(last, 'exit')
  const { findings } = await checkDatabase(dataDir)

  const messages = [...receiver.messages.values()]
  return {
    findings,
    seconds,
    messages: messages.length,
    requests: messages.reduce((sum, { attempts }) => sum + attempts, 0),
    acceptedTwice: messages.filter(({ accepted }) => accepted > 1).length,
    repeated: [...recorded]
      .filter(([id, attempts]) => receiver.messages.get(id)!.attempts > attempts)
      .map(([id]) => id),
    recorded: recorded.size,
    orders: [...receiver.accepted.values()].map(types => types.join(' ')),
    stored: database<Delivered['stored']>(
      `SELECT (SELECT count(*) FROM webhook_deliveries) AS deliveries, (SELECT count(*) FROM events) AS events,
         (SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered') AS unfinished`,
    )[0]!,
  }
}
