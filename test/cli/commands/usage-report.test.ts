import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Usage } from '../../../cli/usage/read-usage.ts'
import { newId } from '../../../core/ids.ts'
import { openAdminStore } from '../../../core/store/sqlite/admin.ts'
import { startApp } from '../../_app.ts'
import { completed, finishedCall } from '../../core/store/_store.ts'
import { newExecution, newWorkflow } from '../../store/conformance/drawn.ts'
import { runInProcess } from '../_in-process.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

const day = 86_400_000
/** Two days ago, so that the last 30 days and the last week have it. */
const at = Date.now() - 2 * day

async function record(dataDir: string, organizationId: string, count: number): Promise<void> {
  const store = await openAdminStore(dataDir)
  await store.jobs.record(
    Array.from({ length: count }, (_, which) =>
      finishedCall({
        organizationId,
        modelId: which % 3 === 0 ? 'qwen' : 'flux',
        tokenId: `tok_${which}`,
        cost: 250_000,
        createdAt: at,
        startedAt: at,
        finishedAt: at,
      }),
    ),
  )
  await store.close()
}

/** A data directory with two organizations, one of which has used models. */
async function installation() {
  const dataDir = temporaryFolder()
  const run = (...args: string[]) => infer([...args, '--data-dir', dataDir])
  const made = json(await run('org', 'create', 'acme', '--json')) as { organization: { id: string } }
  await run('org', 'create', 'idle')
  await record(dataDir, made.organization.id, 9)
  return { run, dataDir }
}

test('usage is a table by model without a server, of the organization that is named', async () => {
  const { run } = await installation()
  const { exitCode, stdout, stderr } = await run('usage', '--org', 'acme')
  expect([exitCode, stdout]).toEqual([
    0,
    `model  requests  input tokens  output tokens  cost USD
flux          6            60             30      1.50
qwen          3            30             15      0.75
total         9            90             45      2.25
`,
  ])
  expect(stderr).toMatch(/^20\d\d-\d\d-\d\d 00:00Z to .*, acme\.\n$/)
  const idle = await run('usage', '--org', 'idle', '--by', 'day')
  expect([idle.exitCode, idle.stdout]).toEqual([0, ''])
  expect(idle.stderr).toMatch(/^No work of idle has ended from .* to .*\.\n$/)
  expect((await run('usage')).stderr).toContain('Choose one with --org: acme, idle.')
})

test('usage by workflow has the names of workflows beside their ids', async () => {
  const { run, dataDir } = await installation()
  const { organization_id } = json(await run('usage', '--org', 'acme', '--json')) as { organization_id: string }
  const store = await openAdminStore(dataDir)
  const [kept, deleted] = [newId('wf'), newId('wf')]
  for (const id of [kept, deleted]) {
    const owner = { organizationId: organization_id, createdAt: at }
    await store.workflows.create({ ...newWorkflow({ name: `named ${id === kept}` }), ...owner, id })
    const { modelId: _, ...execution } = newExecution(
      { nodes: { a: [] } },
      { ...owner, workflowId: id, workflowVersion: 1 },
    )
    await store.executions.create(execution)
    const job = await store.jobs.claim(organization_id, execution.nodes[0]!.jobId, at)
    await store.jobs.settle(job!, completed(at))
  }
  await store.workflows.remove(organization_id, deleted)
  await store.close()
  const { stdout } = await run('usage', '--org', 'acme', '--by', 'workflow')
  expect(
    stdout
      .split('\n')
      .slice(0, 4)
      .map(line =>
        line
          .trim()
          .split(/\s{2,}/)
          .slice(0, 2),
      ),
  ).toEqual(
    expect.arrayContaining([
      ['workflow', 'id'],
      ['named true', kept],
      ['(deleted)', deleted],
    ]),
  )
})

test('usage needs no master key: neither that of the server nor a new one', async () => {
  const dataDir = temporaryFolder()
  const key = Buffer.alloc(32, 1).toString('base64')
  await infer(['org', 'create', 'acme', '--data-dir', dataDir], { env: { INFER_MASTER_KEY: key } })
  const { exitCode, stderr } = await infer(['usage', '--data-dir', dataDir])
  expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/^No work of acme /)])
  const empty = temporaryFolder()
  expect((await infer(['usage', '--data-dir', empty])).exitCode).toBe(1)
  for (const directory of [dataDir, empty]) expect(existsSync(join(directory, 'master-key'))).toBe(false)
})

test('CSV has a row for each bucket and group, JSON is the answer of the API', async () => {
  const { run } = await installation()
  const csv = await run('usage', '--org', 'acme', '--by', 'token', '--since', '7d', '--csv')
  const lines = csv.stdout.trimEnd().split('\r\n')
  expect(lines[0]).toMatch(/^start_time,end_time,token_id,requests,jobs,/)
  const date = new Date(at).toISOString().slice(0, 10)
  expect(lines.slice(1).map(line => line.split(',').slice(0, 4).join())).toEqual(
    Array.from(
      { length: 9 },
      (_, which) =>
        `${date}T00:00:00Z,${new Date(Date.parse(date) + day).toISOString().slice(0, 10)}T00:00:00Z,tok_${which},1`,
    ),
  )
  const document = json(await run('usage', '--org', 'acme', '--since', '7d', '--width', 'month', '--json')) as {
    totals: { requests: number }
    bucket_width: string
  }
  expect(document).toMatchObject({ totals: { requests: 9 }, bucket_width: 'month', currency: 'USD' })
})

test.each([
  [['--since', 'yesterday'], /Write it as 30d, 12h or 2026-01-31/],
  [['--since', '1d', '--until', '2d'], /--since must be earlier than --until/],
  [['--since', '2100-01-01'], /not in the past/],
  [['--by', 'colour'], /colour/],
  [['--csv', '--json'], /Choose --csv or --json/],
])('a mistake in %j is explained with exit code 64', async (args, text) => {
  const { exitCode, stderr } = await infer(['usage', ...args, '--data-dir', temporaryFolder()])
  expect(exitCode).toBe(64)
  expect(stderr).toMatch(text)
})

test('by org there is a row for each organization that has used something, and the sum of all', async () => {
  const { run, dataDir } = await installation()
  const { organization } = json(await run('org', 'create', 'beta', '--json')) as { organization: { id: string } }
  await record(dataDir, organization.id, 3)
  const { stdout } = await runInProcess(['usage', '--by', 'org'], { INFER_DATA_DIR: dataDir })
  const lines = stdout
    .toString()
    .replaceAll(/org_\w{26}/g, 'org_…')
    .trimEnd()
    .split('\n')
  expect(lines.map(line => line.split(/ {2,}/))).toEqual([
    ['organization', 'id', 'requests', 'input tokens', 'output tokens', 'cost USD'],
    ['acme', 'org_…', '9', '90', '45', '2.25'],
    ['beta', 'org_…', '3', '30', '15', '0.75'],
    ['total', '12', '120', '60', '3.00'],
  ])
  const used = await runInProcess(['usage', '--by', 'org', '--json'], { INFER_DATA_DIR: dataDir })
  const { buckets, totals } = JSON.parse(used.stdout.toString()) as Usage
  expect(totals.requests).toBe(12)
  expect(buckets.flatMap(({ results }) => results.map(one => [one.organization_id, one.requests]))).toEqual([
    [expect.stringMatching(/^org_/), 9],
    [organization.id, 3],
  ])
})

test('the usage of a remote server is the same, over its API, however many pages it has', async () => {
  await using app = await startApp()
  await record(app.dataDir, app.organizationId, 6000)
  const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
  const remote = await infer(['usage', '--by', 'token', '--csv'], { env })
  const local = await infer(['usage', '--by', 'token', '--csv', '--data-dir', app.dataDir])
  expect(remote.exitCode).toBe(0)
  expect(remote.stdout.split('\r\n')).toHaveLength(6002)
  expect(remote.stdout).toBe(local.stdout)
  const named = await infer(['usage', '--org', 'default', '--by', 'token', '--csv'], { env })
  expect([named.stderr, named.stdout]).toEqual(['', remote.stdout])
  const refused = await infer(['usage', '--org', 'org_none'], { env })
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('no organization org_none')])
})
