import { spawnSync } from 'node:child_process'
import { pbkdf2 } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { full } from '../../../_full.ts'
import { newExecution } from '../../../store/conformance/drawn.ts'
import { startChild } from '../_children.ts'
import {
  claimWaiting,
  completed,
  finishedCall,
  newJob,
  newToken,
  newVideo,
  openTestStore,
  organizationId,
  temporaryDirectory,
} from '../_store.ts'

const page = 4096

/** An intact database of a few hundred jobs in every state, closed. */
async function sound(dataDir: string): Promise<void> {
  await using opened = await openTestStore({ dataDir })
  const { store } = opened
  for (let i = 0; i < 5; i++) await store.tokens.create(newToken({ name: `token ${i}` }))
  const job = () => store.jobs.submit(newJob({ inputs: JSON.stringify('input '.repeat(100)) }))
  await Promise.all(Array.from({ length: 300 }, job))
  for (const claimed of await claimWaiting(store, { limit: 150 })) await store.jobs.settle(claimed, completed())
  await store.jobs.record(Array.from({ length: 100 }, () => finishedCall()))
}

function seeded(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const damages: Record<string, (path: string, random: (below: number) => number) => void> = {
  'a flipped bit'(path, random) {
    const bytes = readFileSync(path)
    bytes[random(bytes.length)]! ^= 1 << random(8)
    writeFileSync(path, bytes)
  },
  'a zeroed page'(path, random) {
    const bytes = readFileSync(path)
    const at = random(bytes.length / page) * page
    writeFileSync(path, bytes.fill(0, at, at + page))
  },
  'a truncated file'(path, random) {
    truncateSync(path, random(statSync(path).size))
  },
}

test('a damaged database is refused with exit code 65 or served; nothing crashes', async () => {
  using directory = temporaryDirectory()
  const original = join(directory.path, 'sound')
  await sound(original)
  const random = seeded(20_260_402)
  const cases = Object.entries(damages).flatMap(([name, damage]) =>
    Array.from({ length: full ? 20 : 6 }, (_, at) => {
      const dataDir = join(directory.path, `${name} ${at}`.replaceAll(' ', '-'))
      mkdirSync(dataDir, { mode: 0o700 })
      for (const file of ['infer.db', 'instance.lock']) copyFileSync(join(original, file), join(dataDir, file))
      damage(join(dataDir, 'infer.db'), random)
      return { name, dataDir }
    }),
  )
  const child = startChild('tryAll', '-', ...cases.map(({ dataDir }) => dataDir))
  const outcomes = new Map<string, string>()
  child.on('message', ({ directory, outcome }: { directory?: string; outcome: string }) => {
    if (directory !== undefined) outcomes.set(directory, outcome)
  })
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  expect(signal).toBeNull()
  expect(outcomes.size).toBe(cases.length)
  for (const outcome of outcomes.values()) expect(outcome).toMatch(/^(refused 65: |served$|failed shutting_down$)/)
  const of = (wanted: string) =>
    cases.filter(({ name }) => name === wanted).map(({ dataDir }) => outcomes.get(dataDir)!)
  // A truncated file is always detected before anything is served from it.
  expect(of('a truncated file').filter(outcome => !outcome.startsWith('refused 65'))).toEqual([])
  const refused = of('a zeroed page').find(outcome => outcome.startsWith('refused'))
  expect(refused).toMatch(/infer\.db is damaged: .*infer restore <backup file> --data-dir/)
})

test('a database refused before the free disk space is known is refused like any other', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  await sound(dataDir)
  writeFileSync(join(dataDir, 'infer.db'), 'not a database at all '.repeat(500))
  // All threads that could read the free space are busy until the writer has answered.
  const busy = Array.from({ length: 32 }, () => promisify(pbkdf2)('a', 'b', 400_000, 64, 'sha512'))
  await expect(openTestStore({ dataDir })).rejects.toMatchObject({ exitCode: 65 })
  await Promise.all(busy)
})

test('an emptied database is not treated as a first start', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  await sound(dataDir)
  truncateSync(join(dataDir, 'infer.db'))
  await expect(openTestStore({ dataDir })).rejects.toMatchObject({
    exitCode: 65,
    message: expect.stringContaining('it is empty, although it has held data'),
  })
})

test('a check refuses where results cannot be locked', async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  await using opened = await openTestStore({ dataDir })
  await opened.store.close()
  const lock = join(dataDir, 'results.lock')
  rmSync(lock)
  mkdirSync(lock)
  await expect(checkDatabase(dataDir)).rejects.toMatchObject({
    exitCode: 74,
    message: expect.stringContaining('cannot be locked'),
  })
})

test('the check finds every flipped bit in the content of the ledger', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  {
    await using opened = await openTestStore({ dataDir })
    await opened.store.jobs.record(Array.from({ length: 60 }, () => finishedCall()))
  }
  const path = join(dataDir, 'infer.db')
  const good = readFileSync(path)
  expect((await checkDatabase(dataDir)).findings).toEqual([])
  const read = (): string | undefined => {
    const connection = openDatabase(path, { readonly: true })
    try {
      return JSON.stringify(connection.prepare('SELECT * FROM ledger').all())
    } catch {
      return undefined
    } finally {
      connection.close()
    }
  }
  const connection = openDatabase(path, { readonly: true })
  const pages = connection.prepare<[], number>("SELECT pageno FROM dbstat WHERE name = 'ledger'").pluck().all()
  connection.close()
  const said = read()
  const random = seeded(20_260_403)
  let changed = 0
  const missed: number[] = []
  while (changed < 60) {
    const at = (pages[random(pages.length)]! - 1) * page + random(page)
    const bytes = Buffer.from(good)
    bytes[at]! ^= 1 << random(8)
    writeFileSync(path, bytes)
    // A flip in unused space does not change the content of the ledger.
    if (read() === said) continue
    changed += 1
    if ((await checkDatabase(dataDir, { quick: true })).findings.length === 0) missed.push(at)
  }
  expect(missed).toEqual([])
})

test('a ledger row removed, added or changed by hand is found', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  {
    await using opened = await openTestStore({ dataDir })
    const { jobs } = opened.store
    await jobs.record(Array.from({ length: 4 }, () => finishedCall()))
    await jobs.submit(newJob())
    for (const claimed of await claimWaiting(opened.store, { limit: 1 })) await jobs.settle(claimed, completed())
  }
  const path = join(dataDir, 'infer.db')
  const good = readFileSync(path)
  const after = async (sql: string): Promise<string[]> => {
    writeFileSync(path, good)
    const connection = openDatabase(path)
    expect(() => connection.exec(sql)).toThrow(/only added to/)
    connection.exec('DROP TRIGGER ledger_is_final; DROP TRIGGER ledger_is_kept')
    connection.exec(sql)
    connection.close()
    return (await checkDatabase(dataDir)).findings
  }
  expect(await after('UPDATE ledger SET cost = 1 WHERE sequence = 3')).toEqual([
    expect.stringMatching(/^Ledger row 3 .* does not match its hash/),
    '2 hourly sums of usage do not match the ledger.',
    'The spending of 1 months of organizations is not the sum of the ledger.',
  ])
  expect((await after('DELETE FROM ledger WHERE sequence = 2'))[0]).toBe('The ledger jumps from row 1 to row 3.')
  expect(await after('DELETE FROM ledger WHERE sequence = 5')).toEqual([
    '2 hourly sums of usage do not match the ledger.',
    'The spending of 1 months of organizations is not the sum of the ledger.',
    '1 jobs have ended and are not in the ledger.',
  ])
})

test('damage found while the server runs stops it', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  await sound(dataDir)
  await using opened = await openTestStore({ dataDir })
  const other = openDatabase(join(dataDir, 'infer.db'))
  other.pragma('user_version = 1')
  // From another process: closing the file in this one would drop the locks that SQLite holds on it. The schema is
  // kept; a small write makes the server read everything else again.
  const script = `
    const fs = require('node:fs')
    const file = fs.openSync(process.argv[1], 'r+')
    fs.writeSync(file, Buffer.alloc(fs.fstatSync(file).size - ${page}), 0, undefined, ${page})`
  expect(spawnSync(process.execPath, ['-e', script, join(dataDir, 'infer.db')]).status).toBe(0)
  other.pragma('user_version = 1')
  other.close()
  const outcomes = []
  for (let i = 0; i < 5; i++) outcomes.push(await opened.store.jobs.submit(newJob()).catch((cause: Error) => cause))
  expect(outcomes.at(-1)).toMatchObject({ code: 'shutting_down' })
  expect(opened.fatal).toEqual([[expect.objectContaining({ message: expect.stringContaining('SQLITE_CORRUPT') }), 74]])
})

test('inconsistencies are found: events, ledger, counts, files and library', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  {
    await using opened = await openTestStore({ dataDir })
    const { jobs } = opened.store
    const [ended, waiting] = [(await jobs.submit(newJob())).job, (await jobs.submit(newJob())).job]
    const claimed = (await jobs.claim(organizationId, ended.id, Date.now()))!
    await jobs.settle(claimed, { ...completed(), ...newVideo({ jobId: ended.id }) })
    await jobs.cancel(organizationId, waiting.id, 1)
  }
  const path = join(dataDir, 'infer.db')
  const good = readFileSync(path)
  const after = async (sql: string): Promise<string[]> => {
    writeFileSync(path, good)
    const connection = openDatabase(path)
    connection.exec(`DROP TRIGGER jobs_end_once; ${sql}`)
    connection.close()
    return (await checkDatabase(dataDir)).findings
  }
  expect(await checkDatabase(dataDir)).toMatchObject({ findings: [], jobs: 2, events: 5, files: 2, videos: 1 })
  expect(await after(`DELETE FROM events WHERE type = 'job.completed'`)).toEqual([
    '1 jobs have another status than their last event says.',
  ])
  expect(
    await after(`UPDATE jobs SET status = 'pending', finished_at = NULL, error = NULL WHERE status = 'cancelled'`),
  ).toEqual([
    '1 ledger rows are of jobs that have not ended.',
    'The counts of jobs by status do not match the jobs.',
    '1 jobs have another status than their last event says.',
  ])
  expect(await after('UPDATE files SET removed_at = 1')).toEqual([
    'The stored bytes of 1 organizations do not match their files.',
    '1 files are in the library and their files are removed.',
  ])
  expect(
    await after(`INSERT INTO organizations (id, name, plan, status, created_at) VALUES ('org_x', 'x', 'pro', 'active', 1);
    UPDATE files SET organization_id = 'org_x' WHERE purpose = 'output'`),
  ).toEqual([
    'The stored bytes of 1 organizations do not match their files.',
    "1 files are in the library of another organization than their file's.",
  ])
  expect(await after(`UPDATE files SET job_id = (SELECT id FROM jobs WHERE status = 'cancelled')`)).toEqual([
    '2 files are of jobs that have made none.',
  ])
})

test.for([
  ['nothing', '', []],
  [
    'a node that is over while its job waits',
    `UPDATE execution_nodes SET status = 'completed' WHERE node_id = 'c'`,
    [
      '1 nodes of executions have another status than their jobs.',
      '1 nodes of executions have completed but their results are missing.',
      '1 executions have ended with unfinished nodes, or are unfinished although all nodes have ended.',
      '2 executions have wrong counts of their nodes.',
    ],
  ],
  [
    'a node that waits for a job that is not there',
    `UPDATE jobs SET node = NULL WHERE status = 'pending'`,
    ['1 nodes of executions are ready and have no job.'],
  ],
  [
    'a result that is gone',
    `DELETE FROM job_results WHERE number = (SELECT number FROM jobs WHERE status = 'completed' LIMIT 1)`,
    ['1 nodes of executions have completed but their results are missing.'],
  ],
  [
    'a count',
    'UPDATE executions SET running = 1 WHERE finished_at IS NULL',
    ['1 executions have wrong counts of running nodes.'],
  ],
  [
    'jobs of nobody',
    `UPDATE jobs SET execution = 77, node = NULL WHERE status = 'cancelled'`,
    ['3 jobs belong to executions that do not exist.'],
  ],
  [
    'a result for the same work that nobody has',
    `INSERT INTO cached_results VALUES ('key', 'job_none')`,
    ['1 cached results name jobs that are missing or not completed.'],
  ],
] as const)('the check compares executions with their jobs: %s', async ([, change, findings]) => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  {
    await using opened = await openTestStore({ dataDir })
    const { store } = opened
    const drawn = { nodes: { a: ['c'], b: [], c: [] }, borne: ['b'] }
    const going = newExecution(drawn)
    for (const { modelId: _, ...made } of [going, newExecution(drawn)]) await store.executions.create(made)
    const [a, b] = await Promise.all(
      [0, 1].map(node => store.jobs.claim(organizationId, going.nodes[node]!.jobId, Date.now())),
    )
    await store.jobs.settle(a!, completed())
    await store.jobs.cancel(organizationId, b!.id, Date.now())
    const { executions } = await store.executions.list(organizationId, { limit: 10 })
    for (const { id, status } of executions)
      if (status === 'pending') await store.executions.cancel(organizationId, id, 1)
  }
  const connection = openDatabase(join(dataDir, 'infer.db'), {})
  connection.pragma('foreign_keys = OFF')
  connection.exec(change)
  connection.close()
  const found = (await checkDatabase(dataDir)).findings.filter(finding => !finding.startsWith('The counts of jobs'))
  expect(found).toEqual(findings)
})
