import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../../core/store/sqlite/admin.ts'
import { diskStateOf } from '../../../../core/store/sqlite/space.ts'
import type { LargeResult } from '../../../../core/store/store.ts'
import {
  claimWaiting,
  completed,
  finishedCall,
  newJob,
  openTestStore,
  organizationId,
  temporaryDirectory,
} from '../_store.ts'

const MiB = 1 << 20

test.each([
  ['above the mark, with the ballast', { free: 100, hasBallast: true }, 'enough'],
  ['below the mark', { free: 99, hasBallast: true }, 'low'],
  ['below the mark, and not even as much as the ballast', { free: 9, hasBallast: true }, 'full'],
  ['above the mark, but putting the ballast back would fall below it', { free: 109, hasBallast: false }, 'full'],
  ['room for the mark and the ballast', { free: 110, hasBallast: false }, 'enough'],
] as const)('%s', (_, facts, room) => {
  expect(diskStateOf({ ...facts, minFree: 100, ballast: 10 })).toBe(room)
})

test('below the limit new work is refused with a time to retry, and everything else continues', async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const before = await openTestStore({ dataDir })
  const { job } = await before.store.jobs.submit(newJob())
  await before.store.close()
  await using opened = await openTestStore({ dataDir, minFreeBytes: Number.MAX_SAFE_INTEGER })
  const { store } = opened
  expect(store.stats().writable).toMatch(/MiB free and needs/)
  await expect(store.jobs.submit(newJob())).rejects.toMatchObject({
    code: 'disk_full',
    status: 503,
    retryAfterMs: expect.any(Number),
  })
  const [claimed] = await claimWaiting(store, { limit: 1 })
  expect(claimed?.id).toBe(job.id)
  expect(await store.jobs.settle(claimed!, completed())).toBe(true)
  await store.jobs.record([finishedCall()])
  expect(store.stats().ledgerRows).toBe(2)
})

/** A separate file system, so small that a test can fill it. */
function smallDisk(size: number): (Disposable & { path: string }) | undefined {
  const directory = temporaryDirectory()
  const { path } = directory
  if (process.getuid?.() !== 0) return undefined
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', path]).status === 0
  if (!mounted) return undefined
  return {
    path,
    [Symbol.dispose]() {
      spawnSync('umount', ['-l', path])
      directory[Symbol.dispose]()
    },
  }
}

/** Takes all free space to the last block. */
function fill(path: string): () => void {
  const filler = join(path, 'filler')
  try {
    for (let block = 4 * MiB; block >= 4096; block = Math.floor(block / 4))
      for (;;) writeFileSync(filler, Buffer.alloc(block, 1), { flag: 'a' })
  } catch {
    // Full at this size of block; written data is kept.
  }
  const { bavail, bsize } = statfsSync(path)
  if (bavail > 0) writeFileSync(`${filler}.rest`, Buffer.alloc(bavail * bsize, 1))
  expect(statfsSync(path).bavail).toBe(0)
  return () => {
    rmSync(filler, { force: true })
    rmSync(`${filler}.rest`, { force: true })
  }
}

const canMount = (() => {
  using disk = smallDisk(MiB)
  return disk !== undefined
})()

test.skipIf(!canMount).each([
  ['which the watch sees', { minFreeBytes: 8 * MiB }],
  ['which the writer meets first', { minFreeBytes: 0 }],
])(
  'a full disk, %s: running work ends, new work waits for space, no job is lost (needs root)',
  async (_, storeOptions) => {
    using disk = smallDisk(64 * MiB)
    const { path: dataDir } = disk!
    await using opened = await openTestStore({ dataDir, ballastBytes: 8 * MiB, ...storeOptions })
    const { store } = opened
    const ballast = join(dataDir, 'ballast')
    await expect.poll(() => existsSync(ballast) && statSync(ballast).size).toBe(8 * MiB)
    const inputs = JSON.stringify('x'.repeat(20_000))
    const kept: string[] = []
    for (let i = 0; i < 40; i++) kept.push((await store.jobs.submit(newJob({ inputs }))).job.id)
    const running = await claimWaiting(store, { limit: 20 })

    const free = fill(dataDir)
    const refusals: unknown[] = []
    const tryToSubmit = () =>
      store.jobs.submit(newJob({ inputs })).then(
        ({ job }) => void kept.push(job.id),
        (cause: unknown) => void refusals.push(cause),
      )
    while (refusals.length === 0) await tryToSubmit()
    expect(refusals[0]).toMatchObject({ code: 'disk_full', status: 503, retryAfterMs: expect.any(Number) })
    expect((await store.jobs.find(organizationId, kept[0]!))?.inputs).toBe(inputs)

    const result = JSON.stringify('y'.repeat(20_000))
    for (const job of running.slice(1)) {
      expect(await store.jobs.settle(job, { ...completed(), result })).toBe(true)
    }
    expect((await store.jobs.cancel(organizationId, running[0]!.id, 1))?.status).toBe('cancelled')
    expect(existsSync(ballast)).toBe(false)
    expect(store.stats().writable).not.toBe(true)

    free()
    const room = performance.now()
    await expect.poll(() => store.stats().writable).toBe(true)
    await tryToSubmit()
    expect(performance.now() - room).toBeLessThan(10_000)
    expect(refusals).toHaveLength(1)
    await expect.poll(() => existsSync(ballast)).toBe(true)
    const found = await Promise.all(kept.map(id => store.jobs.find(organizationId, id)))
    expect(found.filter(job => job?.inputs !== inputs)).toEqual([])
    expect(found.filter(job => job?.result === result)).toHaveLength(19)
    expect(opened.fatal).toEqual([])
    expect((await checkDatabase(dataDir)).findings).toEqual([])
  },
)

test.skipIf(!canMount)('a large result on a full disk is written once the reserve is freed (needs root)', async () => {
  using disk = smallDisk(64 * MiB)
  const { path: dataDir } = disk!
  await using opened = await openTestStore({ dataDir, ballastBytes: 8 * MiB, minFreeBytes: 0 })
  const { store } = opened
  const ballast = join(dataDir, 'ballast')
  await expect.poll(() => existsSync(ballast) && statSync(ballast).size).toBe(8 * MiB)
  const { job } = await store.jobs.submit(newJob())
  const [claimed] = await claimWaiting(store)
  const result = Buffer.alloc(2 * MiB, '"')
  const outcome = { ...completed(), result }

  const free = fill(dataDir)
  // The caller that ends an attempt repeats it until it is written.
  const refusals: unknown[] = []
  await expect
    .poll(() => store.jobs.settle(claimed!, outcome).catch((cause: unknown) => void refusals.push(cause)))
    .toBe(true)
  expect(refusals[0]).toMatchObject({ code: 'disk_full' })
  expect(existsSync(ballast)).toBe(false)
  const stored = (await store.jobs.find(organizationId, job.id))!.result as LargeResult
  const { path } = await stored.localFile()
  expect(statSync(path).size).toBe(2 * MiB)
  // Attempts on the full disk leave no file.
  expect(readdirSync(dirname(path))).toEqual([basename(path)])
  free()
  expect(opened.fatal).toEqual([])
})
