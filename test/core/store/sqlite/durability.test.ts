import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { killsOf } from '../../../_full.ts'
import { hasStrace, heard, startChild, traced, weakenDurability } from '../_children.ts'
import { claimWaiting, newJob, openTestStore, temporaryDirectory } from '../_store.ts'

const kills = killsOf(6, 20)
const slots = 16
/** One run in this many is killed at any time, however far it has come. */
const early = 5

/** A reproducible generator of numbers from 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

test(`${kills} kill -9 under load lose no job, invent none and bill each once`, {
  timeout: 120_000,
}, async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  const random = seeded(20_260_401)
  const acknowledged = new Map<string, string>()
  const sent = new Set<string>()
  const contradictions: string[] = []
  const readyMs: number[] = []
  const answered = new Map<string, () => void>()
  let requeued = 0
  const over = new AbortController()

  /** One run of the server until it is killed; the next one follows. */
  const live = () => {
    const child = startChild('serve', dataDir)
    return { child, died: once(child, 'exit'), next: Promise.withResolvers<void>() }
  }
  let server = live()

  async function ready(): Promise<void> {
    const before = performance.now()
    const { ready } = await heard(server.child, 'ready')
    readyMs.push(performance.now() - before)
    requeued += (ready as { requeued: number }).requeued
    server.child.on('message', ({ key, id }: { key?: string; id?: string }) => {
      if (key === undefined || id === undefined) return
      if ((acknowledged.get(key) ?? id) !== id) contradictions.push(key)
      acknowledged.set(key, id)
      answered.get(key)?.()
    })
  }

  async function kill(): Promise<void> {
    server.child.kill('SIGKILL')
    await server.died
  }

  /** One client: the next key after an acknowledgement, the same again when the server was killed. */
  async function client(name: number): Promise<void> {
    for (let n = 0; !over.signal.aborted; n++) {
      const key = `${name}:${n}`
      sent.add(key)
      while (!acknowledged.has(key)) {
        const here = server
        const answer = new Promise<void>(resolve => answered.set(key, resolve))
        if (here.child.connected) here.child.send({ key }, () => {})
        await Promise.race([answer, here.died])
        if (!acknowledged.has(key)) await here.next.promise
      }
      answered.delete(key)
    }
  }

  /**
   * Resolves when the jobs found at the start have run: otherwise a slow machine makes a job look like one that crashes
   * workers.
   */
  async function progressed(): Promise<void> {
    const file = join(dataDir, 'executions')
    const bytes = () => (existsSync(file) ? statSync(file).size : 0)
    const goal = bytes() + 2 * slots * `${newJob().id}\n`.length
    await expect.poll(bytes, { interval: 10 }).toBeGreaterThan(goal)
  }

  await ready()
  const clients = Array.from({ length: 32 }, (_, name) => client(name))
  for (let round = 0; round < kills; round++) {
    if (round % early !== 0) await progressed()
    await delay(50 + random() * 250)
    await kill()
    const { next } = server
    server = live()
    await ready()
    next.resolve()
  }
  over.abort()
  await Promise.all(clients)
  await heard(server.child, 'idle')
  await kill()

  const connection = openDatabase(join(dataDir, 'infer.db'), { readonly: true })
  const jobs = connection
    .prepare<[], { id: string; key: string; status: string }>(
      'SELECT id, inputs AS key, status FROM jobs JOIN job_inputs USING (number)',
    )
    .all()
    .map(job => ({ ...job, key: JSON.parse(job.key) as string }))
  const ledger = connection.prepare<[], string>('SELECT job_id FROM ledger').pluck().all()
  connection.close()
  const byKey = new Map(jobs.map(job => [job.key, job.id]))
  const executions = readFileSync(join(dataDir, 'executions'), 'utf8').trimEnd().split('\n')
  const repeated = executions.length - new Set(executions).size

  const lost = [...acknowledged].filter(([key, id]) => byKey.get(key) !== id)
  expect({ lost, contradictions }).toEqual({ lost: [], contradictions: [] })
  expect(jobs.filter(({ key }) => !sent.has(key))).toEqual([])
  expect(byKey.size).toBe(jobs.length)
  expect(jobs.map(({ status }) => status).filter(status => status !== 'completed')).toEqual([])
  expect(ledger).toHaveLength(jobs.length)
  expect(new Set(ledger)).toEqual(new Set(jobs.map(({ id }) => id)))
  expect(repeated).toBeLessThanOrEqual(slots * kills)
  expect((await checkDatabase(dataDir)).findings).toEqual([])
  // Proves that the load was real: hundreds of jobs, some of them running at a kill.
  expect(acknowledged.size).toBeGreaterThan(25 * kills)
  expect(requeued).toBeGreaterThan(0)
  process.stdout.write(
    `durability: ${kills} kills, ${acknowledged.size} acknowledged, 0 lost, ${repeated} executions repeated, ` +
      `${requeued} requeued, ready (with the start of Node) at most ${Math.round(Math.max(...readyMs))} ms\n`,
  )
})

/** How many acknowledgements were sent before the WAL was synchronised, and how many there were. */
function violations(trace: string): { acknowledgements: number; early: number } {
  let [written, synchronised, started, acknowledgements, early, atLast] = [0, 0, 0, 0, 0, 0]
  const unfinished = new Map<string, string>()
  for (const line of readFileSync(trace, 'utf8').split('\n')) {
    const [, thread = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const call = resumed ? (unfinished.get(thread) ?? '') + resumed[1] : rest
    if (rest.endsWith('<unfinished ...>')) unfinished.set(thread, rest)
    const ends = !rest.endsWith('<unfinished ...>')
    if (/^pwrite64\(\d+<[^>]*-wal>/.test(call) && ends) written += 1
    if (/^f(data)?sync\(\d+<[^>]*-wal>/.test(call)) {
      if (!resumed) started = written
      if (ends && call.endsWith(' = 0')) synchronised = started
    }
    // An acknowledgement counts from where its system call begins.
    if (/^write\(1<[^>]*>, "ack /.test(call) && !resumed) {
      acknowledgements += 1
      if (synchronised < written || written === atLast) early += 1
      atLast = written
    }
  }
  return { acknowledgements, early }
}

const calls = ['-e', 'trace=fsync,fdatasync,pwrite64,write']

test.skipIf(!hasStrace)('no acknowledgement is sent before the fsync of the WAL (needs strace)', () => {
  using directory = temporaryDirectory()
  const trace = join(directory.path, 'trace')
  const args = ['acknowledge', join(directory.path, 'data'), '50']
  const { said } = traced({ strace: calls, args, trace })
  expect(said.at(-1)).toBe('end')
  expect(violations(trace)).toEqual({ acknowledgements: 50, early: 0 })
})

test.skipIf(!hasStrace)('with synchronous NORMAL the same trace shows such acknowledgements (needs strace)', () => {
  using directory = temporaryDirectory()
  const trace = join(directory.path, 'trace')
  const args = ['acknowledge', join(directory.path, 'data'), '50']
  traced({ strace: calls, node: ['--import', weakenDurability], args, trace })
  expect(violations(trace)).toEqual({ acknowledgements: 50, early: 50 })
})

test.skipIf(!hasStrace)('a failed fsync stops the store: nothing is acknowledged after it (needs strace)', async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  // Its migrations are stored before fsync fails.
  await (await openTestStore({ dataDir })).store.close()
  const { said, status, errors } = traced({
    strace: ['-P', join(dataDir, 'infer.db-wal'), '-e', 'trace=fsync', '-e', 'inject=fsync:error=EIO:when=20+'],
    args: ['untilBroken', dataDir],
    trace: join(directory.path, 'trace'),
  })
  expect(said.filter(line => line.startsWith('ack')).length).toBeGreaterThan(0)
  expect(said.slice(-2)).toEqual(['refused shutting_down', 'afterwards shutting_down'])
  expect(errors).toMatch(/^fatal 74: .*SQLITE_IOERR_FSYNC/m)
  expect(status).toBe(74)
})

test('a store with a hundred thousand pending jobs starts in seconds', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  await (await openTestStore({ dataDir })).store.close()
  const connection = openDatabase(join(dataDir, 'infer.db'))
  const { id, organizationId, tokenId, task, modelId, inputs, createdAt } = newJob()
  connection.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
    INSERT INTO jobs (organization_id, id, token_id, task, model_id, priority, rank, status, attempt,
      max_attempts, claims, crashes, not_before, created_at, updated_at)
    SELECT '${organizationId}', '${id}' || i, '${tokenId}', '${task}', '${modelId}', 0, i, 'pending',
      0, 3, 0, 0, 0, ${createdAt}, ${createdAt} FROM n;
    INSERT INTO job_inputs SELECT number, '${inputs}' FROM jobs;
    UPDATE job_counts SET jobs = 100000 WHERE status = 'pending'`)
  connection.close()
  const before = performance.now()
  await using opened = await openTestStore({ dataDir })
  const elapsed = performance.now() - before
  expect(await opened.store.jobs.counts()).toMatchObject({ pending: 100_000 })
  expect(await claimWaiting(opened.store, { limit: 8 })).toHaveLength(8)
  expect(elapsed).toBeLessThan(5000)
})
