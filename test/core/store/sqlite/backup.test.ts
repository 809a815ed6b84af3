import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { backupDatabase, checkDatabase, restoreDatabase } from '../../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import type { Store } from '../../../../core/store/store.ts'
import { claimWaiting, completed, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

async function fillWith(store: Store, jobs: number, bytes: number): Promise<void> {
  const inputs = JSON.stringify('x'.repeat(bytes))
  for (let left = jobs; left > 0; left -= 500)
    await Promise.all(Array.from({ length: 500 }, () => store.jobs.submit(newJob({ inputs }))))
}

test('an online backup at 500 writes a second is complete, and does not block the event loop', {
  timeout: 120_000,
}, async () => {
  using directory = temporaryDirectory()
  await using opened = await openTestStore()
  const { store } = opened
  await fillWith(store, 15_000, 3_000)
  for (const job of await claimWaiting(store)) await store.jobs.settle(job, completed())

  const going = new AbortController()
  const submits: Promise<string>[] = []
  const submitting = (async () => {
    while (!going.signal.aborted) {
      for (let i = 0; i < 5; i++) submits.push(store.jobs.submit(newJob()).then(({ job }) => job.id))
      await delay(10)
    }
  })()
  // The machine is shared: a stall caused here occurs every time, one of another process does not.
  const stalls: number[] = []
  let file = ''
  for (let attempt = 1; attempt <= 3 && (stalls.at(-1) ?? 50) >= 50; attempt++) {
    file = join(directory.path, `backup-${attempt}.db`)
    const before = (await store.jobs.submit(newJob())).job.id
    const progress: number[] = []
    const submittedBefore = submits.length
    const stall = monitorEventLoopDelay({ resolution: 1 })
    stall.enable()
    const { bytes } = await store.backup(file, (done, total) => progress.push(done / total))
    stall.disable()
    stalls.push(stall.max / 1e6)
    expect(bytes).toBe(statSync(file).size)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(progress.length).toBeGreaterThan(10)
    expect(progress.at(-1)).toBeGreaterThan(0.9)
    expect(submits.length).toBeGreaterThan(submittedBefore)
    const copy = openDatabase(file)
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
    expect(copy.prepare('SELECT count(*) FROM jobs WHERE id = ?').pluck().get(before)).toBe(1)
    copy.close()
  }
  going.abort()
  await submitting
  await Promise.all(submits)
  expect(readdirSync(directory.path).filter(name => !/^backup-\d\.db$/.test(name))).toEqual([])
  expect(Math.min(...stalls)).toBeLessThan(50)

  const elsewhere = join(directory.path, 'elsewhere')
  const restored = await restoreDatabase(elsewhere, file)
  expect(restored).toMatchObject({ previous: null })
  expect((await checkDatabase(elsewhere)).findings).toEqual([])
  await using again = await openTestStore({ dataDir: elsewhere })
  expect(again.store.stats().ledgerRows).toBe(100)
  expect((await again.store.jobs.counts()).completed).toBe(100)
  process.stdout.write(
    `backup: ${Math.round(statSync(file).size / (1 << 20))} MiB, longest stalls ${stalls.map(ms => ms.toFixed(0)).join(', ')} ms\n`,
  )
})

test('a command makes a consistent backup beside a busy server', async () => {
  using directory = temporaryDirectory()
  await using opened = await openTestStore()
  await fillWith(opened.store, 3_000, 3_000)
  const going = new AbortController()
  const writing = (async () => {
    // A job and its end in one transaction: an inconsistent copy has one without the other.
    while (!going.signal.aborted) {
      await opened.store.jobs.submit(newJob({ priority: 1 }))
      const [job] = await claimWaiting(opened.store, { limit: 1 })
      await opened.store.jobs.settle(job!, completed())
    }
  })()
  const file = join(directory.path, 'b.db')
  const { bytes } = await backupDatabase(opened.dataDir, file)
  going.abort()
  await writing
  expect(bytes).toBeGreaterThan(9_000_000)
  await restoreDatabase(join(directory.path, 'data'), file)
  expect((await checkDatabase(join(directory.path, 'data'))).findings).toEqual([])
})

test('an existing file is not overwritten, and a failed backup leaves no file', async () => {
  using directory = temporaryDirectory()
  await using opened = await openTestStore()
  const file = join(directory.path, 'mine.txt')
  writeFileSync(file, 'keep me')
  await expect(opened.store.backup(file)).rejects.toMatchObject({
    exitCode: 64,
    message: expect.stringContaining(file),
  })
  expect(readFileSync(file, 'utf8')).toBe('keep me')
  await expect(opened.store.backup(join(directory.path, 'no', 'such', 'b.db'))).rejects.toMatchObject({ exitCode: 74 })
  expect(readdirSync(directory.path)).toEqual(['mine.txt'])
  expect((await opened.store.jobs.submit(newJob())).replayed).toBe(false)
})

test('a restore is refused while a server runs, and for a file that is damaged, foreign or newer', async () => {
  using directory = temporaryDirectory()
  await using opened = await openTestStore()
  const { job } = await opened.store.jobs.submit(newJob())
  const file = join(directory.path, 'good.db')
  await opened.store.backup(file)
  await expect(restoreDatabase(opened.dataDir, file)).rejects.toMatchObject({ exitCode: 64 })

  const bad = (name: string, change: (bytes: Buffer) => unknown) => {
    const bytes = readFileSync(file)
    change(bytes)
    const path = join(directory.path, name)
    writeFileSync(path, bytes)
    return path
  }
  const target = join(directory.path, 'target')
  mkdirSync(target, { mode: 0o700 })
  for (const path of [
    bad('damaged.db', bytes => bytes.fill(0, 8192, 12_288)),
    bad('no-database.db', bytes => bytes.fill('text', 0, 100)),
    bad('newer.db', bytes => bytes.writeUInt32BE(99, 60)),
    bad('foreign.db', bytes => bytes.writeUInt32BE(99, 68)),
  ])
    await expect(restoreDatabase(target, path)).rejects.toMatchObject({ exitCode: 65 })
  await expect(restoreDatabase(target, join(directory.path, 'absent.db'))).rejects.toMatchObject({ exitCode: 64 })
  await restoreDatabase(target, file)
  await using again = await openTestStore({ dataDir: target })
  expect(await again.store.jobs.find(organizationId, job.id)).toEqual(job)
})

test('a restore keeps the old database beside the new one', async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  const file = join(directory.path, 'b.db')
  const before = newJob()
  const after = newJob()
  {
    await using opened = await openTestStore({ dataDir })
    await opened.store.jobs.submit(before)
    await opened.store.backup(file)
    await opened.store.jobs.submit(after)
  }
  const { previous } = await restoreDatabase(dataDir, file)
  const old = openDatabase(previous!)
  expect(old.prepare('SELECT count(*) FROM jobs').pluck().get()).toBe(2)
  old.close()
  {
    await using opened = await openTestStore({ dataDir })
    expect(await opened.store.jobs.find(organizationId, before.id)).toBeDefined()
    expect(await opened.store.jobs.find(organizationId, after.id)).toBeUndefined()
  }
})

test('the WAL of a damaged database is not applied to the one that replaces it', async () => {
  using directory = temporaryDirectory()
  const [dataDir, copy, file] = ['data', 'copy', 'b.db'].map(name => join(directory.path, name)) as [
    string,
    string,
    string,
  ]
  const [before, after] = [newJob(), newJob()]
  {
    await using opened = await openTestStore({ dataDir })
    await opened.store.jobs.submit(before)
    await opened.store.backup(file)
  }
  {
    await using opened = await openTestStore({ dataDir })
    await opened.store.jobs.submit(after)
    // The state after a power cut: the database and the frames that were not checkpointed. By another process, because
    // closing the file here would drop the locks that SQLite holds on it.
    expect(spawnSync('cp', ['-a', dataDir, copy]).status).toBe(0)
  }
  const wal = readFileSync(join(copy, 'infer.db-wal'))
  expect(wal.includes(after.id)).toBe(true)
  const bytes = readFileSync(join(copy, 'infer.db'))
  writeFileSync(join(copy, 'infer.db'), bytes.fill(0, 0, 4096))
  await expect(openTestStore({ dataDir: copy })).rejects.toMatchObject({ exitCode: 65 })
  const { previous } = await restoreDatabase(copy, file)
  expect(readFileSync(previous!).equals(bytes)).toBe(true)
  await using opened = await openTestStore({ dataDir: copy })
  expect(await opened.store.jobs.find(organizationId, before.id)).toBeDefined()
  expect(await opened.store.jobs.find(organizationId, after.id)).toBeUndefined()
  expect((await checkDatabase(copy)).findings).toEqual([])
})
