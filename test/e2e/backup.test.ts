import { copyFileSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAsIs } from '../../core/store/sqlite/database.ts'
import { startEngine } from '../_engine.ts'
import { type Home, metric, openHome, type Server, until } from './_home.ts'

const far = (url: string) => ({ models: [{ id: 'far', engine: 'remote', url: `${url}/v1` }] })

async function submit(server: Server, content = 'Hello'): Promise<string> {
  const inputs = { messages: [{ role: 'user', content }] }
  const answer = await server.fetch('/api/jobs', { body: { task: 'std/chat-completion', model_id: 'far', inputs } })
  expect(answer.status).toBe(202)
  return ((await answer.json()) as { id: string }).id
}

async function stop(server: Server): Promise<void> {
  server.kill('SIGTERM')
  expect(await server.ended).toEqual({ code: 0, signal: null })
}

/** The findings of `infer db check`. */
async function check(home: Home) {
  const { code, out } = await home.run(['db', 'check', '--json'])
  return { code, ...(JSON.parse(out) as { whole: boolean; findings: string[]; jobs: number; ledger_rows: number }) }
}

test('a backup made during writes holds everything acknowledged before it, and can be served elsewhere', {
  timeout: 120_000,
}, async () => {
  await using engine = await startEngine(['--instant'])
  await using home = openHome()
  home.configure(far(engine.url))
  const server = home.serve()
  await server.ready
  const file = join(home.folder, 'copy.db')

  const acknowledged: string[] = []
  const over = new AbortController()
  const client = async () => {
    while (!over.signal.aborted) acknowledged.push(await submit(server))
  }
  const load = Promise.all([client(), client(), client(), client()])
  await until('some jobs', () => acknowledged.length >= 100)
  const before = [...acknowledged]
  const copied = await home.run(['backup', file, '--json'])
  expect([copied.code, copied.err]).toEqual([0, ''])
  expect(JSON.parse(copied.out)).toEqual({ file, files: null, bytes: statSync(file).size })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(acknowledged.length).toBeGreaterThan(before.length)
  over.abort()
  await load
  expect((await home.run(['backup', file])).code).toBe(64)
  const made = await home.run(['token', 'create', '--name', 'after the backup', '--json'])
  const { secret: later } = JSON.parse(made.out) as { secret: string }
  await stop(server)

  // Elsewhere, with the two files that belong to the installation.
  await using elsewhere = openHome()
  elsewhere.configure(far(engine.url))
  for (const name of ['master-key', 'root-token']) copyFileSync(join(home.dataDir, name), join(elsewhere.dataDir, name))
  const restored = await elsewhere.run(['restore', file])
  expect([restored.code, restored.err]).toEqual([0, ''])
  expect(await check(elsewhere)).toMatchObject({ code: 0, whole: true })
  const next = elsewhere.serve()
  await next.ready
  for (const id of before) {
    const job = await (await next.fetch(`/api/jobs/${id}?wait=30`)).json()
    expect(job).toMatchObject({ id, status: 'completed' })
  }
  expect((await next.fetch('/std/v1/models', { token: later })).status).toBe(401)
  // Unfinished jobs of the copy are finished here; no job is billed that the copy does not hold.
  await until('all of its jobs ended', async () => {
    const all = await metric(next, 'infer_jobs')
    return (
      (await metric(next, 'infer_jobs', 'completed')) === all && (await metric(next, 'infer_ledger_rows_total')) === all
    )
  })
  const refused = await elsewhere.run(['restore', file])
  expect([refused.code, refused.err]).toEqual([64, expect.stringContaining('Another infer is running')])
  await stop(next)
  expect(await check(elsewhere)).toMatchObject({ code: 0, whole: true, findings: [] })
})

test('a restore warns when the tokens of the copy will not be accepted, and says what to do', async () => {
  await using home = openHome()
  home.configure({})
  const server = home.serve()
  await server.ready
  const file = join(home.folder, 'copy.db')
  const copied = await home.run(['backup', file])
  expect(copied.err).toContain(join(home.dataDir, 'master-key'))
  await stop(server)

  // No other file was copied.
  await using bare = openHome()
  bare.configure({})
  const alone = await bare.run(['restore', file])
  expect([alone.code, alone.err]).toEqual([0, expect.stringContaining(`no master-key in ${bare.dataDir}`)])
  const first = bare.serve()
  await first.ready
  expect((await first.fetch('/std/v1/models', { token: home.secret() })).status).toBe(401)
  expect((await first.fetch('/std/v1/models')).status).toBe(200)
  // A pipe gets the path of the new token and not the token.
  expect(first.out()).toContain(join(bare.dataDir, 'root-token'))
  expect(first.out()).not.toContain(bare.secret())
  await stop(first)

  // Over an installation that has its own tokens.
  await using other = openHome()
  other.configure({})
  const own = other.serve()
  await own.ready
  await stop(own)
  const over = await other.run(['restore', file, '--json'])
  expect(over.code).toBe(0)
  const { warning, previous } = JSON.parse(over.out) as { warning: string; previous: string }
  expect(warning).toContain(join(other.dataDir, 'root-token'))
  expect(statSync(previous).isFile()).toBe(true)
  copyFileSync(join(home.dataDir, 'root-token'), join(other.dataDir, 'root-token'))
  const wrongKey = await other.run(['restore', file])
  expect([wrongKey.code, wrongKey.err]).toEqual([0, expect.stringContaining('master key')])
  copyFileSync(join(home.dataDir, 'master-key'), join(other.dataDir, 'master-key'))
  expect(await other.run(['restore', file])).toMatchObject({
    code: 0,
    err: expect.not.stringContaining('Warning') as string,
  })
  const same = other.serve()
  await same.ready
  expect((await same.fetch('/std/v1/models', { token: home.secret() })).status).toBe(200)
})

test('a flipped byte in the ledger is found', async () => {
  await using engine = await startEngine(['--instant'])
  await using home = openHome()
  home.configure(far(engine.url))
  const server = home.serve()
  await server.ready
  const ids = await Promise.all(Array.from({ length: 10 }, () => submit(server)))
  for (const id of ids) await server.fetch(`/api/jobs/${id}?wait=30`)
  await stop(server)
  expect(await check(home)).toMatchObject({ code: 0, whole: true, ledger_rows: 10 })

  // Only a row of the ledger has the organization directly after the job. No index covers the model column, which comes
  // later.
  const database = join(home.dataDir, 'infer.db')
  const reader = openAsIs(database, { readonly: true })
  const [row] = reader.prepare('SELECT job_id, organization_id FROM ledger WHERE sequence = 5').all() as {
    job_id: string
    organization_id: string
  }[]
  reader.close()
  const bytes = readFileSync(database)
  const start = bytes.indexOf(row!.job_id + row!.organization_id)
  const at = bytes.indexOf('std/chat-completionfar', start) + 'std/chat-completion'.length
  expect(start).toBeGreaterThan(0)
  expect(at - start).toBeLessThan(200)
  bytes[at]! ^= 1
  writeFileSync(database, bytes)

  const { code, whole, findings } = await check(home)
  expect([code, whole]).toEqual([65, false])
  expect(findings).toContainEqual(expect.stringMatching(/^Ledger row 5 .* does not match its hash/))
  // A damaged database cannot be backed up either, since somebody would rely on that backup.
  const copied = await home.run(['backup', join(home.folder, 'copy.db')])
  expect([copied.code, copied.err]).toEqual([65, expect.stringMatching(/was not made.* damaged: Ledger row 5/)])
})

test('a truncated database is not served: exit 65, and the printed repair command works', async () => {
  await using engine = await startEngine(['--instant'])
  await using home = openHome()
  home.configure(far(engine.url))
  const server = home.serve()
  await server.ready
  const ids = await Promise.all(Array.from({ length: 20 }, () => submit(server)))
  for (const id of ids) await server.fetch(`/api/jobs/${id}?wait=30`)
  mkdirSync(join(home.dataDir, 'backups'), { mode: 0o700 })
  expect((await home.run(['backup', join(home.dataDir, 'backups/monday.db')])).code).toBe(0)
  await stop(server)

  const database = join(home.dataDir, 'infer.db')
  truncateSync(database, Math.floor(statSync(database).size / 2 / 4096) * 4096)
  const before = readFileSync(database)
  const { code, out, err } = await home.run(['serve', '--listen', '127.0.0.1:0'])
  expect([code, out]).toEqual([65, ''])
  const command = /infer (restore \S+ --data-dir \S+)$/m.exec(err.trimEnd())?.[1]
  expect(command).toContain('backups/monday.db')
  expect(readFileSync(database).equals(before)).toBe(true)
  expect(await check(home)).toMatchObject({ code: 65, whole: false })

  expect(await home.run(command!.split(' '))).toMatchObject({ code: 0 })
  const again = home.serve()
  await again.ready
  for (const id of ids)
    expect(await (await again.fetch(`/api/jobs/${id}`)).json()).toMatchObject({ id, status: 'completed' })
})
