import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fakeEngine, fakeNeeds } from '../_app.ts'
import { startEngine } from '../_engine.ts'
import { metric, openHome, say, until } from './_home.ts'

/** A separate file system in memory; undefined where mounting is not allowed. */
function smallDisk(size: string) {
  const path = mkdtempSync(join(tmpdir(), 'infer-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'tmpfs', path], { stdio: 'ignore' })
  } catch {
    rmSync(path, { recursive: true })
    return undefined
  }
  const filler = join(path, 'filler')
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  }
  return {
    path,
    freeBytes,
    /** Fills it until about this many bytes are free; with 0 until nothing more fits. */
    fill(leaveBytes: number): void {
      const file = openSync(filler, 'a')
      try {
        while (freeBytes() > leaveBytes) writeSync(file, Buffer.alloc(Math.min(1 << 20, freeBytes() - leaveBytes)))
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') throw cause
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(filler),
    [Symbol.dispose]() {
      execFileSync('umount', [path])
      rmSync(path, { recursive: true })
    },
  }
}

const MiB = 1 << 20

test('a full disk refuses new work only, and work is accepted again as soon as there is space', {
  timeout: 180_000,
}, async context => {
  using disk = smallDisk('200m')
  if (!disk) return context.skip('No tmpfs can be mounted here: that takes root with CAP_SYS_ADMIN.')
  await using engine = await startEngine()
  await using home = openHome({ dataDir: disk.path })
  const custom = { engine: 'custom', ...fakeNeeds, devices: 'cpu', memory: '16MiB' }
  home.configure({
    models: [
      { id: 'near', ...custom, command: [process.execPath, fakeEngine, '--port', '{port}'] },
      { id: 'far', engine: 'remote', url: `${engine.url}/v1`, concurrency: 4 },
    ],
    limits: { min_free_disk: '32MiB', ballast: '16MiB' },
  })
  const server = home.serve()
  await server.ready

  const submit = (content = 'Hello', more: object = {}) =>
    server.fetch('/api/jobs', {
      body: {
        task: 'std/chat-completion',
        model_id: 'far',
        inputs: { messages: [{ role: 'user', content }] },
        ...more,
      },
    })
  const acknowledged: string[] = []
  const keep = async (answer: Response) => {
    expect(answer.status).toBe(202)
    acknowledged.push(((await answer.json()) as { id: string }).id)
  }
  let chats = 0
  const chat = async (content = 'Hello') => {
    const body = { model: 'near', messages: [{ role: 'user', content }] }
    const answer = await server.fetch('/std/v1/chat/completions', { body })
    expect([answer.status, (await answer.json()) as object]).toMatchObject([200, { object: 'chat.completion' }])
    chats++
  }
  await chat()
  for (let n = 0; n < 8; n++) await keep(await submit())
  // Two jobs run while the disk fills, and two wait.
  await keep(await submit('mode:slow,ms=6000'))
  await keep(await submit('mode:slow,ms=6000'))
  const later = { not_before: Math.floor(Date.now() / 1000) + 3600 }
  await keep(await submit('Hello', later))
  await keep(await submit('Hello', later))
  const [first, second] = acknowledged.splice(-2) as [string, string]
  const cancel = (id: string) => server.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
  await engine.until(({ running }) => running === 2)

  // Below the limit new work is refused with the reason, everything else works.
  disk.fill(24 * MiB)
  const refused = await until('a submission refused', async () => {
    const answer = await submit()
    if (answer.status !== 202) return answer
    acknowledged.push(((await answer.json()) as { id: string }).id)
    return undefined
  })
  expect(refused.status).toBe(503)
  expect(refused.headers.get('content-type')).toContain('application/json')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await refused.json()).toMatchObject({ error: { code: 'disk_full', type: 'server_error' } })
  await chat()
  expect((await cancel(first)).status).toBe(200)

  // Filled to the last byte, including the reserve file that the server frees: only work that writes nothing continues.
  await until('a disk on which nothing fits', () => {
    disk.fill(0)
    return disk.freeBytes() < 4096 && !existsSync(join(home.dataDir, 'ballast'))
  })
  const cancelled = await cancel(second)
  for (let n = 0; n < 5; n++) {
    await chat()
    expect((await submit()).status).toBe(503)
    expect((await server.fetch('/std/v1/models')).status).toBe(200)
    expect((await server.fetch(`/api/jobs/${acknowledged[0]!}`)).status).toBe(200)
  }
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  await engine.until(({ running }) => running === 0)

  disk.free()
  const freed = performance.now()
  await until('a submission taken', async () => {
    const answer = await submit()
    if (answer.status !== 202) return false
    acknowledged.push(((await answer.json()) as { id: string }).id)
    return true
  })
  const recoveredMs = performance.now() - freed
  expect(recoveredMs).toBeLessThan(10_000)

  for (const id of acknowledged) {
    const job = await (await server.fetch(`/api/jobs/${id}?wait=30`)).json()
    expect(job).toMatchObject({ id, status: 'completed', attempts: 1 })
  }
  if (cancelled.status !== 200) {
    expect(await cancelled.json()).toMatchObject({ error: { code: 'disk_full' } })
    expect((await cancel(second)).status).toBe(200)
  }
  const all = acknowledged.length + 2 + chats
  await until('every chat recorded', async () => (await metric(server, 'infer_ledger_rows_total')) === all)
  expect(await metric(server, 'infer_jobs')).toBe(all - chats)
  const checked = await home.run(['db', 'check', '--json'])
  expect(JSON.parse(checked.out)).toMatchObject({ whole: true, jobs: all - chats, ledger_rows: all })
  server.kill('SIGTERM')
  expect(await server.ended).toEqual({ code: 0, signal: null })
  say(
    `full disk: ${acknowledged.length} jobs and ${chats} chats kept, work taken again ${Math.round(recoveredMs)} ms after there was room; a cancel without a byte to write: ${cancelled.status}`,
  )
})
