import { expect, test } from 'vitest'
import { type AttentionFacts, attentionOf } from '../../../server/console/app/api/attention.ts'

const model = { model_id: 'a/b', status: 'warm', reason: null, waiting: 0, engine_failures: 0 } as const
const limit = {
  name: 'stored_bytes',
  limit_of: 'organization',
  limit: 100,
  remaining: 100,
  reset_seconds: null,
} as const
const noSpend = { monthly_limit: null, spent: 5, held: 0, remaining: null, period_start: 0, period_end: 1 }

const cases: [name: string, facts: AttentionFacts, found: [kind: string, what: string][]][] = [
  ['nothing that is known', {}, []],
  ['a model that works', { models: [model] }, []],
  ['an engine that failed twice and works', { models: [{ ...model, engine_failures: 2 }] }, []],
  [
    'an engine that fails again and again',
    { models: [{ ...model, engine_failures: 3 }] },
    [['warning', 'The engine of a/b failed 3 times since the server started.']],
  ],
  [
    'a model that is unavailable',
    { models: [{ ...model, status: 'unavailable' }] },
    [['bad', 'The model a/b is unavailable.']],
  ],
  [
    'a peer that cannot be reached, and not each of its models',
    {
      peers: [
        { name: 'box', models: 2, fault: 'It is away.' },
        { name: 'lab', models: 1, fault: null },
      ],
      models: [
        { ...model, model_id: 'box/a', status: 'unavailable', reason: 'It is away.' },
        { ...model, status: 'unavailable', reason: 'Its file is missing.' },
      ],
    },
    [
      ['bad', 'The 2 models of the peer box cannot be used.'],
      ['bad', 'The model a/b is unavailable.'],
    ],
  ],
  ['a limit below 80 %', { limits: [{ ...limit, remaining: 21 }] }, []],
  [
    'a limit at 80 %',
    { limits: [{ ...limit, remaining: 20 }] },
    [['warning', 'Stored files: 80 % of the limit of the organization is used.']],
  ],
  [
    'a limit that is used up',
    { limits: [{ ...limit, limit_of: 'token', remaining: 0 }] },
    [['bad', 'Stored files: 100 % of the limit of the token is used. More is refused.']],
  ],
  [
    'a limit that is whole again within a minute',
    { limits: [{ ...limit, name: 'requests_per_minute', remaining: 0 }] },
    [],
  ],
  ['spending without a limit', { spend: { organization: noSpend, token: noSpend } }, []],
  [
    'spending with what unfinished work may cost',
    { spend: { organization: { ...noSpend, monthly_limit: 10, held: 4 }, token: noSpend } },
    [['warning', 'Spending this month: 90 % of the limit of the organization is used.']],
  ],
  [
    'findings of the checks, and what is broken first',
    {
      findings: [
        { name: 'disk', state: 'fine', detail: 'Enough.', advice: null },
        { name: 'certificate', state: 'warning', detail: 'It expires soon.', advice: 'Renew it.' },
        { name: 'database', state: 'broken', detail: 'It is damaged.', advice: null },
      ],
    },
    [
      ['bad', 'Check "database".'],
      ['warning', 'Check "certificate".'],
    ],
  ],
  [
    'a configuration that is not in force',
    { configuration: { fault: 'Line 3.', restart_for: ['listen', 'tls'] } },
    [
      ['bad', 'The configuration file is not in force.'],
      ['warning', 'Changed settings take effect at the next start of the server: listen, tls.'],
    ],
  ],
]

test.each(cases)('%s', (_, facts, found) => {
  expect(attentionOf(facts).map(({ kind, what }) => [kind, what])).toEqual(found)
})

test('the reason, what waits and the advice are said, with the way there', () => {
  const [unavailable, check] = attentionOf({
    models: [{ ...model, status: 'unavailable', reason: 'It exited.', waiting: 2 }],
    findings: [{ name: 'certificate', state: 'warning', detail: 'It expires soon.', advice: 'Renew it.' }],
  })
  expect(unavailable).toMatchObject({
    why: 'It exited. 2 requests and jobs wait for it.',
    href: '/models/details/a/b?part=log',
  })
  expect(check).toMatchObject({ why: 'It expires soon. Renew it.', href: '/system/checks' })
})
