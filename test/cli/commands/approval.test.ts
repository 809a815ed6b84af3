import { expect, test } from 'vitest'
import { infer } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

const approval = (more: object = {}) => ({
  id: 'job_01K2ZZZZZZ7QK2M9XDAAAAAAAA',
  object: 'approval',
  execution_id: 'exec_1',
  node_id: 'review',
  item: null,
  workflow_id: 'wf_1',
  workflow_name: 'Story',
  title: 'Publish \u001b[31mit?',
  text: 'First line\nsecond line',
  images: [],
  form: { properties: { amount: { type: 'integer', description: 'In euros' } }, required: ['amount'] },
  approvers: ['ada@example.com'],
  may_answer: true,
  url: 'http://localhost/approvals/x',
  created_at: 1,
  reminder_at: null,
  timeout_at: null,
  ...more,
})

async function server() {
  const sent: { path: string; body: unknown }[] = []
  const opened = await fakeServer(({ path, body }, response) => {
    if (path.endsWith('/resolve')) {
      sent.push({ path, body: typeof body === 'string' ? JSON.parse(body) : body })
      return answer(response, 200, { execution_id: 'exec_1', node_id: 'review', resolved: true })
    }
    const other = approval({ id: 'job_01K2ZZZZZZ7QK2M9XDBBBBBBBB', item: 3 })
    return path.startsWith('/api/approvals/job_')
      ? answer(response, 200, { approval: approval() })
      : answer(response, 200, { approvals: [approval(), other], has_more: false, next_cursor: null })
  })
  const run = (...args: string[]) => infer(['approval', ...args], { env: { INFER_URL: opened.url, INFER_TOKEN: 'x' } })
  return { sent, run }
}

test('open approvals are listed, and shown with their form', async () => {
  const { run } = await server()
  const listed = await run('list')
  expect(listed.stdout).toMatch(/Story +review .*Publish/)
  expect(listed.stdout).toMatch(/Story +review\[3\] .*Publish/)
  expect(listed.stdout).not.toContain('\u001b')
  const shown = await run('show', 'AAAAAAAA')
  expect(shown.stdout).toContain('First line\nsecond line\n\nform\n  amount (required): integer  In euros')
  expect(shown.stdout).toContain('http://localhost/approvals/x')
})

test('an approval is answered by the end of its id, with its form and a comment', async () => {
  const { run, sent } = await server()
  const approved = await run('approve', 'aaaaaaaa', '--answer', '{"amount": 7}', '--comment', 'Yes')
  expect([approved.exitCode, approved.stderr + approved.stdout]).toEqual([
    0,
    expect.stringContaining('Approved: Publish'),
  ])
  expect((await run('reject', 'job_01K2ZZZZZZ7QK2M9XDAAAAAAAA')).exitCode).toBe(0)
  expect((await run('approve', 'BBBBBBBB')).exitCode).toBe(0)
  expect(sent.pop()!.body).toEqual({ approved: true, item: 3 })
  expect(sent).toEqual([
    {
      path: '/api/workflow-executions/exec_1/nodes/review/resolve',
      body: { approved: true, comment: 'Yes', answer: { amount: 7 } },
    },
    { path: '/api/workflow-executions/exec_1/nodes/review/resolve', body: { approved: false } },
  ])
})

test.each([
  [['approve', 'AAAAAAAA', '--answer', '{'], '--answer is no JSON'],
  [['approve', 'CCCCCCCC'], 'No open approval'],
  [['approve', 'K2'], 'No open approval'],
])('%j is refused with a reason', async (args, reason) => {
  const { run, sent } = await server()
  const { exitCode, stderr } = await run(...args)
  expect([exitCode, stderr, sent]).toEqual([64, expect.stringContaining(reason), []])
})
