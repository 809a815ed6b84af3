import { expect, test } from 'vitest'
import type { LocalOnlyOf } from '../../../core/accounts/local-only.ts'
import { openAdmission, type Requester } from '../../../core/admission/admission.ts'
import { openBodyMemory } from '../../../core/admission/body-memory.ts'
import { Model } from '../../../core/models/model.ts'
import { openRegistry } from '../../../core/models/registry.ts'
import type { Region, RegionLabel } from '../../../core/schemas/region.ts'
import { traitsOf } from '../../../gpu/presets/presets.ts'

const task = 'std/chat-completion'
const hosted = (region?: RegionLabel) =>
  Model.parse({ id: 'hosted', engine: 'remote', url: 'https://api.example.com', tasks: [task], region })

function setUp(region?: RegionLabel, localOnlyOf: LocalOnlyOf = () => undefined) {
  const registry = openRegistry({ models: [hosted(region)], defaults: () => [], traits: traitsOf, region: 'EU' })
  const room = { records() {}, queue() {}, machine() {} }
  const tokenLimiter = { admit() {} }
  const spender = {
    organizationId: 'org_a',
    originId: 'tok_a',
    tokenName: 't',
    organizationLimit: 100,
    tokenLimit: 10,
    parents: [],
  }
  const spend = {
    requireAnythingLeft() {},
    spentOut: () => undefined,
    spenderOf: async () => spender,
    hold() {},
    holdsFor: (id: string) => id === 'job_priced',
  }
  return {
    registry,
    admission: openAdmission({ registry, room, tokenLimiter, spend, localOnlyOf, bodies: openBodyMemory(1 << 20) }),
  }
}

const requester = (region?: Region, restricted: string | null = null) =>
  ({
    organizationId: 'org_a',
    tokenId: 'tok_a',
    region,
    limits: { pendingJobs: 0, storedBytes: 0 },
    token: {
      name: 't',
      models: null,
      organizationName: 'acme',
      region: restricted,
      limits: { monthlySpendLimit: null, localOnly: false },
    },
  }) as unknown as Requester
const job = (region: RegionLabel | null, id = 'job_free') =>
  ({
    id,
    organizationId: 'org_a',
    tokenId: 'tok_a',
    task,
    modelId: 'hosted',
    relayed: false,
    region,
  }) as const

test.each<[Region | undefined, string | null, Region | undefined, RegionLabel | null]>([
  [undefined, null, undefined, null],
  ['US', null, undefined, 'US'],
  [undefined, 'US', undefined, 'US'],
  [undefined, null, 'US', 'US'],
  ['Global', null, 'Global', null],
])(
  'a request for %s, an organization in %s, a workflow in %s: admitted for %s',
  (asked, restricted, workflow, region) => {
    const { admission } = setUp('US')
    const work = { kind: 'node', task, modelId: 'hosted', region: workflow } as const
    expect(admission.admit(requester(asked, restricted), work).region).toBe(region)
  },
)

test('a remote model without a region is not in the region of this machine', () => {
  const { admission } = setUp()
  expect(() => admission.admit(requester('EU'), { kind: 'job', task, modelId: 'hosted' })).toThrow('in no region')
})

test('a job of a model that was moved to another region waits until it is back', () => {
  const { admission, registry } = setUp('US')
  expect(admission.readmit(job('US')).id).toBe('hosted')
  registry.replace([hosted('EU')])
  expect(() => admission.readmit(job('US'))).toThrow(
    expect.objectContaining({ code: 'no_capacity', final: false }) as Error,
  )
  expect(admission.readmit(job(null)).id).toBe('hosted')
  registry.replace([hosted('US')])
  expect(admission.readmit(job('US')).id).toBe('hosted')
})

test('a call for a job is admitted for its token and its region', async () => {
  const { admission } = setUp('US')
  const work = { task, modelId: 'hosted' } as const
  expect(await admission.admitForJob(job('US'), work)).toMatchObject({
    organizationId: 'org_a',
    tokenId: 'tok_a',
    region: 'US',
  })
  await expect(admission.admitForJob(job('EU'), work)).rejects.toThrow('in the region EU')
})

test('a job that was passed on by another infer is not passed on to a further one, nor is a call for it', async () => {
  const { admission, registry } = setUp()
  registry.replace([Model.parse({ id: 'hosted', engine: 'infer', url: 'http://127.0.0.1:9', tasks: [task] })])
  expect(admission.readmit(job(null)).id).toBe('hosted')
  const passedOn = { ...job(null), relayed: true }
  expect(() => admission.readmit(passedOn)).toThrow('Requests are passed on once only')
  await expect(admission.admitForJob(passedOn, { task, modelId: 'hosted' })).rejects.toMatchObject({
    code: 'model_not_allowed',
  })
})

test('a call for a job that holds its cost is not refused because of what the job itself holds', async () => {
  const { admission } = setUp('US')
  const work = { task, modelId: 'hosted' } as const
  const limitsOf = async (id: string) => {
    const { organizationLimit, tokenLimit } = (await admission.admitForJob(job('US', id), work)).spender
    return [organizationLimit, tokenLimit]
  }
  expect(await limitsOf('job_priced')).toEqual([null, null])
  expect(await limitsOf('job_free')).toEqual([100, 10])
})

test('a job whose token or organization keeps its work here meanwhile does not begin elsewhere', async () => {
  let owner: ReturnType<LocalOnlyOf>
  const { admission, registry } = setUp(undefined, tokenId => (tokenId === 'tok_a' ? owner : undefined))
  const own = Model.parse({ id: 'own', engine: 'llama-server', source: '/a.gguf', tasks: [task] })
  registry.replace([hosted(), own])
  expect(admission.readmit(job(null)).id).toBe('hosted')
  for (const of of ['token', 'organization'] as const) {
    owner = { of, name: 'acme' }
    const refusal = expect.objectContaining({ code: 'model_not_allowed', retryable: false }) as Error
    expect(() => admission.readmit(job(null))).toThrow(refusal)
    expect(() => admission.readmit(job(null))).toThrow(`work of the ${of} 'acme' never leaves this machine`)
    await expect(admission.admitForJob(job(null), { task, modelId: 'hosted' })).rejects.toThrow(refusal)
    expect(admission.readmit({ ...job(null), modelId: 'own' }).id).toBe('own')
  }
})

test.each([
  ['the token', {}, { localOnly: true }, "the token 't'"],
  ['the organization', { localOnly: true }, { localOnly: false }, "the organization 'acme'"],
])('work of %s that is local_only is refused for a model that runs elsewhere', (_, limits, ofToken, whose) => {
  const { admission, registry } = setUp()
  const own = Model.parse({
    id: 'own',
    engine: 'llama-server',
    source: '/a.gguf',
    tasks: [task],
    fallbacks: [{ model: 'hosted' }],
  })
  registry.replace([hosted(), own])
  const base = requester()
  const asking = {
    ...base,
    limits: { ...base.limits, ...limits },
    token: { ...base.token, limits: { ...base.token.limits, ...ofToken } },
  }
  const refused = `work of ${whose} never leaves this machine`
  for (const kind of ['call', 'job', 'node', 'line'] as const)
    expect(() => admission.admit(asking, { kind, task, modelId: 'hosted' })).toThrow(refused)
  expect(admission.admit(asking, { kind: 'call', task, modelId: 'own' }).model.id).toBe('own')
  expect(admission.fallbacksFor(asking, own)).toEqual([])
  expect(admission.fallbacksFor(base, own)).toHaveLength(1)
})
