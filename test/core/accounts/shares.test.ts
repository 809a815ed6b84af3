import { expect, test } from 'vitest'
import { openPlans } from '../../../core/accounts/plans.ts'
import { openShares } from '../../../core/accounts/shares.ts'
import type { Organization } from '../../../core/store/store.ts'
import { keptLog, openTestStore } from '../store/_store.ts'

test('an organization has the share of its plan; an unknown one has the smallest, and is read from the store', async () => {
  await using opened = await openTestStore()
  const { organizations } = opened.store
  const make = (id: string, plan: 'free' | 'pro' | 'enterprise') =>
    organizations.create({ id, name: id, plan, requestsPerMinute: null, jobsPerMinute: null, createdAt: 0 })
  await make('org_free', 'free')
  await make('org_pro', 'pro')
  await make('org_enterprise', 'enterprise')
  const shares = openShares({
    store: organizations,
    plans: openPlans({ configured: {}, log: keptLog().log }),
    log: keptLog().log,
  })
  await shares.read()
  expect(['org_free', 'org_pro', 'org_enterprise'].map(id => shares.of(id))).toEqual([1, 2, 4])
  await make('org_new', 'enterprise')
  expect(shares.of('org_new')).toBe(1)
  await expect.poll(() => shares.of('org_new')).toBe(4)
})

test('a store that cannot be read leaves the known shares', async () => {
  const { log, lines } = keptLog()
  let broken = false
  const list = async () => {
    if (broken) throw new Error('no disk')
    return [{ id: 'org_a', plan: 'pro', share: null } as Organization]
  }
  const shares = openShares({
    store: { list: async () => [...(await list())] },
    plans: openPlans({ configured: {}, log }),
    log,
  })
  await shares.read()
  broken = true
  await shares.read()
  expect(shares.of('org_a')).toBe(2)
  expect(lines.filter(line => line.includes('no disk'))).toHaveLength(1)
})

test('an organization has a share of its own, or that of its configured plan, whose change counts at once', async () => {
  const { log } = keptLog()
  const plans = openPlans({ configured: { team: { share: 7 } }, log })
  const list = async () => [
    { id: 'org_own', plan: 'team', share: 9 } as Organization,
    { id: 'org_team', plan: 'team', share: null } as Organization,
  ]
  const shares = openShares({ store: { list }, plans, log })
  await shares.read()
  expect(['org_own', 'org_team'].map(id => shares.of(id))).toEqual([9, 7])
  plans.replace({ team: { share: 3 } })
  expect(['org_own', 'org_team'].map(id => shares.of(id))).toEqual([9, 3])
})
