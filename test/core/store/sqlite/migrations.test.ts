import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callRows } from '../../../../core/store/ledger-rows.ts'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { bootDatabase } from '../../../../core/store/sqlite/boot.ts'
import { verifyCopy } from '../../../../core/store/sqlite/copy.ts'
import { openAsIs, openDatabase } from '../../../../core/store/sqlite/database.ts'
import { brokenLinks, openLedger } from '../../../../core/store/sqlite/ledger.ts'
import { migrate, migrations, schemaVersionOf } from '../../../../core/store/sqlite/migrations.ts'
import { spendContradictions } from '../../../../core/store/sqlite/spend.ts'
import { claimWaiting, completed, newJob, openTestStore, temporaryDirectory } from '../_store.ts'

const latest = migrations.at(-1)!.version
const next = { version: latest + 1, sql: 'ALTER TABLE organizations ADD COLUMN motto TEXT' }
const broken = { version: latest + 2, sql: 'CREATE TABLE half (a); INSERT INTO nowhere VALUES (1)' }

const open = (dataDir: string) => openDatabase(join(dataDir, 'infer.db'))

test('versions are numbered without a gap', () => {
  expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, at) => at + 1))
})

test('a failed step leaves the version before it, without any of its changes', async () => {
  await using opened = await openTestStore()
  await opened.store.close()
  const connection = open(opened.dataDir)
  const backups: number[] = []
  const steps = [...migrations, next, broken]
  const backup = (from: number) => backups.push(from)
  expect(() => migrate(connection, { backup, steps })).toThrow(/nowhere/)
  expect(backups).toEqual([latest])
  expect(schemaVersionOf(connection)).toBe(latest + 1)
  expect(connection.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").pluck().get()).toBe(0)
  expect(migrate(connection, { backup, steps: [...migrations, next] })).toBeNull()
  connection.close()
})

test('an upgrade keeps the data and leaves a verified copy of the old database', async () => {
  await using opened = await openTestStore()
  const { job } = await opened.store.jobs.submit(newJob())
  const [claimed] = await claimWaiting(opened.store)
  const result = JSON.stringify('x'.repeat(300_000))
  await opened.store.jobs.settle(claimed!, { ...completed(), result })
  await opened.store.close()
  // The database of an older program: the same data, one version earlier.
  const connection = open(opened.dataDir)
  connection.exec('CREATE TABLE kept AS SELECT id FROM jobs')
  connection.close()
  const said: string[] = []
  const booted = bootDatabase({
    role: 'server',
    dataDir: opened.dataDir,
    boot: 'b',
    created: true,
    steps: [...migrations, next],
    say: (_, message) => said.push(message),
  })
  expect(booted.recovery.migratedFrom).toBe(latest)
  expect(booted.connection.prepare('SELECT id FROM jobs').pluck().all()).toEqual([job.id])
  expect(booted.connection.prepare('SELECT motto FROM organizations').pluck().all()).toEqual([null])
  booted.connection.close()
  const [copy, ...more] = readdirSync(join(opened.dataDir, 'backups'))
  expect(more).toEqual([])
  const path = join(opened.dataDir, 'backups', copy!)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  verifyCopy(path)
  // The result files are deleted with their jobs, and the copy stays complete.
  const old = openAsIs(path, { readonly: true })
  expect(old.prepare('SELECT result FROM job_results').pluck().all()).toEqual([result])
  old.close()
  expect(said).toEqual([expect.stringContaining('backup before the upgrade')])
})

test('jobs stored before there were classes get one: workflow for those of nodes, async for others', () => {
  using directory = temporaryDirectory()
  const connection = open(directory.path)
  migrate(connection, { backup() {}, steps: migrations.slice(0, 1) })
  connection.exec(`INSERT INTO organizations VALUES ('org', 'org', 'pro', 'active', NULL, NULL, 1)`)
  const insert = connection.prepare(
    `INSERT INTO jobs (organization_id, id, token_id, task, model_id, priority, rank, status, attempt, max_attempts,
       claims, crashes, not_before, created_at, updated_at, execution, node)
     VALUES ('org', ?, 'tok', 'std/chat-completion', 'm', 0, 0, 'pending', 0, 1, 0, 0, 0, 1, 1, ?, ?)`,
  )
  insert.run('plain', null, null)
  insert.run('node', 1, 0)
  expect(migrate(connection, { backup() {} })).toBe(1)
  expect(connection.prepare('SELECT id, class FROM jobs ORDER BY id').raw().all()).toEqual([
    ['node', 'workflow'],
    ['plain', 'async'],
  ])
  connection.close()
})

test('tokens stored before budgets were shared share those of their creators, as do their rotations', () => {
  using directory = temporaryDirectory()
  const connection = open(directory.path)
  migrate(connection, { backup() {}, steps: migrations.slice(0, 13) })
  connection.exec(
    `INSERT INTO organizations (id, name, plan, status, created_at) VALUES ('org', 'org', 'pro', 'active', 1)`,
  )
  const insert = connection.prepare(
    `INSERT INTO tokens (organization_id, id, public_id, name, scopes, digest, hint, status, created_at, created_by,
       origin_id, monthly_spend_limit) VALUES ('org', @id, @id, 'n', '[]', zeroblob(32), '', 'active', 1, @by, @origin, @limit)`,
  )
  const stored: [id: string, by: string | null, origin: string | null, limit: number | null][] = [
    ['tok_1', null, null, 5],
    ['tok_2', 'tok_1', 'tok_1', 5],
    ['tok_3', 'tok_2', null, 4],
    ['tok_4', 'tok_3', 'tok_3', 4],
    ['tok_5', null, null, null],
    ['tok_6', 'tok_5', null, 1],
    ['tok_7', 'tok_2', null, null],
    ['tok_8', 'tok_7', 'tok_7', null],
    ['tok_9', 'tok_8', null, 3],
  ]
  for (const [id, by, origin, limit] of stored) insert.run({ id, by, origin, limit })
  migrate(connection, { backup() {} })
  expect(connection.prepare('SELECT id, limits_parent FROM tokens ORDER BY id').raw().all()).toEqual([
    ['tok_1', null],
    ['tok_2', null],
    ['tok_3', 'tok_1'],
    ['tok_4', 'tok_1'],
    ['tok_5', null],
    ['tok_6', null],
    ['tok_7', 'tok_1'],
    ['tok_8', 'tok_1'],
    ['tok_9', 'tok_1'],
  ])
  connection.close()
})

test('an upgrade to accounts and usage keeps organizations, events and a ledger that still matches its hashes', () => {
  using directory = temporaryDirectory()
  const connection = open(directory.path)
  migrate(connection, { backup() {}, steps: migrations.slice(0, 2) })
  connection.exec(`
    INSERT INTO organizations VALUES ('org', 'org', 'pro', 'disabled', 7, NULL, 1), ('other', 'b', 'free', 'active', NULL, 0, 2);
    INSERT INTO jobs (organization_id, id, token_id, task, model_id, class, priority, rank, status, attempt, max_attempts,
        claims, crashes, not_before, created_at, updated_at)
      VALUES ('org', 'job_1', 'tok', 'std/chat-completion', 'm', 'async', 0, 0, 'pending', 0, 1, 0, 0, 0, 1, 1);
    INSERT INTO events (sequence, number, organization_id, type, attempt, at) VALUES (4, 1, 'org', 'job.created', 0, 1);`)
  const fields = [
    1,
    'job_0',
    'org',
    'tok',
    'sync',
    'std/chat-completion',
    'm',
    null,
    'completed',
    null,
    3,
    4,
    5,
    1,
    1,
    2,
  ]
  const digest = hash('sha256', Buffer.alloc(32).toString('hex') + JSON.stringify(fields), 'buffer')
  connection.prepare(`INSERT INTO ledger VALUES (${'?, '.repeat(16)}?)`).run(...fields, digest)
  expect(migrate(connection, { backup() {} })).toBe(2)
  expect(
    connection
      .prepare('SELECT id, plan, status, requests_per_minute, jobs_per_minute, updated_at FROM organizations')
      .raw()
      .all(),
  ).toEqual([
    ['org', 'pro', 'suspended', 7, null, 1],
    ['other', 'free', 'active', null, 0, 2],
  ])
  expect(connection.prepare('SELECT sequence, number, type FROM events').raw().all()).toEqual([[4, 1, 'job.created']])
  expect(connection.pragma('foreign_key_check')).toEqual([])
  // Of a cost of 5 in the first month of 1970, by a token that no longer exists.
  expect(
    connection.prepare('SELECT organization_id, origin_id, month, spent FROM spend ORDER BY origin_id').raw().all(),
  ).toEqual([
    ['org', '', 0, 5],
    ['org', 'tok', 0, 5],
  ])
  const contradictions = Object.values(spendContradictions).map(sql => connection.prepare(sql).pluck().get())
  expect(contradictions).toEqual([0, 0])
  const call = {
    id: 'job_2',
    organizationId: 'org',
    tokenId: 'tok',
    task: 'std/chat-completion',
    modelId: 'm',
  } as const
  openLedger(connection).appendCalls(
    callRows([
      {
        ...call,
        status: 'completed',
        error: null,
        usage: { inputTokens: 1, outputTokens: 2, gpuMs: 30 },
        cost: 9,
        engineId: null,
        createdAt: 1,
        referenceQueueMs: null,
        startedAt: 1,
        finishedAt: 3,
      },
    ]),
  )
  expect(brokenLinks(connection)).toEqual([])
  connection.exec('DROP TRIGGER ledger_is_final; UPDATE ledger SET gpu_ms = NULL WHERE sequence = 2')
  expect(brokenLinks(connection)).toEqual([expect.stringContaining('row 2')])
  connection.close()
})

test('a newer database is refused with exit code 65 and not changed', async () => {
  await using opened = await openTestStore()
  await opened.store.close()
  const connection = open(opened.dataDir)
  connection.pragma('user_version = 99')
  connection.close()
  const before = readFileSync(join(opened.dataDir, 'infer.db'))
  const refusal = { exitCode: 65, message: expect.stringMatching(/schema 99.*infer restore/s) }
  await expect(openTestStore({ dataDir: opened.dataDir })).rejects.toMatchObject(refusal)
  await expect(openAdminStore(opened.dataDir)).rejects.toMatchObject(refusal)
  expect(readFileSync(join(opened.dataDir, 'infer.db')).equals(before)).toBe(true)
})

test('the database of another program is refused', async () => {
  using directory = temporaryDirectory()
  const connection = open(directory.path)
  connection.exec('CREATE TABLE theirs (a)')
  connection.close()
  await expect(openTestStore({ dataDir: directory.path })).rejects.toMatchObject({ exitCode: 65 })
})

test('a kill during a step leaves the version before it', async () => {
  await using opened = await openTestStore()
  await opened.store.close()
  const script = `
    import { openAsIs, openDatabase } from ${JSON.stringify(new URL('../../../../core/store/sqlite/database.ts', import.meta.url))}
    import { migrate, migrations } from ${JSON.stringify(new URL('../../../../core/store/sqlite/migrations.ts', import.meta.url))}
    const connection = openDatabase(${JSON.stringify(join(opened.dataDir, 'infer.db'))})
    connection.function('die', () => process.kill(process.pid, 'SIGKILL'))
    const sql = 'CREATE TABLE half (a); INSERT INTO half VALUES (1); SELECT die(); SELECT die()'
    migrate(connection, { backup() {}, steps: [...migrations, { version: ${latest + 1}, sql }] })`
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', script])
  expect(child.signal).toBe('SIGKILL')
  const connection = open(opened.dataDir)
  expect(schemaVersionOf(connection)).toBe(latest)
  expect(connection.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").pluck().get()).toBe(0)
  connection.close()
})

test('a command creates the database before the first server start, and a server then uses it', async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  const [one, two] = await Promise.all([openAdminStore(dataDir), openAdminStore(dataDir)])
  await one.organizations.create({
    id: 'org_cli',
    name: 'made by hand',
    plan: 'free',
    requestsPerMinute: null,
    jobsPerMinute: null,
    createdAt: 1,
  })
  expect((await two.organizations.list()).map(({ id }) => id)).toEqual(['org_cli'])
  await Promise.all([one.close(), two.close()])
  await using opened = await openTestStore({ dataDir })
  expect(opened.store.recovery.migratedFrom).toBeNull()
  expect(await opened.store.organizations.find('org_cli')).toBeDefined()
})
