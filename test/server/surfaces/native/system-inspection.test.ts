import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ limits: { depth: 50 } })
})
afterAll(() => app[Symbol.asyncDispose]())

const read = async <T>(path: string): Promise<T> => (await (await app.fetch(path)).json()) as T

test('the checks of infer doctor are run beside the server, once for all who ask', async () => {
  const reports = await Promise.all([read('/api/system/doctor'), read('/api/system/doctor')])
  expect(reports[0]).toEqual(reports[1])
  const { findings } = reports[0] as { findings: { name: string; state: string; detail: string }[] }
  expect(findings.find(({ name }) => name === 'configuration')?.detail).toContain(app.configPath)
  // The running server is found, so the checks are those of this installation.
  expect(findings.find(({ name }) => name === 'address')).toMatchObject({ state: 'fine' })
  expect(findings.find(({ name }) => name === 'database')).toMatchObject({ state: 'fine' })
})

test('the configuration says what is in force and where it comes from', async () => {
  interface Configuration {
    path: string
    exists: boolean
    values: { key: string; value: string | null; source: string; restart_needed: boolean }[]
    environment: { name: string; is_set: boolean; value: string | null }[]
  }
  const valueOf = ({ values }: Configuration, key: string) => values.find(one => one.key === key)
  const before = await read<Configuration>('/api/system/config')
  expect(before).toMatchObject({ path: app.configPath, exists: true })
  expect(valueOf(before, 'limits.depth')).toMatchObject({ value: '50', source: 'file', restart_needed: false })
  expect(valueOf(before, 'currency')).toMatchObject({ value: 'USD', source: 'default' })
  expect(valueOf(before, 'listen')).toMatchObject({ source: 'command_line' })
  writeFileSync(app.configPath, 'currency: EUR\nlimits: {min_free_disk: 0, ballast: 0}\nmodels: []\n')
  await app.app.reload()
  const after = await read<Configuration>('/api/system/config')
  expect(valueOf(after, 'currency')).toMatchObject({ value: 'USD', source: 'file', restart_needed: true })
  expect(valueOf(after, 'limits.depth')).toMatchObject({ value: '50', restart_needed: true })
})

test('backups are listed newest first, and no other file', async () => {
  const folder = join(app.dataDir, 'backups')
  expect(await read('/api/system/backups')).toEqual({ object: 'list', folder, data: [] })
  mkdirSync(folder)
  writeFileSync(join(folder, 'before-upgrade-from-12.db'), 'bytes')
  writeFileSync(join(folder, 'note.txt'), '')
  expect(await read('/api/system/backups')).toMatchObject({
    data: [{ path: join(folder, 'before-upgrade-from-12.db'), bytes: 5 }],
  })
})

test('all but the licences are for the owner of the machine', async () => {
  const { secret } = await makeOrganization(app)
  for (const what of ['doctor', 'config', 'backups']) {
    const refused = await app.fetch(`/api/system/${what}`, { token: secret })
    expect([what, refused.status]).toEqual([what, 403])
  }
  const licences = await app.fetch('/api/system/licenses', { token: secret })
  expect([licences.headers.get('content-type'), await licences.text()]).toEqual([
    'text/plain; charset=utf-8',
    expect.stringContaining('better-sqlite3') as string,
  ])
})
