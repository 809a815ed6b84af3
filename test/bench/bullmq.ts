import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type FlowJob, FlowProducer, Queue, Worker } from 'bullmq'

const name = 'bench'

/** The child jobs of a job, which run before it. */
export interface Flow {
  children: Flow[]
}
const jobOf = ({ children }: Flow): FlowJob => ({
  name: 'job',
  queueName: name,
  opts: { attempts: 3 },
  children: children.map(jobOf),
})

/** Whether a Redis server is installed for the comparison. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0

/**
 * BullMQ on a separate Redis that synchronises its log before every answer (`appendfsync always`): as durable as infer.
 * Over a Unix socket, which is the faster connection.
 */
export async function openBullmq(directory: string, concurrency: number) {
  const path = join(directory, 'redis.sock')
  const settings = { port: '0', unixsocket: path, dir: directory, appendonly: 'yes', appendfsync: 'always', save: '' }
  const server = spawn(
    'redis-server',
    Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]),
    { stdio: 'ignore' },
  )
  const connection = { path, maxRetriesPerRequest: null, retryStrategy: () => 50 }
  const queue = new Queue(name, { connection })
  const quiet = () => {}
  queue.on('error', quiet)
  await queue.waitUntilReady()
  const flows = new FlowProducer({ connection })
  flows.on('error', quiet)
  let worker: Worker | undefined
  let completed = 0

  return {
    submit: async (id: string, inputs: string): Promise<void> => {
      await queue.add('job', { inputs }, { jobId: id, attempts: 3 })
    },
    /** A job that runs after all its children, recursively. */
    flow: (children: Flow[]): Promise<unknown> => flows.add(jobOf({ children })),
    /** Starts a worker whose jobs do nothing. */
    work(): void {
      worker = new Worker(name, async () => ({ ok: true }), { connection, concurrency })
      worker.on('error', quiet).on('completed', () => (completed += 1))
    },
    completed: () => completed,
    async close(): Promise<void> {
      await worker?.close()
      await flows.close()
      await queue.close()
      server.kill('SIGTERM')
      await Promise.race([once(server, 'exit'), delay(5000, undefined, { ref: false })])
      server.kill('SIGKILL')
    },
  }
}
