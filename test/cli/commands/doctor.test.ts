import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Finding } from '../../../cli/doctor/finding.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { fakeServer } from '../_server.ts'

interface Report {
  healthy: boolean
  findings: Finding[]
}

/** A port that is in use while the test runs. */
async function takenPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const examine = async (dataDir: string) => {
  const ended = await infer(['doctor', '--json', '--data-dir', dataDir])
  const report = json(ended) as Report
  return { ...ended, report, found: (name: string) => report.findings.find(finding => finding.name === name)! }
}

/** Offers no model that needs a file on disk, so that the doctor reports none as missing. */
const configuration = (listen: string) =>
  `listen: ${listen}\nlimits: {min_free_disk: 1MiB}\nmodels: [{id: far, engine: remote, url: 'http://127.0.0.1:1/v1'}]\n`

test('an installation without faults passes, with one line for each check', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), configuration('127.0.0.1:0'))
  await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  const { exitCode, report, found } = await examine(dataDir)
  expect(report.findings.filter(({ state }) => state === 'broken')).toEqual([])
  expect([exitCode, report.healthy]).toEqual([0, true])
  for (const name of ['program', 'system library', 'configuration', 'data directory', 'database', 'engine wrapper'])
    expect(found(name), name).toBeDefined()
  expect(found('backend cpu')).toMatchObject({ state: 'fine', detail: expect.stringContaining('llama.cpp') as string })
  expect(found('backend cuda').detail).toContain(`is not installed in ${join(dataDir, 'backends')}`)
  expect(found('database').detail).toContain('intact')

  const text = await infer(['doctor', '--data-dir', dataDir])
  expect(text.exitCode).toBe(0)
  expect(
    text.stdout
      .trimEnd()
      .split('\n')
      .filter(line => /^(fine|warning|broken)/.test(line)),
  ).toHaveLength(report.findings.length)
})

test('faults exit with 1, and each one says what to do', async () => {
  const dataDir = temporaryFolder()
  const port = await takenPort()
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    `listen: 127.0.0.1:${port}\nmodels: [{id: m, source: /nonexistent.gguf}]\n`,
  )
  writeFileSync(join(dataDir, 'infer.db'), 'this is no database. '.repeat(500))
  chmodSync(dataDir, 0o777)
  const { exitCode, report, found } = await examine(dataDir)
  expect([exitCode, report.healthy]).toEqual([1, false])
  for (const name of ['model files', 'data directory', 'database', 'address'])
    expect(found(name), name).toMatchObject({ state: 'broken', advice: expect.any(String) as string })
  expect(found('address').detail).toBe(`127.0.0.1:${port} is taken by node (process ${process.pid})`)
})

test('an invalid configuration is a finding, and the other checks still run', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), 'listen: [1]\n')
  const { exitCode, found } = await examine(dataDir)
  expect(exitCode).toBe(1)
  expect(found('configuration')).toMatchObject({
    state: 'broken',
    detail: expect.stringContaining('infer.yaml:1') as string,
  })
  expect(found('GPUs')).toBeDefined()
})

test('the doctor asks a running server whether it is ready', async () => {
  const { url, seen } = await fakeServer((_, response) => response.end('ready'))
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'server.json'), JSON.stringify({ url, pid: process.pid }))
  expect((await examine(dataDir)).found('address')).toMatchObject({
    state: 'fine',
    detail: `the server runs at ${url} (process ${process.pid})`,
  })
  expect(seen.map(({ path }) => path)).toEqual(['/readyz'])
})

test('with INFER_URL it says that it checks this machine, and asks the server whether it is ready', async () => {
  const { url, seen } = await fakeServer((_, response) => response.writeHead(503).end())
  const ended = await infer(['doctor', '--json', '--data-dir', temporaryFolder()], { env: { INFER_URL: `${url}/v1` } })
  const [first] = (json(ended) as Report).findings
  expect(first).toMatchObject({
    name: 'INFER_URL',
    state: 'warning',
    detail: `the server at ${url}/v1 is not ready (503); all checks below are about this machine, not about that server`,
    advice: expect.stringContaining("Run 'infer doctor' on that machine") as string,
  })
  expect(seen.map(({ path }) => path)).toEqual(['/readyz'])
})

test('a sandbox path that does not exist is a warning', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    `models: [{id: m, engine: custom, command: [serve, '{socket}'], sandbox_read: [/no/such/folder, ${dataDir}]}]\n`,
  )
  const { found } = await examine(dataDir)
  expect(found('sandbox paths')).toMatchObject({
    state: 'warning',
    detail: expect.stringMatching(
      /^'sandbox_read' of 'm' names \/no\/such\/folder, which does not exist here/,
    ) as string,
  })
  expect(found('sandbox paths').detail).not.toContain(dataDir)
})

test('the doctor creates no file', async () => {
  const dataDir = join(temporaryFolder(), 'data')
  const { found } = await examine(dataDir)
  expect(found('data directory')).toMatchObject({ state: 'fine', detail: `${dataDir} is created at the first start` })
  expect(existsSync(dataDir)).toBe(false)
})
