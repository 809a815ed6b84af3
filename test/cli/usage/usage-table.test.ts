import { expect, test } from 'vitest'
import { plainPaint } from '../../../cli/terminal/styled-line.ts'
import { drawTable } from '../../../cli/terminal/table.ts'
import type { Usage, UsageBucket } from '../../../cli/usage/read-usage.ts'
import { bar, usageTable } from '../../../cli/usage/usage-table.ts'
import type { UsageGroup, UsageSums } from '../../../core/store/store.ts'
import { usageSums } from '../../../core/store/usage-text.ts'

type UsageResult = UsageBucket['results'][number]

const sums = (change: Partial<UsageSums> = {}): UsageSums => ({
  ...usageSums(Array.from({ length: 17 }, () => 0)),
  ...change,
})
const result = (group: Partial<Record<UsageGroup, string | null>>, change: Partial<UsageSums>) =>
  ({
    model_id: null,
    task: null,
    token_id: null,
    user_id: null,
    workflow_id: null,
    status: null,
    day: null,
    ...group,
    ...sums(change),
  }) as UsageResult
const usage = (results: UsageResult[][], totals: Partial<UsageSums>): Usage => ({
  organization_id: 'org_1',
  start_time: 0,
  end_time: 86_400 * results.length,
  bucket_width: '1d',
  currency: 'USD',
  totals: sums(totals),
  spend_limit: { monthly_limit: null, spent: 0 },
  buckets: results.map(
    (of, at): UsageBucket => ({ start_time: at * 86_400, end_time: (at + 1) * 86_400, results: of }),
  ),
})
const draw = (of: Usage, by: UsageGroup, width: number) => {
  const { head, rows } = usageTable(of, by, { width, paint: plainPaint })
  return drawTable(head, rows, plainPaint, width).split('\n')
}

test.each([
  [0, 10, ''],
  [10, 10, '████'],
  [5, 10, '██'],
  [0.001, 10, '▏'],
  [1, 16, '▎'],
  [15, 16, '███▊'],
])('a bar of %d of %d is %s', (part, whole, drawn) => {
  expect(bar(part, whole, 4)).toBe(drawn)
})

const two = usage(
  [
    [result({ model_id: 'small' }, { requests: 1, input_tokens: 10, cost: 0.5 })],
    [
      result({ model_id: 'large' }, { requests: 2000, input_tokens: 4000, cost: 2 }),
      result({ model_id: 'small' }, { requests: 1, input_tokens: 10, cost: 0.5 }),
    ],
  ],
  { requests: 2002, input_tokens: 4020, cost: 3 },
)

test('the table has a row for each group over all buckets, the largest first, and only measures that were used', () => {
  expect(draw(two, 'model_id', 70)).toEqual([
    'model  requests  input tokens  cost USD  by cost',
    'large     2,000         4,000      2.00  █████████████████████████████',
    'small         2            20      1.00  ██████████████▌',
    'total     2,002         4,020      3.00',
  ])
})

test('a pipe and a narrow terminal get no bars', () => {
  for (const width of [0, 45]) expect(draw(two, 'model_id', width).join('\n')).not.toMatch(/by cost|█/)
})

test('without a price the bars show GPU time, without that tokens, then requests', () => {
  const heads = ([{ gpu_seconds: 5, input_tokens: 1 }, { output_tokens: 1 }, { jobs: 1 }] as const).map(
    change => draw(usage([[result({ model_id: 'm' }, change)]], change), 'model_id', 100)[0],
  )
  expect(heads.map(head => head?.replace(/.* {2}/, ''))).toEqual(['by GPU time', 'by tokens', 'by requests'])
})

test('days keep their order, and what has no name is said', () => {
  const days = usage(
    [[result({ day: '2026-01-01' }, { requests: 1 })], [result({ day: '2026-01-02' }, { requests: 5 })]],
    { requests: 6 },
  )
  expect(draw(days, 'day', 0).map(line => line.split(' ')[0])).toEqual(['day', '2026-01-01', '2026-01-02', 'total'])
  const nobody = usage([[result({}, { requests: 1 })]], { requests: 1 })
  expect(draw(nobody, 'user_id', 0)[1]).toMatch(/^\(nobody\)/)
  expect(draw(nobody, 'workflow_id', 0)[1]).toMatch(/^\(no workflow\)/)
})

test('a name cannot control the terminal', () => {
  const evil = usage([[result({ model_id: 'a\u001b[2J' }, { requests: 1 })]], { requests: 1 })
  expect(draw(evil, 'model_id', 80).join('')).not.toContain('\u001b')
})

test('with names each row has its id beside its name; what was deleted has none', () => {
  const tokens = usage(
    [[result({ token_id: 'tok_1' }, { requests: 3 }), result({ token_id: 'tok_2' }, { requests: 2 })]],
    { requests: 5 },
  )
  const names = new Map([['tok_1', 'ci']])
  const { head, rows } = usageTable(tokens, 'token_id', { width: 0, paint: plainPaint, names })
  expect(drawTable(head, rows, plainPaint)).toBe(
    [
      'token      id     requests',
      'ci         tok_1         3',
      '(deleted)  tok_2         2',
      'total                    5',
    ].join('\n'),
  )
})
