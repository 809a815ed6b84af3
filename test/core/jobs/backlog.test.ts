import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../core/store/sqlite/database.ts'
import { createOrganization, newJob, openTestStore, temporaryDirectory } from '../store/_store.ts'

const pending = 100_000
const run = 600

/** A data directory with a hundred thousand waiting jobs: nine in ten of one organization, the rest of another. */
async function fill(dataDir: string): Promise<void> {
  const { store } = await openTestStore({ dataDir })
  for (const id of ['org_large', 'org_small']) await createOrganization(store, id)
  const { job } = await store.jobs.submit({ ...newJob({ organizationId: 'org_large', modelId: 'm' }), rank: 0 })
  await store.close()
  const database = openDatabase(join(dataDir, 'infer.db'))
  const columns = (database.pragma('table_info(jobs)') as { name: string }[]).map(({ name }) => name)
  const changed: Record<string, string> = {
    number: 'number + n',
    id: "'job_' || printf('%026d', n)",
    rank: 'n',
    organization_id: "CASE n % 10 WHEN 9 THEN 'org_small' ELSE 'org_large' END",
  }
  database.exec(
    `INSERT INTO jobs (${columns.join(', ')})
     WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ${pending - 1})
     SELECT ${columns.map(name => changed[name] ?? name).join(', ')} FROM counted, jobs WHERE id = '${job.id}'`,
  )
  database.exec(`INSERT INTO job_inputs SELECT number, '{"prompt":"a cat"}' FROM jobs WHERE id <> '${job.id}'`)
  database.exec(`UPDATE job_counts SET jobs = ${pending} WHERE status = 'pending'`)
  database.close()
}

test('T-DUR-5: a hundred thousand waiting jobs are counted at once, held by the hundred, and run in the fair order', {
  timeout: 180_000,
}, async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  await fill(dataDir)
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, '../../fixtures/jobs-process.ts'), dataDir, String(run)],
    { maxBuffer: 64 << 20 },
  )
  const said = JSON.parse(stdout.trim().split('\n').at(-1)!) as {
    readyMs: number
    counted: { waiting: number }
    ready: number
    ranMs: number
    ran: [organizationId: string, rank: number][]
    held: number
    rss: number
  }
  process.stdout.write(
    `backlog: ${pending} pending, ready after ${said.readyMs} ms at ${said.ready} MB, ` +
      `${run} run in ${said.ranMs} ms, ${said.held} held, ${said.rss} MB at the end\n`,
  )
  expect(said.counted.waiting).toBe(pending)
  expect(said.readyMs).toBeLessThan(5_000)
  expect(said.held).toBeLessThanOrEqual(2 * 512)
  expect(said.rss).toBeLessThan(300)
  // Each organization's jobs begin in their order; and the small one, with a tenth of the jobs, gets half of the
  // starts.
  const of = (organization: string) => said.ran.filter(([name]) => name === organization).map(([, rank]) => rank)
  for (const ranks of [of('org_large'), of('org_small')]) {
    const lateness = ranks.map((rank, at) => Math.abs(ranks.toSorted((a, b) => a - b).indexOf(rank) - at))
    // Sixteen begin at once, in an unspecified order.
    expect(Math.max(...lateness)).toBeLessThanOrEqual(16)
  }
  expect(of('org_small').length / said.ran.length).toBeGreaterThan(0.3)
})
