import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

/** A cluster of which the test answers as Slurm would: two nodes with two cards, and jobs that wait. */
const slurm = mkdtempSync(join(tmpdir(), 'infer-slurm-words-'))
const script = (name: string, lines: string) =>
  writeFileSync(join(slurm, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 })
script('sinfo', "printf 'n1|idle|gpu:2\\nn2|idle|gpu:2\\n'")
script(
  'sbatch',
  `for a; do case $a in --comment=*) echo "7|PENDING|Resources||N/A|\${a#*=}" > '${slurm}/jobs';; esac; done; echo 7`,
)
script('squeue', `cat '${slurm}/jobs' 2>/dev/null; exit 0`)
script('scancel', `rm -f '${slurm}/jobs'`)

let console: TestConsole
beforeAll(async () => {
  const model = {
    id: 'far',
    engine: 'custom',
    command: ['sh', '{socket}'],
    memory: '60GiB',
    devices: 1,
    pools: ['lab'],
  }
  console = await openConsole(
    {
      pools: { lab: { kind: 'slurm', card_memory: '80GiB', max_cards: 3, cost_per_hour: 1.5, monthly_cost_limit: 90 } },
      // Nothing listens there, and its token is not known.
      peers: { box2: { url: 'http://127.0.0.1:9', api_key_env: 'INFER_TEST_NO_TOKEN' } },
      models: [{ ...model, tasks: ['std/chat-completion'] }],
    },
    { PATH: `${slurm}:${process.env.PATH}` },
  )
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  rmSync(slurm, { recursive: true, force: true })
})

test('the overview has the pools and why their engines wait for a machine, and peers and why they are of no use', async () => {
  const input = { messages: [{ role: 'user', content: 'hi' }] }
  await console.call('/api/jobs', { model_id: 'far', task: 'std/chat-completion', input })
  for (const [name, size] of sizes) {
    await using opened = await console.open('/', { size })
    const { page } = opened
    await page.getByRole('heading', { name: 'lab', exact: true }).waitFor()
    await page.getByText('1 of 4 GPUs in use by 1 engine · at most 3 GPUs · 1.5 an hour for each GPU').waitFor()
    await page.getByRole('img', { name: /^Cost this month: [\d.]+ of 90\.00 USD$/ }).waitFor()
    const row = page.getByRole('table', { name: 'Engines in pools' }).getByRole('row').filter({ hasText: 'far' })
    await row.getByText(/the cards, cores or memory that it needs are in use \(Resources\)/).waitFor()
    const peer = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'box2' }) })
    await peer.getByText('has not answered yet').waitFor()
    await peer.getByText(/INFER_TEST_NO_TOKEN/).waitFor()
    expect(await row.getByRole('cell', { name: 'lab', exact: true }).count(), name).toBe(1)
    await opened.expectAccessible()
    await opened.screenshot('pools')
  }
})
