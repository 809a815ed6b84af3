import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { backupDatabase, checkDatabase, openAdminStore, restoreDatabase } from '../../../../core/store/sqlite/admin.ts'
import { openAsIs, openDatabase } from '../../../../core/store/sqlite/database.ts'
import { holdResults } from '../../../../core/store/sqlite/result-files.ts'
import type { JobRecord, LargeResult, Store } from '../../../../core/store/store.ts'
import { newExecution } from '../../../store/conformance/drawn.ts'
import { hasStrace, storeProcess, traced } from '../_children.ts'
import { completed, newJob, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

const large = (text = 'x', bytes = 1_000_000) => JSON.stringify({ text: text.repeat(bytes / Buffer.byteLength(text)) })

/** An ended job with the result. */
async function ended(store: Store, result: string | Uint8Array, more: Partial<JobRecord> = {}): Promise<JobRecord> {
  const { job } = await store.jobs.submit(newJob({ retentionMs: more.retentionMs ?? null }))
  const claimed = await store.jobs.claim(organizationId, job.id, Date.now())
  expect(await store.jobs.settle(claimed!, { ...completed(), result })).toBe(true)
  return (await store.jobs.find(organizationId, job.id))!
}

const textOf = (job: JobRecord | undefined) => (job!.result as LargeResult).text()
const pathOf = async (job: JobRecord | undefined) => (await (job!.result as LargeResult).localFile()).path

/** The existing result files, by the names in the rows. */
function filesIn(dataDir: string): string[] {
  const results = join(dataDir, 'results')
  return readdirSync(results).flatMap(name => readdirSync(join(results, name)).map(file => `${name}/${file}`))
}

/** The files that rows name, and those still to be erased. */
function namesIn(dataDir: string): { named: string[]; erasable: string[] } {
  const connection = openDatabase(join(dataDir, 'infer.db'), { readonly: true })
  const all = (sql: string) => connection.prepare<[], string>(sql).pluck().all()
  const named = all('SELECT file FROM job_results WHERE file IS NOT NULL ORDER BY file')
  const erasable = all('SELECT file FROM erasable_results')
  connection.close()
  return { named, erasable }
}

describe('a result', () => {
  test.each([
    ['of 256,000 bytes is in its row', JSON.stringify('x'.repeat(255_998)), false],
    ['of one byte more lies in a file', JSON.stringify('x'.repeat(255_999)), true],
    ['is measured in bytes and not in characters', JSON.stringify('é'.repeat(127_999)), false],
    ['of as many characters and more bytes lies in a file', JSON.stringify('é'.repeat(128_000)), true],
    ['of four bytes a character too', JSON.stringify('𝄞'.repeat(100_000)), true],
  ])('%s', async (_, result, inFile) => {
    await using opened = await openTestStore()
    for (const given of [result, Buffer.from(result)]) {
      const job = await ended(opened.store, given)
      if (!inFile) {
        expect(job.result).toBe(result)
        continue
      }
      const path = await pathOf(job)
      expect((job.result as LargeResult).bytes).toBe(Buffer.byteLength(result))
      expect(readFileSync(path, 'utf8')).toBe(result)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
    }
    expect(filesIn(opened.dataDir)).toHaveLength(inFile ? 2 : 0)
  })

  test('of a refused end leaves no file: cancelled meanwhile, and a second end of one attempt', async () => {
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const claim = async () => {
      const { job } = await store.jobs.submit(newJob())
      return (await store.jobs.claim(organizationId, job.id, Date.now()))!
    }
    const cancelled = await claim()
    await store.jobs.cancel(organizationId, cancelled.id, Date.now())
    expect(await store.jobs.settle(cancelled, { ...completed(), result: large() })).toBe(false)
    expect(filesIn(dataDir)).toEqual([])

    const twice = await claim()
    expect(await store.jobs.settle(twice, { ...completed(), result: large('a') })).toBe(true)
    expect(await store.jobs.settle(twice, { ...completed(), result: large('b') })).toBe(false)
    expect(await textOf(await store.jobs.find(organizationId, twice.id))).toBe(large('a'))
    expect(filesIn(dataDir)).toHaveLength(1)
  })

  test('whose end the store refuses leaves no file', async () => {
    await using opened = await openTestStore()
    const { job } = await opened.store.jobs.submit(newJob())
    const claimed = await opened.store.jobs.claim(organizationId, job.id, Date.now())
    const outcome = { ...completed(), cost: -1, result: large() }
    await expect(opened.store.jobs.settle(claimed!, outcome)).rejects.toMatchObject({ code: 'internal_error' })
    expect(filesIn(opened.dataDir)).toEqual([])
    opened.lines.length = 0
  })

  test('does not pass through the writing thread', async () => {
    await using opened = await openTestStore()
    await ended(opened.store, large('x', 16_000_000))
    expect(statSync(join(opened.dataDir, 'infer.db-wal')).size).toBeLessThan(2_000_000)
  })
})

describe('the file of a result', () => {
  test('is removed with its job, and others are kept', async () => {
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const [gone, stays] = [await ended(store, large('a')), await ended(store, large('b'))]
    await store.jobs.remove(organizationId, gone.id, Date.now())
    await expect.poll(() => namesIn(dataDir).erasable).toEqual([])
    expect(filesIn(dataDir)).toEqual(namesIn(dataDir).named)
    expect(await textOf(await store.jobs.find(organizationId, stays.id))).toBe(large('b'))
  })

  test('that cannot be removed holds up no others', async () => {
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const [stuck, gone] = [await ended(store, large('a')), await ended(store, large('b'))]
    const path = await pathOf(stuck)
    rmSync(path)
    mkdirSync(path)
    for (const { id } of [stuck, gone]) await store.jobs.remove(organizationId, id, Date.now())
    await expect.poll(() => filesIn(dataDir)).toHaveLength(1)
    await expect.poll(() => namesIn(dataDir).erasable).toHaveLength(1)
  })

  test('is removed when its time is over, and at the next start after a command has removed the job', async () => {
    using directory = temporaryDirectory()
    const { path: dataDir } = directory
    let byCommand: JobRecord
    {
      await using opened = await openTestStore({ dataDir })
      await ended(opened.store, large('a'), { retentionMs: 1 })
      byCommand = await ended(opened.store, large('b'))
      expect(await opened.store.jobs.sweep(Date.now() + 10, 100)).toBeGreaterThan(0)
    }
    const admin = await openAdminStore(dataDir)
    await admin.jobs.remove(organizationId, byCommand.id, Date.now())
    await admin.close()
    expect(filesIn(dataDir)).toHaveLength(2)
    await using again = await openTestStore({ dataDir })
    await expect.poll(() => filesIn(dataDir)).toEqual([])
    await expect.poll(() => namesIn(again.dataDir)).toEqual({ named: [], erasable: [] })
  })

  test('is removed with its execution, unless another execution uses the result', async () => {
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const first = newExecution({ nodes: { a: [], b: [] } })
    await store.executions.create(first)
    for (const { jobId } of first.nodes) {
      const claimed = await store.jobs.claim(organizationId, jobId, Date.now())
      await store.jobs.settle(claimed!, { ...completed(), result: large(jobId) })
    }
    const [a, b] = first.nodes.map(({ jobId }) => jobId) as [string, string]
    const second = newExecution({ nodes: { a: [] }, reuses: { a } })
    await store.executions.create(second)
    await store.executions.remove(organizationId, first.id, Date.now())
    await expect.poll(() => filesIn(dataDir)).toHaveLength(1)
    expect(await store.jobs.find(organizationId, b)).toBeUndefined()
    const { a: reused } = await store.executions.results(organizationId, second.id, ['a'])
    expect(await (reused!.result as LargeResult).text()).toBe(large(a))
    await store.executions.remove(organizationId, second.id, Date.now())
    await expect.poll(() => filesIn(dataDir)).toEqual([])
  })

  test('is kept while a copy is made', async () => {
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const [one, other] = [await ended(store, large()), await ended(store, large())]
    {
      using _held = await holdResults(dataDir)
      await store.jobs.remove(organizationId, one.id, Date.now())
      // The sweep after a commit ends before the answer to the next.
      await store.jobs.submit(newJob())
      expect(namesIn(dataDir).erasable).toHaveLength(1)
      expect(filesIn(dataDir)).toHaveLength(2)
    }
    await store.jobs.remove(organizationId, other.id, Date.now())
    await expect.poll(() => filesIn(dataDir)).toEqual([])
  })

  test('left by a crash without a row is removed at the start; foreign files are kept', async () => {
    using directory = temporaryDirectory()
    const { path: dataDir } = directory
    let kept: JobRecord
    {
      await using opened = await openTestStore({ dataDir })
      kept = await ended(opened.store, large('k'))
    }
    const folder = join(dataDir, 'results', organizationId)
    writeFileSync(join(folder, `${newJob().id}.01K00000000000000000000000.json`), '{"half":')
    writeFileSync(join(folder, 'notes.txt'), 'mine')
    await using again = await openTestStore({ dataDir })
    await expect
      .poll(() => filesIn(dataDir).sort())
      .toEqual([...namesIn(dataDir).named, `${organizationId}/notes.txt`].sort())
    expect(await textOf(await again.store.jobs.find(organizationId, kept.id))).toBe(large('k'))
    expect(again.lines.join()).toContain('Removed results that belong to no job')
  })
})

test('kill -9 while large results are written: acknowledged results are whole, and no other file is left', {
  timeout: 60_000,
}, async () => {
  using directory = temporaryDirectory()
  const { path: dataDir } = directory
  const acknowledged: string[] = []
  for (let life = 0; life < 5; life++) {
    const child = spawn(process.execPath, [storeProcess, 'large', dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
    const over = once(child, 'exit')
    // Killed after this many, at any point of its work.
    let left = 1 + life * 4
    for await (const line of createInterface(child.stdout)) {
      if (!line.startsWith('ack ')) continue
      acknowledged.push(line.slice(4))
      if (--left <= 0) child.kill('SIGKILL')
    }
    await over
  }
  // Work running at the kill is released, and its file has no owner.
  await using opened = await openTestStore({ dataDir })
  await expect.poll(() => filesIn(dataDir).sort()).toEqual(namesIn(dataDir).named)
  for (const id of acknowledged) {
    const job = await opened.store.jobs.find(organizationId, id)
    expect([job!.status, (JSON.parse(await textOf(job)) as { id: string }).id]).toEqual(['completed', id])
  }
  expect(acknowledged.length).toBeGreaterThan(40)
  expect((await checkDatabase(dataDir)).findings).toEqual([])
})

test.skipIf(!hasStrace)(
  'file, folder, commit and acknowledgement are written to the disk in this order (needs strace)',
  () => {
    using directory = temporaryDirectory()
    const trace = join(directory.path, 'trace')
    const args = ['large', join(directory.path, 'data'), '5']
    traced({ strace: ['-e', 'trace=fsync,fdatasync,write'], args, trace })
    // Calls of other threads lie between; each call counts where it ended, an acknowledgement where it began.
    const seen = readFileSync(trace, 'utf8')
      .split('\n')
      .flatMap(line => {
        if (/ write\(1<[^>]*>, "ack /.test(line)) return ['ack']
        const path = /f(?:data)?sync\(\d+<([^>]*)>/.exec(line)?.[1] ?? ''
        if (path.endsWith('.json')) return ['file']
        if (path.endsWith(`results/${organizationId}`)) return ['folder']
        return path.endsWith('-wal') ? ['commit'] : []
      })
    const afterStart = seen.slice(seen.indexOf('file'))
    const ends = afterStart.join(' ').split('ack')
    expect(ends).toHaveLength(6)
    for (const one of ends.slice(0, 5)) expect(one.trim()).toMatch(/file folder commit$/)
  },
)

describe('a backup', () => {
  test('is one file that contains all results; a restore writes them to files again', async () => {
    using directory = temporaryDirectory()
    const file = join(directory.path, 'copy.db')
    const elsewhere = join(directory.path, 'elsewhere')
    const texts = new Map<string, string>()
    {
      await using opened = await openTestStore()
      const { store, dataDir } = opened
      for (const text of ['a', 'é', '𝄞']) texts.set((await ended(store, large(text))).id, large(text))
      const small = await ended(store, '{"small":true}')
      texts.set(small.id, '{"small":true}')
      const fractions: number[] = []
      await store.backup(file, (done, total) => fractions.push(done / total))
      expect([Math.min(...fractions.slice(0, -3)) < 0.9, fractions.at(-1)! > 0.99]).toEqual([true, true])
      // Whatever happens to the originals.
      for (const id of texts.keys()) await store.jobs.remove(organizationId, id, Date.now())
      await expect.poll(() => filesIn(dataDir)).toEqual([])
    }
    await restoreDatabase(elsewhere, file)
    expect((await checkDatabase(elsewhere)).findings).toEqual([])
    expect(filesIn(elsewhere).sort()).toEqual(namesIn(elsewhere).named)
    await using again = await openTestStore({ dataDir: elsewhere })
    for (const [id, text] of texts) {
      const job = await again.store.jobs.find(organizationId, id)
      expect(text.length < 100 ? job!.result : await textOf(job)).toBe(text)
    }
  })

  test('has every result that it names, though the server deletes them meanwhile', async () => {
    using directory = temporaryDirectory()
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const jobs = [await ended(store, large('a')), await ended(store, large('b'))]
    // Some sixty steps of the copy.
    await store.jobs.submit(newJob({ inputs: JSON.stringify('x'.repeat(60_000_000)) }))
    const removed: Promise<unknown>[] = []
    const file = join(directory.path, 'copy.db')
    await backupDatabase(dataDir, file, () => {
      for (const { id } of jobs.splice(0)) removed.push(store.jobs.remove(organizationId, id, Date.now()))
    })
    await Promise.all(removed)
    const copy = openAsIs(file, { readonly: true })
    const sizes = copy.prepare('SELECT octet_length(result) FROM job_results WHERE file IS NULL').pluck().all()
    copy.close()
    expect(sizes).toEqual([large().length, large().length])
    expect((await checkDatabase(dataDir)).findings).toEqual([])
    await store.jobs.remove(organizationId, (await ended(store, large())).id, Date.now())
    await expect.poll(() => filesIn(dataDir)).toEqual([])
  })

  test('is refused when a result is missing or truncated, and a check reports it', async () => {
    using directory = temporaryDirectory()
    await using opened = await openTestStore()
    const { store, dataDir } = opened
    const [cut, missing] = [await ended(store, large('a')), await ended(store, large('b'))]
    truncateSync(await pathOf(cut), 1000)
    rmSync(await pathOf(missing))
    const finding = '2 large results of jobs are not in their files, or not whole.'
    expect((await checkDatabase(dataDir)).findings).toEqual([finding])
    expect((await checkDatabase(dataDir, { quick: true })).findings).toEqual([])
    const file = join(directory.path, 'copy.db')
    await expect(store.backup(file)).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringContaining('2 results of jobs are missing. Check it with: infer db check'),
    })
    expect(readdirSync(directory.path)).toEqual([])
  })
})

describe('a restore', () => {
  test('keeps the results of the old database beside it, and that can be restored too', async () => {
    using directory = temporaryDirectory()
    const dataDir = join(directory.path, 'data')
    const file = join(directory.path, 'b.db')
    let [before, after]: JobRecord[] = []
    {
      await using opened = await openTestStore({ dataDir })
      before = await ended(opened.store, large('before'))
      await opened.store.backup(file)
      after = await ended(opened.store, large('after'))
    }
    const { previous } = await restoreDatabase(dataDir, file)
    // Those of the old one and no others.
    expect(readdirSync(join(`${previous}.results`, organizationId))).toHaveLength(2)
    {
      await using opened = await openTestStore({ dataDir })
      expect(await textOf(await opened.store.jobs.find(organizationId, before.id))).toBe(large('before'))
      expect(await opened.store.jobs.find(organizationId, after.id)).toBeUndefined()
      // Results that only the old one names are swept by the new server, and kept beside it.
      await expect.poll(() => filesIn(dataDir)).toEqual(namesIn(dataDir).named)
    }
    await restoreDatabase(dataDir, previous!)
    expect((await checkDatabase(dataDir)).findings).toEqual([])
    await using back = await openTestStore({ dataDir })
    expect(await textOf(await back.store.jobs.find(organizationId, after.id))).toBe(large('after'))
  })

  test('of a bare database without its results beside it is refused, and nothing is changed', async () => {
    using directory = temporaryDirectory()
    const [dataDir, bare] = [join(directory.path, 'data'), join(directory.path, 'bare')]
    {
      await using opened = await openTestStore({ dataDir })
      await ended(opened.store, large())
    }
    mkdirSync(bare)
    const copy = join(bare, 'infer.db')
    writeFileSync(copy, readFileSync(join(dataDir, 'infer.db')))
    const target = join(directory.path, 'target')
    await expect(restoreDatabase(target, copy)).rejects.toMatchObject({
      exitCode: 65,
      message: expect.stringContaining(`1 results of jobs that it names are not in ${copy}.results`),
    })
    expect(statSync(join(target, 'infer.db')).size).toBe(0)
    expect(readdirSync(target).filter(name => /restor/.test(name))).toEqual([])
    // In its data directory it has them.
    await restoreDatabase(target, join(dataDir, 'infer.db'))
    expect(filesIn(target)).toEqual(filesIn(dataDir))
    expect(existsSync(join(target, 'results'))).toBe(true)
  })
})
